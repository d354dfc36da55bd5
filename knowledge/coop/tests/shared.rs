//! The transport `shared` between real processes, on good days and bad ones. No test asserts a
//! speed; a member that "progresses" has served twenty timers or so and says so.

mod common;

use std::path::Path;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Barrier};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use attune_coop::shared::{SLOTS, Session, Shared};
use attune_coop::{Clock, EventLoop, Monotonic, NOTHING, Offer, Transport, Wanted, When};
use attune_linux::affinity::Cpus;
use attune_linux::scheduling::Class;
use attune_linux::signal::{KILL, Signal};
use attune_linux::time;
use common::Process;

const MS: u64 = 1_000_000;

/// Not a test by itself: the roles of the processes of the tests below.
#[test]
fn process() {
    let (Ok(role), Ok(session)) = (std::env::var("ROLE"), std::env::var("SESSION")) else { return };
    match role.split_once(' ').unwrap_or((&role, "")) {
        ("player", group) => player(&session, group.parse().unwrap_or(0)),
        ("auto", _) => auto(&session),
        ("busy", "spins") => busy(&session, || {
            loop {
                std::hint::spin_loop();
            }
        }),
        ("busy", _) => busy(&session, || std::thread::sleep(Duration::from_secs(1000))),
        ("shares", rest) => {
            let (group, cost) = rest.split_once(' ').unwrap();
            shares(&session, group.parse().unwrap(), cost.parse::<u64>().unwrap() * MS / 5);
        }
        ("scribbler", _) => scribble(&session),
        ("forks", _) => forks(&session),
        _ => panic!("no role {role}"),
    }
}

fn event_loop(session: &str, group: u32) -> EventLoop {
    EventLoop::new(Wanted::Shared(Session::at(session)), group).unwrap()
}

/// A player that is told by its environment what to do. Says first which transport that is.
fn auto(session: &str) {
    // SAFETY: no other thread reads or writes the environment now: the harness's other thread only
    // waits.
    unsafe { std::env::set_var("ATTUNE_COOP", format!("shared:{session}")) };
    let events = EventLoop::new(Wanted::Auto, 0).unwrap();
    println!("#{}", events.transport().name());
    play(events);
}

fn work(length: u64) {
    let end = Monotonic.cpu_time() + length;
    while Monotonic.cpu_time() < end {}
}

/// A timer every 5 ms, and best-effort work all the time. Says its statistics every 100 ms or so.
fn player(session: &str, group: u32) {
    play(event_loop(session, group));
}

fn play(mut events: EventLoop) {
    let mut next = events.now();
    let mut served = 0;
    let timer = events.event("timer", move |events, timer| {
        (next, served) = (next + 5 * MS, served + 1);
        if served % 20 == 0 {
            println!("#{served}");
        }
        events.submit(timer, When::At(next));
    });
    let mut units = 0;
    let decode = events.event("decode", move |events, decode| {
        work(MS / 5);
        units += 1;
        events.submit(decode, When::best_effort(units));
    });
    events.submit(timer, When::At(next));
    events.submit(decode, When::best_effort(0));
    events.run().unwrap();
}

/// Cooperates for a moment; then a callback of it does not return.
fn busy(session: &str, hang: impl Fn() + 'static) {
    let mut events = event_loop(session, 0);
    let mut units = 0;
    let event = events.event("busy", move |events, event| {
        work(MS / 5);
        units += 1;
        if units == 20 {
            println!("#hangs");
            hang();
        }
        events.submit(event, When::best_effort(0));
    });
    events.submit(event, When::best_effort(0));
    events.run().unwrap();
}

/// Works for 1.5 s of the clock, in units of `cost`, each less important than the one before; says
/// how much CPU time it used.
fn shares(session: &str, group: u32, cost: u64) {
    let mut events = event_loop(session, group);
    println!("#ready");
    let (began, cpu) = (events.now(), Monotonic.cpu_time());
    let mut units = 0;
    let event = events.event("work", move |events, event| {
        work(cost);
        units += 1;
        if events.now() < began + 1500 * MS {
            events.submit(event, When::best_effort(units));
        } else {
            println!("#{}", Monotonic.cpu_time() - cpu);
        }
    });
    events.submit(event, When::best_effort(0));
    events.run().unwrap();
}

/// The segment that the session's page names, and the kernel's record of it.
fn segment(session: &Path) -> Option<(i32, libc::shmid_ds)> {
    let id: i32 = std::fs::read_to_string(session.join("page")).ok()?.trim().parse().ok()?;
    // SAFETY: plain data, written by the kernel.
    let mut status: libc::shmid_ds = unsafe { std::mem::zeroed() };
    // SAFETY: as above.
    (unsafe { libc::shmctl(id, libc::IPC_STAT, &mut status) } == 0).then_some((id, status))
}

/// Writes random words all over the page, for ever.
fn scribble(session: &str) {
    let (id, status) = segment(Path::new(session)).unwrap();
    // SAFETY: attaches the segment.
    let (address, size) =
        (unsafe { libc::shmat(id, std::ptr::null(), 0).cast::<u64>() }, status.shm_segsz / 8);
    println!("#ready");
    let mut random = 88_172_645_463_325_252u64;
    let mut next = || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random
    };
    loop {
        for _ in 0..2000 {
            let (at, value) = (next() as usize % size, next());
            // Small numbers hit more: slots, states, other times.
            let value = if next() % 2 == 0 { value % 70 } else { value };
            // SAFETY: inside the segment, which stays mapped; the others read atomically.
            unsafe { address.add(at).write_volatile(value) };
        }
        std::thread::sleep(Duration::from_micros(200));
    }
}

/// A child made by fork goes on polling with its parent's loop.
fn forks(session: &str) {
    let mut transport = Shared::join(&Session::at(session)).unwrap();
    let offer = Offer { group: 0, timer: attune_coop::NEVER, best_effort: 1 };
    transport.poll(&offer, &mut []).unwrap();
    // SAFETY: the child uses nothing that another thread might have held: the harness's other
    // thread only waits.
    let child = unsafe { libc::fork() };
    for _ in 0..100 {
        let answer = transport.poll(&offer, &mut []).unwrap();
        assert!(answer.turn);
        if child == 0 {
            assert_eq!(
                (answer.until, answer.others),
                (attune_coop::NEVER, NOTHING),
                "uncooperative"
            );
        }
    }
    drop(transport);
    if child == 0 {
        // SAFETY: ends the child at once.
        unsafe { libc::_exit(0) };
    }
    let mut status = 0;
    // SAFETY: waits for our child.
    unsafe { libc::waitpid(child, &mut status, 0) };
    assert_eq!(status, 0);
    println!("#done");
}

fn session() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    std::fs::set_permissions(directory.path(), std::os::unix::fs::PermissionsExt::from_mode(0o700))
        .unwrap();
    directory
}

fn players(session: &Path, count: usize) -> Vec<Process> {
    let players: Vec<_> = (0..count).map(|_| Process::start("player", session)).collect();
    players.iter().for_each(|player| player.progresses(1));
    players
}

fn all_progress(players: &[Process]) {
    players.iter().for_each(|player| player.progresses(3));
}

#[test]
fn players_come_and_go() {
    let session = session();
    let mut players = players(session.path(), 4);
    players.push(Process::start("player 5", session.path()));
    players.push(Process::start("player 5", session.path()));
    all_progress(&players);
    players.truncate(3);
    all_progress(&players);
}

#[test]
fn a_member_that_is_killed_is_not_waited_for() {
    let session = session();
    let mut players = players(session.path(), 4);
    for _ in 0..3 {
        let killed = players.remove(0);
        killed.signal(KILL);
        players.push(Process::start("player", session.path()));
        all_progress(&players);
    }
}

#[test]
fn a_member_that_is_stopped_is_not_waited_for_and_comes_back() {
    let session = session();
    let players = players(session.path(), 3);
    for stopped in 0..2 {
        players[stopped].signal(Signal::STOP);
        all_progress(&players[stopped + 1..]);
    }
    all_progress(&players[2..]);
    players.iter().for_each(|player| player.signal(Signal::CONT));
    all_progress(&players);
}

/// As after a suspend, or when a container was frozen: all are late by the same time.
#[test]
fn members_that_are_all_stopped_at_once_go_on() {
    let session = session();
    let mut players = players(session.path(), 3);
    for _ in 0..2 {
        players.iter().for_each(|player| player.signal(Signal::STOP));
        std::thread::sleep(Duration::from_secs(1));
        players.iter().rev().for_each(|player| player.signal(Signal::CONT));
        all_progress(&players);
    }
    players.push(Process::start("player", session.path()));
    all_progress(&players);
}

#[test]
fn a_page_that_is_taken_away_is_made_anew_and_all_meet_there_again() {
    for whole in [false, true] {
        let session = session();
        let mut players = players(session.path(), 3);
        if whole {
            std::fs::remove_dir_all(session.path()).unwrap();
        } else {
            std::fs::remove_file(session.path().join("page")).unwrap();
        }
        players.push(Process::start("player", session.path()));
        players.push(Process::start("player", session.path()));
        all_progress(&players);
        let together = || segment(session.path()).is_some_and(|(_, status)| status.shm_nattch == 5);
        let patience = Instant::now() + Duration::from_secs(90);
        while !together() {
            assert!(Instant::now() < patience, "they have not met again");
            std::thread::sleep(Duration::from_millis(50));
        }
        // A member that leaves the new page leaves it to the others.
        players.remove(4);
        players.remove(0);
        all_progress(&players);
        players.push(Process::start("player", session.path()));
        all_progress(&players);
    }
}

#[test]
fn a_member_that_hangs_is_not_waited_for() {
    for way in ["busy spins", "busy sleeps"] {
        let session = session();
        let players = players(session.path(), 2);
        let busy = Process::start(way, session.path());
        assert_eq!(busy.says(), "hangs");
        all_progress(&players);
    }
}

#[test]
fn a_page_rewritten_at_random_neither_crashes_nor_hangs_anybody() {
    let session = session();
    let mut players = players(session.path(), 3);
    // It leaves another kind of garbage behind each time, and that stays.
    for _ in 0..4 {
        let scribbler = Process::start("scribbler", session.path());
        assert_eq!(scribbler.says(), "ready");
        all_progress(&players);
        drop(scribbler);
        all_progress(&players);
    }
    players.push(Process::start("player", session.path()));
    all_progress(&players);
}

#[test]
fn a_forked_child_is_on_its_own_and_leaves_its_parents_slot_alone() {
    let session = session();
    let forks = Process::start("forks", session.path());
    assert_eq!(forks.says(), "done");
}

/// The test counts CPU time. A member that a busy machine keeps from its turn is passed over, so
/// one of a few runs must be right.
#[test]
fn cpu_time_is_shared_between_groups_and_progress_inside() {
    let is_shared = || {
        let session = session();
        let roles = ["shares 0 1", "shares 7 1", "shares 7 2"];
        let processes = roles.map(|role| Process::start(role, session.path()));
        processes.iter().for_each(|process| assert_eq!(process.says(), "ready"));
        let used = processes.each_ref().map(|process| process.says().parse::<f64>().unwrap());
        eprintln!("CPU time of one alone, and of two in a group: {used:?}");
        let alone = used[0] / used.iter().sum::<f64>();
        // A group of two has the weight of two; in it are as many units of one as of the other.
        (alone - 1.0 / 3.0).abs() < 0.1 && (1.5..2.7).contains(&(used[2] / used[1]))
    };
    assert!((0..20).any(|_| is_shared()));
}

/// Members in threads of this process; each leaves when its sender is dropped.
fn crowd(session: &Session, count: usize) -> Vec<(Sender<()>, JoinHandle<()>)> {
    let (tell, joined) = mpsc::channel();
    let members = (0..count).map(|_| {
        let (session, tell) = (session.clone(), tell.clone());
        let (leave, asked) = mpsc::channel::<()>();
        let member = std::thread::spawn(move || {
            let member = Shared::join(&session);
            let _ = tell.send(member.is_ok());
            let _ = asked.recv();
        });
        (leave, member)
    });
    let members: Vec<_> = members.collect();
    (0..count).for_each(|_| assert!(joined.recv().unwrap()));
    members
}

fn leave((asked, member): (Sender<()>, JoinHandle<()>)) {
    drop(asked);
    member.join().unwrap();
}

#[test]
fn the_slot_table_fills_up_and_empties() {
    let directory = session();
    let session = Session::at(directory.path());
    let mut members = crowd(&session, SLOTS);
    let message = Shared::join(&session).err().map(|error| error.to_string()).unwrap_or_default();
    assert!(message.contains("all 64 slots are taken by living programs"), "{message}");
    members.pop().into_iter().for_each(leave);
    members.extend(crowd(&session, 1));
    assert!(Shared::join(&session).is_err());
    members.into_iter().for_each(leave);
    Shared::join(&session).unwrap();
    let left: Vec<_> = std::fs::read_dir(directory.path()).unwrap().collect();
    assert!(left.is_empty(), "who leaves takes its things: {left:?}");
}

#[test]
fn a_program_without_a_slot_runs_and_harms_no_member() {
    let directory = session();
    let player = Process::start("player", directory.path());
    player.progresses(1);
    let mut members = crowd(&Session::at(directory.path()), SLOTS - 1);
    let late = Process::start("auto", directory.path());
    assert_eq!(late.says(), "none");
    late.progresses(3);
    player.progresses(3);
    members.pop().into_iter().for_each(leave);
    let late = Process::start("auto", directory.path());
    assert_eq!(late.says(), "shared");
    late.progresses(3);
    player.progresses(3);
}

/// Also when those of one CPU have left: the others move over.
#[test]
fn members_spread_over_the_cpus() {
    let directory = session();
    let session = Session::at(directory.path());
    let cpus = std::thread::available_parallelism().unwrap().get();
    let (joined, left) = (Arc::new(Barrier::new(2 * cpus)), Arc::new(Barrier::new(2 * cpus)));
    // Members on each CPU once those of half the CPUs have left, and whether they have spread.
    let on: Arc<[AtomicUsize]> = (0..cpus).map(|_| AtomicUsize::new(0)).collect();
    let spread = Arc::new(AtomicBool::new(false));
    let member = move || {
        let mut member = Shared::join(&session).unwrap();
        joined.wait();
        let (first, leaves) = (member.cpu(), member.cpu().is_multiple_of(2) && cpus > 1);
        if leaves {
            drop(member);
            left.wait();
            return (first, true);
        }
        let at = |cpu: u32| &on[cpu as usize % cpus];
        at(first).fetch_add(1, SeqCst);
        left.wait();
        let total: usize = 2 * cpus - 2 * if cpus > 1 { cpus.div_ceil(2) } else { 0 };
        let patience = Monotonic.now() + 90_000 * MS;
        while !spread.load(SeqCst) && Monotonic.now() < patience {
            let before = member.cpu();
            let soon = Offer { timer: Monotonic.now() + 5 * MS, ..Offer::IDLE };
            member.poll(&soon, &mut []).unwrap();
            at(member.cpu()).fetch_add(1, SeqCst);
            at(before).fetch_sub(1, SeqCst);
            if on.iter().all(|here| here.load(SeqCst) <= total.div_ceil(cpus)) {
                spread.store(true, SeqCst);
            }
        }
        (first, spread.load(SeqCst))
    };
    let threads: Vec<_> = (0..2 * cpus).map(|_| std::thread::spawn(member.clone())).collect();
    let members: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    let mut at_first = vec![0; cpus];
    members.iter().for_each(|(cpu, _)| at_first[*cpu as usize % cpus] += 1);
    assert!(at_first.iter().all(|members| *members == 2), "{members:?}");
    assert!(members.iter().all(|(_, spread)| *spread), "{members:?}");
}

#[test]
fn a_directory_that_others_can_enter_is_refused() {
    let directory = session();
    std::fs::set_permissions(directory.path(), std::os::unix::fs::PermissionsExt::from_mode(0o770))
        .unwrap();
    let message = Shared::join(&Session::at(directory.path())).err().unwrap().to_string();
    assert!(message.contains("closed to others (mode 700)"), "{message}");
    assert!(message.contains(&directory.path().display().to_string()), "{message}");
}

#[test]
fn a_thread_that_leaves_has_its_scheduling_back() {
    let directory = session();
    let scheduling = || {
        let (cpus, class) = (Cpus::of_this_thread().unwrap(), Class::of_this_thread().unwrap());
        (cpus, class, time::timer_slack())
    };
    let before = scheduling();
    let mut member = Shared::join(&Session::at(directory.path())).unwrap();
    assert_eq!(scheduling().0.count(), 1, "a member belongs to one CPU");
    let soon = Offer { timer: Monotonic.now() + 3 * MS, ..Offer::IDLE };
    assert!(member.poll(&soon, &mut []).unwrap().turn);
    assert!(Monotonic.now() >= soon.timer, "it slept until its timer");
    drop(member);
    assert_eq!(scheduling(), before);
}
