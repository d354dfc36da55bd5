//! No handler takes more steps than its static worst case.

use std::path::Path;
use std::sync::Arc;

use attune_conformance::generator;
use attune_conformance::random::derive;
use attune_conformance::scheduler::Scheduler;
use attune_conformance::worst_case::{Trial, examine};
use attune_language::engine::Engine;
use attune_language::{Options, check};

#[test]
fn no_handler_of_the_library_takes_more_steps_than_its_worst_case() {
    let (mut examined, mut near) = (0, 0);
    for entry in attune_schedulers::LIBRARY {
        let mut opened = attune_schedulers::open(Path::new(entry.name), &[]).expect("a scheduler");
        let checked = check(&opened.source, &mut opened.loader, &Options::default());
        if !checked.engine(Engine::Embedded).accepted {
            continue;
        }
        let program = Arc::new(checked.program.expect("a program"));
        let trial = Trial { seed: 11, runs: 12, steps: 150 };
        let report = examine(&program, &checked.sources, trial).expect("it runs");
        assert!(report.wrong.is_empty(), "{}: {}", entry.name, report.wrong[0]);
        let closest = report.largest.values().copied().fold(0.0, f64::max);
        println!("{}: {} calls, {:.0} % of a bound", entry.name, report.calls, closest * 100.0);
        near += usize::from(closest > 0.5);
        examined += 1;
    }
    // Bounds that no run comes near would be no bounds of these schedulers.
    assert!(examined >= 10 && near >= 8, "{near} of {examined} schedulers came near a bound");
}

#[test]
fn no_handler_of_a_random_scheduler_takes_more_steps_than_its_worst_case() {
    let (mut calls, mut bounded) = (0, 0);
    for number in 0..60 {
        let seed = derive(23, number);
        let sources = generator::scheduler(seed, 8);
        let Ok(scheduler) = Scheduler::new(&sources) else { continue };
        let trial = Trial { seed, runs: 5, steps: 60 };
        let Some(report) = examine(&scheduler.program, &scheduler.sources, trial) else { continue };
        assert!(report.wrong.is_empty(), "{}\n{}", report.wrong[0], sources.listing());
        calls += report.calls;
        bounded += report.largest.len();
    }
    assert!(calls > 5_000, "only {calls} calls");
    assert!(bounded > 150, "only {bounded} handlers have a bound");
}
