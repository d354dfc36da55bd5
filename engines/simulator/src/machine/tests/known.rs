//! What the machine tells the policy of a thread by itself.

use super::*;

fn written(names: &[&'static str], text: &str) -> Vec<String> {
    let mut policy = Fifo { thread_imports: names.to_vec(), ..Fifo::default() };
    run(&mut policy, text);
    policy.written
}

#[test]
fn a_thread_learns_its_number_and_its_parents() {
    let text = r#"
        [[thread]]
        name = "parent"
        do = [{ spawn = "child" }, { compute = "1ms" }]
        [[thread]]
        name = "child"
        count = 0
        do = [{ compute = "1ms" }]
        "#;
    assert_eq!(
        written(&["process", "parent"], text),
        ["process 0=Int(1)", "parent 0=Int(0)", "process 1=Int(2)", "parent 1=Int(1)"]
    );
}

#[test]
fn a_workload_says_itself_which_threads_are_one_process() {
    let text = r#"
        [[thread]]
        name = "a"
        imports = { process = 7 }
        do = [{ compute = "1ms" }]
        "#;
    assert_eq!(written(&["process"], text), ["process 0=Int(1)", "process 0=Int(7)"]);
}

#[test]
fn a_waker_is_the_thread_that_runs_and_never_the_time() {
    let text = r#"
        [[thread]]
        name = "waits"
        do = [{ wait = "go" }, { sleep = "1ms" }]
        [[thread]]
        name = "signals"
        do = [{ compute = "1ms" }, { signal = "go" }, { compute = "1ms" }]
        [[client]]
        name = "outside"
        do = [{ sleep = "10ms" }]
        "#;
    let told = written(&["waker"], text);
    // At birth, by the second thread, by the time.
    let of_first: Vec<_> = told.iter().filter(|it| it.starts_with("waker 0=")).collect();
    assert_eq!(of_first, ["waker 0=Int(0)", "waker 0=Int(2)", "waker 0=Int(0)"]);
}

#[test]
fn a_wait_is_for_input_or_output_or_it_is_not() {
    let text = r#"
        [[thread]]
        name = "a"
        do = [{ io = "1ms" }, { compute = "1ms" }, { sleep = "1ms" }]
        "#;
    assert_eq!(
        written(&["io_wait"], text),
        ["io_wait 0=Int(0)", "io_wait 0=Int(1)", "io_wait 0=Int(0)"]
    );
}
