//! Interpreter and compiled C decide the same; mistakes put into the C are found.
//!
//! A bounded part of what `attune-conformance differential` and `attune-conformance mutants` do.

use std::sync::Mutex;

use attune_conformance::differential::{Effort, run};
use attune_conformance::mutants::{Fate, MUTANTS, line, try_mutant};

const EFFORT: Effort = Effort {
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
    let report = run(&EFFORT, &|text| Some(text.to_string()));
    println!("{}", report.summary());
    assert!(report.differences.is_empty(), "{}", report.differences[0]);
    assert!(
        report.cases >= 700,
        "the front end refuses too many generated schedulers:\n{}",
        report.summary()
    );
    assert!(report.endings.iter().all(|&count| count > 0), "cases all end alike:\n{}", report.summary());
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
    for mutant in MUTANTS.iter().filter(|mutant| quick.contains(&mutant.name)) {
        let fate = try_mutant(mutant, &EFFORT);
        assert!(matches!(fate, Fate::Caught { .. }), "{}", line(mutant, fate));
    }
}

#[test]
fn every_mutant_has_a_place_in_the_generated_c() {
    let left = Mutex::new(MUTANTS.iter().collect::<Vec<_>>());
    run(&EFFORT, &|text| {
        left.lock().unwrap().retain(|mutant| !text.contains(mutant.find));
        None
    });
    let names: Vec<&str> = left.into_inner().unwrap().iter().map(|mutant| mutant.name).collect();
    assert!(names.is_empty(), "what these replace is nowhere: {names:?}");
}

#[test]
fn mutants_have_names_of_their_own() {
    let names: std::collections::HashSet<&str> = MUTANTS.iter().map(|mutant| mutant.name).collect();
    assert_eq!(names.len(), MUTANTS.len());
    assert!(names.len() >= 30);
}
