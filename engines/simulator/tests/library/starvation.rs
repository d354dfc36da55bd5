//! No ready thread waits longer than the bound that its policy's header states, whatever the
//! affinities, weights and classes of the threads are, and however many there are.

use attune_language::engine::event::Event;
use attune_simulator::interpreter::Interpreter;
use attune_simulator::scheduler::{
    Call, CpuSet, Decision, ImportId, Scheduler, ThreadId, Trap, Value,
};
use attune_simulator::{Options, Outcome, Workload, simulate};

use crate::runs::{MS, US, scheduler};

/// The weights that the kernel gives: nice -20, -5, 0, 5 and 19, and class SCHED_IDLE.
const WEIGHTS: [i64; 6] = [88_761, 3_121, 1_024, 335, 15, 3];

/// A policy, and how long it left each ready thread waiting.
struct Watched {
    policy: Interpreter,
    threads: Vec<Thread>,
    /// The longest wait, and the thread that waited.
    longest: (i64, u32),
    now: i64,
}

#[derive(Clone, Copy, Default)]
struct Thread {
    ready_since: Option<i64>,
    waits: bool,
    suspended: bool,
}

impl Watched {
    fn new(name: &str) -> Watched {
        let policy = scheduler(name);
        Watched { policy, threads: Vec::new(), longest: (0, 0), now: 0 }
    }

    fn thread(&mut self, thread: ThreadId) -> &mut Thread {
        &mut self.threads[thread.index()]
    }

    fn has_waited(&mut self, thread: ThreadId, until: i64) {
        if let Some(since) = self.thread(thread).ready_since.take() {
            self.longest = self.longest.max((until - since, thread.0));
        }
    }

    /// Those that wait still count too.
    fn longest_wait(&mut self) -> (i64, u32) {
        for thread in 0..self.threads.len() as u32 {
            self.has_waited(ThreadId(thread), self.now);
        }
        self.longest
    }
}

impl Scheduler for Watched {
    fn name(&self) -> &str {
        self.policy.name()
    }

    fn start(&mut self, cpus: u32, seed: u64) {
        self.policy.start(cpus, seed);
    }

    fn handles(&self, event: Event) -> bool {
        self.policy.handles(event)
    }

    fn thread_created(&mut self, thread: ThreadId, affinity: &CpuSet) {
        self.threads.resize(self.threads.len().max(thread.index() + 1), Thread::default());
        *self.thread(thread) = Thread::default();
        self.policy.thread_created(thread, affinity);
    }

    fn set_affinity(&mut self, thread: ThreadId, affinity: &CpuSet) {
        self.policy.set_affinity(thread, affinity);
    }

    fn thread_removed(&mut self, thread: ThreadId) {
        self.thread(thread).ready_since = None;
        self.policy.thread_removed(thread);
    }

    fn thread_leaves(&mut self, thread: ThreadId) -> Vec<i64> {
        self.policy.thread_leaves(thread)
    }

    fn thread_arrives(&mut self, thread: ThreadId, affinity: &CpuSet, attributes: &[i64]) {
        self.policy.thread_arrives(thread, affinity, attributes);
    }

    fn call(&mut self, call: &Call, decision: &mut Decision) -> Result<(), Trap> {
        self.now = call.now;
        self.policy.call(call, decision)?;
        if let Some(thread) = call.thread {
            let known = self.thread(thread);
            match call.event {
                Event::SetWaiting => known.waits = true,
                Event::EventRaised => known.waits = false,
                Event::SuspendThread => known.suspended = true,
                Event::ResumeThread => known.suspended = false,
                _ => {}
            }
            let can_run = !known.waits && !known.suspended;
            match call.event {
                Event::NewThread | Event::EventRaised | Event::ResumeThread | Event::SwitchOut
                    if can_run =>
                {
                    known.ready_since.get_or_insert(call.now);
                }
                Event::SuspendThread | Event::SetDead => known.ready_since = None,
                _ => {}
            }
        }
        if let Some(dispatch) = decision.dispatch.filter(|_| call.event == Event::Schedule) {
            self.has_waited(dispatch.thread, call.now);
        }
        Ok(())
    }

    fn thread_import(&self, name: &str) -> Option<ImportId> {
        self.policy.thread_import(name)
    }

    fn global_import(&self, name: &str) -> Option<ImportId> {
        self.policy.global_import(name)
    }

    fn set_thread_import(&mut self, thread: ThreadId, import: ImportId, value: Value) {
        self.policy.set_thread_import(thread, import, value);
    }

    fn set_global_import(&mut self, import: ImportId, value: Value) {
        self.policy.set_global_import(import, value);
    }

    fn get_thread_import(&self, thread: ThreadId, import: ImportId) -> Value {
        self.policy.get_thread_import(thread, import)
    }

    fn get_global_import(&self, import: ImportId) -> Value {
        self.policy.get_global_import(import)
    }

    fn where_is(&self, thread: ThreadId) -> Option<String> {
        self.policy.where_is(thread)
    }
}

/// Policies with a bound, each with what its header says: for so many threads on so many CPUs.
type Bound = fn(threads: i64, cpus: i64) -> i64;

const PATIENCE: i64 = 500 * MS;

fn fair_bound(threads: i64, cpus: i64) -> i64 {
    2 * PATIENCE + (threads + 4) * 100 * US + (cpus + 4) * 20 * MS
}

fn fair_periodic_bound(threads: i64, cpus: i64) -> i64 {
    2 * PATIENCE + (threads + 4) * 50 * US + (cpus + 4) * MS
}

fn coop_bound(threads: i64, cpus: i64) -> i64 {
    fair_bound(threads, cpus) + (threads + 4) * MS
}

fn edf_bound(threads: i64, _: i64) -> i64 {
    2 * PATIENCE + 3 * 4 * MS + threads * 500 * US
}

fn priority_bound(threads: i64, _: i64) -> i64 {
    2 * PATIENCE + 3 * 10 * MS + threads * 500 * US
}

fn reserve_bound(threads: i64, _: i64) -> i64 {
    2 * PATIENCE + 3 * 50 * MS + threads * 500 * US
}

fn solaris_bound(threads: i64, _: i64) -> i64 {
    3 * 1000 * MS + 200 * MS + threads * 20 * MS
}

fn nt_bound(threads: i64, _: i64) -> i64 {
    4 * 1000 * MS + (threads + 2) * 3 * 20 * MS
}

/// On one processor.
fn epochs_bound(others: i64) -> i64 {
    others * 44 * 10 * MS
}

const BOUNDED: [(&str, Bound); 9] = [
    ("fair", fair_bound),
    ("fair_periodic", fair_periodic_bound),
    ("coop", coop_bound),
    ("desktop", coop_bound),
    ("edf", edf_bound),
    ("priority", priority_bound),
    ("reserve", reserve_bound),
    ("solaris_ts", solaris_bound),
    ("nt_boosts", nt_bound),
];

/// Those that share CPUs by weight.
const SHARING: [&str; 3] = ["fair", "fair_periodic", "coop"];

/// The longest wait, in ns, and the outcome.
fn longest_wait(policy: &str, text: &str) -> (i64, Outcome) {
    let mut watched = Watched::new(policy);
    let workload = Workload::from_toml(text, "starvation.toml")
        .unwrap_or_else(|error| panic!("{error}\n{text}"));
    let outcome = simulate(&mut watched, &workload, &Options::default())
        .unwrap_or_else(|error| panic!("{policy}: {error}\n{text}"));
    (watched.longest_wait().0, outcome)
}

/// A thread that computes for ever.
fn hog(name: &str, count: usize, start_ms: i64, rest: &str) -> String {
    format!(
        "[[thread]]\nname = \"{name}\"\ncount = {count}\nstart = \"{start_ms}ms\"\n{rest}\n\
         repeat = \"forever\"\ndo = [{{ compute = \"1s\" }}]\n\n"
    )
}

fn machine(duration_ms: i64, cpus: u32) -> String {
    format!("duration = \"{duration_ms}ms\"\ncpus = {cpus}\n\n")
}

fn assert_bounded(text: &str, threads: i64, cpus: i64) {
    for (policy, bound) in BOUNDED {
        let (wait, outcome) = longest_wait(policy, text);
        let bound = bound(threads, cpus);
        assert!(
            wait <= bound,
            "{policy}: {} ms, its bound is {} ms\n{}\n{text}",
            wait / MS,
            bound / MS,
            outcome.table()
        );
    }
}

/// CPU 1 gets ahead of CPU 0 in virtual time. A thread that then wakes for CPU 0 must not start
/// with CPU 1's virtual time.
#[test]
fn a_pinned_thread_does_not_wait_for_a_cpu_that_is_ahead() {
    let kworker = "[[thread]]\nname = \"kworker\"\ncpus = [0]\nperiod = \"1s\"\nphase = \"900ms\"\n\
         do = [{ compute = \"1ms\" }]\n\n";
    let text = machine(20_000, 2)
        + &hog("slow", 2, 0, "cpus = [0]")
        + &hog("fast", 1, 0, "cpus = [1]")
        + kworker;
    assert_bounded(&text, 4, 2);
    for policy in SHARING {
        let (_, outcome) = longest_wait(policy, &text);
        let kworker = outcome.groups().iter().find(|group| group.name == "kworker").unwrap();
        assert!(kworker.jobs >= 18, "{policy}: {}", outcome.table());
        assert!(kworker.latency.max() <= 40 * MS, "{policy}: {}", outcome.table());
    }
}

/// Both CPUs serve the threads that may use both, and these do not take CPU 1 from its own.
#[test]
fn a_thread_that_may_run_everywhere_takes_no_cpu_from_a_pinned_one() {
    let text = machine(20_000, 2)
        + &hog("slow", 2, 0, "cpus = [0]")
        + &hog("fast", 1, 0, "cpus = [1]")
        + &hog("free", 1, 10_000, "");
    assert_bounded(&text, 4, 2);
    for policy in SHARING {
        let (_, outcome) = longest_wait(policy, &text);
        let cpu = |name: &str| {
            outcome.groups().iter().find(|group| group.name == name).unwrap().cpu as f64 / 1e9
        };
        // Alone for 10 s, then half of its CPU.
        assert!((cpu("fast") - 15.0).abs() < 0.3, "{policy}: {}", outcome.table());
        assert!((cpu("free") - 5.0).abs() < 0.3, "{policy}: {}", outcome.table());
    }
}

#[test]
fn a_light_thread_that_ran_alone_is_not_charged_for_it_when_others_come() {
    for weight in [15, 3] {
        let imports = format!("imports = {{ weight = {weight} }}");
        let text = machine(20_000, 1) + &hog("light", 2, 0, &imports) + &hog("hog", 14, 3_000, "");
        assert_bounded(&text, 16, 1);
    }
}

#[test]
fn a_light_thread_among_heavy_ones_gets_its_turn() {
    let text = machine(20_000, 1)
        + &hog("idle", 1, 0, "imports = { weight = 3 }")
        + &hog("light", 3, 0, "imports = { weight = 15 }")
        + &hog("plain", 1, 0, "")
        + &hog("heavy", 14, 0, "imports = { weight = 88761 }");
    assert_bounded(&text, 19, 1);
}

/// Linux 2.4's epochs have a bound on one processor only.
#[test]
fn an_epoch_ends_for_a_thread_among_many_of_a_better_nice_value() {
    let text = machine(30_000, 1)
        + &hog("light", 1, 0, "imports = { nice = 19 }")
        + &hog("heavy", 14, 0, "imports = { nice = -20 }");
    let (wait, outcome) = longest_wait("linux_epochs", &text);
    assert!(wait <= epochs_bound(14), "{} ms\n{}", wait / MS, outcome.table());
    // Epochs do get long.
    assert!(wait > epochs_bound(14) / 4, "{} ms\n{}", wait / MS, outcome.table());
}

const LIGHT: &str = "imports = { weight = 3 }";

/// splitmix64.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % limit as u64) as usize
    }

    fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }
}

/// A workload with `groups` kinds of threads, up to `most` of each; also how many threads and CPUs.
fn mix(random: &mut Random, groups: usize, most: usize, duration_ms: i64) -> (String, i64, i64) {
    let cpus = random.of(&[1, 2, 2, 3, 4]);
    let mut text = machine(duration_ms, cpus);
    let mut threads = 0;
    for group in 0..groups {
        let count = 1 + random.below(most);
        threads += count;
        let affinity: Vec<u32> = (0..cpus).filter(|_| random.below(2) == 0).collect();
        text += &format!("[[thread]]\nname = \"group{group}\"\ncount = {count}\n");
        if !affinity.is_empty() {
            text += &format!("cpus = {affinity:?}\n");
        }
        let (weight, start) = (random.of(&WEIGHTS), random.below(3_000));
        let told = [
            "",
            ", input_rating = 1000",
            ", deadline = \"1ms\"",
            ", prio = 1000000",
            ", dl_runtime = \"80ms\", dl_period = \"100ms\"",
        ][random.below(5)];
        text += &format!(
            "start = \"{start}ms\"\nimports = {{ weight = {weight}{told} }}\nrepeat = \
             \"forever\"\n"
        );
        let (work, pause) = (1 + random.below(20), 1 + random.below(60));
        text += &match random.below(4) {
            0 => "do = [{ compute = \"1s\" }]\n".to_string(),
            1 => format!("do = [{{ compute = \"{work}ms\" }}, {{ sleep = \"{pause}ms\" }}]\n"),
            2 => format!(
                "do = [{{ compute = \"exponential({work}ms)\" }}, {{ sleep = \
                 \"exponential({pause}ms)\" }}]\n"
            ),
            _ => {
                let other = random.below(cpus as usize);
                format!(
                    "do = [{{ compute = \"{work}ms\" }}, \"yield\", {{ compute = \"700ms\" }}, \
                     {{ cpus = [{other}] }}]\n"
                )
            }
        };
        text += "\n";
    }
    (text, threads as i64, i64::from(cpus))
}

#[test]
fn no_thread_of_a_random_mix_waits_longer_than_the_bound() {
    let mut random = Random(20);
    for _ in 0..20 {
        let groups = 1 + random.below(8);
        let (text, threads, cpus) = mix(&mut random, groups, 6, 5_000);
        assert_bounded(&text, threads, cpus);
    }
}

#[test]
fn no_thread_of_thousands_waits_longer_than_the_bound() {
    let mut random = Random(5_000);
    let (text, threads, cpus) = mix(&mut random, 6, 150, 4_000);
    assert_bounded(&text, threads, cpus);
    let text = machine(4_000, 1) + &hog("hog", 4_999, 0, "") + &hog("light", 1, 0, LIGHT);
    let (wait, outcome) = longest_wait("fair", &text);
    assert!(wait <= fair_bound(5_000, 1), "{} ms\n{}", wait / MS, outcome.table());
}
