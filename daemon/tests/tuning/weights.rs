//! Rated programs count more on a stock kernel, and every thread is as before afterwards.

use std::cell::RefCell;

use attune_daemon::daemon::Rater;
use attune_daemon::weights::{INPUT_SLICE, Rating, SLICE};
use attune_linux::process;
use attune_linux::procfs;
use attune_linux::scheduling::{Attributes, RESET_ON_FORK};
use attune_linux::signal::{KILL, Signal, TERMINATE};

use crate::machine::{
    Daemon, Running, alone_where_possible, attributes, eventually, reserved, state, stopped,
};

/// Tells the ratings of processes: number and input rating.
fn rate(daemon: &Daemon, ratings: &[(u32, i64)]) {
    let both: Vec<_> = ratings.iter().map(|(process, input)| (*process, *input, 0)).collect();
    rate_both(daemon, &both);
}

/// Tells the ratings of processes: number, input and output rating.
fn rate_both(daemon: &Daemon, ratings: &[(u32, i64, i64)]) {
    let ratings: Vec<String> = ratings
        .iter()
        .map(|(process, input, output)| {
            let start = procfs::start_time(*process).unwrap();
            format!("[{process},{start},{input},{output}]")
        })
        .collect();
    let request = format!("{{\"request\":\"rate\",\"ratings\":[{}]}}", ratings.join(","));
    let answer = daemon.ask(&request);
    assert_eq!(answer["ok"], true, "{answer}");
}

fn nice_values(process: u32) -> Vec<i32> {
    attributes(process).iter().map(|of_thread| of_thread.nice).collect()
}

fn renice(process: u32, nice: i32) {
    for thread in procfs::threads(process) {
        let now = Attributes::of(thread).unwrap();
        Attributes { nice, ..now }.apply_to(thread).unwrap();
    }
}

/// A program with a beat and nice value 0, whatever the tests were started with.
fn ordinary(words: &[&str]) -> Running {
    let beat = Running::beat(words);
    renice(beat.id(), 0);
    beat
}

#[test]
fn threads_count_more_by_their_rating_and_get_their_attributes_back() {
    let Some(_alone) = alone_where_possible() else { return };
    let (beat, other) = (ordinary(&["40", "4", "threads=2"]), ordinary(&["40", "4"]));
    let before = attributes(beat.id());
    let mut daemon = Daemon::start(&state("rated"));
    rate(&daemon, &[(beat.id(), 970), (other.id(), 40)]);
    assert_eq!(nice_values(beat.id()), [-10, -10]);
    assert!(attributes(beat.id()).iter().all(|now| now.flags & RESET_ON_FORK != 0));
    // Kernels that know no slices tell none.
    let slices = |longest| {
        let slice = before[0].runtime.min(longest);
        attributes(beat.id()).iter().all(|now| now.runtime == slice)
    };
    assert!(slices(INPUT_SLICE));
    rate_both(&daemon, &[(beat.id(), 40, 970)]);
    assert!(slices(SLICE), "what it shows counts, and no input does");
    assert_eq!(nice_values(beat.id()), [-10, -10]);
    rate(&daemon, &[(beat.id(), 970), (other.id(), 40)]);
    assert!(slices(INPUT_SLICE));
    assert_eq!(nice_values(other.id()), [0], "too low to count");
    rate(&daemon, &[(beat.id(), 500)]);
    assert_eq!(nice_values(beat.id()), [-5, -5]);
    rate(&daemon, &[(other.id(), 1000)]);
    assert_eq!(attributes(beat.id()), before);
    assert_eq!(nice_values(other.id()), [-10]);
    // Asked to end, it gives back before it is gone, and leaves no state behind.
    daemon.running.signal(TERMINATE);
    daemon.running.0.wait().unwrap();
    assert_eq!(nice_values(other.id()), [0]);
    assert!(daemon.left_behind().is_empty(), "{:?}", daemon.left_behind());
}

/// What `attune focus` does: it tells each second, whether a daemon runs or not.
#[test]
fn a_monitor_s_ratings_reach_the_daemon_that_comes_later_and_end_with_the_monitor() {
    let Some(_alone) = alone_where_possible() else { return };
    let beat = ordinary(&["40", "4", "threads=2"]);
    let before = attributes(beat.id());
    let folder = state("rater");
    let ratings = [Rating(beat.id(), procfs::start_time(beat.id()).unwrap(), 500, 0)];
    let rater = RefCell::new(Rater::default());
    let tell = || rater.borrow_mut().tell(&folder, &ratings);
    assert_eq!(tell(), None, "no daemon is no refusal");
    let daemon = Daemon::start(&folder);
    let told = || {
        assert_eq!(tell(), None);
        nice_values(beat.id()) == [-5, -5]
    };
    assert!(eventually(told), "{:?}", attributes(beat.id()));
    // The next daemon hears it as well.
    drop(daemon);
    assert!(eventually(|| attributes(beat.id()) == before), "{:?}", attributes(beat.id()));
    let _next = Daemon::start(&folder);
    assert!(eventually(told), "{:?}", attributes(beat.id()));
    // Nothing is told from here on.
    assert!(eventually(|| attributes(beat.id()) == before), "{:?}", attributes(beat.id()));
}

#[test]
fn what_a_user_has_set_stays() {
    let Some(_alone) = alone_where_possible() else { return };
    let (niced, changed) = (ordinary(&["40", "4"]), ordinary(&["40", "4"]));
    renice(niced.id(), 5);
    let daemon = Daemon::start(&state("niced"));
    let ratings = [(niced.id(), 970), (changed.id(), 970)];
    rate(&daemon, &ratings);
    assert_eq!(nice_values(niced.id()), [5]);
    assert_eq!(nice_values(changed.id()), [-10]);
    // Somebody renices a thread that is raised: that value stands, now and later.
    renice(changed.id(), -3);
    rate(&daemon, &ratings);
    assert_eq!(nice_values(changed.id()), [-3]);
    assert_eq!(attributes(changed.id())[0].flags & RESET_ON_FORK, 0);
    rate(&daemon, &[]);
    assert_eq!((nice_values(niced.id()), nice_values(changed.id())), (vec![5], vec![-3]));
}

#[test]
fn ratings_that_are_not_told_again_are_over() {
    let Some(_alone) = alone_where_possible() else { return };
    let beat = ordinary(&["40", "4"]);
    let before = attributes(beat.id());
    let daemon = Daemon::start(&state("stale"));
    rate(&daemon, &[(beat.id(), 970)]);
    assert!(eventually(|| attributes(beat.id()) == before), "{:?}", attributes(beat.id()));
}

#[test]
fn another_process_with_the_number_is_not_rated() {
    let Some(_alone) = alone_where_possible() else { return };
    let beat = ordinary(&["40", "4"]);
    let daemon = Daemon::start(&state("reused"));
    let start = procfs::start_time(beat.id()).unwrap() + 1;
    let request = format!("{{\"request\":\"rate\",\"ratings\":[[{},{start},970,0]]}}", beat.id());
    assert_eq!(daemon.ask(&request)["ok"], true);
    assert_eq!(nice_values(beat.id()), [0]);
}

#[test]
fn a_killed_daemon_s_weights_are_given_back_by_its_guardian() {
    let Some(_alone) = alone_where_possible() else { return };
    let beat = ordinary(&["40", "4", "threads=3"]);
    let before = attributes(beat.id());
    let mut daemon = Daemon::start(&state("rated-killed"));
    rate(&daemon, &[(beat.id(), 970)]);
    assert_eq!(nice_values(beat.id()), [-10; 3]);
    daemon.running.kill();
    assert!(eventually(|| attributes(beat.id()) == before), "{:?}", attributes(beat.id()));
    assert!(eventually(|| !std::fs::read_dir(&daemon.folder)
        .unwrap()
        .flatten()
        .any(|entry| entry.path().extension().is_some_and(|extension| extension == "journal"))));
}

#[test]
fn when_daemon_and_guardians_are_killed_the_next_daemon_gives_back() {
    let Some(_alone) = alone_where_possible() else { return };
    let beat = ordinary(&["40", "4"]);
    let before = attributes(beat.id());
    let folder = state("rated-both");
    let mut daemon = Daemon::start(&folder);
    rate(&daemon, &[(beat.id(), 970)]);
    // A stopped daemon starts no other guardians.
    daemon.running.signal(Signal::STOP);
    assert!(eventually(|| stopped(daemon.running.id())));
    let children = format!("/proc/{0}/task/{0}/children", daemon.running.id());
    for guardian in std::fs::read_to_string(children).unwrap().split_whitespace() {
        // The number is the daemon's child's, which it cannot have waited for.
        process::signal(guardian.parse().unwrap(), KILL).unwrap();
    }
    daemon.running.kill();
    assert_eq!(nice_values(beat.id()), [-10], "no process is left to give it back");
    // The dead daemon's socket is still there, so that it tells nothing about the next one.
    let _next = Daemon::start(&folder);
    assert!(eventually(|| attributes(beat.id()) == before), "{:?}", attributes(beat.id()));
}

#[test]
fn a_program_that_is_tuned_gets_its_reservation_and_no_weight() {
    let Some(_alone) = alone_where_possible() else { return };
    let beat = ordinary(&["40", "4"]);
    let before = attributes(beat.id());
    let mut daemon = Daemon::start(&state("rated-tuned"));
    rate(&daemon, &[(beat.id(), 970)]);
    assert_eq!(nice_values(beat.id()), [-10]);
    daemon.tune(beat.id());
    assert_eq!(nice_values(beat.id()), [0]);
    rate(&daemon, &[(beat.id(), 970)]);
    assert!(eventually(|| reserved(beat.id()) == 1), "{:?}", attributes(beat.id()));
    daemon.running.signal(TERMINATE);
    daemon.running.0.wait().unwrap();
    assert_eq!(attributes(beat.id()), before);
}
