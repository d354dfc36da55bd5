//! Every thread is scheduled as before, however the tuner ends.

use attune_daemon::journal::repair_all;
use attune_linux::process;
use attune_linux::scheduling::RECLAIM;
use attune_linux::signal::{KILL, Signal, TERMINATE};

use crate::machine::{
    Daemon, Running, alone_where_possible, attributes, eventually, has_beat, reserved, share,
    state, stopped,
};

#[test]
fn a_program_is_reserved_with_its_period_and_given_back() {
    let Some(_alone) = alone_where_possible() else { return };
    let beat = Running::beat(&["40", "4", "threads=2"]);
    let before = attributes(beat.id());
    let mut daemon = Daemon::start(&state("back"));
    daemon.tune(beat.id());
    assert!(eventually(|| reserved(beat.id()) == 2), "{:?}", attributes(beat.id()));
    for given in attributes(beat.id()) {
        assert!(has_beat(&given, 40), "{given:?}");
        assert_eq!(given.deadline, given.period);
        assert!(share(&given) >= 0.0975 && share(&given) < 1.0, "{given:?}");
        assert!(given.flags & RECLAIM != 0, "a long job cannot use unreserved time: {given:?}");
    }
    let status = daemon.ask("{\"request\":\"status\"}");
    assert_eq!(status["status"]["programs"][0]["process"], beat.id());
    // Asked to end, it gives back before it is gone, and leaves no state behind.
    daemon.running.signal(TERMINATE);
    daemon.running.0.wait().unwrap();
    assert_eq!(attributes(beat.id()), before);
    assert!(daemon.left_behind().is_empty(), "{:?}", daemon.left_behind());
}

#[test]
fn a_killed_tuner_is_cleaned_up_by_its_guardian() {
    let Some(_alone) = alone_where_possible() else { return };
    let beat = Running::beat(&["20", "2", "threads=3"]);
    let before = attributes(beat.id());
    let mut daemon = Daemon::start(&state("killed"));
    daemon.tune(beat.id());
    assert!(eventually(|| reserved(beat.id()) == 3));
    daemon.running.kill();
    assert!(eventually(|| attributes(beat.id()) == before), "{:?}", attributes(beat.id()));
    assert!(eventually(|| !std::fs::read_dir(&daemon.folder)
        .unwrap()
        .flatten()
        .any(|entry| entry.path().extension().is_some_and(|extension| extension == "journal"))));
}

#[test]
fn a_killed_guardian_is_replaced() {
    let Some(_alone) = alone_where_possible() else { return };
    let beat = Running::beat(&["20", "2"]);
    let before = attributes(beat.id());
    let mut daemon = Daemon::start(&state("guardian"));
    daemon.tune(beat.id());
    let guardian = daemon.guardian();
    // The number is the daemon's child's, which it has not waited for.
    process::signal(guardian, KILL).unwrap();
    assert!(eventually(|| daemon.guardian() != guardian));
    assert!(eventually(|| reserved(beat.id()) == 1));
    daemon.running.kill();
    assert!(eventually(|| attributes(beat.id()) == before));
}

#[test]
fn when_both_are_killed_the_next_start_repairs() {
    let Some(_alone) = alone_where_possible() else { return };
    let beat = Running::beat(&["20", "2"]);
    let before = attributes(beat.id());
    let folder = state("both");
    let mut daemon = Daemon::start(&folder);
    daemon.tune(beat.id());
    assert!(eventually(|| reserved(beat.id()) == 1));
    let guardian = daemon.guardian();
    // A stopped tuner starts no other guardian. (To stop the guardian would not do: it is alone in
    // its process group, and the kernel continues a stopped group that its parent's death orphans.)
    // It must hold a reservation at that moment: the beat may have been lost in between, and be
    // found again.
    assert!(eventually(|| {
        daemon.running.signal(Signal::STOP);
        let held = eventually(|| stopped(daemon.running.id())) && reserved(beat.id()) == 1;
        if !held {
            daemon.running.signal(Signal::CONT);
        }
        held
    }));
    // The number is the daemon's child's, which it cannot have waited for.
    process::signal(guardian, KILL).unwrap();
    daemon.running.kill();
    assert_eq!(reserved(beat.id()), 1, "no process is left to give it back");
    assert!(eventually(|| repair_all(&folder).unwrap() == 1));
    assert_eq!(attributes(beat.id()), before);
}
