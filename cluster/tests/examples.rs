//! The published examples in virtual time: what the schedulers gain, and that a seed gives the same
//! bytes.

use attune_cluster::simulation::{ClusterOutcome, Settings, simulate};
use attune_language::{Checked, Options, check};
use attune_simulator::cluster::ClusterWorkload;
use attune_simulator::scheduler::Value;
use attune_timeline_reader::Trace;
use std::path::{Path, PathBuf};

fn folder(example: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples").join(example)
}

fn checked(example: &str) -> Checked {
    let path = folder(example).join(format!("{example}.sched"));
    let mut opened = attune_schedulers::open(&path, &[]).expect("the example is there");
    let checked = check(&opened.source, &mut opened.loader, &Options::default());
    assert!(checked.diagnostics.is_empty(), "{:#?}", checked.diagnostics);
    checked
}

fn run(example: &str, seed: u64, set: &[(&str, i64)]) -> ClusterOutcome {
    let path = folder(example).join(format!("{example}.toml"));
    let text = std::fs::read_to_string(&path).expect("the workload is there");
    let workload = ClusterWorkload::from_toml(&text, example).expect("it reads");
    let shared = set.iter().map(|(name, value)| (name.to_string(), Value::Int(*value)));
    let settings = Settings { seed, shared: shared.collect(), ..Settings::default() };
    match simulate(&checked(example), &workload, &settings) {
        Ok(outcome) => outcome,
        Err(error) => panic!("{example}: {error}"),
    }
}

fn clients(outcome: &ClusterOutcome, name: &str) -> (u64, f64) {
    let world = outcome.world.as_ref().expect("clients");
    let group = world.groups().iter().find(|group| group.name == name).expect("a group");
    (group.jobs, group.response.mean())
}

#[test]
fn the_pool_spreads_its_requests() {
    for seed in 1..=3 {
        let spread = |outcome: ClusterOutcome| {
            let load = outcome.spreads.iter().find(|spread| spread.variable == "load");
            load.expect("the master looks at it").clone()
        };
        let balanced = spread(run("pool", seed, &[]));
        let chance = spread(run("pool", seed, &[("threshold", 1000)]));
        assert!(balanced.mean <= 0.6 * chance.mean, "seed {seed}: {balanced:?} {chance:?}");
        assert!(balanced.most < chance.most, "seed {seed}: {balanced:?} {chance:?}");
    }
}

#[test]
fn the_cameras_buffer_overflows_without_the_scheduler_and_never_with_it() {
    for seed in 1..=5 {
        let lost = |outcome: ClusterOutcome| outcome.lost[0].1;
        assert_eq!(lost(run("cameras", seed, &[])), 0, "seed {seed}");
        let off = [("limit", 1000), ("places", 1000)];
        assert!(lost(run("cameras", seed, &off)) > 0, "seed {seed}");
    }
}

#[test]
fn dynamic_pages_of_the_webapp_come_four_times_as_fast() {
    let with = run("webapp", 1, &[]);
    let without = run("webapp", 1, &[("prefer", 0), ("limit", 1000)]);
    let (_, dynamic) = clients(&with, "dynamic");
    let (_, dynamic_before) = clients(&without, "dynamic");
    assert!(dynamic * 4.0 <= dynamic_before, "{dynamic} {dynamic_before}");
    let (_, fixed) = clients(&with, "static");
    let (_, fixed_before) = clients(&without, "static");
    assert!(fixed <= fixed_before * 3.0, "{fixed} {fixed_before}");
}

#[test]
fn a_seed_gives_the_same_bytes() {
    let first = run("cameras", 7, &[]);
    let again = run("cameras", 7, &[]);
    assert_eq!(first.json(), again.json());
    assert_eq!(first.table(), again.table());
    assert_ne!(first.json(), run("cameras", 8, &[]).json());
    let parsed: serde_json::Value = serde_json::from_str(&first.json()).expect("JSON");
    assert_eq!(parsed["nodes"].as_array().map(Vec::len), Some(4));
    assert_eq!(parsed["nodes"][3]["outcome"]["policy"], "server");
    assert_eq!(first.perfetto(), again.perfetto());
    let trace = Trace::read(&first.perfetto());
    let machines = trace.tracks.iter().filter(|track| track.name.ends_with(": CPUs"));
    assert_eq!(machines.count(), 4);
}

/// The cluster of docs/workloads.md, under the pool's scheduler.
#[test]
fn the_cluster_of_the_page_on_workloads_runs() {
    let page = include_str!("../../docs/workloads.md");
    let text = page.split("```toml cluster\n").nth(1).and_then(|rest| rest.split("```").next());
    let workload = ClusterWorkload::from_toml(text.expect("a workload"), "page").expect("it reads");
    let outcome = simulate(&checked("pool"), &workload, &Settings::default());
    let Ok(outcome) = outcome else { panic!("it runs") };
    assert_eq!((outcome.master.arrivals, outcome.master.departures), (5, 1));
    assert!(outcome.nodes.iter().all(|node| node.outcome.total().jobs > 0), "{}", outcome.table());
}
