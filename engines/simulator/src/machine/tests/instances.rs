//! Tests several instances of a policy: where threads go, what the policy hears, and that no thread
//! is lost, doubled or put where it may not run.

use crate::scheduler::{Call, CpuSet, Decision, ImportId, Scheduler, ThreadId, Trap, Value};
use crate::testing::Fifo;
use crate::workload::distribution::Random;
use crate::{Options, Outcome, Per, Workload, simulate_instances};
use attune_language::engine::event::Event;

fn run_per(per: Per, cpus: u32, text: &str) -> Outcome {
    run_with(per, cpus, text, Fifo::default)
}

fn run_with<P: Scheduler>(per: Per, cpus: u32, text: &str, make: impl FnMut() -> P) -> Outcome {
    let workload = Workload::from_toml(text, "w.toml").unwrap_or_else(|error| panic!("{error}"));
    let options = Options { cpus: Some(cpus), per, trace: true, ..Options::default() };
    simulate_instances(make, &workload, &options).unwrap_or_else(|error| panic!("{error}"))
}

fn group<'o>(outcome: &'o Outcome, name: &str) -> &'o crate::metrics::Tally {
    outcome.groups().iter().find(|group| group.name == name).unwrap()
}

#[test]
fn a_handler_sees_the_cpus_of_its_instance() {
    let text = "cpus_per_cache = 2\n[[thread]]\nname = 'a'\ncount = 4\ndo = [{ compute = '1ms' }]";
    let log = std::cell::RefCell::new(Vec::new());
    let outcome = run_with(Per::Cache, 4, text, || Shared { fifo: Fifo::default(), log: &log });
    assert_eq!(outcome.instances(), [0..2, 2..4]);
    assert_eq!(outcome.elapsed(), 1_000_000);
    assert!(log.borrow().iter().all(|&(_, cpu, cpus)| cpus == 2 && cpu < 2));
    assert!(log.borrow().iter().any(|&(event, cpu, _)| event == Event::NewThread && cpu == 1));
}

/// A [`Fifo`] of which several instances write one log: event, CPU and number of CPUs.
struct Shared<'l> {
    fifo: Fifo,
    log: &'l std::cell::RefCell<Vec<(Event, u32, u32)>>,
}

impl Scheduler for Shared<'_> {
    fn name(&self) -> &str {
        self.fifo.name()
    }
    fn start(&mut self, cpus: u32, seed: u64) {
        self.fifo.start(cpus, seed);
    }
    fn handles(&self, event: Event) -> bool {
        self.fifo.handles(event)
    }
    fn thread_created(&mut self, thread: ThreadId, affinity: &CpuSet) {
        self.fifo.thread_created(thread, affinity);
    }
    fn set_affinity(&mut self, thread: ThreadId, affinity: &CpuSet) {
        self.fifo.set_affinity(thread, affinity);
    }
    fn thread_removed(&mut self, thread: ThreadId) {
        self.fifo.thread_removed(thread);
    }
    fn thread_leaves(&mut self, thread: ThreadId) -> Vec<i64> {
        self.fifo.thread_leaves(thread)
    }
    fn thread_arrives(&mut self, thread: ThreadId, affinity: &CpuSet, attributes: &[i64]) {
        self.fifo.thread_arrives(thread, affinity, attributes);
    }
    fn call(&mut self, call: &Call, decision: &mut Decision) -> Result<(), Trap> {
        self.log.borrow_mut().push((call.event, call.cpu, call.cpus));
        self.fifo.call(call, decision)
    }
    fn thread_import(&self, name: &str) -> Option<ImportId> {
        self.fifo.thread_import(name)
    }
    fn global_import(&self, name: &str) -> Option<ImportId> {
        self.fifo.global_import(name)
    }
    fn set_thread_import(&mut self, thread: ThreadId, import: ImportId, value: Value) {
        self.fifo.set_thread_import(thread, import, value);
    }
    fn set_global_import(&mut self, import: ImportId, value: Value) {
        self.fifo.set_global_import(import, value);
    }
    fn get_thread_import(&self, thread: ThreadId, import: ImportId) -> Value {
        self.fifo.get_thread_import(thread, import)
    }
    fn get_global_import(&self, import: ImportId) -> Value {
        self.fifo.get_global_import(import)
    }
    fn where_is(&self, thread: ThreadId) -> Option<String> {
        self.fifo.where_is(thread)
    }
}

#[test]
fn a_thread_wakes_on_an_idle_cpu_of_another_instance() {
    let text = r#"
        [[thread]]
        name = "sleeper"
        cpus = [0, 1]
        do = [{ compute = "1ms" }, { sleep = "5ms" }, { compute = "1ms" }]
        [[thread]]
        name = "hog"
        start = "3ms"
        cpus = [0]
        do = [{ compute = "20ms" }]
    "#;
    let outcome = run_per(Per::Cpu, 2, text);
    let sleeper = group(&outcome, "sleeper");
    assert_eq!((sleeper.moves, sleeper.migrations), (1, 1));
    assert_eq!(outcome.threads()[0].ended, Some(7_000_000));
    assert_eq!(sleeper.longest_wait, 0);
    let trace = attune_timeline_reader::Trace::read(&outcome.perfetto());
    let moved = &trace.track("sleeper").instants[0];
    assert_eq!((&*moved.name, moved.at), ("moved", 6_000_000));
    let instances = ["from instance", "to instance"].map(|name| &*moved.arguments[name]);
    assert_eq!(instances, ["0", "1"]);
}

#[test]
fn an_idle_cpu_pulls_the_thread_that_waited_longest_near_before_far() {
    // CPU 3 is idle from 10 ms on. Its cache is that of CPU 2.
    let text = r#"
        cpus_per_cache = 2
        [[thread]]
        name = "hog"
        cpus = [0]
        do = [{ compute = "50ms" }]
        [[thread]]
        name = "near_hog"
        cpus = [2]
        do = [{ compute = "50ms" }]
        [[thread]]
        name = "blocker"
        cpus = [3]
        do = [{ compute = "10ms" }]
        [[thread]]
        name = "other_blocker"
        cpus = [1]
        do = [{ compute = "40ms" }]
        [[thread]]
        name = "far"
        start = "1ms"
        cpus = [0, 3]
        do = [{ compute = "5ms" }]
        [[thread]]
        name = "near"
        start = "2ms"
        cpus = [2, 3]
        do = [{ compute = "5ms" }]
    "#;
    let outcome = run_per(Per::Cpu, 4, text);
    let end_of = |name: &str| {
        let thread = outcome.threads().iter().find(|thread| thread.name == name).unwrap();
        (thread.ended.unwrap(), thread.moves)
    };
    assert_eq!(end_of("near"), (15_000_000, 1));
    assert_eq!(end_of("far"), (20_000_000, 1));
}

#[test]
fn a_change_of_affinity_takes_a_thread_out_of_its_instance() {
    let text = r#"
        [[thread]]
        name = "a"
        do = [{ compute = "1ms" }, { cpus = [1] }, { compute = "1ms" }, { cpus = [0] },
              { compute = "1ms" }]
    "#;
    let outcome = run_per(Per::Cpu, 2, text);
    assert_eq!(outcome.elapsed(), 3_000_000);
    assert_eq!(group(&outcome, "a").moves, 2);
    assert_eq!(outcome.cpus()[1].busy, 1_000_000);
}

#[test]
fn equal_threads_that_cannot_be_divided_take_turns() {
    for (threads, cpus) in [(3, 2), (7, 4), (5, 3), (9, 8)] {
        let text = format!(
            "duration = '10s'\n[[thread]]\nname = 'hog'\ncount = {threads}\nrepeat = 'forever'\n\
             do = [{{ compute = '1s' }}]"
        );
        let outcome = run_with(Per::Cpu, cpus, &text, || Fifo::with_slice(4_000_000));
        assert!(outcome.idle().all(|idle| idle < 1_000), "{}", outcome.table());
        let due = 1.0 / f64::from(threads);
        for thread in outcome.threads() {
            let share = outcome.share(thread);
            assert!((share / due - 1.0).abs() < 0.05, "{threads} on {cpus}: {}", outcome.table());
        }
    }
}

#[test]
fn a_lock_costs_what_the_workload_says() {
    let text = |lock: &str| {
        format!(
            "cpus_per_cache = 1\n{lock}\n[[thread]]\nname = 'a'\ncount = 2\n\
             do = [{{ repeat = 3, do = [{{ compute = '1ms' }}, 'yield'] }}]"
        )
    };
    let free = run_per(Per::Machine, 1, &text(""));
    assert_eq!(free.cpus()[0].overhead, 0);
    // Each handler call holds the lock for 1 us, and no other CPU ever has it.
    let held = run_per(Per::Machine, 1, &text("[scheduler_lock]\nhold = '1us'\nfar = '9us'"));
    let calls = held.calls() as i64 * 1_000;
    let lost = held.elapsed() - 6_000_000;
    assert!(lost > 0 && lost <= calls && lost >= calls - 8_000, "{lost} of {calls}");
    // Two CPUs share one lock, or each has its own.
    let lock = "[scheduler_lock]\nhold = '1us'\nfar = '9us'";
    let shared = run_per(Per::Machine, 2, &text(lock));
    let own = run_per(Per::Cpu, 2, &text(lock));
    let lost = |outcome: &Outcome| outcome.cpus().iter().map(|cpu| cpu.overhead).sum::<i64>();
    assert!(lost(&shared) > 2 * lost(&own), "{} and {}", lost(&shared), lost(&own));
    assert!(own.cpus().iter().all(|cpu| cpu.lock_wait == 0) || own.total().moves > 0);
}

/// Random machines and workloads: every thread does all of its work, on CPUs that it may use, and
/// the machine's time adds up.
#[test]
fn no_thread_is_lost_or_doubled_over_random_histories() {
    let mut random = Random::new(19, 3);
    let (mut moves, mut work) = (0, 0);
    for round in 0..100 {
        let cpus = 2 + random.below(7) as u32;
        let per_cache = 1 + random.below(cpus as usize);
        let mut text = format!("context_switch = '3us'\ncpus_per_cache = {per_cache}\n");
        let lock = random.below(2) == 0;
        if lock {
            text += "[scheduler_lock]\nhold = '200ns'\nnear = '60ns'\nfar = '200ns'\n";
        }
        text += "[barriers]\nall = 3\n";
        let mut expected = 0;
        for thread in 0..3 + random.below(10) {
            let (count, rounds) = (1 + random.below(3), 5 + random.below(30));
            let compute = 50 + random.below(3000);
            let mut pinned = |text: &mut String| {
                let (a, b) = (random.below(cpus as usize), random.below(cpus as usize));
                *text += &format!("cpus = [{a}, {b}]");
            };
            text += &format!("[[thread]]\nname = 't{thread}'\ncount = {count}\n");
            if thread % 3 == 0 {
                pinned(&mut text);
                text += "\n";
            }
            let mut steps = format!("{{ compute = '{compute}us' }}, ");
            steps += match thread % 5 {
                0 => "{ sleep = 'exponential(2ms)' }, ",
                1 => "'yield', ",
                2 => "{ lock = 'm', do = [{ compute = '0ms' }] }, ",
                3 => "{ io = '500us' }, ",
                _ => "",
            };
            if thread % 2 == 0 {
                steps += "{ ";
                pinned(&mut steps);
                steps += " }, ";
            }
            text += &format!("do = [{{ repeat = {rounds}, do = [{steps}] }}]\n");
            expected += (count * rounds * compute) as i64 * 1_000;
        }
        let per = [Per::Cpu, Per::Cache][round % 2];
        let outcome = run_with(per, cpus, &text, || Fifo {
            slice: Some(700_000),
            preempts: Some(0),
            ..Fifo::default()
        });
        assert_eq!(outcome.ending(), crate::Ending::AllEnded, "{text}\n{:?}", outcome.warnings());
        assert_eq!(outcome.total().cpu, expected, "{text}\n{}", outcome.table());
        assert!(outcome.idle().all(|idle| idle >= 0), "{text}\n{}", outcome.table());
        let busy: i64 = outcome.cpus().iter().map(|cpu| cpu.busy).sum();
        assert_eq!(busy, expected);
        moves += outcome.total().moves;
        work += outcome.total().dispatches;
    }
    assert!(moves > 1_000 && work > 10_000, "{moves} moves, {work} dispatches");
}
