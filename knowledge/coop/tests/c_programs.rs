//! C programs against the header and the library, and the examples of ten lines, with and without
//! other programs to cooperate with.

use std::path::{Path, PathBuf};
use std::process::Command;

const HERE: &str = env!("CARGO_MANIFEST_DIR");

/// Where cargo has put libattune_coop.so.
fn library() -> PathBuf {
    std::env::current_exe().unwrap().parent().unwrap().to_path_buf()
}

fn compiled(directory: &Path, source: &str) -> PathBuf {
    let out = directory.join("program");
    let library = library();
    let mut cc = Command::new(std::env::var("CC").unwrap_or_else(|_| "cc".into()));
    cc.args(["-std=gnu11", "-g", "-Wall", "-Wextra", "-Werror", "-I"])
        .arg(Path::new(HERE).join("include"));
    cc.arg("-o")
        .arg(&out)
        .arg(Path::new(HERE).join(source))
        .arg("-L")
        .arg(&library)
        .arg("-lattune_coop");
    let done =
        cc.arg(format!("-Wl,-rpath,{}", library.display())).output().expect("the C compiler");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    out
}

/// Its output and its errors, once it has ended well.
#[track_caller]
fn output(command: &mut Command) -> (String, String) {
    let done = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let (out, err) = (text(done.stdout), text(done.stderr));
    assert!(done.status.success(), "{out}{err}");
    (out, err)
}

fn session() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    std::fs::set_permissions(directory.path(), std::os::unix::fs::PermissionsExt::from_mode(0o700))
        .unwrap();
    directory
}

#[test]
fn every_function_of_the_header() {
    let (build, session) = (tempfile::tempdir().unwrap(), session());
    let api = compiled(build.path(), "tests/programs/api.c");
    for transport in
        ["none".to_owned(), "kernel".to_owned(), format!("shared:{}", session.path().display())]
    {
        let (out, err) = output(Command::new(&api).env("ATTUNE_COOP", transport));
        assert_eq!(out, "ok\n");
        assert!(err.contains("callback") && err.contains("work"), "the trace: {err}");
    }
}

const FRAMES: &str = "frame 1\nframe 2\nframe 3\nframe 4\nframe 5\n";

#[test]
fn the_examples_cooperate_with_each_other() {
    let (build, session) = (tempfile::tempdir().unwrap(), session());
    let transport = format!("shared:{}", session.path().display());
    let c = compiled(build.path(), "examples/frames.c");
    let rust = library().parent().unwrap().join("examples/frames");
    let run = |program: &Path| output(Command::new(program).env("ATTUNE_COOP", &transport));
    std::thread::scope(|scope| {
        let both = [scope.spawn(|| run(&c)), scope.spawn(|| run(&rust))];
        for one in both {
            assert_eq!(one.join().unwrap(), (FRAMES.to_owned(), String::new()));
        }
    });
    assert_eq!(output(Command::new(&c).env_remove("ATTUNE_COOP")).0, FRAMES);
}

#[test]
fn a_transport_that_cannot_be_had_is_said_and_done_without() {
    let build = tempfile::tempdir().unwrap();
    let c = compiled(build.path(), "examples/frames.c");
    let (out, err) = output(Command::new(&c).env("ATTUNE_COOP", "shared:/no/such/directory"));
    assert_eq!(out, FRAMES);
    assert!(
        err.starts_with("attune: not cooperating: ") && err.contains("/no/such/directory"),
        "{err}"
    );

    // Without a scheduler the loop works as with `none`, and says nothing.
    let no_engine = build.path().join("no engine");
    let alone =
        output(Command::new(&c).env("ATTUNE_COOP", "kernel").env("ATTUNE_VALUES", no_engine));
    assert_eq!(alone, (FRAMES.to_owned(), String::new()));

    let refused = Command::new(&c).env("ATTUNE_COOP", "telepathy").output().unwrap();
    let err = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(1));
    assert!(err.contains("no transport `telepathy`"), "{err}");
}

/// docs/coop.md shows the examples as they are.
#[test]
fn the_documentation_shows_what_runs() {
    let read = |path: &str| std::fs::read_to_string(Path::new(HERE).join(path)).unwrap();
    let page = read("../../docs/coop.md");
    for (path, fence) in [("examples/frames.rs", "rust"), ("examples/frames.c", "c")] {
        let text = read(path);
        let program = text.split_once("\n\n").map_or(&*text, |(_, program)| program);
        let shown =
            page.split(&format!("```{fence}\n")).nth(1).and_then(|rest| rest.split("```").next());
        assert_eq!(shown, Some(program), "{path}");
    }
}

/// The commands that compile a C program, in docs/coop.md and in the header, are those that a user
/// copies: they end in a program that finds its library.
#[test]
fn the_documented_commands_make_a_program_that_runs() {
    let read = |path: &str| std::fs::read_to_string(Path::new(HERE).join(path)).unwrap();
    let (header, page) = (read("include/attune_coop.h"), read("../../docs/coop.md"));
    for (text, margin, program) in [(page, "    ", "frames"), (header, " *     ", "player")] {
        let lines = text.lines().filter_map(|line| line.strip_prefix(margin));
        let command: Vec<&str> =
            lines.skip_while(|line| !line.starts_with("cc ")).take(3).collect();
        assert!(command[2].starts_with("ATTUNE_COOP=shared ./"), "{command:?}");
        // The repository as it is after `make build`.
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("target")).unwrap();
        let link = |to: PathBuf, name: &str| {
            std::os::unix::fs::symlink(to, folder.path().join(name)).unwrap();
        };
        link(Path::new(HERE).parent().unwrap().to_owned(), "knowledge");
        link(library(), "target/release");
        let source = folder.path().join(format!("{program}.c"));
        std::fs::copy(Path::new(HERE).join("examples/frames.c"), source).unwrap();
        let mut shell = Command::new("sh");
        shell.args(["-ec", &command.join("\n")]).current_dir(folder.path());
        // cargo sets it for tests; a user has none.
        shell.env_remove("LD_LIBRARY_PATH");
        let session = session();
        let printed = output(shell.env("XDG_RUNTIME_DIR", session.path()));
        assert_eq!(printed, (FRAMES.to_owned(), String::new()), "{command:?}");
    }
}
