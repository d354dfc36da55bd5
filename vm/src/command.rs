//! The command to run, and the orders that the guest's first program gets: records that each end
//! with a NUL (guest/init.c).

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// What is run in the guest.
#[derive(Clone, Debug)]
pub struct Command {
    /// The program, found by the guest's PATH unless it holds a `/`, and its arguments.
    pub words: Vec<OsString>,
    pub folder: PathBuf,
    pub environment: Vec<(OsString, OsString)>,
    /// Standard output and standard error are one stream, in the order of writing; it arrives as
    /// output.
    pub one_stream: bool,
}

/// Variables that name sockets and sessions of the host.
const HOST_ONLY: &[&str] = &[
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
    "XDG_RUNTIME_DIR",
    "XDG_SESSION_ID",
    "DBUS_SESSION_BUS_ADDRESS",
    "SSH_AUTH_SOCK",
    "SSH_CONNECTION",
    "SSH_CLIENT",
    "SSH_TTY",
    "TMUX",
    "TMUX_PANE",
    "NOTIFY_SOCKET",
    "INVOCATION_ID",
    "JOURNAL_STREAM",
];

impl Command {
    /// A command with a small fixed environment, in the folder `/`.
    pub fn new<S: AsRef<OsStr>>(words: impl IntoIterator<Item = S>) -> Command {
        let fixed = [
            ("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"),
            ("HOME", "/tmp"),
            ("LANG", "C.UTF-8"),
            ("TERM", "dumb"),
        ];
        Command {
            words: words.into_iter().map(|word| word.as_ref().to_owned()).collect(),
            folder: PathBuf::from("/"),
            environment: fixed.iter().map(|(name, value)| (name.into(), value.into())).collect(),
            one_stream: false,
        }
    }

    /// This process's folder and environment, without what names sockets of the host.
    pub fn as_here(mut self) -> std::io::Result<Command> {
        self.folder = std::env::current_dir()?;
        self.environment = std::env::vars_os()
            .filter(|(name, _)| !HOST_ONLY.iter().any(|other| name == other))
            .collect();
        Ok(self)
    }

    pub fn in_folder(mut self, folder: impl AsRef<Path>) -> Command {
        self.folder = folder.as_ref().to_owned();
        self
    }

    pub fn with_env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Command {
        self.environment.retain(|(other, _)| other != name.as_ref());
        self.environment.push((name.as_ref().to_owned(), value.as_ref().to_owned()));
        self
    }

    /// A variable of its environment.
    pub fn variable(&self, name: &str) -> Option<&OsStr> {
        let found = self.environment.iter().find(|(other, _)| other == name);
        found.map(|(_, value)| value.as_os_str())
    }
}

/// Writes orders.
#[derive(Default)]
pub(crate) struct Orders(Vec<u8>);

impl Orders {
    pub fn add(&mut self, kind: u8, value: impl AsRef<OsStr>) -> &mut Orders {
        self.0.push(kind);
        // A NUL cannot stand in a path, a word or a variable.
        self.0.extend(value.as_ref().as_bytes().iter().filter(|byte| **byte != 0));
        self.0.push(0);
        self
    }

    pub fn command(&mut self, command: &Command) -> &mut Orders {
        if command.one_stream {
            self.add(b'o', "");
        }
        self.add(b'd', &command.folder);
        for (name, value) in &command.environment {
            let mut both = name.clone();
            both.push("=");
            both.push(value);
            self.add(b'e', both);
        }
        for word in &command.words {
            self.add(b'a', word);
        }
        self
    }

    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}
