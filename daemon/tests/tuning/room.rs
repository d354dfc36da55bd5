//! There is not enough for all: the bound, the kernel's own, other tuners, and the tuner's own
//! part.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Stdio;
use std::thread::sleep;
use std::time::Duration;

use attune_linux::process;
use attune_linux::scheduling::{Attributes, Class, RECLAIM, RESET_ON_FORK};
use attune_linux::signal::{KILL, TERMINATE};

use crate::machine::{
    Daemon, Running, alone_where_possible, attributes, attuned, attuned_elsewhere, eventually,
    found, is_reservation, reserved, share, state,
};

#[test]
fn the_sum_stays_below_the_bound_and_the_program_ends() {
    let Some(_alone) = alone_where_possible() else { return };
    let folder = state("bound");
    let config = Path::new(env!("CARGO_TARGET_TMPDIR")).join("bound.toml");
    // A fifth of a CPU is needed; what the first budgets are on top of it is cut.
    let cpus = std::thread::available_parallelism().unwrap().get() as f64;
    let bound = 0.24;
    let beat = env!("CARGO_BIN_EXE_attune-beat");
    let text = format!("bound = {}\n[[program]]\npath = \"{beat}\"\n", bound / cpus);
    std::fs::write(&config, text).unwrap();
    let mut first = Running::beat(&["40", "4"]);
    let second = Running::beat(&["50", "5"]);
    let mut daemon = Running(attuned(&folder).arg("--config").arg(&config).spawn().unwrap());
    let all = || {
        [first.id(), second.id()]
            .into_iter()
            .flat_map(attributes)
            .filter(is_reservation)
            .collect::<Vec<_>>()
    };
    assert!(eventually(|| all().len() == 2));
    let sum: f64 = all().iter().map(share).sum();
    assert!(sum <= bound + 1e-6, "{sum}");
    first.kill();
    assert!(eventually(|| reserved(second.id()) == 1));
    daemon.signal(TERMINATE);
    daemon.0.wait().unwrap();
    assert_eq!(reserved(second.id()), 0);
}

#[test]
fn a_users_programs_share_the_users_bound_and_a_name_makes_no_program() {
    let Some(_alone) = alone_where_possible() else { return };
    const NOBODY: u32 = 65534;
    // A folder that every user may enter.
    let folder = std::env::temp_dir().join(format!("attune-room-{}", std::process::id()));
    let copy = |place: &str| {
        let copy = folder.join(place).join("attune-beat");
        std::fs::create_dir_all(copy.parent().unwrap()).unwrap();
        std::fs::copy(env!("CARGO_BIN_EXE_attune-beat"), &copy).unwrap();
        copy.display().to_string()
    };
    let (listed, namesake) = (copy("listed"), copy("namesake"));
    let cpus = std::thread::available_parallelism().unwrap().get() as f64;
    let user_bound = 0.12;
    let text = format!("user_bound = {}\n[[program]]\npath = \"{listed}\"\n", user_bound / cpus);
    let config = folder.join("config.toml");
    std::fs::write(&config, text).unwrap();
    let _namesake = Running::of_user(NOBODY, &[&namesake, "40", "4"]);
    // Each wants a tenth of a CPU.
    let programs = [(); 2].map(|()| Running::of_user(NOBODY, &[&listed, "40", "4"]));
    let running = Running(attuned(&folder).arg("--config").arg(&config).spawn().unwrap());
    assert!(eventually(|| folder.join("attuned.sock").exists()));
    let daemon = Daemon { running, folder: folder.clone() };
    let reservations = || programs.iter().flat_map(|program| attributes(program.id()));
    assert!(eventually(|| reservations().all(|each| is_reservation(&each))));
    let sum: f64 = reservations().map(|each| share(&each)).sum();
    assert!(sum <= user_bound + 1e-6, "{sum}");
    let status = daemon.ask("{\"request\":\"status\"}");
    let tuned: BTreeSet<u64> = status["status"]["programs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|program| program["process"].as_u64().unwrap())
        .collect();
    assert_eq!(tuned, BTreeSet::from(programs.each_ref().map(|it| u64::from(it.id()))));
    drop((daemon, programs));
    std::fs::remove_dir_all(&folder).unwrap();
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
    for given in attributes(beat.id()) {
        assert!(given.flags & RECLAIM == 0 && share(&given) <= 0.05 + 1e-6, "{given:?}");
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
    let before = attributes(beat.id());
    let (mut first, second) = (Daemon::start(&state("first")), Daemon::start(&state("second")));
    first.tune(beat.id());
    assert!(eventually(|| reserved(beat.id()) == 1));
    second.tune(beat.id());
    second.tune(other.id());
    assert!(eventually(|| reserved(other.id()) == 1));
    // The second tells that the thread is another tuner's, and takes over when the first has gone.
    let refused = || second.ask("{\"request\":\"status\"}").to_string().contains("another program");
    assert!(eventually(refused));
    first.running.signal(TERMINATE);
    first.running.0.wait().unwrap();
    assert!(eventually(|| reserved(beat.id()) == 1));
    let mut second = second;
    second.running.kill();
    assert!(eventually(|| attributes(beat.id()) == before));
}

/// Takes all bandwidth that the kernel gives, in reservations of so many per cent of a CPU; less
/// than that is left.
fn fill(percent: u64) -> Vec<Running> {
    let take = || {
        let other = Running::beat(&["1000", "0"]);
        let reservation = Attributes::reservation(percent * 1_000_000, 100_000_000);
        reservation.with_flags(RESET_ON_FORK).apply_to(other.id()).is_ok().then_some(other)
    };
    let (mut others, mut tries_in_vain) = (Vec::new(), 0);
    // A program's bandwidth comes back when its last period is over, which may be after its end.
    while tries_in_vain < 3 {
        let before = others.len();
        others.extend(std::iter::from_fn(take));
        tries_in_vain = if others.len() == before { tries_in_vain + 1 } else { 0 };
        sleep(Duration::from_millis(150));
    }
    others
}

/// Others have all but a little of the kernel's bandwidth: a program gets the rest, and its budget
/// once they have ended.
#[test]
fn on_a_full_kernel_a_program_gets_what_is_left_and_more_when_there_is_room() {
    let Some(_alone) = alone_where_possible() else { return };
    let daemon = Daemon::start(&state("full"));
    let mut others = fill(10);
    // A tenth of a CPU is left, or a little more; the beat needs a fifth.
    others.pop().expect("the kernel gives reservations");
    let beat = Running::beat(&["40", "8"]);
    daemon.tune(beat.id());
    let given = || attributes(beat.id()).iter().find(|given| is_reservation(given)).map(share);
    assert!(eventually(|| given().is_some()));
    // How much of the rest it asks for first depends on how often the kernel refused.
    let first = given().unwrap_or_default();
    assert!(first > 0.0 && first < 0.2, "{first}");
    drop(others);
    assert!(eventually(|| given() > Some(0.199)));
}

/// The tuner is in time beside all real-time programs; programs that it starts are scheduled as
/// usual.
#[test]
fn the_tuner_has_a_reservation_of_its_own() {
    let Some(_alone) = alone_where_possible() else { return };
    // What programs of earlier tests had comes back when their last period is over.
    let with_room = || {
        let daemon = Daemon::start(&state("own"));
        (reserved(daemon.running.id()) == 1).then_some(daemon)
    };
    let daemon = found(with_room).expect("a reservation of its own");
    let first = daemon.guardian();
    let is_fair = |of_thread: &Attributes| of_thread.class.is_fair();
    assert!(attributes(first).iter().all(is_fair), "{:?}", attributes(first));
    // The number is the daemon's child's, which it has not waited for.
    process::signal(first, KILL).unwrap();
    // This one is started from under the reservation.
    assert!(eventually(|| daemon.guardian() != first));
    let second = attributes(daemon.guardian());
    assert!(!second.is_empty() && second.iter().all(is_fair), "{second:?}");
}

#[test]
fn a_tuner_that_gets_no_reservation_has_a_real_time_priority_and_tunes() {
    let Some(_alone) = alone_where_possible() else { return };
    let mut others = Vec::new();
    // A tuner that finds bandwidth which came back late reserves it: then it is filled up again.
    let daemon = found(|| {
        others.extend([20, 2, 1].into_iter().flat_map(fill));
        let daemon = Daemon::start(&state("no-own"));
        let own = attributes(daemon.running.id());
        let classes: Vec<Class> = own.iter().map(|own| own.class).collect();
        (classes == [Class::ROUND_ROBIN]).then_some(daemon)
    });
    let daemon = daemon.expect("a tuner without a reservation");
    assert!(!others.is_empty());
    drop(others);
    let beat = Running::beat(&["40", "4"]);
    daemon.tune(beat.id());
    assert!(eventually(|| reserved(beat.id()) == 1));
}
