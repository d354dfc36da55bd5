//! Threads that wake, block, exit and change affinity and class while they move between instances
//! of the kernel engine, on a model of the kernel. The full count is
//! `attune-conformance moves --events 100000`.

use attune_conformance::moves::{MUTANTS, Machine, machines};

const EVENTS: u64 = 20_000;

#[test]
fn nothing_is_lost_and_no_cpu_idles_beside_work() {
    for (policy, shape) in machines() {
        let machine = Machine::build(policy, shape, &|text| Some(text.to_owned())).unwrap();
        let said = machine.expect("unchanged").storm(1, EVENTS).unwrap();
        let said = said.unwrap_or_else(|broken| panic!("{policy}, {shape:?}: {broken}"));
        let moves: u64 = said.split(' ').nth(2).and_then(|count| count.parse().ok()).unwrap();
        assert!(moves > 500, "{policy}, {shape:?}: {said}");
        assert!(said.contains("CPUs went 1"), "about a hundred times: {said}");
    }
}

/// Three on two CPUs each would have a CPU for itself or half of one without balance.
#[test]
fn threads_that_compute_have_their_shares_of_the_machine() {
    for (policy, shape) in machines().filter(|(policy, _)| *policy == "fair") {
        let machine = Machine::build(policy, shape, &|text| Some(text.to_owned())).unwrap();
        let machine = machine.expect("unchanged");
        let loads = [&[0; 7][..], &[0; 5], &[3, 3, 3, 3, 0, 0, 0], &[0, 5, 5, 5, 5, 5, 5]];
        for nices in loads {
            for seed in 5..9 {
                let said = machine.share(seed, nices).unwrap();
                assert!(said.is_ok(), "{shape:?}, seed {seed}: {said:?}");
            }
        }
    }
}

#[test]
fn a_mistake_in_a_move_is_found() {
    for name in ["moved-still-listed", "owner-kept"] {
        let mutant = MUTANTS.iter().find(|mutant| mutant.name == name).unwrap();
        assert!(mutant.caught(1, 2000).unwrap().is_some(), "{name} survived");
    }
}
