//! Synthetic trains: what the analyser must say of a beat, of noise, and of nonsense.

use attune_rhythm::recording::{Event, Kind, parse};
use attune_rhythm::windows::{Follower, consecutive, whole};
use attune_rhythm::{Method, Settings, analyse};
use fastrand::Rng;
use proptest::prelude::*;

fn event(time: f64, thread: u32) -> Event {
    Event { time, thread: Some(thread), kind: Kind::Enter, number: None }
}

fn sorted(mut events: Vec<Event>) -> Vec<Event> {
    events.sort_by(|a, b| a.time.total_cmp(&b.time));
    events
}

/// Jobs of `calls` events on a beat of `rate` Hz; each start is late by up to `delay` of a period,
/// one in ten is lost.
fn beat(
    rate: f64,
    seconds: f64,
    calls: usize,
    delay: f64,
    thread: u32,
    random: &mut Rng,
) -> Vec<Event> {
    let mut events = Vec::new();
    let phase = random.f64();
    for cycle in 0..(seconds * rate) as usize {
        if random.u8(..) < 26 {
            continue;
        }
        let late = if random.bool() { delay * random.f64() } else { 0.0 };
        let start = (cycle as f64 + phase + late) / rate;
        events.extend((0..calls).map(|call| event(start + 2e-5 * call as f64, thread)));
    }
    events
}

/// Calls in bursts of random length after pauses without a typical length.
fn noise(seconds: f64, mean: f64, thread: u32, random: &mut Rng) -> Vec<Event> {
    let mut events = Vec::new();
    let mut now = 0.0;
    while now < seconds {
        now += -mean * (1.0 - random.f64()).ln();
        for _ in 0..1 + random.usize(..20) {
            now += 5e-5 * random.f64();
            events.push(event(now, thread));
        }
    }
    events
}

/// All but one of a thousand trains: where the lost jobs happen to lie every second period, half of
/// the rate is found (2 of 30 000). The trains are the same each time.
#[test]
fn a_beat_is_found_within_one_percent() {
    let mut random = Rng::with_seed(1);
    let mut missed = Vec::new();
    for _ in 0..1000 {
        let rate = 12.5 + 137.5 * random.f64();
        let (calls, delay) = (random.usize(1..12), 0.1 * random.f64());
        let events = sorted(beat(rate, 2.0, calls, delay, 1, &mut random));
        let found = analyse(&events, 0.0, 2.0, &Settings::default());
        match found.frequency_hz {
            Some(best) if (best / rate - 1.0).abs() < 0.01 => {
                assert_eq!(found.periods[0].threads, [1]);
            }
            other => missed.push((rate, calls, delay, other)),
        }
    }
    assert!(missed.len() <= 1, "{missed:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]

    #[test]
    fn the_clock_of_the_recording_does_not_matter(
        rate in 10.0..60.0f64,
        shift in -1e4..1e4f64,
        seed: u64,
    ) {
        let events = sorted(beat(rate, 2.0, 5, 0.1, 1, &mut Rng::with_seed(seed)));
        let moved = |known: &Event| Event { time: known.time + shift, ..*known };
        let shifted: Vec<Event> = events.iter().map(moved).collect();
        let found = |events: &[Event], from: f64| {
            let found = analyse(events, from, from + 2.0, &Settings::default());
            found.frequency_hz.expect("periodic")
        };
        let (here, there) = (found(&events, 0.0), found(&shifted, shift));
        prop_assert!((here / there - 1.0).abs() < 1e-3, "{here} and {there}");
    }

    #[test]
    fn no_train_is_a_panic(
        times in prop::collection::vec(
            prop_oneof![-1e11..1e11f64, 0.0..1.0f64, Just(0.0)],
            0..60,
        ),
        window in prop_oneof![Just(0.0), Just(f64::NAN), 1e-9..1e9f64],
    ) {
        let of_three = |&time: &f64| event(time, (time.abs() as u32) % 3);
        let events = sorted(times.iter().map(of_three).collect());
        for method in [Method::Evidence, Method::Spectrum2010(Default::default())] {
            let settings = Settings { method, ..Settings::default() };
            let found = whole(&events, &settings);
            prop_assert_eq!(found.periodic, found.frequency_hz.is_some());
            prop_assert!(found.frequency_hz.is_none_or(f64::is_finite));
            for (_, found) in consecutive(&events, window, &settings).take(3) {
                prop_assert!(found.confidence.is_finite());
            }
        }
        let mut follower = Follower::new(window, Settings::default());
        times.iter().for_each(|&time| follower.push(event(time, 0)));
        follower.verdict(times.last().copied().unwrap_or(0.0));
    }

    #[test]
    fn any_bytes_are_a_recording_or_a_bad_line(bytes: Vec<u8>) {
        if let Ok(recording) = parse(&bytes) {
            whole(&recording.events, &Settings::default());
        }
    }
}

#[test]
fn noise_is_not_periodic() {
    let periodic = |seed: u64| {
        let mut random = Rng::with_seed(seed);
        let mean = 0.005 + 0.03 * random.f64();
        analyse(&sorted(noise(2.0, mean, 1, &mut random)), 0.0, 2.0, &Settings::default()).periodic
    };
    let wrong = (0..400).filter(|&seed| periodic(seed)).count();
    assert!(wrong < 8, "{wrong} of 400 noise trains are called periodic");
}

#[test]
fn two_threads_with_a_beat_each_are_two_periods() {
    let mut random = Rng::with_seed(5);
    let mut events = beat(25.0, 2.0, 12, 0.05, 10, &mut random);
    events.extend(beat(43.07, 2.0, 6, 0.05, 20, &mut random));
    events.extend(noise(2.0, 0.1, 30, &mut random));
    let found = analyse(&sorted(events), 0.0, 2.0, &Settings::default());
    let threads_of = |rate: f64| {
        let period =
            found.periods.iter().find(|period| (period.frequency_hz / rate - 1.0).abs() < 0.01);
        period.unwrap_or_else(|| panic!("no {rate} Hz in {found:#?}")).threads.clone()
    };
    assert_eq!(threads_of(25.0), [10]);
    assert_eq!(threads_of(43.07), [20]);
}

#[test]
fn polls_between_frames_are_not_the_period() {
    let events: Vec<Event> = (0..200)
        .flat_map(|poll| {
            (0..if poll % 4 == 0 { 24 } else { 2 })
                .map(move |call| event(0.01 * f64::from(poll) + 2e-5 * f64::from(call), 1))
        })
        .collect();
    let found = analyse(&events, 0.0, 2.0, &Settings::default());
    assert!((found.frequency_hz.expect("periodic") - 25.0).abs() < 0.1, "{found:#?}");
}

#[test]
fn the_follower_sees_a_change_of_rate_within_two_windows() {
    let mut random = Rng::with_seed(9);
    let mut events = beat(25.0, 4.0, 6, 0.05, 1, &mut random);
    events.extend(
        beat(31.0, 4.0, 6, 0.05, 1, &mut random)
            .into_iter()
            .map(|known| Event { time: known.time + 4.0, ..known }),
    );
    let mut follower = Follower::new(2.0, Settings::default());
    let mut verdicts = Vec::new();
    let mut next = 2.0;
    for event in events {
        while event.time >= next {
            verdicts.push((next, follower.verdict(next).frequency_hz));
            next += 0.5;
        }
        follower.push(event);
    }
    let at = |time: f64| {
        verdicts.iter().find(|(at, _)| *at >= time).and_then(|(_, rate)| *rate).expect("periodic")
    };
    assert!((at(3.5) - 25.0).abs() < 0.25 && (at(5.5) - 31.0).abs() < 0.31, "{verdicts:?}");
    assert_eq!(follower.forgotten(), 0);
}

#[test]
fn too_little_is_not_periodic() {
    for text in ["", "0.5\n", "0.5\n0.5\n0.5\n", "0\n1\n2\n3\n"] {
        assert!(
            !whole(&parse(text.as_bytes()).unwrap().events, &Settings::default()).periodic,
            "{text:?}"
        );
    }
}

/// A job of one thread: woken from a wait in a system call, it works for `cpu_ms` and waits in the
/// same call again.
fn job(time: f64, thread: u32, call: u64, cpu_ms: f64) -> [Event; 3] {
    let event = |time: f64, kind, number| Event { time, thread: Some(thread), kind, number };
    let end = time + cpu_ms / 1e3;
    [
        event(time, Kind::Wake, None),
        event(end - 1e-5, Kind::Enter, Some(call)),
        event(end, Kind::Block, Some((1e6 * cpu_ms) as u64)),
    ]
}

/// Two threads by turns, 50 times a second together, for two seconds.
fn by_turns(calls: [u64; 2]) -> Vec<Event> {
    let mut random = Rng::with_seed(3);
    let mut turn = |beat: u32| {
        let (thread, time) = (beat % 2, 0.02 * f64::from(beat) + 1e-4 * random.f64());
        job(time, thread, calls[thread as usize], 1.5 + random.f64())
    };
    sorted((0..100).flat_map(&mut turn).collect())
}

#[test]
fn two_jobs_half_a_period_apart_are_one_period() {
    let of = |calls| {
        analyse(&by_turns(calls), 0.0, 2.0, &Settings::default()).frequency_hz.expect("periodic")
    };
    // One sleeps until the time and shows, the other waits for room and reads: 25 pictures a
    // second.
    let (shown, pooled) = (of([230, 202]), of([202, 202]));
    assert!((shown - 25.0).abs() < 0.1, "{shown}");
    // A pool of equal workers that take turns does 50 jobs a second.
    assert!((pooled - 50.0).abs() < 0.2, "{pooled}");
}
