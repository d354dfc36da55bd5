//! The player, the films that it is given, and what it says that it did with them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

use serde_json::Value;

/// The player, or why it cannot be had here.
pub fn player() -> Option<&'static Path> {
    static BUILT: OnceLock<Option<PathBuf>> = OnceLock::new();
    BUILT.get_or_init(build).as_deref()
}

fn build() -> Option<PathBuf> {
    let libraries =
        "libavformat libavcodec libswscale libswresample libavutil xcb xcb-shm xcb-sync libpulse";
    let works = |program: &str, arguments: &str| {
        let mut command = Command::new(program);
        command.args(arguments.split(' ')).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    if !(works("pkg-config", &format!("--exists {libraries}"))
        && works("ffmpeg", "-version")
        && Command::new("Xvfb").arg("-version").output().is_ok())
    {
        assert!(
            std::env::var("CI").as_deref() != Ok("true"),
            "the player's libraries, ffmpeg and Xvfb must be there"
        );
        eprintln!(
            "not tested: needs ffmpeg, Xvfb and the libraries {libraries}; tools/setup.sh test \
                installs them"
        );
        return None;
    }
    let libraries = std::env::current_exe().unwrap().parent().unwrap().to_path_buf();
    let out = scratch().join("bin");
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/player");
    let mut make = Command::new("make");
    make.arg("-C")
        .arg(directory)
        .arg(format!("OUT={}", out.display()))
        .arg("CFLAGS=-O2 -g -Werror");
    make.arg(format!("LIBRARY_DIR={}", libraries.display())).env_remove("MAKEFLAGS");
    run(&mut make);
    Some(out.join("player"))
}

/// The folder for files that one test makes and all tests here use.
pub fn scratch() -> &'static Path {
    static SCRATCH: OnceLock<PathBuf> = OnceLock::new();
    SCRATCH.get_or_init(|| {
        let scratch = Path::new(env!("CARGO_TARGET_TMPDIR")).join("player");
        fs::create_dir_all(&scratch).unwrap();
        scratch
    })
}

#[track_caller]
pub fn run(command: &mut Command) -> String {
    let done = command.output().unwrap();
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(done.status.success(), "{command:?}: {text}{}", String::from_utf8_lossy(&done.stderr));
    text
}

#[track_caller]
pub fn ffmpeg(arguments: &str) -> String {
    run(Command::new("ffmpeg")
        .args(["-v", "error", "-y"])
        .args(arguments.split(' '))
        .current_dir(scratch()))
}

/// films.sh's first film of so many seconds.
pub fn film(name: &str, seconds: u32, size: &str, rate: u32, kind: &str) -> PathBuf {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/player/films.sh");
    let directory = scratch().join(name);
    run(Command::new(script)
        .arg(&directory)
        .arg("1")
        .arg(seconds.to_string())
        .arg(size)
        .arg(rate.to_string())
        .arg(kind));
    directory.join("film-1.mkv")
}

/// What the player did with these words: its summary, once it has ended well.
#[track_caller]
pub fn play(player: &Path, arguments: &[&str]) -> Value {
    let done = Command::new(player)
        .args(["--display", "null", "--json"])
        .args(arguments)
        .output()
        .unwrap();
    assert!(done.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
    summary(&done)
}

pub fn summary(done: &Output) -> Value {
    serde_json::from_slice(&done.stdout).unwrap_or_else(|error| panic!("{error}: {done:?}"))
}

/// Time in the film (ms) and checksum of each frame that was shown.
pub fn log(path: &Path) -> Vec<(f64, String)> {
    let text = fs::read_to_string(path).unwrap();
    let lines = text.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    lines.map(|words| (words[0].parse().unwrap(), words[2].to_owned())).collect()
}

pub fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value}"))
}

/// Every frame that was read ended once. How many were read and how many shown, of a kind or of
/// all.
#[track_caller]
pub fn ended(film: &Value, kind: Option<&str>) -> (u64, u64) {
    let (mut read, mut shown) = (0, 0);
    for row in film["kinds"].as_array().unwrap() {
        let count = |what: &str| number(&row[what]);
        assert_eq!(
            count("read"),
            count("shown") + count("expired") + count("dropped") + count("broken"),
            "{film}"
        );
        if kind.is_none_or(|kind| row["kind"] == kind) {
            (read, shown) = (read + count("read"), shown + count("shown"));
        }
    }
    (read, shown)
}
