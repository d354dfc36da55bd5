//! Programs that are tuned start others, change their rate, stop, starve, lose their beat or have
//! none.

use std::collections::BTreeSet;
use std::process::{Command, Stdio};

use attune_linux::signal::{KILL, Signal};
use attune_linux::{process, procfs};

use crate::machine::{
    Daemon, Running, alone_where_possible, attributes, eventually, has_beat, is_reservation,
    reserved, state,
};

#[test]
fn new_threads_and_children_join() {
    let Some(_alone) = alone_where_possible() else { return };
    // A shell that starts the program a second time, later.
    let program = env!("CARGO_BIN_EXE_attune-beat");
    let script = format!("{program} 40 3 & sleep 4; {program} 40 2; wait");
    let shell = Running(
        Command::new("/bin/sh").args(["-c", &script]).stdout(Stdio::null()).spawn().unwrap(),
    );
    let daemon = Daemon::start(&state("children"));
    daemon.tune(shell.id());
    let children = || -> BTreeSet<u32> {
        attune_tracer::descendants(shell.id())
            .into_iter()
            .filter(|&child| procfs::name(child) == "attune-beat")
            .collect()
    };
    assert!(eventually(
        || children().len() == 2 && children().iter().all(|&child| reserved(child) == 1)
    ));
    children().into_iter().for_each(|child| {
        // Children of a shell that the test started.
        process::signal(child, KILL).unwrap();
    });
}

#[test]
fn a_program_that_stops_gives_back_and_gets_again() {
    let Some(_alone) = alone_where_possible() else { return };
    let beat = Running::beat(&["40", "4"]);
    let daemon = Daemon::start(&state("stops"));
    daemon.tune(beat.id());
    assert!(eventually(|| reserved(beat.id()) == 1));
    beat.signal(Signal::STOP);
    assert!(eventually(|| reserved(beat.id()) == 0));
    beat.signal(Signal::CONT);
    assert!(eventually(|| reserved(beat.id()) == 1));
}

#[test]
fn a_new_rate_is_followed() {
    let Some(_alone) = alone_where_possible() else { return };
    let beat = Running::beat(&["40", "4", "to=25"]);
    let daemon = Daemon::start(&state("rate"));
    daemon.tune(beat.id());
    let keeps = |millis: u64| {
        let found = attributes(beat.id());
        found.iter().any(|found| is_reservation(found) && has_beat(found, millis))
    };
    assert!(eventually(|| keeps(40)));
    beat.signal(Signal::USR2);
    assert!(eventually(|| keeps(25)), "{:?}", attributes(beat.id()));
}

#[test]
fn a_program_that_only_loops_loses_its_reservation() {
    let Some(_alone) = alone_where_possible() else { return };
    let beat = Running::beat(&["40", "4"]);
    let daemon = Daemon::start(&state("loops"));
    daemon.tune(beat.id());
    assert!(eventually(|| reserved(beat.id()) == 1));
    beat.signal(Signal::USR1);
    assert!(eventually(|| reserved(beat.id()) == 0));
}

#[test]
fn a_program_without_a_beat_gets_no_reservation() {
    let Some(_alone) = alone_where_possible() else { return };
    let busy =
        Running(Command::new("/bin/sh").args(["-c", "while :; do :; done"]).spawn().unwrap());
    let daemon = Daemon::start(&state("no-beat"));
    daemon.tune(busy.id());
    let program = || daemon.ask("{\"request\":\"status\"}")["status"]["programs"][0].clone();
    assert!(eventually(|| program()["listening"] == true));
    assert!(eventually(|| program()["listening"] == false));
    assert!(program()["frequency_hz"].is_null());
    assert_eq!(reserved(busy.id()), 0);
}

/// Beside the others it gets a fraction of what its jobs need, so its period cannot be detected
/// before it has a trial reservation.
#[test]
fn a_starved_program_is_detected_and_reserved() {
    let Some(_alone) = alone_where_possible() else { return };
    let cpus = std::thread::available_parallelism().unwrap().get();
    let _others: Vec<Running> = (0..3 * cpus)
        .map(|_| {
            let mut other = Command::new("nice");
            Running(other.args(["-n", "-15", "sh", "-c", "while :; do :; done"]).spawn().unwrap())
        })
        .collect();
    let beat = Running::beat(&["43", "20", "skips=1"]);
    let daemon = Daemon::start(&state("starved"));
    daemon.tune(beat.id());
    let status = || daemon.ask("{\"request\":\"status\"}")["status"]["programs"][0].clone();
    let heard = || (status()["period_ms"].as_f64().unwrap_or_default() - 43.0).abs() < 0.43;
    assert!(eventually(|| heard() && reserved(beat.id()) == 1), "{}", status());
}
