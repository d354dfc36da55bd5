//! A scheduler lends the machine and has it again, very often, under threads that compute and
//! threads that sleep. What happens in the machine is a test of this program too, which runs itself
//! there. `ATTUNE_RELOADS` says how often.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread::{Builder, sleep};
use std::time::{Duration, Instant};

use attune_kernel::{Division, Members, Running, Settings};

use super::common::machine::{build_divided, folder, in_quiet_machine, strip};
use super::common::set_up;
use super::several::{image, numbers};

const CPUS: u32 = 2;
const THREADS: usize = 200;
/// In ms of the machine's time, from the last decision before to the first one after, usually.
const UNDECIDED: f64 = 100.0;
/// A thread that has not run for so long is lost.
const PATIENCE: Duration = Duration::from_secs(60);

/// How often, for the test and for the machine.
const RELOADS: &str = "ATTUNE_RELOADS";

fn reloads() -> u32 {
    std::env::var(RELOADS).map_or(20, |count| count.parse().expect("a number of reloads"))
}

#[test]
fn every_thread_goes_on_when_a_lent_machine_is_taken_back() {
    if !set_up() {
        return;
    }
    for policy in ["fair", "coop"] {
        let folder = folder(&format!("reload_{policy}"));
        build_divided(&folder, policy, CPUS, 1, "policy.bpf.o");
        strip(&std::env::current_exe().unwrap(), &folder.join("tests"));
        let test = "./tests --exact reload::inside --ignored --nocapture";
        let script = format!("{RELOADS}={} {test}", reloads());
        let said = in_quiet_machine(&folder, CPUS, &["tests", "policy.bpf.o"], &script);
        eprintln!("{policy}: {said}");
        let [_, _, median] = numbers(&said, "no decision for (ms)")[..] else { panic!("{said}") };
        assert!(median <= UNDECIDED, "{policy}: {said}");
        assert!(said.contains("\nlead: 700000\n"), "{policy}: {said}");
    }
}

#[test]
#[ignore = "runs in the virtual machine, where the test above starts it"]
fn inside() {
    let settings = Settings {
        seed: 0,
        cpus: CPUS,
        partial: false,
        shares: vec![],
        members: Members::default(),
        timeout_ms: 30_000,
        strict: false,
        implicit: false,
        division: Division::whole(CPUS),
    };
    let mut running = attune_kernel::start(image("policy.bpf.o"), &settings).unwrap();
    running.set(&[("lead".to_owned(), "700us".to_owned())]).unwrap();
    let turns = start_threads();
    wait_until_all_ran(&running, &turns);

    let (mut undecided, mut lent) = (vec![], vec![]);
    for number in 0..reloads() {
        // Another moment of the threads' turns each time.
        sleep(Duration::from_micros(u64::from(number) * 7919 % 50_000));
        let since = Instant::now();
        running.lend();
        lent.push(since.elapsed());
        let before = dispatches(&running);
        running.reload().unwrap();
        while dispatches(&running) == before {
            assert!(since.elapsed() < PATIENCE, "reload {number}: it decides nothing");
        }
        undecided.push(since.elapsed());
        wait_until_all_ran(&running, &turns);
    }
    say("no decision for (ms)", undecided);
    say("until it is detached (ms)", lent);
    let lead = running.tunables().into_iter().find(|tunable| tunable.name == "lead");
    println!("lead: {}", lead.map_or(0, |lead| lead.value));
    running.stop();
}

/// The longest, 99 of 100, and the median.
fn say(what: &str, mut times: Vec<Duration>) {
    times.sort();
    let at = |part: f64| times[(part * (times.len() - 1) as f64) as usize].as_secs_f64() * 1e3;
    println!("\n{what}: {:.3} {:.3} {:.3}", at(1.0), at(0.99), at(0.5));
}

/// Each counts its turns; every second one computes. They go on until this process ends.
fn start_threads() -> Vec<&'static AtomicU64> {
    let start = |number: usize| {
        let turn: &'static AtomicU64 = Box::leak(Box::default());
        let work = move || {
            loop {
                turn.fetch_add(1, Relaxed);
                if number.is_multiple_of(2) {
                    sleep(Duration::from_millis(10));
                }
            }
        };
        Builder::new().stack_size(64 << 10).spawn(work).unwrap();
        turn
    };
    (0..THREADS).map(start).collect()
}

fn wait_until_all_ran(running: &Running, turns: &[&AtomicU64]) {
    let before: Vec<u64> = turns.iter().map(|turn| turn.load(Relaxed)).collect();
    let since = Instant::now();
    while turns.iter().zip(&before).any(|(turn, before)| turn.load(Relaxed) == *before) {
        assert_eq!(running.exit(), None, "the kernel has ended it");
        assert!(since.elapsed() < PATIENCE, "not every thread runs on");
        sleep(Duration::from_millis(1));
    }
}

fn dispatches(running: &Running) -> u64 {
    running.statistics().policies.iter().map(|policy| policy.dispatches).sum()
}
