//! Names the real players and starts them.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use super::films;

/// What it plays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Media {
    /// A film of so many frames a second, as ffmpeg writes it.
    Film(&'static str),
    Sound,
}

/// One way to run a player.
pub struct Player {
    pub name: &'static str,
    pub program: &'static str,
    /// After the program's name; the film or the music follows.
    words: &'static [&'static str],
    after: &'static [&'static str],
    pub media: Media,
    /// Hz: of its pictures, or of its demands for sound.
    pub rate: f64,
    /// VLC refuses to run as root.
    unprivileged: bool,
}

const fn player_of(
    name: &'static str,
    program: &'static str,
    words: &'static [&'static str],
    media: Media,
    rate: f64,
) -> Player {
    Player { name, program, words, after: &[], media, rate, unprivileged: false }
}

/// PulseAudio asks a client that wants much latency for data so often.
const PULSE: f64 = 9.5238;

pub const PLAYERS: &[Player] = &[
    player_of(
        "mplayer 25",
        "mplayer",
        &["-really-quiet", "-noconsolecontrols", "-vo", "x11", "-nosound"],
        Media::Film("25"),
        25.0,
    ),
    player_of(
        "mpv 24",
        "mpv",
        &["--really-quiet", "--vo=x11", "--no-audio"],
        Media::Film("24"),
        24.0,
    ),
    Player {
        unprivileged: true,
        ..player_of(
            "vlc 30",
            "cvlc",
            &["-q", "--play-and-exit", "--vout=xcb_x11", "--no-audio"],
            Media::Film("30"),
            30.0,
        )
    },
    player_of(
        "ffplay 20",
        "ffplay",
        &["-loglevel", "error", "-autoexit", "-an"],
        Media::Film("20"),
        20.0,
    ),
    Player {
        after: &["-t", "pulseaudio", "default"],
        ..player_of("sox", "sox", &["-q"], Media::Sound, PULSE)
    },
];

/// The player of that name.
pub fn player(name: &str) -> Option<&'static Player> {
    PLAYERS.iter().find(|player| player.name == name)
}

impl Player {
    /// The heavy film that it plays, made if it is not there.
    pub fn film(&self, folder: &Path) -> Result<std::path::PathBuf> {
        match self.media {
            Media::Film(rate) => films::film(folder, rate, true),
            Media::Sound => films::sound(folder),
        }
    }

    /// The command, but for the surroundings. What it plays is made in `folder` if it is not there.
    pub fn command(&self, folder: &Path, heavy: bool) -> Result<Command> {
        let media = match self.media {
            Media::Film(rate) => films::film(folder, rate, heavy),
            Media::Sound => films::sound(folder),
        };
        let media = media.with_context(|| format!("making what {} plays", self.name))?;
        let mut command = match self.unprivileged {
            true => {
                let mut command = Command::new("setpriv");
                command.args(["--reuid=65534", "--regid=65534", "--clear-groups", self.program]);
                command.env("HOME", "/tmp");
                command
            }
            false => Command::new(self.program),
        };
        command.args(self.words).arg(media).args(self.after);
        Ok(command)
    }
}
