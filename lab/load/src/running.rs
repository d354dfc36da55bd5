//! Programs of this machine that run beside a workload, and X servers for them.

use std::env;
use std::fs::{self, File};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use attune_linux::{process, signal};

use crate::child;

/// A server may take so long to begin.
const PATIENCE: Duration = Duration::from_secs(60);

/// A program, and what it says. It ends when its value is dropped.
pub struct Running {
    name: String,
    pub child: Child,
    pub log: File,
}

/// A folder for what programs write. Gone with its value.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn make(name: &str) -> Result<Folder> {
        let place = env::temp_dir().join(format!("attune-load-{name}-{}", std::process::id()));
        fs::create_dir(&place).with_context(|| format!("making {}", place.display()))?;
        Ok(Folder(place))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Names and values.
pub type Environment = Vec<(&'static str, String)>;

impl Running {
    pub fn start(words: &[String], display: Option<&str>) -> Result<Running> {
        let environment = display.map(|display| ("DISPLAY", display.to_owned()));
        Running::start_in(words, environment.as_slice())
    }

    /// With these words more in its environment.
    pub fn start_in(words: &[String], environment: &[(&'static str, String)]) -> Result<Running> {
        let Some((program, arguments)) = words.split_first() else {
            bail!("a program without a name")
        };
        let log = child::memory_file().context("cannot make a file in memory")?;
        let mut command = Command::new(find(program));
        command
            .args(arguments)
            .envs(environment.iter().cloned())
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log.try_clone()?);
        let child = command.spawn().with_context(|| format!("cannot start {program}"))?;
        Ok(Running { name: program.clone(), child, log })
    }

    pub fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Err: it has ended, with which status, and what it said.
    pub fn lives(&mut self) -> Result<()> {
        match self.child.try_wait()? {
            None => Ok(()),
            Some(status) => {
                bail!("{} has ended ({status}): {}", self.name, child::said(&self.log).trim())
            }
        }
    }

    /// Waits until it `does` something, which `done` sees. Err: it has ended, or takes too long.
    pub fn wait_until(&mut self, does: &str, done: impl Fn() -> bool) -> Result<()> {
        let patience = Instant::now() + PATIENCE;
        while !done() {
            self.lives()?;
            let said = || child::said(&self.log);
            ensure!(Instant::now() < patience, "{} never {does}: {}", self.name, said().trim());
            thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// Asks it to end, kills it if it does not, and returns what it has said.
    pub fn end(&mut self) -> String {
        if self.is_alive() {
            // It was not waited for, so the number is its own; it may end by itself just now.
            let _ = process::signal(self.child.id(), signal::TERMINATE);
        }
        let patience = Instant::now() + Duration::from_secs(10);
        while self.is_alive() && Instant::now() < patience {
            thread::sleep(Duration::from_millis(20));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
        child::said(&self.log)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}

/// A program beside this one goes before those of PATH.
pub fn find(program: &str) -> PathBuf {
    let beside = env::current_exe().ok().and_then(|own| Some(own.parent()?.join(program)));
    beside
        .filter(|path| !program.contains('/') && path.is_file())
        .unwrap_or_else(|| PathBuf::from(program))
}

pub fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

/// For a player's number.
pub fn numbered(text: &str, player: usize) -> String {
    text.replace("{}", &player.to_string())
}

/// What serves so many players: a server each, or one for all, or none.
pub fn servers_of(text: &str, players: usize) -> Vec<String> {
    let count = match text {
        "" => 0,
        text if text.contains("{}") => players,
        _ => 1,
    };
    (1..=count).map(|player| numbered(text, player)).collect()
}

/// A server, and its display's name.
pub fn serve(text: &str) -> Result<(Running, String)> {
    let words = words(text);
    let display = words
        .iter()
        .find(|word| word.starts_with(':'))
        .context("a server needs a display, such as :9")?;
    let mut server = Running::start(&words, None)?;
    let socket = Path::new("/tmp/.X11-unix").join(format!("X{}", &display[1..]));
    // The socket is there before somebody listens.
    server.wait_until("makes a display", || UnixStream::connect(&socket).is_ok())?;
    Ok((server, display.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn players_have_one_server_or_one_each() {
        assert_eq!(servers_of("Xvfb :9 -ac", 3), ["Xvfb :9 -ac"]);
        assert_eq!(servers_of("Xvfb :9{} -ac", 2), ["Xvfb :91 -ac", "Xvfb :92 -ac"]);
        assert_eq!(servers_of("", 2), [""; 0]);
    }
}
