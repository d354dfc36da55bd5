//! A database for MariaDB, filled. It is made once; the hash of its recipe names its folder.

use std::fs;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::files;
use crate::programs::{find, words_of};

/// The server may take so long to begin, and to end.
const PATIENCE: Duration = Duration::from_secs(60);

/// What a database is made of.
#[derive(Clone, Copy, Debug)]
pub struct Database {
    /// Statements that fill it.
    pub tables: &'static str,
    /// The server's program and options, in one word; `{database}` stands for the folder, and
    /// `{programs}` for that of the project's programs.
    pub server: &'static str,
    /// The server's socket.
    pub socket: &'static str,
}

impl Database {
    pub fn check(&self) -> Result<()> {
        for program in ["mariadbd", "mariadb", "mariadb-install-db"] {
            ensure!(
                find(program).is_some(),
                "it needs {program}: on Debian `tools/setup.sh database` installs it"
            );
        }
        Ok(())
    }

    /// Its place below `folder`.
    pub fn folder(&self, folder: &Path) -> PathBuf {
        let recipe = format!("{}\n{}", self.tables, self.server);
        folder.join("databases").join(&files::hash(recipe.as_bytes())[..16])
    }

    /// Its folder, with it in it.
    pub fn made(&self, folder: &Path, programs: &Path) -> Result<PathBuf> {
        /// Runs of an experiment go on at the same time, with the same database.
        static MAKING: Mutex<()> = Mutex::new(());
        let _alone = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
        let place = self.folder(folder);
        if place.exists() {
            return Ok(place);
        }
        // Renamed when complete: an interrupted run leaves no half-made database in this place.
        let half = place.with_extension(std::process::id().to_string());
        let made = self.make(&half, programs).and_then(|()| {
            fs::rename(&half, &place).with_context(|| format!("writing {}", place.display()))
        });
        if made.is_err() {
            let _ = fs::remove_dir_all(&half);
        }
        made.context("making a database")?;
        Ok(place)
    }

    fn make(&self, folder: &Path, programs: &Path) -> Result<()> {
        fs::create_dir_all(folder).with_context(|| format!("creating {}", folder.display()))?;
        let words = self.server.replace("{database}", &folder.display().to_string());
        let words = words_of(&words.replace("{programs}", &programs.display().to_string()));
        let mut install = Command::new("mariadb-install-db");
        let bare = ["--auth-root-authentication-method=normal", "--skip-test-db"];
        // The folder fits a server with the same options alone.
        install.args(&words[1..]).args(bare).arg("--skip-name-resolve").stdin(Stdio::null());
        let output = install.output().context("cannot run mariadb-install-db")?;
        ensure!(
            output.status.success(),
            "mariadb-install-db: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        );
        let mut server = Server::start(&words, self.socket)?;
        let mut fill = Command::new("mariadb");
        fill.args(["--no-defaults", "--user=root", "-e", self.tables]);
        let output = fill.arg(format!("--socket={}", self.socket)).stdin(Stdio::null()).output();
        let output = output.context("cannot run mariadb")?;
        ensure!(
            output.status.success(),
            "its tables: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        );
        server.end()
    }
}

/// A server at work; killed if it is dropped before its end.
struct Server(Child);

impl Server {
    fn start(words: &[String], socket: &str) -> Result<Server> {
        let (program, options) = words.split_first().context("a server without a name")?;
        let mut command = Command::new(program);
        command.args(options).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut server = Server(command.spawn().with_context(|| format!("cannot run {program}"))?);
        let patience = Instant::now() + PATIENCE;
        while UnixStream::connect(socket).is_err() {
            if let Some(status) = server.0.try_wait()? {
                bail!("the server has ended ({status}): {}", words.join(" "));
            }
            ensure!(Instant::now() < patience, "the server does not listen at {socket}");
            thread::sleep(Duration::from_millis(20));
        }
        Ok(server)
    }

    /// Lets it write everything.
    fn end(&mut self) -> Result<()> {
        attune_linux::process::signal(self.0.id(), attune_linux::signal::TERMINATE)?;
        let patience = Instant::now() + PATIENCE;
        while self.0.try_wait()?.is_none() {
            ensure!(Instant::now() < patience, "the server does not end");
            thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
