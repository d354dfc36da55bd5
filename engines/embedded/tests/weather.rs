//! The example's weather station: no reading is lost, whatever the policy.
//!
//! `attune lab run weather` compares the policies; here the example works.

use std::path::Path;

use attune_backend_c::Policy;
use attune_embedded::firmware::{Board, Firmware, available};
use attune_language::engine::Engine;
use attune_language::{Options, check};

const STATION: &str = include_str!("../../../examples/weather_station/station.c");
const CONFIG: &str = include_str!("../../../examples/weather_station/attune_config.h");

/// What the station prints at its end.
fn station(policy: &str, board: Board, rounds: u32) -> String {
    let mut opened = attune_schedulers::open(Path::new(policy), &[]).expect("a scheduler");
    let checked = check(&opened.source, &mut opened.loader, &Options::default());
    let program = checked.program.as_ref().expect("a program");
    let verdicts = &checked.engine(Engine::Embedded).verdicts;
    let policy = Policy { program, verdicts, sources: &checked.sources };
    let attune = attune_embedded::source(policy, false).expect("C");
    let folder = tempfile::tempdir().expect("a folder");
    let image = Firmware {
        board,
        attune: &attune,
        project: &[("station.c", STATION), ("attune_config.h", CONFIG)],
        flags: &[&format!("-DROUNDS={rounds}")],
    }
    .build(folder.path());
    let outcome = image.unwrap_or_else(|error| panic!("{error}")).run(5).expect("it runs");
    println!("{}", outcome.said);
    assert_eq!(outcome.status, Some(0), "{}", outcome.said);
    outcome.said
}

/// The numbers behind that word.
fn numbers(said: &str, word: &str) -> Vec<u64> {
    let words: Vec<&str> = said.split_whitespace().collect();
    let behind = words.windows(2).filter(|pair| pair[0] == word);
    behind.map(|pair| pair[1].parse().expect("a number")).collect()
}

#[test]
fn the_station_reads_every_sensor_at_its_interval_under_both_policies() {
    if let Err(missing) = available(Board::Mps2An385) {
        assert!(std::env::var("CI").as_deref() != Ok("true"), "{missing}");
        eprintln!("not run: {missing}");
        return;
    }
    for policy in ["weather", "round_robin"] {
        let said = station(policy, Board::Mps2An385, 80_000);
        let ticks = numbers(&said, "ticks")[0];
        assert!(ticks > 400, "a whole day passes: {said}");
        let expected: Vec<u64> = [3, 6, 10].iter().map(|interval| ticks / interval).collect();
        assert_eq!(numbers(&said, "samples"), expected, "{policy}: {said}");
        assert!(numbers(&said, "latest").iter().all(|&late| late == 0), "{policy}: {said}");
        assert!(numbers(&said, "refreshes")[0] > 20, "{policy}: {said}");
    }
}
