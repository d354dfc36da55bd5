//! Asks the tuners that run how everything stands: the daemon, and each `attune tune`. Tells the
//! daemon ratings.
//!
//! Each listens in the state folder, at `attuned.sock` or `tune-PID.sock`. A daemon whose
//! configuration names another place is not found.

use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use attune_linux::procfs;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::Status;
use crate::policy;
use crate::weights::Rating;

/// A tuner answers in its next round; one that does not is passed over.
const PATIENCE: Duration = Duration::from_secs(1);
/// Bytes of an answer.
const LONGEST: u64 = 16 << 20;

/// Where a tuner for its own programs listens.
pub fn own_socket(folder: &Path) -> PathBuf {
    folder.join(format!("tune-{}.sock", std::process::id()))
}

/// The process that listens at such a place.
fn tuner(socket: &Path) -> Option<u32> {
    socket.file_name()?.to_str()?.strip_prefix("tune-")?.strip_suffix(".sock")?.parse().ok()
}

/// The statuses of a state folder's tuners, the daemon's first. Sockets of tuners that were killed
/// are removed where this is allowed.
pub fn statuses(folder: &Path) -> Vec<Status> {
    let entries =
        std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let daemon = folder.join("attuned.sock");
    let is_listened_at = |path: &PathBuf| match tuner(path) {
        Some(process) if procfs::start_time(process).is_some() => true,
        Some(_) => {
            // Not ours perhaps; then it stays.
            let _ = std::fs::remove_file(path);
            false
        }
        // The next daemon replaces what a killed one left. It may be about to listen just now.
        None => *path == daemon,
    };
    let mut sockets: Vec<PathBuf> = entries.filter(is_listened_at).collect();
    sockets.sort();
    let status = |path: &PathBuf| Some(ask::<Answer>(path, "status").ok()?.status);
    sockets.iter().filter_map(status).collect()
}

#[derive(Deserialize)]
struct Answer {
    status: Status,
}

#[derive(Deserialize)]
struct PolicyAnswer {
    policy: Option<policy::Status>,
}

/// The policy that the service keeps: None if it keeps none. Err: no service answers.
pub fn policy(folder: &Path) -> io::Result<Option<policy::Status>> {
    let answer: PolicyAnswer = ask(&folder.join("attuned.sock"), "policy")?;
    Ok(answer.policy)
}

/// The answer to a question of one word.
fn ask<T: DeserializeOwned>(path: &Path, question: &str) -> io::Result<T> {
    let mut stream = UnixStream::connect(path)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.write_all(format!("{}\n", json!({ "request": question })).as_bytes())?;
    let mut line = String::new();
    BufReader::new(stream.take(LONGEST)).read_line(&mut line)?;
    Ok(serde_json::from_str(&line)?)
}

/// Tells a daemon the ratings of processes, and never waits for it.
#[derive(Default)]
pub struct Rater {
    stream: Option<UnixStream>,
    refused: Option<String>,
}

/// Ratings that fit into a request, those first that come first.
const MOST_RATINGS: usize = 96;

impl Rater {
    /// Tells the ratings to the daemon in the state folder, if one runs; to be called each second.
    /// Why the daemon took none, once.
    pub fn tell(&mut self, folder: &Path, ratings: &[Rating]) -> Option<String> {
        let news = self.refusal();
        if self.stream.is_none() {
            let stream = UnixStream::connect(folder.join("attuned.sock"));
            self.stream = stream.ok().filter(|stream| stream.set_nonblocking(true).is_ok());
        }
        let first = &ratings[..ratings.len().min(MOST_RATINGS)];
        let request = json!({ "request": "rate", "ratings": first });
        if let Some(stream) = &mut self.stream
            && stream.write_all(format!("{request}\n").as_bytes()).is_err()
        {
            self.stream = None;
        }
        news
    }

    /// Reads what has been answered so far.
    fn refusal(&mut self) -> Option<String> {
        let mut bytes = [0; 1024];
        let answered = match self.stream.as_mut()?.read(&mut bytes) {
            Ok(length) if length > 0 => String::from_utf8_lossy(&bytes[..length]).into_owned(),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return None,
            _ => {
                self.stream = None;
                return None;
            }
        };
        let last: Value = serde_json::from_str(answered.lines().last()?).ok()?;
        let refused = last["error"].as_str().map(str::to_owned);
        let news = refused.clone().filter(|why| self.refused.as_ref() != Some(why));
        self.refused = refused;
        news
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::process::Command;

    use super::*;

    #[test]
    fn looking_takes_no_place_from_a_process_that_is_about_to_listen() {
        let folder = std::env::temp_dir().join(format!("attune-client-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let mut child = Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        let ended = folder.join(format!("tune-{}.sock", child.id()));
        let about_to_listen = [folder.join("attuned.sock"), own_socket(&folder)];
        for path in about_to_listen.iter().chain([&ended]) {
            File::create(path).unwrap();
        }
        assert!(statuses(&folder).is_empty());
        assert!(policy(&folder).is_err());
        assert!(about_to_listen.iter().all(|path| path.exists()));
        assert!(!ended.exists());
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
