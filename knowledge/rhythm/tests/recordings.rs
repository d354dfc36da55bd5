//! Recordings of real programs, window by window: the verdicts that a user would rely on.

use std::io::Read;
use std::path::Path;

use attune_rhythm::recording::{Event, parse};
use attune_rhythm::windows::{consecutive, whole};
use attune_rhythm::{Analysis, Method, Settings};
use flate2::read::GzDecoder;

fn recording(name: &str) -> Vec<Event> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("traces").join(format!("{name}.txt.gz"));
    let packed = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut bytes = Vec::new();
    GzDecoder::new(&packed[..]).read_to_end(&mut bytes).unwrap();
    parse(&bytes).unwrap().events
}

fn right(analysis: &Analysis, rate: f64) -> bool {
    analysis.frequency_hz.is_some_and(|found| (found / rate - 1.0).abs() < 0.01)
}

fn windows(name: &str, window: f64) -> Vec<Analysis> {
    consecutive(&recording(name), window, &Settings::default())
        .map(|(_, analysis)| analysis)
        .collect()
}

#[test]
fn players_on_an_idle_machine_in_one_second() {
    for (name, rate) in [
        ("mplayer-v25-x11.idle", 25.0),
        ("mplayer-v23976-x11.idle", 23.976),
        ("mplayer-v15.idle", 15.0),
        ("mplayer-w20.idle", 20.0),
        ("sox-mp3.idle", 9.5238),
        ("mpv-v24.idle", 23.976),
        ("mpv-v60.idle", 60.0),
        ("mpv-w48.idle", 48.0),
        ("vlc-v30.idle", 30.0),
        ("vlc-w24.idle", 24.0),
    ] {
        let found = windows(name, 1.0);
        assert!(
            found.len() >= 4 && found.iter().all(|analysis| right(analysis, rate)),
            "{name}: {found:#?}"
        );
    }
}

#[test]
fn players_beside_hogs_and_real_time_tasks_in_two_seconds() {
    for (name, rate) in [
        ("mplayer-v25-x11.hogs", 25.0),
        ("mplayer-v23976-x11.hogs", 23.976),
        ("mplayer-v15.hogs", 15.0),
        ("mplayer-v25.periodic", 25.0),
        ("mplayer-w20.hogs", 20.0),
        ("mpv-v24.hogs", 23.976),
        ("mpv-v60.periodic", 60.0),
        ("sox-mp3-pulse.hogs", 9.5238),
        ("vlc-v25.hogs", 25.0),
        ("vlc-w24.hogs", 24.0),
    ] {
        let found = windows(name, 2.0);
        assert!(
            found.len() >= 2 && found.iter().all(|analysis| right(analysis, rate)),
            "{name}: {found:#?}"
        );
    }
}

#[test]
fn programs_without_a_beat_have_none() {
    for name in ["bursty1.idle", "bursty1.hogs", "bursty2.idle", "compile.idle", "compile.hogs"] {
        for window in [1.0, 2.0] {
            for analysis in windows(name, window) {
                assert!(!analysis.periodic, "{name}: {analysis:#?}");
            }
        }
    }
}

#[test]
fn a_whole_recording_gives_the_last_digits() {
    for (name, rate) in [
        ("mplayer-v25-x11.hogs", 25.0),
        ("mplayer-v23976-x11.hogs", 23.976),
        ("mpv-v60.hogs", 60.0),
    ] {
        let found = whole(&recording(name), &Settings::default()).frequency_hz.unwrap();
        assert!((found / rate - 1.0).abs() < 1e-3, "{name}: {found}");
    }
}

#[test]
fn a_sleeper_under_load_has_the_rate_of_its_jobs() {
    let found =
        whole(&recording("mplayer-mp3-null.hogs"), &Settings::default()).frequency_hz.unwrap();
    assert!((70.0..100.0).contains(&found), "{found}");
}

#[test]
fn sound_and_picture_are_two_periods_with_their_threads() {
    let found = whole(&recording("ffplay-v50.idle"), &Settings::default());
    let period = |rate: f64| {
        let period =
            found.periods.iter().find(|period| (period.frequency_hz / rate - 1.0).abs() < 0.01);
        period.unwrap_or_else(|| panic!("no {rate} Hz in {found:#?}"))
    };
    assert_ne!(period(50.0).threads, period(86.133).threads);
    assert!(!period(50.0).threads.is_empty() && !period(86.133).threads.is_empty());
}

#[test]
fn the_published_heuristic_takes_harmonics_under_load() {
    let settings =
        Settings { method: Method::Spectrum2010(Default::default()), ..Settings::default() };
    let events = recording("vlc-v30.hogs");
    let published: Vec<Analysis> =
        consecutive(&events, 2.0, &settings).map(|(_, analysis)| analysis).collect();
    assert!(published.iter().all(|analysis| analysis.periodic), "it cannot abstain");
    assert!(published.iter().any(|analysis| !right(analysis, 30.0)));
}
