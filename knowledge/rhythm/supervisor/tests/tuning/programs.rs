//! What programs do while they are tuned: start others, change their rate, stop, starve, lose their beat or have none.

use std::collections::BTreeSet;
use std::process::{Command, Stdio};

use attune_supervisor::process;

use crate::machine::{
    Daemon, Running, alone_where_possible, eventually, has_beat, policies, reserved, state,
};

#[test]
fn new_threads_and_children_join() {
    let Some(_alone) = alone_where_possible() else { return };
    // A shell that starts the program a second time, later.
    let program = env!("CARGO_BIN_EXE_attune-beat");
    let script = format!("{program} 40 3 & sleep 4; {program} 40 2; wait");
    let shell = Running(Command::new("/bin/sh").args(["-c", &script]).stdout(Stdio::null()).spawn().unwrap());
    let daemon = Daemon::start(&state("children"));
    daemon.tune(shell.id());
    let children = || -> BTreeSet<u32> {
        attune_tracer::descendants(shell.id())
            .into_iter()
            .filter(|&child| process::name(child) == "attune-beat")
            .collect()
    };
    assert!(eventually(|| children().len() == 2 && children().iter().all(|&child| reserved(child) == 1)));
    children().into_iter().for_each(|child| {
        // SAFETY: no memory is involved; children of a shell that the test started.
        unsafe { libc::kill(i32::try_from(child).unwrap(), libc::SIGKILL) };
    });
}

#[test]
fn a_program_that_stops_gives_back_and_gets_again() {
    let Some(_alone) = alone_where_possible() else { return };
    let beat = Running::beat(&["40", "4"]);
    let daemon = Daemon::start(&state("stops"));
    daemon.tune(beat.id());
    assert!(eventually(|| reserved(beat.id()) == 1));
    beat.signal(libc::SIGSTOP);
    assert!(eventually(|| reserved(beat.id()) == 0));
    beat.signal(libc::SIGCONT);
    assert!(eventually(|| reserved(beat.id()) == 1));
}

#[test]
fn a_new_rate_is_followed() {
    let Some(_alone) = alone_where_possible() else { return };
    let beat = Running::beat(&["40", "4", "to=25"]);
    let daemon = Daemon::start(&state("rate"));
    daemon.tune(beat.id());
    let keeps = |millis: u64| {
        policies(beat.id()).iter().any(|policy| policy.is_reservation() && has_beat(policy, millis))
    };
    assert!(eventually(|| keeps(40)));
    beat.signal(libc::SIGUSR2);
    assert!(eventually(|| keeps(25)), "{:?}", policies(beat.id()));
}

#[test]
fn a_program_that_only_loops_loses_its_reservation() {
    let Some(_alone) = alone_where_possible() else { return };
    let beat = Running::beat(&["40", "4"]);
    let daemon = Daemon::start(&state("loops"));
    daemon.tune(beat.id());
    assert!(eventually(|| reserved(beat.id()) == 1));
    beat.signal(libc::SIGUSR1);
    assert!(eventually(|| reserved(beat.id()) == 0));
}

#[test]
fn no_beat_no_reservation() {
    let Some(_alone) = alone_where_possible() else { return };
    let busy = Running(Command::new("/bin/sh").args(["-c", "while :; do :; done"]).spawn().unwrap());
    let daemon = Daemon::start(&state("no-beat"));
    daemon.tune(busy.id());
    let program = || daemon.ask("{\"request\":\"status\"}")["status"]["programs"][0].clone();
    assert!(eventually(|| program()["listening"] == true));
    assert!(eventually(|| program()["listening"] == false));
    assert!(program()["frequency_hz"].is_null());
    assert_eq!(reserved(busy.id()), 0);
}

/// It has a beat, which nobody can hear: beside others it gets a fraction of what its jobs need.
#[test]
fn a_starved_program_is_heard_and_reserved() {
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
