//! The commands that docs/threads.md and attune.h show work as they stand.

mod common;

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output};

use common::{compile, directory, here};

fn page() -> String {
    std::fs::read_to_string(here("../../docs/threads.md")).expect("docs/threads.md")
}

fn header() -> String {
    std::fs::read_to_string(here("include/attune.h")).expect("attune.h")
}

/// The part of the page under that title.
fn section<'a>(page: &'a str, title: &str) -> &'a str {
    let (_, rest) = page.split_once(&format!("\n## {title}\n")).expect("the title");
    rest.split("\n## ").next().unwrap()
}

/// The blocks of the page in that language.
fn blocks<'a>(page: &'a str, language: &str) -> Vec<&'a str> {
    let start = format!("```{language}\n");
    page.split(start.as_str()).skip(1).map(|rest| rest.split("```").next().unwrap()).collect()
}

/// The block of C in which this stands.
fn block_with<'a>(page: &'a str, words: &str) -> &'a str {
    let found = blocks(page, "c").into_iter().find(|block| block.contains(words));
    found.unwrap_or_else(|| panic!("{words} stands in no block"))
}

/// A directory that looks like the root of the repository after `make build`.
fn root() -> tempfile::TempDir {
    let root = directory();
    let test = std::env::current_exe().expect("the test's own path");
    std::fs::create_dir(root.path().join("target")).expect("a directory");
    symlink(test.parent().expect("a directory"), root.path().join("target/release")).expect("link");
    symlink(here("../../engines"), root.path().join("engines")).expect("link");
    root
}

/// Runs a command as a shell would; this crate's own compiler stands for `attune build`.
fn command(root: &Path, line: &str) -> Output {
    if let Some(arguments) = line.strip_prefix("attune build ") {
        let [name, "--engine", "threads", "-o", out] = arguments.split(' ').collect::<Vec<_>>()[..]
        else {
            panic!("{line}: not the command that this test knows")
        };
        let text = root.join(name);
        let scheduler = if text.exists() { text.as_path() } else { Path::new(name) };
        if out.ends_with(".c") {
            std::fs::write(root.join(out), common::c_of(scheduler)).expect("written");
        } else {
            compile(scheduler, &root.join(out));
        }
        return Command::new("true").output().expect("true");
    }
    Command::new("sh").args(["-c", line]).current_dir(root).output().expect("a shell")
}

/// What the commands print, each of which succeeds.
fn run(root: &Path, lines: &str) -> Vec<String> {
    let whole = lines.replace("\\\n", " ");
    let mut printed = Vec::new();
    for line in whole.lines().filter(|line| !line.trim().is_empty()) {
        let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
        let output = command(root, &line);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && stderr.is_empty(), "{line}\n{stderr}");
        let text = String::from_utf8(output.stdout).expect("UTF-8");
        if !text.is_empty() {
            printed.push(text);
        }
    }
    printed
}

#[test]
fn the_manual_shows_what_its_commands_print() {
    let page = page();
    let part = section(&page, "Try it");
    let root = root();
    std::fs::write(root.path().join("tasks.c"), blocks(part, "c")[0]).expect("written");
    std::fs::write(root.path().join("shortest.sched"), blocks(part, "sched")[0]).expect("written");
    let printed = run(root.path(), blocks(part, "sh")[0]);
    assert_eq!(printed, blocks(part, "text"));
    assert_eq!(printed.len(), 2);
    // The same program, traced.
    run(root.path(), blocks(section(&page, "Record what threads do"), "sh")[0]);
    let file = std::fs::read(root.path().join("tasks.pftrace")).expect("the trace");
    let trace = attune_timeline_reader::Trace::read(&file);
    assert_eq!(trace.track("worker 1").groups, ["tasks", "workers"]);
    assert!(trace.track("ready on worker 1").is_counter);
    assert_eq!(trace.track("3 short").groups, ["tasks", "threads"]);
}

#[test]
fn the_manual_s_program_brings_its_policy() {
    let page = page();
    let (first, part) =
        (section(&page, "Try it"), section(&page, "A program that brings its policy"));
    let root = root();
    let begin = "int main(void)\n{\n";
    let program = blocks(first, "c")[0].replace(begin, &format!("{begin}{}", blocks(part, "c")[0]));
    std::fs::write(root.path().join("tasks.c"), program).expect("written");
    std::fs::write(root.path().join("shortest.sched"), blocks(first, "sched")[0]).expect("written");
    assert_eq!(run(root.path(), blocks(part, "sh")[0]), blocks(first, "text")[1..]);
    let build = std::fs::read_to_string(here("../../examples/compiled_in/build.rs"));
    assert!(
        build.expect("it is there").contains("attune_threads_build::compile(\"shortest.sched\")")
    );
}

/// The lines about a trace are C, and name what the header declares.
#[test]
fn the_manual_s_lines_about_traces_compile() {
    let folder = directory();
    let page = page();
    let lines = block_with(&page, "attune_trace(");
    let text = format!("#include <attune.h>\nvoid f(void prepare(void)) {{ {lines} }}\n");
    let file = folder.path().join("lines.c");
    std::fs::write(&file, text).expect("written");
    common::cc(&[&"-fsyntax-only", &"-I", &here("include"), &file]);
}

#[test]
fn the_manual_s_program_gives_way() {
    let page = page();
    let part = section(&page, "Preemption");
    let root = root();
    std::fs::write(root.path().join("answer.c"), blocks(part, "c")[0]).expect("written");
    assert_eq!(run(root.path(), blocks(part, "sh")[0]), blocks(part, "text"));
}

/// The lines that create a thread on a worker are C, and name what the header declares.
#[test]
fn the_manual_s_lines_about_workers_compile() {
    let folder = directory();
    let page = page();
    let lines = block_with(&page, ".worker = ");
    let text = format!(
        "#include <attune.h>\n\
         void f(void *encode(void *), int picture) {{ attune_t thread; {lines} }}\n"
    );
    let file = folder.path().join("lines.c");
    std::fs::write(&file, text).expect("written");
    common::cc(&[&"-fsyntax-only", &"-I", &here("include"), &file]);
}

/// The lines that let threads move are C, and `errno` works in them.
#[test]
fn the_manual_s_lines_about_moves_compile() {
    let folder = directory();
    let page = page();
    let lines = block_with(&page, ".moves = 1");
    let text = format!("{lines}\nint main(void) {{ start(); return errno; }}\n");
    let file = folder.path().join("lines.c");
    std::fs::write(&file, text).expect("written");
    common::cc(&[&"-fsyntax-only", &"-I", &here("include"), &file]);
}

#[test]
fn the_manual_s_lines_about_calls_that_block_compile() {
    let folder = directory();
    let page = page();
    let lines = block_with(&page, "attune_blocking(");
    let text = format!("#include <attune.h>\n#include <netdb.h>\n{lines}");
    let file = folder.path().join("lines.c");
    std::fs::write(&file, text).expect("written");
    common::cc(&[&"-fsyntax-only", &"-I", &here("include"), &file]);
}

/// The lines about shared variables are C, and name what the header declares.
#[test]
fn the_manual_s_lines_about_shared_variables_compile() {
    let folder = directory();
    let page = page();
    let lines = block_with(&page, "attune_shared(");
    let text =
        format!("#include <attune.h>\nint64_t f(void) {{ {lines} return *copy + ticket; }}\n");
    let file = folder.path().join("lines.c");
    std::fs::write(&file, text).expect("written");
    common::cc(&[&"-fsyntax-only", &"-I", &here("include"), &file]);
}

#[test]
fn the_commands_of_the_header_run_a_program() {
    let header = header();
    let commands: Vec<&str> = header
        .lines()
        .skip_while(|line| !line.starts_with(" *     cc "))
        .take_while(|line| line.starts_with(" *  "))
        .map(|line| line.trim_start_matches(" *"))
        .collect();
    assert_eq!(commands.len(), 4, "{commands:?}");
    let root = root();
    let program = "#include <attune.h>\n#include <stdio.h>\n\
                   int main(void) { puts(attune_scheduler_name()); }\n";
    std::fs::write(root.path().join("prog.c"), program).expect("written");
    assert_eq!(run(root.path(), &commands.join("\n")), ["fifo\n"]);
}

#[test]
fn the_manual_names_only_what_exists() {
    let (page, header) = (page(), header());
    let names: Vec<&str> =
        page.split('`').filter(|word| word.starts_with("attune_") && !word.contains(' ')).collect();
    assert!(names.len() > 15, "{names:?}");
    for name in names {
        assert!(header.contains(&format!("{name}(")), "{name} is not in attune.h");
    }
}
