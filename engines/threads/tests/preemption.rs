//! Threads that give way at safe points, in programs that opt into preemption: C, C++ and Rust.
//! No test asserts a time: the slices are either used up at once or never.

mod common;

use std::cell::RefCell;
use std::process::Command;
use std::rc::Rc;
use std::time::Duration;

use attune_threads::{Options, check, init, spawn, timeslice_left};
use common::{Ended, alone, cpp_program, directory, program, run, scheduler};

/// tests/programs/preemption.c with those arguments under a scheduler of tests/schedulers.
fn preemption(arguments: &[&str], name: &str, workers: &str) -> Ended {
    let directory = directory();
    let program = program(directory.path(), "preemption");
    let so = scheduler(directory.path(), name);
    let mut command = Command::new(program);
    run(command.args(arguments).env("ATTUNE_SCHED", so).env("ATTUNE_WORKERS", workers))
}

#[track_caller]
fn is_ok(ended: Ended) {
    assert_eq!((ended.status, ended.stdout.as_str()), (Some(0), "ok\n"), "{}", ended.stderr);
}

#[test]
fn hogs_with_checks_take_turns_and_the_policy_hears_of_each_slice() {
    is_ok(preemption(&["shares"], "sliced", "1"));
}

#[test]
fn the_safe_points_are_those_of_the_manual() {
    is_ok(preemption(&["calls"], "sliced", "1"));
}

#[test]
fn without_opting_in_nothing_changes() {
    is_ok(preemption(&["keeps", "stays out"], "sliced", "1"));
}

#[test]
fn what_is_left_of_a_slice_falls() {
    is_ok(preemption(&["left"], "sliced", "1"));
}

#[test]
fn a_policy_that_knows_what_is_left_answers_itself() {
    is_ok(preemption(&["answers"], "answers", "1"));
}

#[test]
fn a_policy_gets_the_cpu_for_a_thread_that_wakes() {
    is_ok(preemption(&["wakes"], "sliced", "1"));
}

#[test]
fn a_thread_that_gives_way_keeps_its_mutex() {
    is_ok(preemption(&["locked"], "sliced", "1"));
}

#[test]
fn threads_of_other_workers_share_and_hear_at_safe_points() {
    is_ok(preemption(&["workers"], "sliced", "2"));
}

#[test]
fn foreign_threads_and_handlers_make_no_safe_point() {
    is_ok(preemption(&["refuses"], "sliced", "1"));
    is_ok(preemption(&["handlers"], "checks", "1"));
}

#[test]
fn handlers_come_in_the_documented_order_at_a_safe_point() {
    let ended = preemption(&["order"], "sliced_log", "1");
    let wanted = [
        "newthread 1, schedule 1",
        "newthread 2",
        "quantum_expired 1, switch_out, schedule 2", // at main's check
        "set_dead 2, switch_out, schedule 1",
        "quantum_expired 1, switch_out, schedule 1", // at its join
    ]
    .join(", ");
    assert_eq!(ended.stderr.trim().replace('\n', ", "), wanted);
    is_ok(ended);
}

/// tests/programs/workers.c: every call that may wait or wake is a safe point at which the slice
/// has been used up.
#[test]
fn every_call_may_be_a_safe_point() {
    let directory = directory();
    let program = program(directory.path(), "workers");
    let so = scheduler(directory.path(), "sliced");
    for count in ["1", "2"] {
        let mut command = Command::new(&program);
        command.arg("preempted").env("ATTUNE_SCHED", &so).env("ATTUNE_WORKERS", count);
        is_ok(run(&mut command));
    }
}

#[test]
fn each_thread_has_its_own_exceptions() {
    let Some(directory) = directory_for_cpp() else { return };
    let program = cpp_program(directory.path(), "exceptions");
    let so = scheduler(directory.path(), "sliced");
    is_ok(run(Command::new(&program).env("ATTUNE_SCHED", &so)));
    is_ok(run(Command::new(&program).arg("yield").env("ATTUNE_SCHED", &so)));
}

/// None where the C compiler has no C++.
fn directory_for_cpp() -> Option<tempfile::TempDir> {
    let missing = "there is no C++ compiler; tools/setup.sh test installs it";
    let has = Command::new("c++").arg("--version").output().is_ok();
    assert!(has || std::env::var("CI").as_deref() != Ok("true"), "{missing}");
    if !has {
        eprintln!("not run: {missing}");
    }
    has.then(directory)
}

/// Starts the library in this process, under tests/schedulers/sliced.sched.
fn opt_in() {
    let directory = directory();
    let so = scheduler(directory.path(), "sliced");
    init(&Options { scheduler: Some(so), preempt: true, ..Options::default() }).unwrap();
}

type Order = Rc<RefCell<String>>;

#[test]
fn rust_threads_take_turns() {
    alone("rust_threads_take_turns", || {
        opt_in();
        assert_eq!(timeslice_left().unwrap(), Some(Duration::ZERO));
        let order = Order::default();
        let hog = |c: char| {
            let order = order.clone();
            let body = move || {
                for _ in 0..2 {
                    order.borrow_mut().push(c);
                    check().unwrap();
                }
            };
            spawn(body).unwrap()
        };
        let (a, b) = (hog('a'), hog('b'));
        a.join().unwrap();
        b.join().unwrap();
        assert_eq!(*order.borrow(), "abab");
    });
}

#[test]
fn a_panic_unwinds_without_giving_way() {
    struct Ends(Order);
    impl Drop for Ends {
        fn drop(&mut self) {
            check().unwrap();
            self.0.borrow_mut().push('d');
        }
    }
    alone("a_panic_unwinds_without_giving_way", || {
        opt_in();
        let order = Order::default();
        let ends = Ends(order.clone());
        let panics = spawn(move || {
            ends.0.borrow_mut().push('a');
            panic!("on purpose");
        });
        let other = order.clone();
        let other = spawn(move || {
            other.borrow_mut().push('b');
            assert!(!std::thread::panicking());
        });
        assert!(panics.unwrap().join().is_err());
        other.unwrap().join().unwrap();
        assert_eq!(*order.borrow(), "adb");
    });
}

#[test]
fn rust_programs_that_do_not_opt_in_stay_as_they_are() {
    alone("rust_programs_that_do_not_opt_in_stay_as_they_are", || {
        check().unwrap();
        assert_eq!(timeslice_left().unwrap(), None);
    });
}
