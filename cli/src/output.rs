//! Writing results: to standard output without a panic when the reader has gone, to files whole or
//! not at all.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// Prints a line to standard error, for a run that goes on when nobody reads that any more: its
/// terminal was closed, or the service that started it is gone.
macro_rules! tell {
    ($($words:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), $($words)*);
    }};
}
pub(crate) use tell;

/// Prints text to standard output. A reader that went away (`attune .. | head`) is no failure.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::usage(format!("cannot write to standard output: {error}")))
        }
        _ => Ok(()),
    }
}

/// Writes a file whole: what was there before stays until the new text is complete.
pub fn write(path: &Path, content: impl AsRef<[u8]>) -> Result<(), Failure> {
    replace(path, |draft| {
        std::fs::write(draft, content.as_ref()).map_err(|error| Failure::file("write", path, error))
    })
}

/// Lets `produce` write a draft beside `path` and puts it in its place when that succeeded.
pub fn replace(
    path: &Path,
    produce: impl FnOnce(&Path) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let draft = draft_of(path)?;
    let result = produce(&draft).and_then(|()| {
        std::fs::rename(&draft, path).map_err(|error| Failure::file("write", path, error))
    });
    if result.is_err() {
        // The draft may not exist; there is nothing more to say than the failure itself.
        let _ = std::fs::remove_file(&draft);
    }
    result
}

fn draft_of(path: &Path) -> Result<PathBuf, Failure> {
    let Some(name) = path.file_name() else {
        return Err(Failure::usage(format!("{} is not a file name", path.display())));
    };
    let mut draft = std::ffi::OsString::from(format!(".{}.", std::process::id()));
    draft.push(name);
    Ok(path.with_file_name(draft))
}
