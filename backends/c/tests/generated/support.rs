//! From scheduler text to C, as a user would get it.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use attune_backend_c::{Node, Options, generate, generate_node};
use attune_language::diagnostic::render;
use attune_language::engine::Engine;
use attune_language::engine::event::Event;
use attune_language::resolve::{Loader, NotFound, Request, SourceText};
use attune_language::{Checked, Options as CheckOptions, check};

/// The standard library.
pub fn schedulers_folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../schedulers")
}

struct Library;

impl Loader for Library {
    fn load(&mut self, request: &Request<'_>) -> Result<SourceText, NotFound> {
        let name = match request {
            Request::Base { name, .. } => format!("{name}.sched"),
            Request::Node { file, .. } => file.to_string(),
        };
        match std::fs::read_to_string(schedulers_folder().join(&name)) {
            Ok(text) => Ok(SourceText { name, text }),
            Err(error) => Err(NotFound {
                tried: vec![name],
                reason: Some(error.to_string()),
                known: Vec::new(),
            }),
        }
    }
}

/// Checks a scheduler that must be right.
pub fn checked(name: &str, text: &str) -> Checked {
    let main = SourceText { name: name.to_string(), text: text.to_string() };
    let checked = check(&main, &mut Library, &CheckOptions::default());
    let errors: String = checked
        .diagnostics
        .iter()
        .filter(|diagnostic| diagnostic.is_error())
        .map(|diagnostic| render(diagnostic, &checked.sources))
        .collect();
    assert_eq!(errors, "", "{name}");
    checked
}

pub fn c_of(name: &str, text: &str, options: &Options) -> String {
    let checked = checked(name, text);
    let program = checked.program.as_ref().expect("a scheduler without errors has a program");
    let verdicts = &checked.engine(Engine::Threads).verdicts;
    generate(program, verdicts, &checked.sources, options).expect("no partial scheduler")
}

/// A master and its only node scheduler, both right; the node's program as C.
pub fn c_of_node(master: &str, node: &str) -> String {
    let cluster = cluster(master, node);
    let (checked, family) = (&cluster.0, &cluster.1.families[0]);
    let verdicts = &family.engines[Engine::Threads as usize].verdicts;
    let told = Node { cluster: "farm".into(), description: "what\"ever".into() };
    let options = Options::default();
    generate_node(&family.program, verdicts, &checked.sources, &options, &told).expect("taken")
}

/// The same before any C.
pub fn cluster(master: &str, node: &str) -> (Checked, attune_language::Cluster) {
    struct Only<'a>(&'a str);
    impl Loader for Only<'_> {
        fn load(&mut self, request: &Request<'_>) -> Result<SourceText, NotFound> {
            match request {
                Request::Node { file, .. } => {
                    Ok(SourceText { name: file.to_string(), text: self.0.to_string() })
                }
                Request::Base { .. } => Library.load(request),
            }
        }
    }
    let main = SourceText { name: "farm.sched".to_string(), text: master.to_string() };
    let mut checked = check(&main, &mut Only(node), &CheckOptions::default());
    let errors = checked.diagnostics.iter().filter(|diagnostic| diagnostic.is_error());
    let errors: String = errors.map(|it| render(it, &checked.sources)).collect();
    assert_eq!(errors, "");
    let cluster = checked.cluster.take().expect("a cluster");
    (checked, cluster)
}

/// What a C compiler says of the text with those flags; empty if it is content.
pub fn complaints(compiler: &str, flags: &[&str], c: &str) -> String {
    let mut child = Command::new(compiler)
        .args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-fPIC", "-c", "-o", "/dev/null"])
        .args(flags)
        .args(["-x", "c", "-"])
        .env("LC_ALL", "C")
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{compiler}: {error}"));
    child.stdin.take().unwrap().write_all(c.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.success(), said.is_empty(), "{compiler}: {said}");
    said
}

/// A scheduler linked with the small engine in `host.c`, under the sanitizers.
pub struct Compiled {
    program: PathBuf,
}

/// What a run said, line by line, and whether a check failed.
pub struct Run {
    pub lines: Vec<String>,
    pub trapped: bool,
}

impl Compiled {
    pub fn new(name: &str, text: &str, options: &Options, flags: &[&str]) -> Compiled {
        Compiled::of_c(name, &c_of(&format!("{name}.sched"), text, options), flags)
    }

    pub fn of_c(name: &str, c: &str, flags: &[&str]) -> Compiled {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
        let source = folder.join(format!("{name}.c"));
        std::fs::write(&source, c).unwrap();
        let program = folder.join(name);
        let host = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/generated/host.c");
        let output = Command::new("gcc")
            .args([
                "-std=gnu11",
                "-O0",
                "-fsanitize=address,undefined",
                "-fno-sanitize-recover=all",
                "-o",
            ])
            .args([&program, &source, &host])
            .args(flags)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Compiled { program }
    }

    /// Runs the engine's commands; `EVENT` of a `call` may be a handler's name.
    pub fn run(&self, commands: &[&str]) -> Run {
        let mut input = String::new();
        for command in commands {
            let words: Vec<String> = command
                .split(' ')
                .map(|word| {
                    Event::from_name(word)
                        .map_or(word.to_string(), |event| (event as u8).to_string())
                })
                .collect();
            input.push_str(&format!("{}\n", words.join(" ")));
        }
        let mut child = Command::new(&self.program)
            .env("ASAN_OPTIONS", "detect_leaks=0")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(
            matches!(output.status.code(), Some(0 | 3)),
            "{}\n{said}\n{complaint}",
            output.status
        );
        Run {
            lines: said.lines().map(str::to_string).collect(),
            trapped: output.status.code() == Some(3),
        }
    }
}

impl Run {
    /// The message of the failed check.
    pub fn message(&self) -> &str {
        assert!(self.trapped, "no check failed: {:#?}", self.lines);
        self.lines.last().unwrap()
    }

    /// The last line of a run without a failed check.
    pub fn end(&self) -> &str {
        assert!(!self.trapped, "{:#?}", self.lines);
        self.lines.last().unwrap()
    }
}

/// Compiles and runs without optional things.
pub fn run(name: &str, text: &str, commands: &[&str]) -> Run {
    Compiled::new(name, text, &Options::default(), &[]).run(commands)
}
