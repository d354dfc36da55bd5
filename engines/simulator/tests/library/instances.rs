//! The library's schedulers as several instances: shares, affinity, and what a lock costs.

use std::sync::Arc;

use attune_simulator::interpreter::{self, Interpreter};
use attune_simulator::metrics::Tally;
use attune_simulator::{Ending, Options, Outcome, Per, Workload, simulate_instances};

use crate::runs::{checked, group};

fn scheduler(name: &str) -> Interpreter {
    let checked = checked(name);
    let program = checked.program.unwrap();
    assert!(program.may_be_split, "{name}");
    Interpreter::new(Arc::new(program), &checked.sources, interpreter::Options::default()).unwrap()
}

fn run(name: &str, per: Per, cpus: u32, text: &str) -> Outcome {
    let workload = Workload::from_toml(text, "w.toml").unwrap_or_else(|error| panic!("{error}"));
    let options = Options { cpus: Some(cpus), per, ..Options::default() };
    let policy = scheduler(name);
    simulate_instances(|| policy.clone(), &workload, &options)
        .unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn hogs(groups: &[(&str, u32, u32)]) -> String {
    let thread = |(name, count, weight): &(&str, u32, u32)| {
        format!(
            "[[thread]]\nname = '{name}'\ncount = {count}\nrepeat = 'forever'\n\
             imports = {{ weight = {weight} }}\ndo = [{{ compute = '1s' }}]\n"
        )
    };
    let threads: String = groups.iter().map(thread).collect();
    format!("duration = '10s'\ncpus_per_cache = 4\n{threads}")
}

/// The largest error of a thread's share, relative to what it is due by weight.
fn worst_error(outcome: &Outcome, groups: &[(&str, u32, u32)]) -> f64 {
    let total: u32 = groups.iter().map(|(_, count, weight)| count * weight).sum();
    let error = |thread: &Tally| {
        let (_, _, weight) = groups[thread.group as usize];
        (outcome.share(thread) / (f64::from(weight) / f64::from(total)) - 1.0).abs()
    };
    outcome.threads().iter().map(error).fold(0.0, f64::max)
}

#[test]
fn divisible_loads_are_shared_by_weight_within_two_percent() {
    let loads: [&[(&str, u32, u32)]; 4] = [
        &[("hog", 16, 1024)],
        &[("heavy", 4, 2048), ("light", 8, 1024)],
        // The light ones come first, so a heavy one begins beside each of four.
        &[("light", 8, 1024), ("heavy", 4, 2048)],
        &[("light", 12, 512), ("middle", 4, 1536), ("heavy", 1, 4096)],
    ];
    for groups in loads {
        for per in [Per::Cpu, Per::Cache] {
            let outcome = run("fair", per, 8, &hogs(groups));
            let heaviest =
                groups.iter().any(|(name, _, weight)| *name == "heavy" && *weight > 2048);
            // Nobody has more than a CPU: of this load, 4096 of 16384 on 8 CPUs are too many.
            if heaviest {
                let heavy = group(&outcome, "heavy");
                assert!(heavy.cpu > 9_700_000_000, "{per:?} {}", outcome.table());
                continue;
            }
            let error = worst_error(&outcome, groups);
            assert!(error < 0.02, "{per:?}, {error}: {}", outcome.table());
        }
    }
}

#[test]
fn other_loads_are_shared_by_weight_within_five_percent() {
    for (cpus, groups) in [
        (2, [("hog", 3, 1024), ("other", 1, 512)]),
        (4, [("hog", 7, 1024), ("other", 1, 700)]),
        (8, [("hog", 9, 1024), ("other", 4, 512)]),
    ] {
        let outcome = run("fair", Per::Cpu, cpus, &hogs(&groups));
        let error = worst_error(&outcome, &groups);
        assert!(error < 0.05, "{error}: {}", outcome.table());
        assert!(outcome.total().moves > 0);
    }
}

#[test]
fn every_policy_that_may_be_split_runs_split() {
    let text = r#"
        duration = "1s"
        context_switch = "2us"
        cpus_per_cache = 2
        [[thread]]
        name = "hog"
        count = 5
        repeat = "forever"
        do = [{ compute = "7ms" }]
        [[thread]]
        name = "sleeper"
        count = 6
        repeat = "forever"
        do = [{ compute = "exponential(1ms)" }, { sleep = "exponential(3ms)" }]
        [[thread]]
        name = "pinned"
        cpus = [1, 2]
        count = 2
        repeat = "forever"
        do = [{ compute = "1ms" }, { io = "2ms" }, { cpus = [3] }, { compute = "1ms" },
              { cpus = [0, 1] }]
    "#;
    for name in ["fair", "fair_periodic", "coop", "round_robin", "lottery"] {
        for per in [Per::Machine, Per::Cache, Per::Cpu] {
            let outcome = run(name, per, 4, text);
            assert_eq!(outcome.ending(), Ending::Duration, "{name}");
            let idle: i64 = outcome.idle().sum();
            assert!(idle < outcome.elapsed() / 50, "{name} {per:?}: {}", outcome.table());
            let starved = outcome.threads().iter().find(|thread| thread.cpu < 20_000_000);
            assert!(starved.is_none(), "{name} {per:?}: {}", outcome.table());
            assert_eq!(outcome.total().moves > 0, per != Per::Machine, "{name} {per:?}");
        }
    }
}

#[test]
fn a_lock_for_each_cache_outlasts_one_for_the_machine() {
    let messages = |cpus: u32| {
        format!(
            r#"
            duration = "20ms"
            cpus_per_cache = 16
            [scheduler_lock]
            hold = "120ns"
            near = "60ns"
            far = "200ns"
            [[thread]]
            name = "pair"
            count = {cpus}
            repeat = "forever"
            do = [{{ job = [{{ compute = "20us" }}, {{ sleep = "uniform(10us, 30us)" }}] }}]
            "#
        )
    };
    let jobs = |per, cpus| run("fair", per, cpus, &messages(cpus)).total().jobs as f64;
    let one = jobs(Per::Cache, 16) / 16.0;
    let cache = jobs(Per::Cache, 128) / 128.0;
    let machine = jobs(Per::Machine, 128) / 128.0;
    assert!(cache > 0.9 * one, "{cache} of {one}");
    assert!(machine < 0.5 * cache, "{machine} and {cache}");
}
