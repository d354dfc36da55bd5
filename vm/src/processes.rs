//! Processes that end with us: with the value that holds them, and with this process, however it
//! ends.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};

use attune_linux::child::{end_with_parent, keep_open};

use crate::memory_file;

/// A running process. Dropping it kills it and waits for its end.
pub struct Helper {
    child: Child,
    words: File,
}

impl Helper {
    /// Starts a command without input, keeps its output, and leaves these descriptors open in it.
    /// The kernel kills it when the calling thread ends.
    pub fn start(mut command: Command, inherited: Vec<OwnedFd>) -> io::Result<Helper> {
        let words = memory_file::create("words")?;
        command.stdin(Stdio::null()).stdout(words.try_clone()?).stderr(words.try_clone()?);
        // A signal from the terminal goes to this process alone, which ends its helpers.
        command.process_group(0);
        keep_open(end_with_parent(&mut command), inherited);
        Ok(Helper { child: command.spawn()?, words })
    }

    /// How it ended, if it did.
    pub fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        self.child.try_wait()
    }

    /// The last lines that it wrote.
    pub fn last_words(&mut self) -> String {
        let mut bytes = vec![];
        let read =
            self.words.seek(SeekFrom::Start(0)).and_then(|_| self.words.read_to_end(&mut bytes));
        let text = read.map(|_| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
        let lines: Vec<_> = text.lines().collect();
        lines[lines.len().saturating_sub(20)..].join("\n")
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// How a process ended, in words.
pub fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit status {code}"),
        (None, Some(signal)) => format!("killed by signal {signal}"),
        (None, None) => "an unknown end".to_owned(),
    }
}
