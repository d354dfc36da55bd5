//! Films for real players. ffmpeg makes them once; the hash of their recipe names their folder.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result, bail};

use crate::files;
use crate::programs::installed;

/// The example player's script, which makes films.
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

    /// Their place below `folder`.
    pub fn folder(&self, folder: &Path) -> PathBuf {
        let recipe = format!("{SCRIPT}\n{}", self.words().join(" "));
        folder.join("films").join(&files::hash(recipe.as_bytes())[..16])
    }

    /// Whether they are there or can be made.
    pub fn check(&self, folder: &Path) -> Result<()> {
        let made = self.folder(folder).exists();
        if made { Ok(()) } else { installed(&["bash", "ffmpeg"]).map(drop) }
    }

    /// Their folder, with them in it.
    pub fn made(&self, folder: &Path) -> Result<PathBuf> {
        /// Runs of an experiment go on at the same time, with the same films.
        static MAKING: Mutex<()> = Mutex::new(());
        let _alone = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
        let place = self.folder(folder);
        if place.exists() {
            return Ok(place);
        }
        // Renamed when complete: an interrupted run leaves no half-made films in this place.
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

    /// Runs with films of the same recipe are compared, so the recipe decides each byte.
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
