//! Films for real players, made by ffmpeg once: their folder is named by the hash of their making.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result, bail};
use sha2::{Digest, Sha256};

use crate::programs::installed;

/// Makes them: the example player's script.
const SCRIPT: &str = include_str!("../../../examples/player/films.sh");

/// `film-1.mkv` and so on, each with another strongly varying bit rate.
#[derive(Clone, Copy, Debug)]
pub struct Films {
    pub count: u32,
    pub seconds: u32,
    /// Such as `640x360`.
    pub size: &'static str,
}

impl Films {
    fn words(&self) -> [String; 3] {
        [self.count.to_string(), self.seconds.to_string(), self.size.to_owned()]
    }

    /// Where they are, or will be, below a folder for all films.
    pub fn folder(&self, folder: &Path) -> PathBuf {
        let hash = Sha256::digest(format!("{SCRIPT}\n{}", self.words().join(" ")));
        let name: String = hash.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        folder.join("films").join(name)
    }

    /// Whether they are there or can be made.
    pub fn check(&self, folder: &Path) -> Result<()> {
        let made = self.folder(folder).exists();
        if made { Ok(()) } else { installed(&["bash", "ffmpeg"]).map(drop) }
    }

    /// Their folder, with them in it.
    pub fn made(&self, folder: &Path) -> Result<PathBuf> {
        /// Runs of an experiment are made at the same time, with the same films.
        static MAKING: Mutex<()> = Mutex::new(());
        let _alone = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
        let place = self.folder(folder);
        if place.exists() {
            return Ok(place);
        }
        // Whoever is interrupted leaves nothing half behind that the next one would take.
        let half = place.with_extension(std::process::id().to_string());
        fs::create_dir_all(&half).with_context(|| format!("creating {}", half.display()))?;
        let mut make = Command::new("bash");
        make.args(["-c", SCRIPT, "films.sh"]).arg(&half).args(self.words()).stdin(Stdio::null());
        let output = make.output().context("films are made by a script for bash")?;
        if !output.status.success() {
            let _ = fs::remove_dir_all(&half);
            let said = String::from_utf8_lossy(&output.stderr);
            bail!("ffmpeg cannot make films (tools/setup.sh test installs it): {}", said.trim());
        }
        fs::rename(&half, &place).with_context(|| format!("writing {}", place.display()))?;
        Ok(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_films_lie_elsewhere() {
        let films = Films { count: 2, seconds: 8, size: "640x360" };
        let place = |films: Films| films.folder(Path::new("/x"));
        assert_ne!(place(films), place(Films { seconds: 9, ..films }));
        assert_ne!(place(films), place(Films { size: "320x180", ..films }));
        assert_eq!(place(films), place(films));
    }

    /// A folder's name says how its films are made, and so which they are: figures of one set-up are another's.
    #[test]
    fn the_same_films_are_made_each_time_and_each_is_another() {
        let films = Films { count: 3, seconds: 8, size: "64x48" };
        let made = || {
            let folder = tempfile::tempdir().expect("a folder");
            let place = films.made(folder.path()).expect("ffmpeg");
            let film = |number| fs::read(place.join(format!("film-{number}.mkv"))).expect("a film");
            [film(1), film(2), film(3)]
        };
        let first = made();
        assert!(first == made(), "made again they differ");
        assert!(first[0] != first[1] && first[1] != first[2] && first[0] != first[2]);
    }
}
