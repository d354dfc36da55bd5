//! The tracer on the real kernel, with real programs. The tests need root and BTF; elsewhere they
//! say so and pass, but fail where CI=true.

use std::collections::BTreeSet;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use attune_tracer::{Error, Event, Kind, Settings, Tracer, call_number, record};

/// One test at a time: a test that watches for children of this process must not see another's.
static ALONE: Mutex<()> = Mutex::new(());

/// A loaded tracer; None, with a message, where the test cannot run.
fn tracer(settings: Settings) -> Option<(Tracer, MutexGuard<'static, ()>)> {
    match Tracer::load(settings) {
        Ok(tracer) => Some((tracer, ALONE.lock().unwrap_or_else(PoisonError::into_inner))),
        Err(error @ (Error::NoPrivilege | Error::NoBtf))
            if std::env::var("CI").as_deref() != Ok("true") =>
        {
            eprintln!("cannot run here: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Traces a command from its first instant to its end.
fn trace(tracer: &mut Tracer, command: &mut Command) -> Vec<Event> {
    tracer.select_future_children(std::process::id()).unwrap();
    tracer.attach().unwrap();
    let mut child = command.spawn().unwrap();
    tracer.deselect(std::process::id());
    let mut events = Vec::new();
    while child.try_wait().unwrap().is_none() {
        tracer.drain(&mut events);
        std::thread::sleep(Duration::from_millis(5));
    }
    tracer.detach();
    tracer.drain(&mut events);
    events
}

/// The CPU time of the job that a wait has ended, if it is known.
fn cpu_ns(kind: &Kind) -> u64 {
    match kind {
        Kind::Block { cpu_ns } => cpu_ns.unwrap_or(0),
        _ => 0,
    }
}

fn shell(script: &str) -> Command {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", script]);
    command
}

/// When a thread does that first, from the beginning of its first call of that number on.
fn first(events: &[Event], thread: u32, call: u32, wanted: fn(&Kind) -> bool) -> Option<u64> {
    let own = events.iter().filter(|event| event.thread == thread);
    let mut own = own.skip_while(|event| event.kind != Kind::Enter(call));
    own.find(|event| wanted(&event.kind)).map(|event| event.time)
}

#[test]
fn every_sleep_of_every_child_is_seen_once() {
    let Some((mut tracer, _alone)) = tracer(Settings::default()) else { return };
    let sleep = call_number("clock_nanosleep").unwrap();
    let sleepers = |events: &[Event]| -> Vec<u32> {
        let entered = events.iter().filter(|event| event.kind == Kind::Enter(sleep));
        entered.map(|event| event.thread).collect()
    };
    // On a machine that stands still for a whole sleep, the time is over before the thread blocks.
    let all_block = |events: &Vec<Event>| {
        sleepers(events).into_iter().all(|thread| {
            let blocked = first(events, thread, sleep, |kind| matches!(kind, Kind::Block { .. }));
            let left = first(events, thread, sleep, |kind| matches!(kind, Kind::Exit(_)));
            blocked.expect("it blocks, or ends") <= left.expect("it leaves")
        })
    };
    let mut tries = (0..3)
        .map(|_| trace(&mut tracer, &mut shell("for i in 1 2 3 4 5; do /bin/sleep 0.1; done")));
    let events = tries.find(all_block).expect("each sleeper blocks while it sleeps");
    let count = |kind| events.iter().filter(|event| event.kind == kind).count();
    assert_eq!(count(Kind::Enter(sleep)), 5);
    assert_eq!(count(Kind::Exit(Some(sleep))), 5);
    assert_eq!(tracer.lost(), 0);

    // Each sleeper is woken after it has blocked.
    for thread in sleepers(&events) {
        let blocked = first(&events, thread, sleep, |kind| matches!(kind, Kind::Block { .. }));
        let own = events.iter().filter(|event| event.thread == thread);
        let mut woken = own.filter(|event| event.kind == Kind::Wake);
        assert!(woken.any(|event| Some(event.time) >= blocked), "{thread} is woken");
    }
    // The shell waits for each sleeper. The job before a wait is known from the second wait on, and
    // all jobs of a thread together take no longer than its life.
    let shell = events.iter().map(|event| event.process).min().unwrap();
    let jobs_of_shell = events.iter().filter(|event| {
        event.thread == shell && matches!(event.kind, Kind::Block { cpu_ns: Some(_) })
    });
    assert!(jobs_of_shell.count() >= 4);
    let threads: BTreeSet<u32> = events.iter().map(|event| event.thread).collect();
    for thread in threads {
        let own: Vec<_> = events.iter().filter(|event| event.thread == thread).collect();
        let life = own[own.len() - 1].time - own[0].time;
        let worked: u64 = own.iter().map(|event| cpu_ns(&event.kind)).sum();
        assert!(worked <= life, "jobs of {worked} ns in {life} ns");
    }
    // Each process that began has ended, and is watched no longer.
    assert_eq!(count(Kind::Start), count(Kind::End));
    assert_eq!(tracer.selected(), Vec::<u32>::new());
}

#[test]
fn only_the_wanted_calls_and_kinds_are_reported() {
    let sleep = call_number("clock_nanosleep").unwrap();
    let settings = Settings {
        exits: false,
        transitions: false,
        calls: Some(vec![sleep]),
        ..Settings::default()
    };
    let Some((mut tracer, _alone)) = tracer(settings) else { return };
    let events = trace(&mut tracer, &mut shell("/bin/sleep 0.01; exec /bin/sleep 0.01"));
    let calls: Vec<_> =
        events.iter().filter(|event| !matches!(event.kind, Kind::Start | Kind::End)).collect();
    assert_eq!(calls.len(), 2);
    assert!(calls.iter().all(|event| event.kind == Kind::Enter(sleep)));
}

#[test]
fn a_process_is_watched_without_its_children() {
    let Some((mut tracer, _alone)) = tracer(Settings::default()) else { return };
    let mut child = shell("read go; /bin/sleep 0.01; /bin/true")
        .stdin(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    tracer.select(child.id(), false).unwrap();
    tracer.attach().unwrap();
    drop(child.stdin.take());
    child.wait().unwrap();
    let mut events = Vec::new();
    tracer.detach();
    tracer.drain(&mut events);
    assert!(!events.is_empty());
    assert!(events.iter().all(|event| event.process == child.id()));
}

#[test]
fn events_that_find_the_ring_full_are_counted() {
    let Some((mut tracer, _alone)) =
        tracer(Settings { ring_bytes: 1 << 16, ..Settings::default() })
    else {
        return;
    };
    tracer.select_future_children(std::process::id()).unwrap();
    tracer.attach().unwrap();
    // Some ten thousand calls, and nothing drains the ring.
    let status = Command::new("/bin/dd")
        .args(["if=/dev/zero", "of=/dev/null", "bs=1", "count=10000", "status=none"])
        .status();
    assert!(status.unwrap().success());
    let mut text = Vec::new();
    let recording = record(&mut tracer, &mut text, 0, |_| false).unwrap();
    assert!(recording.lost > 10_000, "lost {}", recording.lost);
    assert!(recording.events + recording.lost >= 40_000);
    let text = String::from_utf8(text).unwrap();
    assert_eq!(text.lines().last().unwrap(), format!("# lost {}", recording.lost));
}

#[test]
fn a_detached_tracer_sees_nothing_and_can_be_attached_again() {
    let Some((mut tracer, _alone)) = tracer(Settings::default()) else { return };
    let mut child = shell("while :; do /bin/sleep 0.01; done").spawn().unwrap();
    tracer.select(child.id(), true).unwrap();
    let mut events = Vec::new();
    tracer.drain(&mut events);
    assert!(events.is_empty() && !tracer.is_attached());
    for _ in 0..2 {
        tracer.attach().unwrap();
        let begun = Instant::now();
        while events.is_empty() && begun.elapsed() < Duration::from_secs(90) {
            tracer.drain(&mut events);
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(!events.is_empty());
        tracer.detach();
        tracer.drain(&mut events);
        events.clear();
        tracer.drain(&mut events);
        assert!(events.is_empty());
    }
    child.kill().unwrap();
    child.wait().unwrap();
}
