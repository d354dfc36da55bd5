//! A player that is ended by a signal prints its summary; one that cannot play a file says why.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use attune_linux::process;
use attune_linux::signal::TERMINATE;
use serde_json::Value;

use crate::playing::{ended, ffmpeg, film, player, run, scratch, summary};

/// Waits until the process catches (or blocks) SIGTERM, as /proc says.
#[track_caller]
fn until_it_has(child: &Child, mask: &str) {
    let patience = Instant::now() + Duration::from_secs(90);
    let has = |line: &str| {
        let bits =
            line.strip_prefix(mask).and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok());
        bits.is_some_and(|bits| bits & 1 << (TERMINATE.as_raw() - 1) != 0)
    };
    while !fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap().lines().any(has) {
        assert!(Instant::now() < patience, "{mask} lacks SIGTERM");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Ends it by SIGTERM. No film is so long that it has ended by itself.
fn told_to_end(child: Child) -> Output {
    // Our own child, not waited for.
    process::signal(child.id(), TERMINATE).unwrap();
    child.wait_with_output().unwrap()
}

#[test]
fn a_player_that_is_ended_prints_its_summary() {
    let Some(player) = player() else { return };
    let noise = "testsrc2=s=640x360:r=25:d=10,noise=alls=25:allf=t";
    ffmpeg(&format!(
        "-f lavfi -i {noise} -pix_fmt yuv420p -c:v libx264 -preset ultrafast long.mkv"
    ));
    let pipe = scratch().join("pipe.mkv");
    let _ = fs::remove_file(&pipe);
    run(Command::new("mkfifo").arg(&pipe));
    let start = |film: &Path| {
        let mut command = Command::new(player);
        command.args(["--display", "null", "--sound", "none", "--json"]).arg(film);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    // Nobody writes into the pipe, so opening it takes for ever.
    let opening = start(&pipe);
    until_it_has(&opening, "SigCgt:");
    let done = told_to_end(opening);
    assert_eq!(done.status.code(), Some(1), "nothing was played: {done:?}");
    assert_eq!(summary(&done)["films"], Value::Array(vec![]));

    // It decodes nearly all of the time at first.
    for round in 0..10 {
        let playing = start(&scratch().join("long.mkv"));
        until_it_has(&playing, "SigBlk:");
        std::thread::sleep(Duration::from_millis(20 + 20 * round));
        let done = told_to_end(playing);
        assert!(matches!(done.status.code(), Some(0 | 1)), "{done:?}");
        assert_eq!(summary(&done)["films"].as_array().map(Vec::len), Some(1), "{done:?}");
    }
}

#[track_caller]
fn refuses(command: &mut Command, sentence: &str) {
    let done = command.output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(1), "{said}");
    assert!(said.starts_with("player: ") && said.contains(sentence), "{said}");
}

#[test]
fn errors_are_sentences() {
    let Some(player) = player() else { return };
    let film = film("broken", 3, "320x180", 25, "pyramid");
    let whole = fs::read(&film).unwrap();
    let with = |name: &str, bytes: &[u8]| {
        let path = scratch().join(name);
        fs::write(&path, bytes).unwrap();
        path
    };
    let null = |path: &Path| {
        let mut command = Command::new(player);
        command.args(["--display", "null", "--sound", "none", "--json"]).arg(path);
        command
    };
    refuses(&mut null(Path::new("/no/such.mkv")), "/no/such.mkv: No such file or directory");
    refuses(&mut null(&with("text.mkv", b"this is no film\n")), "text.mkv: Invalid data");
    refuses(&mut null(&with("empty.mkv", b"")), "empty.mkv: ");
    let name = whole.windows(15).position(|word| word == b"V_MPEG4/ISO/AVC").unwrap();
    let mut unknown = whole.clone();
    unknown[name..name + 15].copy_from_slice(b"V_MPEG9/ISO/AVC");
    refuses(
        &mut null(&with("unknown.mkv", &unknown)),
        "unknown.mkv: this FFmpeg has no decoder for its pictures",
    );
    ffmpeg("-f lavfi -i sine=d=1 tone.wav");
    refuses(&mut null(&scratch().join("tone.wav")), "tone.wav: there are no pictures in it");
    let mut displayless = Command::new(player);
    refuses(
        displayless.arg(&film).env("DISPLAY", ":987"),
        "display :987: no X server answers there; --display null",
    );
    assert_eq!(null(&film).arg("--sound=loud").output().unwrap().status.code(), Some(2));

    // Cut off, and with bytes that are not the encoder's: it plays what can be played.
    let cut = with("cut.mkv", &whole[..whole.len() / 2]);
    let plays = || {
        let (read, shown) = ended(&summary(&null(&cut).output().unwrap())["films"][0], None);
        assert!(read < 75, "{read}");
        shown > 0
    };
    // A busy machine may be late for all of a short film.
    assert!((0..5).any(|_| plays()), "nothing shown");
    let mut random = 1u64;
    for round in 0..3 {
        let mut scribbled = whole.clone();
        for _ in 0..200 {
            random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let at = 2000 + (random >> 33) as usize % (scribbled.len() - 2000);
            scribbled[at] = random as u8;
        }
        let path = with(&format!("scribbled-{round}.mkv"), &scribbled);
        let done = null(&path).output().unwrap();
        // 1: nothing in it could be shown.
        assert!(matches!(done.status.code(), Some(0 | 1)), "{:?}", done.status);
        ended(&summary(&done)["films"][0], None);
    }
}
