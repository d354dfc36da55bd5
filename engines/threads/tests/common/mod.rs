#![allow(dead_code, reason = "each test binary uses its part")]

//! Compiles test programs and schedulers with the C compiler, and runs them.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use attune_language::engine::Engine;
use attune_language::{Options, check};

/// A directory of this test binary's own, gone with it.
pub fn directory() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

pub fn here(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Where cargo has put libattune_threads.so.
fn library() -> PathBuf {
    let test = std::env::current_exe().expect("the test's own path");
    test.parent().expect("tests lie in a directory").to_path_buf()
}

pub fn cc(arguments: &[&dyn AsRef<OsStr>]) {
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".into());
    let mut command = Command::new(compiler);
    command.args(["-g", "-Wall", "-Wextra", "-Werror", "-Wno-infinite-recursion"]);
    arguments.iter().for_each(|argument| {
        command.arg(argument);
    });
    let output = command.output().expect("the C compiler");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Compiles a scheduler of tests/schedulers.
pub fn scheduler(directory: &Path, name: &str) -> PathBuf {
    let out = directory.join(format!("{name}.so"));
    compile(&here(&format!("tests/schedulers/{name}.sched")), &out);
    out
}

/// Compiles a scheduler's file, or one of the library by its name.
pub fn compile(scheduler: &Path, out: &Path) {
    attune_backend_c::compile(&c_of(scheduler), out, false).expect("it compiles");
}

/// The C of a scheduler's file, or of one of the library.
pub fn c_of(scheduler: &Path) -> String {
    let mut opened = attune_schedulers::open(scheduler, &[]).expect("the scheduler's file");
    let checked = check(&opened.source, &mut opened.loader, &Options::default());
    assert!(!checked.has_errors(), "{}: {:?}", scheduler.display(), checked.diagnostics);
    let program = checked.program.as_ref().expect("no errors, so a program");
    let verdicts = &checked.engine(Engine::Threads).verdicts;
    let c = attune_backend_c::generate(program, verdicts, &checked.sources, &Default::default());
    c.expect("C")
}

/// A program of tests/programs, linked with the library.
pub fn program(directory: &Path, name: &str) -> PathBuf {
    program_with(directory, name, "-O0")
}

/// The same, with one word more for the compiler.
pub fn program_with(directory: &Path, name: &str, word: &str) -> PathBuf {
    linked(directory, &format!("{name}.c"), &["-std=gnu11", word], &[])
}

/// One in C++.
pub fn cpp_program(directory: &Path, name: &str) -> PathBuf {
    linked(directory, &format!("{name}.cc"), &["-std=gnu++17"], &["-lstdc++"])
}

fn linked(directory: &Path, source: &str, words: &[&str], libraries: &[&str]) -> PathBuf {
    let out = directory.join(source).with_extension("");
    let source = here("tests/programs").join(source);
    let library = library();
    // An old tag goes before LD_LIBRARY_PATH, in which cargo may name an older library first.
    let rpath = format!("-Wl,--disable-new-dtags,-rpath,{}", library.display());
    let include = here("include");
    let mut arguments: Vec<&dyn AsRef<OsStr>> = Vec::new();
    for word in words {
        arguments.push(word);
    }
    let common: [&dyn AsRef<OsStr>; 10] = [
        &"-I",
        &include,
        &"-o",
        &out,
        &source,
        &"-L",
        &library,
        &"-lattune_threads",
        &"-pthread",
        &rpath,
    ];
    arguments.extend(common);
    for library in libraries {
        arguments.push(library);
    }
    cc(&arguments);
    out
}

/// Values of `ATTUNE_IO` under which programs run the same: what the machine has, and epoll.
pub const POLLERS: [&str; 2] = ["", "epoll"];

pub struct Ended {
    /// None: by a signal.
    pub status: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

/// Runs to the end; a program that hangs is stopped after a minute.
pub fn run(command: &mut Command) -> Ended {
    let mut timed = Command::new("timeout");
    timed.arg("60").arg(command.get_program()).args(command.get_args());
    timed.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let Output { status, stdout, stderr } = timed.output().expect("timeout runs it");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Ended { status: status.code(), stdout: text(stdout), stderr: text(stderr) }
}

/// Runs the body of the test of that name in a process of its own, since a process has one engine:
/// this binary again, with the test's name. Once with the poller that the kernel allows, and once
/// with epoll.
pub fn alone(name: &str, body: impl FnOnce()) {
    if std::env::var_os("ATTUNE_TEST_BODY").is_some() {
        return body();
    }
    let me = std::env::current_exe().expect("the test's own path");
    for poller in ["", "epoll"] {
        let mut command = Command::new("timeout");
        command.arg("60").arg(&me).args(["--exact", name, "--nocapture"]);
        command.env("ATTUNE_TEST_BODY", "1").env("ATTUNE_IO", poller);
        let output = command.output().expect("it runs");
        let (stdout, stderr) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{poller}: {stdout}{stderr}");
    }
}
