//! The library's schedulers: every one runs every workload of the lab, and each does what its
//! header promises.

mod coop;
mod human;
mod instances;
mod reserve;
mod runs;
mod starvation;
mod transactions;
mod trust;

use std::path::Path;

use attune_simulator::Options;

use runs::{MS, group, run, seconds};

#[test]
fn every_scheduler_runs_every_workload_the_same_way_twice() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../lab/workloads");
    let complete = attune_schedulers::LIBRARY.iter().filter(|entry| !entry.is_partial());
    let complete: Vec<_> = complete.map(|entry| entry.name).collect();
    for entry in std::fs::read_dir(folder).unwrap() {
        let file = entry.unwrap().file_name().into_string().unwrap();
        for policy in &complete {
            for cpus in [1, 3] {
                let options = Options {
                    cpus: Some(cpus),
                    duration: Some(60 * MS),
                    trace: true,
                    ..Options::default()
                };
                let once = || {
                    let outcome = run(policy, &file, &options);
                    outcome.map(|outcome| (outcome.json(), outcome.perfetto()))
                };
                let first =
                    once().unwrap_or_else(|error| panic!("{policy}, {file}, {cpus} CPUs: {error}"));
                assert!(first == once().unwrap(), "{policy}, {file}, {cpus} CPUs: two runs differ");
            }
        }
    }
}

#[test]
fn fair_gives_shares_by_weight() {
    let outcome = run("fair", "hogs.toml", &seconds(5)).unwrap();
    assert!(
        (outcome.share(group(&outcome, "heavy")) - 1.0 / 3.0).abs() < 0.01,
        "{}",
        outcome.table()
    );
    assert!(outcome.jain_within(group(&outcome, "light").group).unwrap() > 0.999);
}

#[test]
fn edf_meets_every_deadline_that_fifo_misses() {
    let edf = run("edf", "periodic.toml", &seconds(5)).unwrap();
    assert_eq!(edf.total().missed, 0, "{}", edf.table());
    assert!(edf.total().jobs > 1_500);
    assert!(run("fifo", "periodic.toml", &seconds(5)).unwrap().total().missed > 100);
}

#[test]
fn shortest_reply_answers_sooner_than_fifo() {
    let mean = |policy| {
        let outcome = run(policy, "webserver.toml", &seconds(5)).unwrap();
        group(&outcome, "small").response.mean()
    };
    let (fifo, shortest) = (mean("fifo"), mean("shortest_reply"));
    assert!(shortest < 0.7 * fifo, "{shortest} ns, fifo {fifo} ns");
}

#[test]
fn the_weather_station_shows_the_temperature_only_when_it_is_hot() {
    let outcome = run("weather", "weather.toml", &seconds(10)).unwrap();
    let display = group(&outcome, "display");
    // Released every 100 ms; on time only in the second, hot half.
    let on_time = display.tardiness.zeros();
    assert!((45..=60).contains(&on_time), "{on_time}: {}", outcome.table());
    assert!(group(&outcome, "wind").skipped < 10, "{}", outcome.table());
}
