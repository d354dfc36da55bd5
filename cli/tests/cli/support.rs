//! A folder for a test alone, and `attune` run in it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use attune_timeline_reader::Trace;
use serde_json::Value;

pub const ATTUNE: &str = env!("CARGO_BIN_EXE_attune");

pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new(test: &str) -> Folder {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    pub fn with(self, name: &str, content: impl AsRef<[u8]>) -> Folder {
        std::fs::write(self.0.join(name), content).unwrap();
        self
    }

    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(ATTUNE);
        command.args(words).current_dir(&self.0);
        command
    }

    pub fn attune(&self, words: &[&str]) -> Output {
        self.command(words).output().unwrap()
    }

    pub fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.0.join(name)).unwrap()
    }

    pub fn trace(&self, name: &str) -> Trace {
        Trace::read(&std::fs::read(self.0.join(name)).unwrap())
    }

    pub fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.0).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// Runs a command that must succeed, and returns its lines of JSON.
    pub fn json(&self, words: &[&str]) -> Vec<Value> {
        let output = self.attune(words);
        assert!(output.status.success(), "{}", err(&output));
        lines(&output)
    }

    /// The command is wrong, and the message says how.
    pub fn refused(&self, words: &[&str], message: &str) {
        let output = self.attune(words);
        assert_eq!(status(&output), 2, "{words:?}");
        assert!(err(&output).contains(message), "{words:?}: {}", err(&output));
    }
}

pub fn status(output: &Output) -> i32 {
    output.status.code().expect("it was not killed")
}

pub fn out(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).unwrap()
}

pub fn err(output: &Output) -> &str {
    std::str::from_utf8(&output.stderr).unwrap()
}

pub fn lines(output: &Output) -> Vec<Value> {
    out(output).lines().map(|line| serde_json::from_str(line).expect("each line is JSON")).collect()
}

/// Says why a test does nothing; with CI=true it fails.
pub fn skip(why: &str) {
    assert!(std::env::var("CI").as_deref() != Ok("true"), "{why}");
    eprintln!("cannot run here: {why}");
}
