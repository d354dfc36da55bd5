//! The guardian: a process that outlives the tuner by an instant, and gives every thread its
//! attributes back if the tuner could not.
//!
//! It is this program again, with the journal as its standard output (the same open file as the
//! tuner's, so that the lock on it lasts until both are gone) and a pipe from the tuner as its
//! standard input. The tuner writes nothing into the pipe: when it closes, the tuner has ended, and
//! the journal says which threads to give back. After a good end there are none.
//!
//! | process that dies | what happens |
//! |---|---|
//! | the tuner, however | the pipe closes; the guardian repairs from the journal |
//! | the guardian | the tuner notices within its next round and starts another |
//! | both at once | the lock is free; the next tuner repairs ([`journal::repair_all`]) |

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, PipeWriter, Read};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use attune_linux::signal;

use crate::journal::{self, Journal};

/// The word with which a program that has a tuner starts itself as its guardian: `PROGRAM
/// tuner-guardian JOURNAL`.
pub const WORD: &str = "tuner-guardian";

/// The tuner's side. Dropping it lets the guardian go.
pub struct Guardian {
    child: Child,
    /// Closes when the tuner ends, however it ends.
    _life: PipeWriter,
}

impl Guardian {
    pub fn start(journal: &Journal) -> io::Result<Guardian> {
        let (theirs, life) = io::pipe()?;
        let child = Command::new(own_program()?)
            .args([OsStr::new(WORD), journal.path().as_os_str()])
            .stdin(theirs)
            .stdout(journal.share()?)
            .stderr(Stdio::null())
            // Ctrl-C is for the tuner.
            .process_group(0)
            .spawn()?;
        Ok(Guardian { child, _life: life })
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Lets it go and waits until it has.
    pub fn end(self) {
        let Guardian { mut child, _life } = self;
        drop(_life);
        // It only reads the journal; if it cannot be waited for there is nothing to do about it.
        let _ = child.wait();
    }
}

/// This program, also when its file was replaced meanwhile.
fn own_program() -> io::Result<PathBuf> {
    let link = PathBuf::from("/proc/self/exe");
    if link.exists() { Ok(link) } else { std::env::current_exe() }
}

/// The guardian's side: what `PROGRAM tuner-guardian JOURNAL` does. Returns when the tuner has
/// ended and all is as before.
pub fn watch(journal: &Path) -> io::Result<usize> {
    signal::ignore(&[signal::INTERRUPT, signal::TERMINATE, signal::HANG_UP]);
    let mut file = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    let mut bytes = [0; 64];
    while io::stdin().read(&mut bytes)? > 0 {}
    journal::repair_from(&mut file, journal)
}
