//! What a scheduler means, construct by construct: source text and events in, decisions and state
//! out.

use std::sync::Arc;

use attune_language::engine::event::Event;
use attune_language::resolve::SourceText;
use attune_language::{Options as Checking, check};
use attune_simulator::interpreter::{Failure, Interpreter, Options, Refusal};
use attune_simulator::scheduler::{Call, CpuSet, Decision, Dispatch, Scheduler, ThreadId, Value};

/// A scheduler with the handlers that every engine requires and what the test adds.
fn scheduler(added: &str) -> String {
    format!("scheduler test {{\n{added}\nevent switch_out {{ }}\nevent event_raised(t) {{ }}\n}}\n")
}

fn build(source: &str, options: Options) -> Result<Interpreter, Refusal> {
    let no_files: &[(&str, &str)] = &[];
    let main = SourceText { name: "test.sched".into(), text: source.into() };
    let checked = check(&main, &mut { no_files }, &Checking::default());
    let messages: Vec<&str> = checked.diagnostics.iter().map(|it| it.message.as_str()).collect();
    let program = checked.program.unwrap_or_else(|| panic!("{messages:?}\n{source}"));
    Interpreter::new(Arc::new(program), &checked.sources, options)
}

struct Run {
    interpreter: Interpreter,
    decision: Decision,
    options: Options,
}

impl Run {
    fn new(added: &str) -> Run {
        Run::with(added, Options::default())
    }

    fn with(added: &str, options: Options) -> Run {
        let interpreter = build(&scheduler(added), options).expect("accepted");
        Run { interpreter, decision: Decision::default(), options }
    }

    fn call_on(&mut self, cpu: u32, event: Event, thread: Option<u32>) -> Result<(), Failure> {
        self.decision.clear();
        let thread = thread.map(ThreadId);
        let call = Call { event, thread, now: 1000, cpu, cpus: self.options.cpus };
        self.interpreter.run(&call, &mut self.decision)
    }

    fn call(&mut self, event: Event, thread: Option<u32>) -> Result<(), Failure> {
        self.call_on(0, event, thread)
    }

    fn schedule(&mut self) -> Result<(), Failure> {
        self.call(Event::Schedule, None)
    }

    /// New threads 0..count.
    fn threads(&mut self, count: u32) {
        for thread in 0..count {
            self.interpreter.thread_created(ThreadId(thread), &CpuSet::ALL);
            self.call(Event::NewThread, Some(thread)).expect("newthread");
        }
    }

    fn holds(&self, container: &str) -> Vec<u32> {
        let program = self.interpreter.program();
        let index =
            program.containers.values().position(|it| it.name == container).expect("declared");
        self.interpreter.snapshot().containers[index]
            .concat()
            .iter()
            .map(|thread| thread.0)
            .collect()
    }

    fn global(&self, name: &str) -> attune_language::ir::Value {
        let program = self.interpreter.program();
        let index = program.globals.values().position(|it| it.name == name).expect("declared");
        self.interpreter.snapshot().globals[index][0]
    }

    fn int(&self, name: &str) -> i64 {
        match self.global(name) {
            attune_language::ir::Value::Int(value) => value,
            attune_language::ir::Value::Float(value) => panic!("{name} is the float {value}"),
        }
    }
}

/// The value of an int expression, evaluated in `schedule` of a scheduler with the given data.
fn value_of(data: &str, expression: &str) -> i64 {
    let mut run = Run::new(&format!(
        "data {{ int result = 0; queue RQ; {data} }}
         event newthread(t) {{ t => RQ; }}
         event schedule {{ result = {expression}; }}"
    ));
    run.schedule().expect("no check fails");
    run.int("result")
}

#[test]
fn arithmetic_wraps_and_never_fails() {
    assert_eq!(value_of("int m = 9223372036854775807;", "m + 1"), i64::MIN);
    assert_eq!(value_of("int m = 9223372036854775807, n = -1;", "(m + 1) / n"), i64::MIN);
    assert_eq!(value_of("int m = 9223372036854775807, n = -1;", "(m + 1) % n"), 0);
    assert_eq!(value_of("int z = 0;", "7 / z"), 0);
    assert_eq!(value_of("int z = 0;", "7 % z"), 7);
    assert_eq!(value_of("int a = -7;", "a / 2 * 100 + a % 2"), -301);
    assert_eq!(value_of("float z = 0.0;", "(1.5 / z == 0.0) + (2.5 % z == 2.5) * 10"), 11);
    assert_eq!(value_of("float f = -7.5;", "f % 2 == -1.5"), 1);
    assert_eq!(value_of("float f = 1e30;", "f"), i64::MAX);
    assert_eq!(value_of("float f = -2.9;", "f"), -2);
    assert_eq!(value_of("time t = 20ms;", "t / 3ms"), 6);
}

#[test]
fn divisions_by_zero_are_counted() {
    let mut run = Run::new(
        "data { int z = 0; float f = 0.0; queue RQ; } event newthread(t) { t => RQ; }
         event schedule { z = 1 / z + 1 % z; f = 2.0 / f; z = 1 && 3 / z; }",
    );
    run.schedule().expect("no check fails");
    assert_eq!(run.interpreter.divisions_by_zero(), 3, "the last division is by one");
}

#[test]
fn effects_happen_from_left_to_right_and_short_circuits_skip_them() {
    assert_eq!(value_of("int x = 1;", "x++ * 100 + x++ * 10 + x"), 123);
    assert_eq!(value_of("int x = 0;", "((x = 5) > 3 || x++ > 0) * 100 + x"), 105);
    assert_eq!(value_of("int x = 0;", "(x > 0 && (x = 9) > 3) * 100 + x"), 0);
}

#[test]
fn a_queue_is_first_in_first_out_and_a_stack_last_in_first_out() {
    let order = |kind: &str| {
        let mut run = Run::new(&format!(
            "data {{ {kind} C; }} event newthread(t) {{ t => C; }} event schedule {{ }}"
        ));
        run.threads(3);
        run.holds("C")
    };
    assert_eq!(order("queue"), [0, 1, 2]);
    assert_eq!(order("stack"), [2, 1, 0]);
}

#[test]
fn sorted_containers_put_equals_behind_or_before() {
    let order = |kind: &str, sort: &str| {
        let mut run = Run::new(&format!(
            "thread {{ int key = 0; }} threadimports {{ int given default 0; }}
             data {{ {kind} C {sort}sortable on key; }}
             event newthread(t) {{ t.key = t.given; t => C; }} event schedule {{ }}"
        ));
        for (thread, key) in [2, 7, 2, 9, 7].into_iter().enumerate() {
            let thread = ThreadId(thread as u32);
            run.interpreter.thread_created(thread, &CpuSet::ALL);
            let given = run.interpreter.thread_import("given").expect("declared");
            run.interpreter.set_thread_import(thread, given, Value::Int(key));
            run.call(Event::NewThread, Some(thread.0)).expect("stored");
        }
        run.holds("C")
    };
    assert_eq!(order("pqueue", ""), [3, 1, 4, 0, 2]);
    assert_eq!(order("pqueue", "decreasing "), [3, 1, 4, 0, 2]);
    assert_eq!(order("pqueue", "reverse "), [0, 2, 1, 4, 3]);
    assert_eq!(order("pstack", ""), [3, 4, 1, 2, 0]);
    assert_eq!(order("pstack", "increasing "), [2, 0, 4, 1, 3]);
}

#[test]
fn assigning_the_key_inserts_anew_even_if_it_stays_the_same() {
    let mut run = Run::new(
        "thread { int key = 5; } data { pqueue C sortable on key; }
         event newthread(t) { t => C; } event schedule { *C.key = 5; }",
    );
    run.threads(3);
    run.schedule().expect("no check fails");
    assert_eq!(run.holds("C"), [1, 2, 0]);
}

#[test]
fn foreach_visits_what_was_there_and_stayed() {
    let mut run = Run::new(
        "thread { int seen = 0; } data { queue A, B; int visits = 0; threadref spare; }
         event newthread(t) { t => A; }
         event schedule {
             foreach t in A {
                 visits = visits * 10 + 1;
                 if (t.seen == 0 && visits == 1) {
                     A => B;                     // itself
                     A => B;                     // the next one: not visited
                     B => A;                     // back, and too new
                 }
                 t.seen = 1;
             }
         }",
    );
    run.threads(4);
    run.schedule().expect("no check fails");
    assert_eq!(run.int("visits"), 111, "the first, the third and the fourth");
    assert_eq!(run.holds("A"), [2, 3, 0]);
}

#[test]
fn a_failed_transfer_says_where_and_what_the_containers_held() {
    let mut run = Run::new(
        "data { threadref current, other; queue A, B[2]; } event newthread(t) { t => A; }
         event schedule { int i = 0; if (|A| < 9) { A => current; A => other; A => B[i]; } }",
    );
    run.threads(2);
    let failure = run.schedule().expect_err("A is empty at last");
    let place = failure.place.expect("of the third transfer");
    assert_eq!((place.file.as_str(), place.line), ("test.sched", 3));
    assert!(failure.check.is_some());
    assert_eq!(failure.message, "there is no thread to move: A is empty (A: empty; B[0]: empty)");
}

#[test]
fn a_full_threadref_refuses_another_thread_but_not_its_own() {
    let mut run = Run::new(
        "data { threadref here; queue A; int twice = 0; } event newthread(t) { t => A; }
         event schedule { if (|A| > 0) A => here; if (twice) here => here; twice = 1; }",
    );
    run.threads(2);
    run.schedule().expect("there is room");
    let failure = run.schedule().expect_err("full");
    assert_eq!(
        failure.message,
        "there is no room for thread 1: here holds another (A: 1; here: 0)"
    );
    run.interpreter.thread_removed(ThreadId(1));
    run.schedule().expect("onto itself");
    assert_eq!(run.holds("here"), [0]);
}

#[test]
fn an_index_outside_the_array_is_found() {
    let mut run = Run::new(
        "data { int a[3]; queue RQ; } imports { int i default 3; } event newthread(t) { t => RQ; }
         event schedule { a[i] = 1; }",
    );
    assert_eq!(run.schedule().expect_err("3 is outside").message, "index 3 is outside 0..3");
}

#[test]
fn loops_share_one_budget_in_a_handler() {
    let body = |rounds: u32| {
        format!(
            "data {{ queue RQ; }} event newthread(t) {{ t => RQ; }}
             event schedule {{
                 int i;
                 for (i = 0; i < 524288; i++) ;
                 i = 0;
                 do {{ i++; }} while (i < {rounds});
             }}"
        )
    };
    // The first loop takes 524288 rounds and one look at the condition that ends it.
    Run::new(&body(524_287)).schedule().expect("just enough");
    let failure = Run::new(&body(524_288)).schedule().expect_err("one too many");
    assert_eq!(failure.message, "more than 1048576 iterations in one handler");
}

#[test]
fn the_exit_checks_find_a_new_thread_lost_and_a_local_container_left_full() {
    let mut run = Run::new(
        "data { queue RQ; } imports { int stored default 0; } event newthread(t) \
            { if (stored) t => RQ; } event schedule { }",
    );
    run.interpreter.thread_created(ThreadId(0), &CpuSet::ALL);
    let failure = run.call(Event::NewThread, Some(0)).expect_err("lost");
    assert_eq!(failure.message, "the new thread 0 was put into no container");

    let mut run = Run::new(
        "data { queue RQ; } event newthread(t) { t => RQ; }
         event schedule { queue tmp; if (|RQ| > 0) RQ => tmp; if (|RQ| > 5) tmp => RQ; }",
    );
    run.threads(1);
    let failure = run.schedule().expect_err("left in tmp");
    assert_eq!(failure.message, "tmp is local and not empty at the end (tmp: 0)");
}

#[test]
fn a_destroyed_thread_cannot_be_used_but_compared() {
    let mut run = Run::new(
        "thread { int x = 0; } data { queue RQ; int same = 0; } event newthread(t) { t => RQ; }
         event schedule { }
         event resume_thread(t) { destroy t; same = t == t; t.x = 1; }",
    );
    run.threads(1);
    let failure = run.call(Event::ResumeThread, Some(0)).expect_err("gone");
    assert_eq!((run.int("same"), failure.message.as_str()), (1, "thread 0 has been destroyed"));
    assert_eq!(run.interpreter.where_is(ThreadId(0)), None);
}

#[test]
fn schedule_sees_only_the_threads_that_may_run_there() {
    let options = Options { cpus: 2, ..Options::default() };
    let mut run = Run::with(
        "data { threadref current; queue RQ; int size = 0; int seen = 0; } event newthread(t) \
            { t => RQ; }
         event schedule {
             size = |RQ|;
             foreach t in RQ seen++;
             if (|RQ| > 0) { RQ => current; dispatch current for 3ms; }
         }
         query threads_ready { return |RQ|; }",
        options,
    );
    for thread in 0..3 {
        run.interpreter
            .thread_created(ThreadId(thread), &CpuSet::from_iter([u32::from(thread == 2)]));
        run.call(Event::NewThread, Some(thread)).expect("stored");
    }
    run.call_on(1, Event::Schedule, None).expect("one may run there");
    assert_eq!((run.int("size"), run.int("seen")), (1, 1));
    assert_eq!(
        run.decision.dispatch,
        Some(Dispatch { thread: ThreadId(2), slice: Some(3_000_000) })
    );
    run.call_on(1, Event::ThreadsReady, None).expect("a query");
    assert_eq!(run.decision.value, Some(2), "outside of schedule nothing is hidden");
    run.call_on(1, Event::Schedule, None).expect("nobody may");
    assert_eq!(run.decision.dispatch, None);
    run.interpreter.set_affinity(ThreadId(1), &CpuSet::ALL);
    assert_eq!(run.interpreter.where_is(ThreadId(2)).as_deref(), Some("current[1]"));
}

#[test]
fn per_cpu_variables_have_an_instance_each() {
    let options = Options { cpus: 3, ..Options::default() };
    let mut run = Run::with(
        "data { percpu int mine = 0; int sum = 0; queue RQ; } event newthread(t) { t => RQ; }
         event schedule {
            mine = cpu + 1; mine[0] += 10;
            sum = mine[0] * 10000 + mine[1] * 100 + mine[2] + cpus;
         }",
        options,
    );
    for cpu in 0..3 {
        run.call_on(cpu, Event::Schedule, None).expect("no check fails");
    }
    assert_eq!(run.int("sum"), 31 * 10_000 + 2 * 100 + 3 + 3);
}

#[test]
fn random_numbers_repeat_with_the_seed() {
    let draw = |seed| {
        let options = Options { seed, ..Options::default() };
        let mut run = Run::with(
            "data { int a = 0; queue RQ; } event newthread(t) { t => RQ; }
             event schedule { a = random(1000) * 1000 + random(1000) + random(0); }",
            options,
        );
        run.schedule().expect("no check fails");
        run.int("a")
    };
    assert_eq!(draw(1), draw(1));
    assert_ne!(draw(1), draw(2));
}

#[test]
fn alarms_preemptions_and_answers_reach_the_engine() {
    let mut run = Run::new(
        "data { queue RQ; } event newthread(t) { t => RQ; alarm t at now + 5ns; }
         event schedule { preempt 3; preempt 0 - 1 at now + 2ms; alarm RQ at 0; }
         query timeslice_left { return 7us; }
         query first_waiting { return *RQ; }",
    );
    run.call(Event::FirstWaiting, None).expect("a query");
    assert_eq!(run.decision.value_thread, None);
    run.threads(1);
    assert_eq!(run.decision.alarms, [(ThreadId(0), 1005)]);
    run.schedule().expect("no check fails");
    assert_eq!(
        (run.decision.preempt.as_slice(), run.decision.alarms[0]),
        ([(3, 0), (-1, 2_001_000)].as_slice(), (ThreadId(0), 0))
    );
    run.call(Event::TimesliceLeft, None).expect("a query");
    assert_eq!(run.decision.value, Some(7000));
    run.call(Event::FirstWaiting, None).expect("a query");
    assert_eq!(run.decision.value_thread, Some(ThreadId(0)));
}

#[test]
fn parts_run_in_order_and_return_leaves_only_its_own() {
    let mut run = Run::new(
        "data { threadref current; queue RQ; int trace = 0; } event newthread(t) { t => RQ; }
         before schedule { trace = trace * 10 + 1; if (trace > 0) return; trace = 0; }
         event schedule {
            trace = trace * 10 + 2; if (|RQ| > 0) { RQ => current; dispatch current; } trace = 0;
         }
         after schedule { trace = trace * 10 + 3; }",
    );
    run.threads(1);
    run.schedule().expect("no check fails");
    assert_eq!(run.int("trace"), 123);
    assert_eq!(run.decision.dispatch.map(|it| it.thread), Some(ThreadId(0)));
}

#[test]
fn initial_values_may_be_computed_for_the_scheduler_and_for_each_thread() {
    let mut run = Run::new(
        "thread { time born = now; int number = count * 2; } threadimports { int weight default 3; }
         data { const int K = 4; int count = K + cpus; queue RQ; int seen = 0; }
         event newthread(t) { seen = t.number * 100 + t.weight * 10 + (t.born == now); t => RQ; }
         event schedule { }",
    );
    let weight = run.interpreter.thread_import("weight").expect("declared");
    run.interpreter.thread_created(ThreadId(0), &CpuSet::ALL);
    run.interpreter.set_thread_import(ThreadId(0), weight, Value::Float(7.9));
    assert_eq!(run.interpreter.get_thread_import(ThreadId(0), weight), Value::Int(7));
    run.call(Event::NewThread, Some(0)).expect("stored");
    assert_eq!(run.int("seen"), 1071);
}

#[test]
fn imports_are_written_through_and_tunables_outlive_a_start() {
    let mut run = Run::new(
        "imports { int load default 5; } data { tunable int limit = 2; int seen = 0; queue RQ; }
         event newthread(t) { t => RQ; } event schedule \
             { seen = load * 10 + limit; load = load + 1; }",
    );
    let load = run.interpreter.global_import("load").expect("declared");
    assert!(
        run.interpreter.set_tunable("limit", Value::Int(7))
            && !run.interpreter.set_tunable("load", Value::Int(7))
    );
    run.interpreter.set_global_import(load, Value::Int(30));
    run.schedule().expect("no check fails");
    assert_eq!((run.int("seen"), run.interpreter.get_global_import(load)), (307, Value::Int(31)));
    run.interpreter.start(1, 0);
    run.schedule().expect("no check fails");
    assert_eq!(run.int("seen"), 57);
}

#[test]
fn invariants_run_after_a_change_in_debug_only() {
    let added = "data { queue RQ; } invariant RQ { return |RQ| < 2; } event newthread(t) \
        { t => RQ; } event schedule { }";
    Run::new(added).threads(3);
    let mut run = Run::with(added, Options { debug: true, ..Options::default() });
    run.threads(1);
    run.interpreter.thread_created(ThreadId(1), &CpuSet::ALL);
    let failure = run.call(Event::NewThread, Some(1)).expect_err("two are too many");
    assert_eq!(failure.message, "the invariant of RQ does not hold (RQ: 0 1)");
}

#[test]
fn what_cannot_be_interpreted_is_refused_with_its_place() {
    let verbatim = scheduler(
        "data { queue RQ; } event newthread(t) { t => RQ; }\nevent schedule { {* puts(\"no\"); *} \
            }",
    );
    let refusal = build(&verbatim, Options::default()).err().expect("refused");
    assert_eq!(refusal.to_string(), "test.sched:3:18: the simulator cannot run verbatim text");
    let partial =
        scheduler("data { queue RQ; } event newthread(t) { t => RQ; } event schedule { }");
    let partial = partial.replace("scheduler test", "partial scheduler test");
    assert_eq!(build(&partial, Options::default()).err(), Some(Refusal::Partial));
    let none = scheduler("data { queue RQ; } event newthread(t) { t => RQ; } event schedule { }");
    let options = Options { cpus: 0, ..Options::default() };
    assert_eq!(build(&none, options).err(), Some(Refusal::Cpus(0)));
}

#[test]
fn a_call_about_an_unknown_thread_is_no_crash() {
    let mut run = Run::new("data { queue RQ; } event newthread(t) { t => RQ; } event schedule { }");
    let failure = run.call(Event::NewThread, Some(77)).expect_err("never announced");
    assert_eq!(failure.check, None);
    let failure = run.call_on(9, Event::Schedule, None).expect_err("no such CPU");
    assert!(failure.message.contains("CPU 9"));
}
