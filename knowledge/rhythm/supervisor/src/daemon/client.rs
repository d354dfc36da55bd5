//! Asking the tuners that run how everything stands: the daemon, and each `attune tune`.
//!
//! Each listens in the state folder, at `attuned.sock` or `tune-PID.sock`. A daemon whose configuration names another place is not found.

use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;

use crate::Status;

/// A tuner answers in its next round; one that does not is passed over.
const PATIENCE: Duration = Duration::from_secs(1);
/// Bytes of an answer.
const LONGEST: u64 = 16 << 20;

/// Where a tuner for its own programs listens.
pub fn own_socket(folder: &Path) -> PathBuf {
    folder.join(format!("tune-{}.sock", std::process::id()))
}

/// What the tuners of a state folder say, the daemon first. Sockets of tuners that were killed are removed where this is allowed.
pub fn statuses(folder: &Path) -> Vec<Status> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let is_tuner = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name == "attuned.sock" || (name.starts_with("tune-") && name.ends_with(".sock"))
    };
    let mut sockets: Vec<PathBuf> = entries.filter(is_tuner).collect();
    sockets.sort();
    sockets.iter().filter_map(|path| ask(path).ok()).collect()
}

#[derive(Deserialize)]
struct Answer {
    status: Status,
}

fn ask(path: &Path) -> io::Result<Status> {
    let mut stream = UnixStream::connect(path).inspect_err(|error| {
        if error.kind() == ErrorKind::ConnectionRefused {
            // Not ours perhaps; then it stays.
            let _ = std::fs::remove_file(path);
        }
    })?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.write_all(b"{\"request\":\"status\"}\n")?;
    let mut line = String::new();
    BufReader::new(stream.take(LONGEST)).read_line(&mut line)?;
    Ok(serde_json::from_str::<Answer>(&line)?.status)
}
