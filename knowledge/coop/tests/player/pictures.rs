//! Which pictures are shown, in which order, and whether they are right; what is left out when the
//! CPU is not enough.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::playing::{ended, ffmpeg, film, log, number, play, player, scratch, summary};

/// What FFmpeg itself makes of the film, in the same form.
fn reference(film: &Path) -> Vec<(f64, String)> {
    let text = ffmpeg(&format!(
        "-i {} -map 0:v -copyts -fps_mode passthrough -enc_time_base -1 -f framecrc -",
        film.display()
    ));
    let time_base = text.lines().find_map(|line| line.strip_prefix("#tb 0: ")).unwrap();
    let (up, down) = time_base.split_once('/').unwrap();
    let ms = 1000.0 * up.parse::<f64>().unwrap() / down.parse::<f64>().unwrap();
    let frame = |line: &str| {
        let words: Vec<_> = line.split(',').map(str::trim).collect();
        (words[2].parse::<f64>().unwrap() * ms, words[5].trim_start_matches("0x").to_owned())
    };
    text.lines().filter(|line| !line.starts_with('#')).map(frame).collect()
}

/// Shown in order, each with the picture that belongs there, so many at least.
#[track_caller]
fn pictures_are_right(shown: &[(f64, String)], reference: &[(f64, String)], least: usize) {
    assert!(shown.len() >= least, "{} of {} shown", shown.len(), reference.len());
    assert!(shown.is_sorted_by(|a, b| a.0 < b.0), "{shown:?}");
    for (time, sum) in shown {
        let right = reference.iter().find(|(at, _)| (at - time).abs() < 2.0);
        assert_eq!(right.map(|(_, right)| right), Some(sum), "at {time} ms");
    }
}

#[test]
fn frames_are_shown_in_order_and_are_right() {
    let Some(player) = player() else { return };
    for (kind, kinds) in [
        ("pyramid", "key reference reference B disposable"),
        ("independent", "every 8th every 4th every 2nd other"),
    ] {
        let film = film(&format!("right-{kind}"), 3, "320x180", 25, kind);
        let list = scratch().join(format!("{kind}.log"));
        let summary = play(
            player,
            &["--sound", "null", "--log", list.to_str().unwrap(), film.to_str().unwrap()],
        );
        let reference = reference(&film);
        let (read, shown) = ended(&summary["films"][0], None);
        assert_eq!((read as usize, shown as usize), (reference.len(), log(&list).len()));
        // Other work on the machine may cost many.
        pictures_are_right(&log(&list), &reference, reference.len() / 4);
        let names: Vec<_> = summary["films"][0]["kinds"]
            .as_array()
            .unwrap()
            .iter()
            .map(|row| row["kind"].as_str().unwrap())
            .collect();
        assert_eq!(names.join(" "), kinds);
        let sound = |what: &str| summary["sound"][what].as_f64().unwrap();
        assert!(
            (2.5..3.2).contains(&(sound("played_s") + sound("missing_s"))),
            "{}",
            summary["sound"]
        );
        assert_eq!(sound("broken"), 0.0);
    }
}

/// Shows the film so often at the same time, on the first CPU. A run on a machine whose other work
/// leaves next to nothing for that proves nothing: it is tried again.
fn play_on_one_cpu(player: &Path, film: &Path, films: usize, list: &Path) -> Value {
    const ALL: &[&str] = &[
        "key",
        "reference",
        "reference B",
        "disposable",
        "every 8th",
        "every 4th",
        "every 2nd",
        "other",
    ];
    for _ in 0..5 {
        let mut command = Command::new("taskset");
        command.args(["-c", "0"]).arg(player);
        command.args(["--display", "null", "--json", "--sound", "none", "--log"]).arg(list);
        let done = command.args(vec![film; films]).output().unwrap();
        let summary = summary(&done);
        if share(&summary, ALL) > 0.1 {
            assert!(done.status.success(), "{done:?}");
            for film in summary["films"].as_array().unwrap() {
                ended(film, None);
            }
            return summary;
        }
    }
    panic!("not a tenth of {films} films in five runs: other programs have CPU 0");
}

/// Frames of these kinds, over all films.
fn sum(summary: &Value, kinds: &[&str], what: &str) -> u64 {
    let films = summary["films"].as_array().unwrap();
    let rows = films.iter().flat_map(|film| film["kinds"].as_array().unwrap());
    rows.filter(|row| kinds.contains(&row["kind"].as_str().unwrap()))
        .map(|row| number(&row[what]))
        .sum()
}

/// How many of them were shown.
fn share(summary: &Value, kinds: &[&str]) -> f64 {
    sum(summary, kinds, "shown") as f64 / sum(summary, kinds, "read") as f64
}

/// Many heavy films on one CPU, which it is not enough for.
#[test]
fn what_matters_least_is_left_out_when_the_cpu_is_not_enough() {
    let Some(player) = player() else { return };
    let pyramid = "b-pyramid=strict:bframes=3:b-adapt=0:keyint=25:scenecut=0:open-gop=0";
    let kinds = [
        ("pyramid", pyramid, ["key", "reference"], "disposable"),
        ("independent", "keyint=1", ["every 8th", "every 4th"], "other"),
    ];
    for (kind, coding, important, least) in kinds {
        let film = scratch().join(format!("heavy-{kind}.mkv"));
        let noise = "-f lavfi -i testsrc2=s=640x360:r=50:d=2,noise=alls=25:allf=t -pix_fmt yuv420p \
            -c:v libx264";
        ffmpeg(&format!("{noise} -preset veryfast -x264-params {coding} {}", film.display()));
        let list = scratch().join(format!("heavy-{kind}.log"));
        // However fast the machine is, so many films are too many.
        let summary = [4, 8, 16, 32, 64]
            .into_iter()
            .map(|films| play_on_one_cpu(player, &film, films, &list))
            .find(|summary| share(summary, &[least]) < 1.0)
            .expect("64 films are too much for one CPU");
        assert!(share(&summary, &important) >= share(&summary, &[least]), "{summary}");
        assert_eq!(
            sum(&summary, &important, "dropped"),
            0,
            "only pictures that no other needs are left out: {summary}"
        );
        // Whatever was left out, what is shown is right. The films' lines are mixed: the order is
        // not asked.
        let reference = reference(&film);
        let mut shown = log(&list);
        shown.sort_by(|a, b| a.0.total_cmp(&b.0));
        shown.dedup();
        pictures_are_right(&shown, &reference, 1);
    }
}

#[test]
fn players_of_a_group_cooperate() {
    let Some(player) = player() else { return };
    let film = film("group", 2, "320x180", 25, "pyramid");
    let session = scratch().join("session");
    let start = || {
        let mut command = Command::new(player);
        command.args(["--display", "null", "--json", "--group", "1"]).arg(&film);
        command
            .env("ATTUNE_COOP", format!("shared:{}", session.display()))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap()
    };
    for child in [start(), start(), start()] {
        let done = child.wait_with_output().unwrap();
        let (read, shown) = ended(&summary(&done)["films"][0], None);
        assert!(read == 50 && shown > 5, "{shown} of {read}");
    }
}
