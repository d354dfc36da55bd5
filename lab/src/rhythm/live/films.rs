//! Makes films and a piece of music with ffmpeg: moving pictures with noise, which a player has to
//! work for.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// Length of what is made.
const FILM_SECONDS: u32 = 40;
/// Width and height of a film that hurts: a frame takes about a fifth of its period to decode and
/// show on a slow machine.
const HEAVY: (u32, u32) = (1280, 720);
const LIGHT: (u32, u32) = (640, 360);

/// The film of that many frames a second in `folder`, made if it is not there.
pub fn film(folder: &Path, rate: &str, heavy: bool) -> Result<PathBuf> {
    let ((width, height), kind) = if heavy { (HEAVY, "heavy") } else { (LIGHT, "light") };
    let file = folder.join(format!("{kind}-{}.mkv", rate.replace('/', "_")));
    let picture =
        format!("testsrc2=size={width}x{height}:rate={rate},noise=alls=12:allf=t,format=yuv420p");
    let words = [
        "-f",
        "lavfi",
        "-i",
        &picture,
        "-f",
        "lavfi",
        "-i",
        "sine=frequency=330:sample_rate=44100",
    ];
    let codecs = [
        "-c:v",
        "libx264",
        "-preset",
        "ultrafast",
        "-crf",
        "26",
        "-c:a",
        "libmp3lame",
        "-b:a",
        "128k",
    ];
    make(&file, words.iter().chain(&codecs))
}

/// Music.
pub fn sound(folder: &Path) -> Result<PathBuf> {
    let words = [
        "-f",
        "lavfi",
        "-i",
        "sine=frequency=330:sample_rate=44100",
        "-c:a",
        "libmp3lame",
        "-b:a",
        "128k",
    ];
    make(&folder.join("sound.mp3"), words.iter())
}

fn make<'a>(file: &Path, words: impl Iterator<Item = &'a &'a str>) -> Result<PathBuf> {
    if file.exists() {
        return Ok(file.to_owned());
    }
    // Renamed when complete: an interrupted run leaves no half film in this place.
    let unfinished =
        file.with_extension(format!("part.{}", file.extension().unwrap_or_default().display()));
    let mut command = Command::new("ffmpeg");
    command.args(["-y", "-v", "error", "-nostdin"]).args(words);
    command.args(["-t", &FILM_SECONDS.to_string()]).arg(&unfinished);
    let output = command.stdin(Stdio::null()).output().context("starting ffmpeg")?;
    if !output.status.success() {
        bail!(
            "ffmpeg cannot make {}: {}",
            file.display(),
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    fs::rename(&unfinished, file).with_context(|| format!("writing {}", file.display()))?;
    Ok(file.to_owned())
}
