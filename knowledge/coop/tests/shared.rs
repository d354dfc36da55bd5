//! The transport `shared` between real processes: what goes well, and what happens on bad days. Nothing here asserts how fast; a member
//! that "progresses" has served twenty timers or so and says so.

mod common;

use std::path::Path;
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Barrier};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use attune_coop::shared::{Domain, SLOTS, Shared};
use attune_coop::{Clock, EventLoop, Monotonic, NOTHING, Offer, Transport, Wanted, When};
use common::Process;

const MS: u64 = 1_000_000;

/// Not a test by itself: what the processes of the tests below run.
#[test]
fn process() {
    let (Ok(role), Ok(domain)) = (std::env::var("ROLE"), std::env::var("DOMAIN")) else { return };
    match role.split_once(' ').unwrap_or((&role, "")) {
        ("player", group) => player(&domain, group.parse().unwrap_or(0)),
        ("auto", _) => auto(&domain),
        ("busy", "spins") => busy(&domain, || {
            loop {
                std::hint::spin_loop();
            }
        }),
        ("busy", _) => busy(&domain, || std::thread::sleep(Duration::from_secs(1000))),
        ("shares", rest) => {
            let (group, cost) = rest.split_once(' ').unwrap();
            shares(&domain, group.parse().unwrap(), cost.parse::<u64>().unwrap() * MS / 5);
        }
        ("scribbler", _) => scribble(&domain),
        ("forks", _) => forks(&domain),
        _ => panic!("no role {role}"),
    }
}

fn event_loop(domain: &str, group: u32) -> EventLoop {
    EventLoop::new(Wanted::Shared(Domain::at(domain)), group).unwrap()
}

/// A player that is told by its environment what to do. Says first which transport that is.
fn auto(domain: &str) {
    // SAFETY: nobody else reads or writes the environment now: the harness's other thread only waits.
    unsafe { std::env::set_var("ATTUNE_COOP", format!("shared:{domain}")) };
    let events = EventLoop::new(Wanted::Auto, 0).unwrap();
    println!("#{}", events.transport().name());
    play(events);
}

fn work(length: u64) {
    let end = Monotonic.cpu_time() + length;
    while Monotonic.cpu_time() < end {}
}

/// A timer every 5 ms, and best-effort work all the time. Says its statistics every 100 ms or so.
fn player(domain: &str, group: u32) {
    play(event_loop(domain, group));
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
fn busy(domain: &str, hang: impl Fn() + 'static) {
    let mut events = event_loop(domain, 0);
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

/// Works for 1.5 s of the clock, in units of `cost`, each less important than the one before; says how much CPU time it used.
fn shares(domain: &str, group: u32, cost: u64) {
    let mut events = event_loop(domain, group);
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

/// The segment that the domain's page names, and what the kernel knows of it.
fn segment(domain: &Path) -> Option<(i32, libc::shmid_ds)> {
    let id: i32 = std::fs::read_to_string(domain.join("page")).ok()?.trim().parse().ok()?;
    // SAFETY: plain data, written by the kernel.
    let mut status: libc::shmid_ds = unsafe { std::mem::zeroed() };
    // SAFETY: as above.
    (unsafe { libc::shmctl(id, libc::IPC_STAT, &mut status) } == 0).then_some((id, status))
}

/// Writes random words all over the page, for ever.
fn scribble(domain: &str) {
    let (id, status) = segment(Path::new(domain)).unwrap();
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
            // SAFETY: inside the segment, which nobody unmaps here; the others read atomically.
            unsafe { address.add(at).write_volatile(value) };
        }
        std::thread::sleep(Duration::from_micros(200));
    }
}

/// A child made by fork goes on polling with its parent's loop.
fn forks(domain: &str) {
    let mut transport = Shared::join(&Domain::at(domain)).unwrap();
    let offer = Offer { group: 0, timer: attune_coop::NEVER, best_effort: 1 };
    transport.poll(&offer, &mut []).unwrap();
    // SAFETY: the child uses nothing that another thread might have held: the harness's other thread only waits.
    let child = unsafe { libc::fork() };
    for _ in 0..100 {
        let answer = transport.poll(&offer, &mut []).unwrap();
        assert!(answer.turn);
        if child == 0 {
            assert_eq!((answer.until, answer.others), (attune_coop::NEVER, NOTHING), "uncooperative");
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

fn domain() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    std::fs::set_permissions(directory.path(), std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    directory
}

fn players(domain: &Path, count: usize) -> Vec<Process> {
    let players: Vec<_> = (0..count).map(|_| Process::start("player", domain)).collect();
    players.iter().for_each(|player| player.progresses(1));
    players
}

fn all_progress(players: &[Process]) {
    players.iter().for_each(|player| player.progresses(3));
}

#[test]
fn players_come_and_go() {
    let domain = domain();
    let mut players = players(domain.path(), 4);
    players.push(Process::start("player 5", domain.path()));
    players.push(Process::start("player 5", domain.path()));
    all_progress(&players);
    players.truncate(3);
    all_progress(&players);
}

#[test]
fn a_member_that_is_killed_is_not_waited_for() {
    let domain = domain();
    let mut players = players(domain.path(), 4);
    for _ in 0..3 {
        let killed = players.remove(0);
        killed.signal(libc::SIGKILL);
        players.push(Process::start("player", domain.path()));
        all_progress(&players);
    }
}

#[test]
fn a_member_that_is_stopped_is_not_waited_for_and_comes_back() {
    let domain = domain();
    let players = players(domain.path(), 3);
    for stopped in 0..2 {
        players[stopped].signal(libc::SIGSTOP);
        all_progress(&players[stopped + 1..]);
    }
    all_progress(&players[2..]);
    players.iter().for_each(|player| player.signal(libc::SIGCONT));
    all_progress(&players);
}

/// As after a suspend, or when a container was frozen: all are late by the same time.
#[test]
fn members_that_are_all_stopped_at_once_go_on() {
    let domain = domain();
    let mut players = players(domain.path(), 3);
    for _ in 0..2 {
        players.iter().for_each(|player| player.signal(libc::SIGSTOP));
        std::thread::sleep(Duration::from_secs(1));
        players.iter().rev().for_each(|player| player.signal(libc::SIGCONT));
        all_progress(&players);
    }
    players.push(Process::start("player", domain.path()));
    all_progress(&players);
}

#[test]
fn a_page_that_is_taken_away_is_made_anew_and_all_meet_there_again() {
    for whole in [false, true] {
        let domain = domain();
        let mut players = players(domain.path(), 3);
        if whole {
            std::fs::remove_dir_all(domain.path()).unwrap();
        } else {
            std::fs::remove_file(domain.path().join("page")).unwrap();
        }
        players.push(Process::start("player", domain.path()));
        players.push(Process::start("player", domain.path()));
        all_progress(&players);
        let together = || segment(domain.path()).is_some_and(|(_, status)| status.shm_nattch == 5);
        let patience = Instant::now() + Duration::from_secs(30);
        while !together() {
            assert!(Instant::now() < patience, "they have not met again");
            std::thread::sleep(Duration::from_millis(50));
        }
        // Who leaves the page that is new leaves it to the others.
        players.remove(4);
        players.remove(0);
        all_progress(&players);
        players.push(Process::start("player", domain.path()));
        all_progress(&players);
    }
}

#[test]
fn a_member_that_hangs_is_not_waited_for() {
    for way in ["busy spins", "busy sleeps"] {
        let domain = domain();
        let players = players(domain.path(), 2);
        let busy = Process::start(way, domain.path());
        assert_eq!(busy.says(), "hangs");
        all_progress(&players);
    }
}

#[test]
fn a_page_rewritten_at_random_neither_crashes_nor_hangs_anybody() {
    let domain = domain();
    let mut players = players(domain.path(), 3);
    // What it leaves behind is another kind of garbage each time, and stays.
    for _ in 0..4 {
        let scribbler = Process::start("scribbler", domain.path());
        assert_eq!(scribbler.says(), "ready");
        all_progress(&players);
        drop(scribbler);
        all_progress(&players);
    }
    players.push(Process::start("player", domain.path()));
    all_progress(&players);
}

#[test]
fn a_forked_child_is_on_its_own_and_leaves_its_parents_slot_alone() {
    let domain = domain();
    let forks = Process::start("forks", domain.path());
    assert_eq!(forks.says(), "done");
}

/// In CPU time, which other programs on the machine do not change.
#[test]
fn cpu_time_is_shared_between_groups_and_progress_inside() {
    let domain = domain();
    let roles = ["shares 0 1", "shares 7 1", "shares 7 2"];
    let processes = roles.map(|role| Process::start(role, domain.path()));
    processes.iter().for_each(|process| assert_eq!(process.says(), "ready"));
    let used = processes.each_ref().map(|process| process.says().parse::<f64>().unwrap());
    let alone = used[0] / used.iter().sum::<f64>();
    assert!((alone - 1.0 / 3.0).abs() < 0.1, "a group of two has the weight of two: {used:?}");
    let (cheap, dear) = (used[1], used[2]);
    assert!((1.5..2.7).contains(&(dear / cheap)), "units twice as dear, as many of them: {used:?}");
}

/// Members in threads of this process; each leaves when its sender is dropped.
fn crowd(domain: &Domain, count: usize) -> Vec<(Sender<()>, JoinHandle<()>)> {
    let (tell, joined) = mpsc::channel();
    let members = (0..count).map(|_| {
        let (domain, tell) = (domain.clone(), tell.clone());
        let (leave, asked) = mpsc::channel::<()>();
        let member = std::thread::spawn(move || {
            let member = Shared::join(&domain);
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
    let directory = domain();
    let domain = Domain::at(directory.path());
    let mut members = crowd(&domain, SLOTS);
    let message = Shared::join(&domain).err().map(|error| error.to_string()).unwrap_or_default();
    assert!(message.contains("all 64 slots are taken by living programs"), "{message}");
    members.pop().into_iter().for_each(leave);
    members.extend(crowd(&domain, 1));
    assert!(Shared::join(&domain).is_err());
    members.into_iter().for_each(leave);
    Shared::join(&domain).unwrap();
    let left: Vec<_> = std::fs::read_dir(directory.path()).unwrap().collect();
    assert!(left.is_empty(), "who leaves takes its things: {left:?}");
}

#[test]
fn who_finds_no_slot_runs_without_one_and_harms_nobody() {
    let directory = domain();
    let player = Process::start("player", directory.path());
    player.progresses(1);
    let mut members = crowd(&Domain::at(directory.path()), SLOTS - 1);
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
    let directory = domain();
    let domain = Domain::at(directory.path());
    let cpus = std::thread::available_parallelism().unwrap().get();
    let (joined, left) = (Arc::new(Barrier::new(2 * cpus)), Arc::new(Barrier::new(2 * cpus)));
    let member = move || {
        let mut member = Shared::join(&domain).unwrap();
        joined.wait();
        let (first, leaves) = (member.cpu(), member.cpu().is_multiple_of(2) && cpus > 1);
        if leaves {
            drop(member);
            left.wait();
            return (first, None);
        }
        left.wait();
        let end = Monotonic.now() + 1000 * MS;
        while Monotonic.now() < end {
            let soon = Offer { timer: Monotonic.now() + 5 * MS, ..Offer::IDLE };
            member.poll(&soon, &mut []).unwrap();
        }
        (first, Some(member.cpu()))
    };
    let threads: Vec<_> = (0..2 * cpus).map(|_| std::thread::spawn(member.clone())).collect();
    let cpus_of: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    let crowd = |chosen: Vec<u32>| {
        let mut crowds = vec![0; cpus];
        chosen.iter().for_each(|cpu| crowds[*cpu as usize % cpus] += 1);
        crowds.iter().max().copied().unwrap_or(0)
    };
    assert_eq!(crowd(cpus_of.iter().map(|(first, _)| *first).collect()), 2, "{cpus_of:?}");
    let last: Vec<u32> = cpus_of.iter().filter_map(|(_, last)| *last).collect();
    let even = last.len().div_ceil(cpus);
    assert_eq!(crowd(last), even, "{cpus_of:?}");
}

#[test]
fn a_directory_that_others_can_enter_is_refused() {
    let directory = domain();
    std::fs::set_permissions(directory.path(), std::os::unix::fs::PermissionsExt::from_mode(0o770)).unwrap();
    let message = Shared::join(&Domain::at(directory.path())).err().unwrap().to_string();
    assert!(message.contains("closed to others (mode 700)"), "{message}");
    assert!(message.contains(&directory.path().display().to_string()), "{message}");
}

#[test]
fn a_leaving_thread_is_as_it_came() {
    let directory = domain();
    let affinity = || {
        // SAFETY: the set is plain data.
        unsafe {
            let mut set: libc::cpu_set_t = std::mem::zeroed();
            libc::sched_getaffinity(0, size_of_val(&set), &mut set);
            (libc::CPU_COUNT(&set), libc::sched_getscheduler(0), libc::prctl(libc::PR_GET_TIMERSLACK))
        }
    };
    let before = affinity();
    let mut member = Shared::join(&Domain::at(directory.path())).unwrap();
    assert_eq!(affinity().0, 1, "a member belongs to one CPU");
    let soon = Offer { timer: Monotonic.now() + 3 * MS, ..Offer::IDLE };
    assert!(member.poll(&soon, &mut []).unwrap().turn);
    assert!(Monotonic.now() >= soon.timer, "it slept until its timer");
    drop(member);
    assert_eq!(affinity(), before);
}
