//! Interpreter, compiled C and BPF in the kernel decide the same; mistakes put into the generated
//! code are found.
//!
//! A bounded part of what `attune-conformance differential` and `attune-conformance mutants` do.

use std::sync::Mutex;

use attune_conformance::differential::{Against, Budget, run};
use attune_conformance::mutants::{self, Fate, Mutant, line, try_mutant};
use attune_conformance::replayed;
use attune_kernel::Replay;
use attune_language::engine::event::Event;
use attune_language::ir::Verdicts;
use attune_language::resolve::SourceText;
use attune_language::{Options, check};

const BUDGET: Budget = Budget {
    against: Against::C,
    nodes: false,
    schedulers: 150,
    runs: 10,
    steps: 60,
    seed: 1,
    size: 6,
    jobs: 2,
    differences: 1,
    shrinking: 300,
};

#[test]
fn interpreter_and_compiled_c_decide_the_same() {
    let report = run(&BUDGET, &|text| Some(text.to_string()));
    println!("{}", report.summary());
    assert!(report.differences.is_empty(), "{}", report.differences[0]);
    assert!(
        report.cases >= 700,
        "the front end refuses too many generated schedulers:\n{}",
        report.summary()
    );
    assert!(report.cases_with_moves > 100, "{}", report.summary());
    assert!(
        report.endings.iter().all(|&count| count > 0),
        "cases all end alike:\n{}",
        report.summary()
    );
}

#[test]
fn interpreter_and_the_embedded_engines_c_decide_the_same() {
    let budget = Budget { against: Against::Embedded, schedulers: 80, ..BUDGET };
    let report = run(&budget, &|text| Some(text.to_string()));
    println!("{}", report.summary());
    assert!(report.differences.is_empty(), "{}", report.differences[0]);
    assert!(
        report.cases >= 350,
        "the front end refuses too many generated schedulers:\n{}",
        report.summary()
    );
    assert!(
        report.endings.iter().all(|&count| count > 0),
        "cases all end alike:\n{}",
        report.summary()
    );
}

#[test]
fn mistakes_in_the_embedded_engines_c_are_found() {
    for mutant in mutants::all().filter(|it| !it.nodes && it.against == Against::Embedded) {
        let budget = Budget { against: Against::Embedded, ..BUDGET };
        let fate = try_mutant(mutant, &budget);
        assert!(matches!(fate, Fate::Caught { .. }), "{}", line(mutant, fate));
    }
}

#[test]
fn mistakes_in_the_generated_c_are_found() {
    // One of each kind that few cases find; the command tries all.
    let quick = [
        "queue-lifo",
        "pqueue-equals-lifo",
        "sort-direction",
        "size-not-counted-down",
        "first-not-cached",
        "stamp-kept",
        "empty-not-checked",
        "wrong-check",
        "remainder-by-zero",
        "less-or-equal",
        "removal-forgotten",
    ];
    for mutant in mutants::all().filter(|mutant| quick.contains(&mutant.name)) {
        let fate = try_mutant(mutant, &BUDGET);
        assert!(matches!(fate, Fate::Caught { .. }), "{}", line(mutant, fate));
    }
}

const NODES: Budget = Budget { nodes: true, schedulers: 40, ..BUDGET };

/// Nodes decide alike, and say the same to their cluster.
fn nodes_write_the_same(against: Against) {
    let report = run(&Budget { against, ..NODES }, &|text| Some(text.to_string()));
    println!("{}", report.summary());
    assert!(report.differences.is_empty(), "{}", report.differences[0]);
    assert!(report.cases >= 120, "too many nodes are refused:\n{}", report.summary());
    for mutant in mutants::all().filter(|it| it.nodes && it.against == against) {
        let fate = try_mutant(mutant, &NODES);
        assert!(matches!(fate, Fate::Caught { .. }), "{}", line(mutant, fate));
    }
}

#[test]
fn nodes_in_c_and_in_the_interpreter_write_the_same() {
    nodes_write_the_same(Against::C);
}

#[test]
fn nodes_in_the_embedded_engines_c_and_in_the_interpreter_write_the_same() {
    nodes_write_the_same(Against::Embedded);
}

#[test]
fn nodes_in_the_kernel_and_in_the_interpreter_write_the_same() {
    if can_replay() {
        nodes_write_the_same(Against::Kernel);
    }
}

const KERNEL: Budget = Budget { against: Against::Kernel, schedulers: 60, ..BUDGET };

/// Whether this machine's kernel can run the programs made for the kernel engine. On CI it must.
fn can_replay() -> bool {
    match attune_kernel::support::check_replay() {
        Ok(()) => true,
        Err(missing) => {
            assert!(std::env::var("CI").as_deref() != Ok("true"), "{missing}");
            eprintln!("not run: {missing}");
            false
        }
    }
}

#[test]
fn interpreter_and_bpf_in_the_kernel_decide_the_same() {
    if !can_replay() {
        return;
    }
    let report = run(&KERNEL, &|text| Some(text.to_string()));
    println!("{}", report.summary());
    assert!(report.differences.is_empty(), "{}", report.differences[0]);
    assert!(
        report.cases >= 300,
        "the front end refuses too many generated schedulers:\n{}",
        report.summary()
    );
    assert!(report.cases_with_moves > 50, "{}", report.summary());
    assert!(
        report.endings.iter().all(|&count| count > 0),
        "cases all end alike:\n{}",
        report.summary()
    );
}

#[test]
fn mistakes_in_the_bpf_are_found() {
    if !can_replay() {
        return;
    }
    let quick = [
        "bpf-loops-never",
        "bpf-wrong-check",
        "bpf-lists-one-less",
        "bpf-first-anywhere",
        "bpf-pinned-free",
        "bpf-need-anywhere",
        "bpf-unfiltered",
        "bpf-check-lines",
        "bpf-import-lost",
    ];
    for mutant in mutants::all().filter(|mutant| quick.contains(&mutant.name)) {
        let fate = try_mutant(mutant, &KERNEL);
        assert!(matches!(fate, Fate::Caught { .. }), "{}", line(mutant, fate));
    }
}

/// Five loops around each other over fifty threads: a third of a milliard rounds.
const LONG: &str = "scheduler long {
    data { threadref current; queue RQ; int rounds = 0; }
    event newthread(t) { t => RQ; }
    event schedule {
        foreach a in RQ
            foreach b in RQ
                foreach c in RQ
                    foreach d in RQ
                        foreach e in RQ
                            rounds++;
        if (|current| == 0 && |RQ| > 0) RQ => current;
        if (|current| > 0) dispatch current;
    }
    event switch_out { if (|current| > 0) current => RQ; }
    event set_waiting(t) { int i = 0; while (1) { i = 1; while (i != 0) i++; } }
    event event_raised(t) { t => RQ; }
}
";

/// The scheduler in this machine's kernel, with two CPUs.
fn loaded(name: &str, text: &str) -> Replay {
    let file = SourceText { name: name.into(), text: text.into() };
    let mut nothing: &[(&str, &str)] = &[];
    let checked = check(&file, &mut nothing, &Options::default());
    let program = checked.program.as_ref().expect("it checks");
    let text =
        attune_kernel::replay_source(program, &Verdicts::default(), &checked.sources).expect("C");
    replayed::load(&text, 2).expect("the kernel takes it")
}

#[test]
fn a_loop_that_the_kernel_cuts_short_is_a_failure_with_its_place() {
    if !can_replay() {
        return;
    }
    let mut replay = loaded("long.sched", LONG);
    for thread in 0..50 {
        replay.begin(0, thread, 0).unwrap();
        replay.call(0, Event::NewThread, Some(thread), 0, 0).unwrap();
    }
    assert_eq!(replay.failed(), None);
    replay.call(0, Event::Schedule, None, 0, 0).unwrap();
    let failed = replay.failed().expect("it went on for too long");
    assert_eq!((failed.file.as_str(), failed.line), ("long.sched", 9), "{failed:?}");
    assert_eq!(
        failed.sentence,
        "long.sched:9:25: the foreach over RQ went on for longer than the kernel allows, 250 ms"
    );
    // Loops that end in 1 048 576 rounds are not cut short: their own check says so.
    replay.start(0, 0).unwrap();
    replay.begin(0, 0, 0).unwrap();
    replay.call(0, Event::SetWaiting, Some(0), 0, 0).unwrap();
    let failed = replay.failed().expect("the loop has no end");
    assert_eq!(failed.line, 15, "{failed:?}");
    assert!(failed.sentence.contains("more than 1048576 iterations"), "{failed:?}");
}

/// A thread in a container of the handler's own counts there, wherever the thread may run.
const TAKES: &str = "scheduler takes {
    data { threadref current; percpu queue RQ; queue far; }
    event newthread(t) { t => RQ; }
    event schedule {
        threadref taken;
        if (|RQ[0]| > 0) {
            RQ[0] => taken;
            taken => far;
        }
    }
    event switch_out { }
}
";

#[test]
fn a_local_container_is_read_as_a_whole() {
    if !can_replay() {
        return;
    }
    let mut replay = loaded("takes.sched", TAKES);
    replay.begin(0, 0, 0).unwrap();
    replay.allow(0, 0b01).unwrap();
    replay.call(0, Event::NewThread, Some(0), 0, 0).unwrap();
    replay.call(0, Event::Schedule, None, 1, 1).unwrap();
    assert_eq!(replay.failed(), None);
    assert_eq!(replay.container(0, "far", 1), Some(vec![vec![0]]));
}

/// Those that replace something that no generated text holds.
fn without_place(budget: &Budget) -> Vec<&'static str> {
    let all = mutants::all()
        .filter(|mutant| mutant.against == budget.against && mutant.nodes == budget.nodes);
    let left = Mutex::new(all.collect::<Vec<&Mutant>>());
    run(budget, &|text| {
        left.lock().unwrap().retain(|mutant| !text.contains(mutant.find));
        None
    });
    left.into_inner().unwrap().iter().map(|mutant| mutant.name).collect()
}

#[test]
fn every_mutant_has_a_place_in_the_generated_code() {
    let embedded = Budget { against: Against::Embedded, ..BUDGET };
    let node_in_kernel = Budget { against: Against::Kernel, ..NODES };
    let budgets = [BUDGET, embedded, KERNEL, NODES, node_in_kernel];
    let lost: Vec<&str> = budgets.iter().flat_map(without_place).collect();
    assert!(lost.is_empty(), "what these replace is nowhere: {lost:?}");
}

#[test]
fn mutants_have_names_of_their_own() {
    let names: std::collections::HashSet<&str> = mutants::all().map(|mutant| mutant.name).collect();
    assert_eq!(names.len(), mutants::all().count());
    assert!(names.len() >= 30);
}
