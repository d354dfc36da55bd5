//! There is not enough for all: the bound, the kernel's own, other tuners, and the tuner's own part.

use std::path::Path;
use std::process::Stdio;
use std::thread::sleep;
use std::time::Duration;

use attune_supervisor::policy::{DEADLINE, Policy, RECLAIM, ROUND_ROBIN};

use crate::machine::{
    Daemon, Running, alone_where_possible, attuned, attuned_elsewhere, eventually, policies, reserved, share,
    state,
};

#[test]
fn the_sum_stays_below_the_bound_and_the_program_ends() {
    let Some(_alone) = alone_where_possible() else { return };
    let folder = state("bound");
    let config = Path::new(env!("CARGO_TARGET_TMPDIR")).join("bound.toml");
    // A fifth of a CPU is needed; what the first budgets are on top of it is cut.
    let cpus = std::thread::available_parallelism().unwrap().get() as f64;
    let bound = 0.24;
    let text = format!("bound = {}\n[[program]]\nname = \"attune-beat\"\n", bound / cpus);
    std::fs::write(&config, text).unwrap();
    let mut first = Running::beat(&["40", "4"]);
    let second = Running::beat(&["50", "5"]);
    let mut daemon = Running(attuned(&folder).arg("--config").arg(&config).spawn().unwrap());
    let all = || {
        [first.id(), second.id()]
            .into_iter()
            .flat_map(policies)
            .filter(|policy| policy.policy == DEADLINE)
            .collect::<Vec<_>>()
    };
    assert!(eventually(|| all().len() == 2));
    let sum: f64 = all().iter().map(share).sum();
    assert!(sum <= bound + 1e-6, "{sum}");
    first.kill();
    assert!(eventually(|| reserved(second.id()) == 1));
    daemon.signal(libc::SIGTERM);
    daemon.0.wait().unwrap();
    assert_eq!(reserved(second.id()), 0);
}

#[test]
fn who_is_cut_keeps_to_what_it_is_given() {
    let Some(_alone) = alone_where_possible() else { return };
    let folder = state("cut");
    let config = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cut.toml");
    let cpus = std::thread::available_parallelism().unwrap().get() as f64;
    std::fs::write(&config, format!("bound = {}\n", 0.05 / cpus)).unwrap();
    // Half of the tenth of a CPU that it needs.
    let beat = Running::beat(&["40", "4"]);
    let running = Running(attuned(&folder).arg("--config").arg(&config).spawn().unwrap());
    assert!(eventually(|| folder.join("attuned.sock").exists()));
    let daemon = Daemon { running, folder };
    daemon.tune(beat.id());
    assert!(eventually(|| reserved(beat.id()) == 1));
    for policy in policies(beat.id()) {
        assert!(policy.flags & RECLAIM == 0 && share(&policy) <= 0.05 + 1e-6, "{policy:?}");
    }
}

#[test]
fn no_more_is_given_than_the_kernel_gives_to_real_time() {
    let Some(_alone) = alone_where_possible() else { return };
    let folder = state("throttled");
    std::fs::create_dir_all(&folder).unwrap();
    let limit = folder.join("runtime");
    std::fs::write(&limit, "300000\n").unwrap();
    let hide = format!("mount --bind {} /proc/sys/kernel/sched_rt_runtime_us", limit.display());
    let running = Running(attuned_elsewhere(&folder, &hide).stderr(Stdio::null()).spawn().unwrap());
    assert!(eventually(|| folder.join("attuned.sock").exists()));
    let daemon = Daemon { running, folder };
    let cpus = std::thread::available_parallelism().unwrap().get() as f64;
    let bound = daemon.ask("{\"request\":\"status\"}")["status"]["bound"].as_f64().unwrap();
    assert!((bound - 0.3 * cpus).abs() < 1e-6, "{bound}");
}

#[test]
fn two_tuners_share_the_machine_and_leave_each_others_threads_alone() {
    let Some(_alone) = alone_where_possible() else { return };
    let (beat, other) = (Running::beat(&["40", "4"]), Running::beat(&["25", "3"]));
    let before = policies(beat.id());
    let (mut first, second) = (Daemon::start(&state("first")), Daemon::start(&state("second")));
    first.tune(beat.id());
    assert!(eventually(|| reserved(beat.id()) == 1));
    second.tune(beat.id());
    second.tune(other.id());
    assert!(eventually(|| reserved(other.id()) == 1));
    // The second tells that the thread is somebody else's, and takes over when the first has gone.
    let refused = || second.ask("{\"request\":\"status\"}").to_string().contains("somebody else");
    assert!(eventually(refused));
    first.running.signal(libc::SIGTERM);
    first.running.0.wait().unwrap();
    assert!(eventually(|| reserved(beat.id()) == 1));
    let mut second = second;
    second.running.kill();
    assert!(eventually(|| policies(beat.id()) == before));
}

/// Takes what the kernel gives, in reservations of so many per cent of a CPU; less than that is left.
fn fill(percent: u64) -> Vec<Running> {
    let take = || {
        let other = Running::beat(&["1000", "0"]);
        Policy::reservation(percent * 1_000_000, 100_000_000).give(other.id()).is_ok().then_some(other)
    };
    let mut others = Vec::new();
    // What a program had comes back when its last period is over, which may be after its end.
    for _ in 0..3 {
        others.extend(std::iter::from_fn(take));
        sleep(Duration::from_millis(150));
    }
    others
}

/// Others take all but a little of what the kernel gives: that is no failure, and passes.
#[test]
fn on_a_full_kernel_a_program_gets_what_is_left_and_more_when_there_is_room() {
    let Some(_alone) = alone_where_possible() else { return };
    let daemon = Daemon::start(&state("full"));
    let mut others = fill(10);
    // A tenth of a CPU is left, or a little more; the beat needs a fifth.
    others.pop().expect("the kernel gives reservations");
    let beat = Running::beat(&["40", "8"]);
    daemon.tune(beat.id());
    let given = || policies(beat.id()).iter().find(|policy| policy.is_reservation()).map(share);
    assert!(eventually(|| given().is_some()));
    let first = given().unwrap_or_default();
    assert!(first > 0.08 && first < 0.2, "{first}");
    drop(others);
    assert!(eventually(|| given() > Some(0.199)));
}

/// In time beside whatever real-time programs; what it starts is scheduled as usual.
#[test]
fn the_tuner_has_a_reservation_of_its_own() {
    let Some(_alone) = alone_where_possible() else { return };
    let daemon = Daemon::start(&state("own"));
    assert_eq!(reserved(daemon.running.id()), 1);
    let first = daemon.guardian();
    assert!(policies(first).iter().all(Policy::is_ordinary), "{:?}", policies(first));
    // SAFETY: no memory is involved; the number is the daemon's child's, which it has not waited for.
    unsafe { libc::kill(i32::try_from(first).unwrap(), libc::SIGKILL) };
    // This one is started from under the reservation.
    assert!(eventually(|| daemon.guardian() != first));
    let second = policies(daemon.guardian());
    assert!(!second.is_empty() && second.iter().all(Policy::is_ordinary), "{second:?}");
}

#[test]
fn a_tuner_that_gets_no_reservation_has_a_real_time_priority_and_tunes() {
    let Some(_alone) = alone_where_possible() else { return };
    let others: Vec<Running> = fill(20).into_iter().chain(fill(2)).collect();
    assert!(!others.is_empty());
    let daemon = Daemon::start(&state("no-own"));
    let own = policies(daemon.running.id());
    assert_eq!(own.iter().map(|policy| policy.policy).collect::<Vec<_>>(), [ROUND_ROBIN]);
    drop(others);
    let beat = Running::beat(&["40", "4"]);
    daemon.tune(beat.id());
    assert!(eventually(|| reserved(beat.id()) == 1));
}
