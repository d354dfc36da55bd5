//! Runs clang, which compiles BPF C to a BPF object.

use std::env;
use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, Stdio};

/// A clang that knows BPF's version 4 instructions.
#[derive(Clone, Debug)]
pub struct Compiler {
    command: String,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(
        "no clang that compiles for BPF was found (tried {tried}): install one (Debian: apt \
            install clang-19), or name \
         yours in the environment variable BPF_CLANG"
    )]
    NoCompiler { tried: String },
    #[error("cannot run `{command}`: {error}")]
    CannotRun { command: String, error: io::Error },
    #[error(
        "clang refuses the program made from the scheduler; this is a mistake of \
            Attune's:\n{output}"
    )]
    Failed { output: String },
}

const CANDIDATES: [&str; 6] = ["clang-19", "clang-20", "clang-21", "clang-22", "clang-18", "clang"];

impl Compiler {
    /// The one that BPF_CLANG names, or the first that works.
    pub fn find() -> Result<Compiler, Error> {
        let named = env::var("BPF_CLANG").ok().filter(|name| !name.trim().is_empty());
        let candidates = match &named {
            Some(name) => vec![name.as_str()],
            None => CANDIDATES.to_vec(),
        };
        let works = |name: &&str| {
            let run = Command::new(name).args(["--target=bpf", "-mcpu=v4", "--version"]).output();
            run.is_ok_and(|output| output.status.success())
        };
        match candidates.iter().find(|name| works(name)) {
            Some(name) => Ok(Compiler { command: name.to_string() }),
            None => Err(Error::NoCompiler { tried: candidates.join(", ") }),
        }
    }
}

impl Compiler {
    /// The command, for other targets than BPF too.
    pub fn command(&self) -> &str {
        &self.command
    }
}

/// How the compiler orders a program's parts. The same program either way: the kernel's compiler
/// for x86 gives up on some layouts, about one in two hundred, as its passes over them do not agree
/// on how far jumps go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Layout {
    /// As clang thinks best.
    #[default]
    Usual,
    /// The code keeps the order of the text.
    Plain,
}

/// What the compiler is told, but for names of files. The object depends on these and on the text.
/// `cpus`: the most CPUs that it will run on; `instances`: copies of the policy, exactly as many as
/// the [`crate::Division`] has.
pub fn compiler_flags(cpus: u32, instances: u32, layout: Layout) -> Vec<String> {
    let mut flags: Vec<String> = [
        "--target=bpf",
        "-mcpu=v4",
        "-O2",
        "-g",
        "-std=gnu11",
        "-ffreestanding",
        "-fno-builtin",
        "-Wall",
        "-Wno-unused",
        "-Wno-missing-declarations",
        "-Wno-address-of-packed-member",
        // The engine would believe one of the two, and no test would notice.
        "-Werror=macro-redefined",
    ]
    .map(str::to_owned)
    .into();
    let architecture = if cfg!(target_arch = "x86_64") { "x86" } else { "other" };
    flags.push(format!("-DATTUNE_CPUS={}", cpus.max(1)));
    flags.push(format!("-DATTUNE_INSTANCES={}", instances.max(1)));
    flags.push(format!("-D__TARGET_ARCH_{architecture}"));
    if layout == Layout::Plain {
        flags.extend(["-mllvm", "-disable-block-placement"].map(str::to_owned));
    }
    flags
}

/// Compiles generated C to an object at `out`, with [`compiler_flags`].
pub fn compile(
    compiler: &Compiler,
    c_source: &str,
    out: &Path,
    cpus: u32,
    instances: u32,
    layout: Layout,
) -> Result<(), Error> {
    let cannot_run = |error| Error::CannotRun { command: compiler.command.clone(), error };
    let mut child = Command::new(&compiler.command)
        .args(compiler_flags(cpus, instances, layout))
        .args(["-x", "c", "-c", "-", "-o"])
        .arg(out)
        .env("LC_ALL", "C")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(cannot_run)?;
    if let Some(mut input) = child.stdin.take() {
        // A compiler that gave up early says why; the broken pipe does not matter.
        let _ = input.write_all(c_source.as_bytes());
    }
    let output = child.wait_with_output().map_err(cannot_run)?;
    match output.status.success() {
        true => Ok(()),
        false => {
            Err(Error::Failed { output: String::from_utf8_lossy(&output.stderr).into_owned() })
        }
    }
}
