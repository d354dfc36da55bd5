//! The program runs under its own scheduler, without a file, and its user may choose another one.

use std::process::{Command, Output};

fn run(scheduler: Option<&str>) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_compiled-in"));
    command.env_remove("ATTUNE_SCHED").current_dir("/");
    scheduler.map(|scheduler| command.env("ATTUNE_SCHED", scheduler));
    command.output().expect("it starts")
}

#[test]
fn the_shortest_task_goes_first() {
    let output = run(None);
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8_lossy(&output.stdout);
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(
        lines,
        [
            "short: 1 left",
            "middle: 2 left",
            "middle: 1 left",
            "long: 3 left",
            "long: 2 left",
            "long: 1 left"
        ]
    );
}

#[test]
fn its_user_still_chooses() {
    let output = run(Some("/no/such/scheduler.so"));
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("/no/such/scheduler.so"), "{said}");
}
