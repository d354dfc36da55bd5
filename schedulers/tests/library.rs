//! The standard library holds itself to its own checker: no error, no warning, and every engine
//! that exists takes it.

use std::path::Path;

use attune_language::diagnostic::render;
use attune_language::engine::Engine;
use attune_language::engine::event::Event;
use attune_language::{Checked, Options, check};
use attune_schedulers::{LIBRARY, open};

fn checked(name: &str) -> Checked {
    let mut opened = open(Path::new(name), &[]).expect("the library has it");
    check(&opened.source, &mut opened.loader, &Options::default())
}

#[test]
fn every_scheduler_checks_without_a_word() {
    for entry in LIBRARY {
        let checked = checked(entry.name);
        let said: String =
            checked.diagnostics.iter().map(|it| render(it, &checked.sources)).collect();
        assert!(said.is_empty(), "{}:\n{said}", entry.name);
        assert_eq!(checked.scheduler_name.as_deref(), Some(entry.name));
    }
}

#[test]
fn every_complete_scheduler_runs_on_the_simulator_and_on_threads() {
    for entry in LIBRARY {
        let checked = checked(entry.name);
        for engine in [Engine::Simulator, Engine::Threads] {
            let report = checked.engine(engine);
            assert_eq!(
                report.accepted,
                !entry.is_partial(),
                "{} on {engine}: {report:?}",
                entry.name
            );
        }
    }
}

#[test]
fn the_library_is_proved_almost_everywhere() {
    let (mut proved, mut all) = (0, 0);
    for entry in LIBRARY {
        let transfers = checked(entry.name).engine(Engine::Threads).transfers;
        assert_eq!(transfers.refuted, 0, "{}", entry.name);
        proved += transfers.proved;
        all += transfers.total - transfers.trivial;
    }
    assert!(proved * 10 >= all * 9, "{proved} of {all} checks proved");
}

#[test]
fn pth_has_every_container_event_and_query_that_derived_schedulers_rely_on() {
    let program = checked("pth").program.expect("it has no errors");
    let containers: Vec<&str> =
        program.containers.iter().map(|(_, container)| container.name.as_str()).collect();
    assert_eq!(containers, ["current", "next", "NQ", "RQ", "WQ", "SQ"]);
    // Only the engine knows what is left of a slice that a derived scheduler asks for.
    let without = [Event::Alarm, Event::TimesliceLeft, Event::Leaves, Event::Arrives];
    for event in Event::ALL {
        assert_eq!(program.handler(event).is_some(), !without.contains(&event), "{event}");
    }
}

/// How long a ready thread waits under each policy, as far as it is proved.
#[test]
fn what_is_known_of_waiting() {
    let complete = LIBRARY.iter().filter(|entry| !entry.is_partial());
    let lines: String = complete
        .map(|entry| {
            let checked = checked(entry.name);
            let on = |engine| checked.engine(engine).waiting.clone();
            let (one_cpu, many) = (on(Engine::Threads), on(Engine::Simulator));
            match one_cpu == many {
                true => format!("{}: {many:?}\n", entry.name),
                false => format!("{}: {many:?}, on one CPU {one_cpu:?}\n", entry.name),
            }
        })
        .collect();
    insta::assert_snapshot!(lines);
}
