//! Runs the C compiler: C text in, shared object out. The only input and output of this crate.
//!
//! The compiler is `cc`, or what the environment variable CC says. The object appears under its
//! name only when it is complete.

use std::env;
use std::fmt;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

/// One error or warning of the C compiler. Inside verbatim text, and everywhere in debug builds,
/// `file` and `line` are the scheduler's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompilerMessage {
    pub file: String,
    /// From 1.
    pub line: u32,
    pub error: bool,
    pub text: String,
}

impl fmt::Display for CompilerMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = if self.error { "error" } else { "warning" };
        write!(f, "{}:{}: {severity}: {}", self.file, self.line, self.text)
    }
}

#[derive(Debug, thiserror::Error)]
pub enum CompileError {
    #[error(
        "cannot run the C compiler `{command}` ({error}): install one (Debian: apt install gcc), \
            or name yours in the \
         environment variable CC"
    )]
    NoCompiler { command: String, error: io::Error },
    #[error("{}", said(messages, output, *status))]
    Failed { messages: Vec<CompilerMessage>, output: String, status: ExitStatus },
    #[error("cannot write {}: {error}", path.display())]
    Io { path: PathBuf, error: io::Error },
}

/// Compiles generated C to a shared object at `out`. `debug`: without optimisation, with symbols.
pub fn compile(c_source: &str, out: &Path, debug: bool) -> Result<(), CompileError> {
    let flags: &[&str] = if debug { &["-O0", "-g"] } else { &["-O2"] };
    compile_with(c_source, out, flags)
}

fn compile_with(c_source: &str, out: &Path, flags: &[&str]) -> Result<(), CompileError> {
    let command =
        env::var("CC").ok().filter(|cc| !cc.trim().is_empty()).unwrap_or_else(|| "cc".to_string());
    let unfinished = beside(out);
    let cannot_write = |error| CompileError::Io { path: out.to_path_buf(), error };
    // The compiler could not say in the scheduler's terms that there is no such folder.
    let result = fs::File::create(&unfinished)
        .map_err(cannot_write)
        .and_then(|_| run(&command, c_source, &unfinished, flags))
        .and_then(|()| fs::rename(&unfinished, out).map_err(cannot_write));
    if result.is_err() {
        // It may not exist, and the first error is the one to tell.
        let _ = fs::remove_file(&unfinished);
    }
    result
}

/// A name in the same folder that nobody else uses.
fn beside(out: &Path) -> PathBuf {
    let mut name = out.file_name().unwrap_or_default().to_os_string();
    name.push(format!(".{}.unfinished", std::process::id()));
    out.with_file_name(name)
}

fn run(command: &str, c_source: &str, out: &Path, flags: &[&str]) -> Result<(), CompileError> {
    let mut words = command.split_whitespace();
    let no_compiler = |error| CompileError::NoCompiler { command: command.to_string(), error };
    let mut child = Command::new(words.next().unwrap_or("cc"))
        .args(words)
        .args(["-std=gnu11", "-shared", "-fPIC", "-ffp-contract=off", "-fvisibility=hidden"])
        .args(flags)
        .arg("-o")
        .arg(out)
        .args(["-x", "c", "-"])
        .env("LC_ALL", "C")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(no_compiler)?;
    if let Some(mut input) = child.stdin.take() {
        // A compiler that gave up early says why; the broken pipe does not matter.
        let _ = input.write_all(c_source.as_bytes());
    }
    let output = child.wait_with_output().map_err(no_compiler)?;
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(CompileError::Failed { messages: messages(&text), output: text, status: output.status })
}

/// `file:line:column: error: text`, as gcc and clang write.
fn messages(output: &str) -> Vec<CompilerMessage> {
    output.lines().filter_map(message).collect()
}

fn message(line: &str) -> Option<CompilerMessage> {
    let kinds = [(": error: ", true), (": fatal error: ", true), (": warning: ", false)];
    let (kind, error) = kinds.into_iter().find(|(kind, _)| line.contains(kind))?;
    let (place, text) = line.split_once(kind)?;
    // From the right, for a file's name may hold colons; the column may be missing.
    let (before, last) = place.rsplit_once(':')?;
    let last: u32 = last.parse().ok()?;
    let (file, number) = match before.rsplit_once(':').map(|(file, line)| (file, line.parse())) {
        Some((file, Ok(number))) => (file, number),
        _ => (before, last),
    };
    Some(CompilerMessage { file: file.to_string(), line: number, error, text: text.to_string() })
}

fn said(messages: &[CompilerMessage], output: &str, status: ExitStatus) -> String {
    let mut text = String::from("the C compiler refuses the scheduler");
    let errors: Vec<_> = messages.iter().filter(|message| message.error).collect();
    if errors.is_empty() {
        return format!("{text} ({status}):\n{}", output.trim_end());
    }
    for message in errors {
        text.push_str(&format!("\n{message}"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read_with_and_without_columns() {
        let read =
            |line: &str| message(line).map(|message| (message.file, message.line, message.error));
        assert_eq!(read("a.sched:4:9: error: no"), Some(("a.sched".into(), 4, true)));
        assert_eq!(read("c:/a.sched:4: warning: so"), Some(("c:/a.sched".into(), 4, false)));
        assert_eq!(read("In file included from x:"), None);
    }

    #[test]
    fn a_missing_compiler_is_named() {
        let error =
            run("no-such-compiler -m32", "", Path::new("/nonexistent/x.so"), &[]).unwrap_err();
        assert!(
            error.to_string().starts_with("cannot run the C compiler `no-such-compiler -m32`"),
            "{error}"
        );
    }
}
