//! Starts a display (Xvfb) and a sound server (PulseAudio into nothing) that belong to an
//! experiment, and what runs beside the player.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::{Player, Running};
use crate::experiment::Options;

/// What runs beside the player.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Load {
    Nothing,
    /// So many processes that compute.
    Hogs(usize),
    /// Periodic SCHED_FIFO tasks that take so many per cent of every CPU.
    Fifo(u32),
    /// Periodic tasks under reservation that take so many per cent of every CPU.
    Deadline(u32),
}

impl std::fmt::Display for Load {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        match self {
            Load::Nothing => write!(f, "nothing"),
            Load::Hogs(count) => write!(f, "{count} hogs"),
            Load::Fifo(share) => write!(f, "FIFO {share} %"),
            Load::Deadline(share) => write!(f, "DEADLINE {share} %"),
        }
    }
}

pub struct Stage {
    /// For films and sockets; others may read it, since VLC does not run as root.
    pub folder: PathBuf,
    programs: PathBuf,
    display: Option<(Running, String)>,
    sound: Option<Running>,
}

impl Stage {
    /// Makes a stage without display and sound.
    pub fn bare(options: &Options) -> Result<Stage> {
        let folder = fs::canonicalize(&options.folder)
            .with_context(|| format!("opening {}", options.folder.display()))?
            .join("players");
        fs::create_dir_all(&folder).with_context(|| format!("creating {}", folder.display()))?;
        Ok(Stage { folder, programs: options.programs.clone(), display: None, sound: None })
    }

    /// Makes a stage with a display, and with a sound server if `sound` says so.
    pub fn set(options: &Options, sound: bool) -> Result<Stage> {
        let mut stage = Stage::bare(options)?;
        stage.display = Some(display()?);
        if sound {
            stage.sound = Some(stage.start_sound()?);
        }
        Ok(stage)
    }

    fn socket(&self) -> PathBuf {
        self.folder.join(format!("sound.{}", std::process::id()))
    }

    fn start_sound(&self) -> Result<Running> {
        let socket = self.socket();
        let mut command = Command::new("pulseaudio");
        command.args([
            "-n",
            "--daemonize=no",
            "--exit-idle-time=-1",
            "--use-pid-file=no",
            "-L",
            "module-null-sink",
            "-L",
        ]);
        command.arg(format!(
            "module-native-protocol-unix auth-anonymous=1 socket={}",
            socket.display()
        ));
        command.env("HOME", &self.folder).env("XDG_RUNTIME_DIR", &self.folder);
        let mut running = Running::quietly(&mut command)?;
        let begun = Instant::now();
        while !socket.exists() {
            if !running.is_alive() || begun.elapsed() > Duration::from_secs(20) {
                bail!("pulseaudio does not start: try `{command:?}` by hand");
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(running)
    }

    /// Starts a player on this stage.
    pub fn play(&self, player: &Player, heavy: bool) -> Result<Running> {
        let mut command = player.command(&self.folder, heavy)?;
        Running::quietly(self.surround(&mut command))
    }

    /// Display and sound of this stage for a command.
    pub fn surround<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        if let Some((_, display)) = &self.display {
            command.env("DISPLAY", display);
        }
        command.env("XDG_RUNTIME_DIR", &self.folder);
        command
            .env("SDL_AUDIODRIVER", "dummy")
            .env("PULSE_SERVER", format!("unix:{}", self.socket().display()))
    }

    /// Starts a load; it ends with its value. `seconds`: by itself at the latest.
    pub fn load(&self, load: Load, seconds: f64) -> Result<Option<Running>> {
        let mut command = self.program("attune-load");
        match load {
            Load::Nothing => return Ok(None),
            Load::Hogs(count) => command.args(["hogs", "--count", &count.to_string()]),
            Load::Fifo(share) => {
                command.args(["real-time", "--class", "fifo", "--share", &share.to_string()])
            }
            Load::Deadline(share) => {
                command.args(["real-time", "--class", "deadline", "--share", &share.to_string()])
            }
        };
        command.args(["--seconds", &seconds.to_string()]);
        let mut running = Running::quietly(&mut command)?;
        // A load that is refused ends at once.
        std::thread::sleep(Duration::from_millis(300));
        if !running.is_alive() {
            bail!("{load} cannot run here: try `{command:?}` by hand");
        }
        Ok(Some(running))
    }

    /// One of the project's programs.
    pub fn program(&self, name: &str) -> Command {
        Command::new(self.programs.join(name))
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.sound = None;
        // The server has removed it, or it is of no use any more.
        let _ = fs::remove_file(self.socket());
    }
}

/// An X server without a screen, on the first display that is free.
fn display() -> Result<(Running, String)> {
    let mut command = Command::new("Xvfb");
    command.args(["-displayfd", "1", "-screen", "0", "1280x800x24", "-nolisten", "tcp", "-ac"]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut server = Running::start(&mut command)?;
    let mut line = String::new();
    if let Some(output) = server.child().stdout.take() {
        BufReader::new(output).read_line(&mut line).context("asking Xvfb for its display")?;
    }
    match line.trim().parse::<u32>() {
        Ok(number) => Ok((server, format!(":{number}"))),
        Err(_) => bail!("Xvfb does not start: try `{command:?}` by hand"),
    }
}
