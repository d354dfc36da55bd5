//! What can go wrong, in words and as errno.

use std::fmt;
use std::io;

#[derive(Debug)]
pub enum Error {
    /// The scheduler has no thread import of that name.
    UnknownImport(String),
    /// This process has no such thread.
    NoSuchThread(i32),
    /// Nothing is registered under the name.
    NotRegistered(String),
    /// A name that no import can have.
    BadName,
    /// 511 threads or 14 imports of one process, or the engine's limits.
    Full(String),
    Io(io::Error),
}

impl Error {
    pub(crate) fn errno(&self) -> i32 {
        match self {
            Error::UnknownImport(_) => libc::ENOENT,
            Error::NoSuchThread(_) => libc::ESRCH,
            Error::NotRegistered(_) | Error::BadName => libc::EINVAL,
            Error::Full(_) => libc::ENOSPC,
            Error::Io(error) => error.raw_os_error().unwrap_or(libc::EIO),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Error::UnknownImport(name) => {
                write!(f, "the scheduler has no thread import named {name}")
            }
            Error::NoSuchThread(thread) => write!(f, "this process has no thread {thread}"),
            Error::NotRegistered(name) => write!(f, "nothing is registered as {name}"),
            Error::BadName => f.write_str("the name of an import is 1 to 255 bytes long"),
            Error::Full(why) => f.write_str(why),
            Error::Io(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Error {}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Error {
        Error::Io(error)
    }
}

/// Says something on stderr, as all of Attune's libraries do.
pub(crate) fn note(message: &str) {
    let program = std::env::args_os().next().unwrap_or_default();
    let program = std::path::Path::new(&program)
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    // A message that cannot be written has no other way out.
    let _ = std::io::Write::write_fmt(
        &mut std::io::stderr().lock(),
        format_args!("attune: {program}: {message}\n"),
    );
}
