//! Firmware with the engine in it, on every board: the same sources do the same.
//!
//! A test says which package is missing where the emulator or its compiler is; under CI=true it
//! fails then.

use std::path::Path;

use attune_backend_c::Policy;
use attune_backend_c::embedded::Files;
use attune_embedded::firmware::{Board, Firmware, Image, Outcome, available};
use attune_language::engine::Engine;
use attune_language::resolve::SourceText;
use attune_language::{Checked, Options, check};

const LIFE: &str = include_str!("firmware/life.c");
const FAILURES: &str = include_str!("firmware/failures.c");

fn files_of(checked: &Checked) -> Files {
    assert!(!checked.has_errors(), "{:?}", checked.diagnostics);
    let report = checked.engine(Engine::Embedded);
    assert_eq!(report.reason, None);
    let program = checked.program.as_ref().expect("a program");
    let policy = Policy { program, verdicts: &report.verdicts, sources: &checked.sources };
    attune_embedded::source(policy, false).expect("C")
}

/// A scheduler of the library.
fn library(name: &str) -> Files {
    let mut opened = attune_schedulers::open(Path::new(name), &[]).expect("a scheduler");
    files_of(&check(&opened.source, &mut opened.loader, &Options::default()))
}

fn written(text: &str) -> Files {
    let source = SourceText { name: "written.sched".into(), text: text.into() };
    let mut nothing: &[(&str, &str)] = &[];
    files_of(&check(&source, &mut nothing, &Options::default()))
}

fn boards() -> impl Iterator<Item = Board> {
    Board::ALL.into_iter().filter(|&board| match available(board) {
        Ok(()) => true,
        Err(missing) => {
            assert!(std::env::var("CI").as_deref() != Ok("true"), "{missing}");
            eprintln!("not run on {}: {missing}", board.name());
            false
        }
    })
}

fn built(
    folder: &Path,
    board: Board,
    attune: &Files,
    project: &[(&str, &str)],
    flags: &[&str],
) -> Image {
    Firmware { board, attune, project, flags }
        .build(folder)
        .unwrap_or_else(|error| panic!("{error}"))
}

fn run(board: Board, attune: &Files, project: &[(&str, &str)], flags: &[&str]) -> Outcome {
    let folder = tempfile::tempdir().expect("a folder");
    built(folder.path(), board, attune, project, flags).run(0).expect("it runs")
}

#[test]
fn threads_live_the_same_life_on_every_board() {
    for policy in ["fifo", "round_robin", "weather"] {
        let files = library(policy);
        for board in boards() {
            let outcome = run(board, &files, &[("life.c", LIFE)], &[]);
            let expected = include_str!("firmware/life.txt");
            assert_eq!(outcome.said, expected, "{policy} on {}", board.name());
            assert_eq!(outcome.status, Some(7), "{policy} on {}", board.name());
        }
    }
}

fn failure(board: Board, attune: &Files, case: u32) -> Outcome {
    let project = [
        ("failures.c", FAILURES),
        ("attune_config.h", "#define ATTUNE_PATIENCE 50\n#define ATTUNE_THREADS 3\n"),
    ];
    run(board, attune, &project, &[&format!("-DCASE={case}")])
}

#[test]
fn an_overrun_stack_is_told_at_the_next_switch() {
    let files = library("fifo");
    for board in boards() {
        let outcome = failure(board, &files, 1);
        assert_eq!(outcome.status, Some(3), "{}", outcome.said);
        let told = "fifo.sched:0:0: the thread has overrun its stack (thread 2)\n";
        assert!(outcome.said.ends_with(told), "{}", outcome.said);
        let outcome = failure(board, &files, 0);
        assert_eq!(outcome.said, "1\n1\nnothing is wrong\nnothing is wrong\n");
        assert_eq!(outcome.status, Some(0));
    }
}

/// A policy with that `schedule`.
fn policy(schedule: &str) -> Files {
    written(&format!(
        "scheduler written {{
    data {{ threadref current; queue RQ, WQ; }}
    event newthread(t) {{
        t => RQ;
    }}
    event schedule {{ {schedule} }}
    event switch_out {{ if (|current| > 0) current => RQ; }}
    event suspend_thread(t) {{ t => WQ; }}
    event resume_thread(t) {{ t => RQ; }}
}}
"
    ))
}

#[test]
fn a_policy_that_never_dispatches_is_told_with_the_line_of_the_last_transfer() {
    let files = policy("");
    for board in boards() {
        let outcome = failure(board, &files, 0);
        assert_eq!(
            outcome.said,
            "written.sched:4:1: the policy dispatches nothing while this thread is ready \
             (thread 1)\n",
            "{}",
            board.name()
        );
        assert_eq!(outcome.status, Some(3));
    }
}

#[test]
fn a_policy_that_dispatches_a_waiting_thread_is_told() {
    let files =
        policy("if (|WQ| > 0) WQ => RQ; if (|RQ| > 0) { RQ => current; dispatch current; }");
    for board in boards() {
        let outcome = failure(board, &files, 0);
        assert!(
            outcome.said.contains("the policy dispatched a thread that cannot run (thread "),
            "{}",
            outcome.said
        );
        assert_eq!(outcome.status, Some(3));
    }
}

#[test]
fn a_failed_check_is_told_with_its_place_and_sentence() {
    let files = policy("RQ => current; dispatch current;");
    for board in boards() {
        let outcome = failure(board, &files, 0);
        assert!(
            outcome.said.ends_with(
                "written.sched:6:22: cannot take a thread from RQ: it is empty (thread 0)\n"
            ),
            "{}",
            outcome.said
        );
    }
}

#[test]
fn imports_are_variables_of_the_firmware_or_the_engines_own() {
    let files = written(
        "scheduler written {
    imports { int level default 300; int own default 5; }
    threadimports { int rank default 9; }
    data { threadref current; pqueue RQ sortable on rank; queue WQ; tunable int bias = 1; }
    event newthread(t) { t => RQ; }
    event schedule {
        if (|RQ| > 0) { RQ => current; level = level + bias; own = own * 2; dispatch current; }
    }
    event switch_out { if (|current| > 0) current => RQ; }
    event suspend_thread(t) { t => WQ; }
    event resume_thread(t) { t => RQ; }
}
",
    );
    let main = "
#include \"board.h\"
#include \"attune.h\"
int8_t level = 125;
static unsigned char stacks[2][1024] __attribute__((aligned(8)));
static void thread(void *name) { board_print(name); board_print_number(\" \", level, \"\");
    board_print_number(\" \", attune_import_own, \"\\n\");
    attune_imports_of(attune_self())->rank -= 5;
    attune_yield(); board_print(name); board_print_number(\" \", level, \"\\n\"); }
int main(void) {
    struct attune_imports first = ATTUNE_IMPORTS;
    attune_init();
    board_start_ticks(25000);
    first.rank += 2;
    attune_create(thread, \"second\", stacks[0], sizeof stacks[0], NULL);
    attune_create(thread, \"first\", stacks[1], sizeof stacks[1], &first);
    attune_run();
    return 0;
}
";
    let config = "#include <stdint.h>\nextern int8_t level;\n#define ATTUNE_IMPORT_level level\n\
                  #define ATTUNE_TUNE_bias 2\n";
    for board in boards() {
        let outcome = run(board, &files, &[("main.c", main), ("attune_config.h", config)], &[]);
        // 8 bits hold 127 at most.
        assert_eq!(
            outcome.said,
            "first 127 10\nsecond 127 20\nfirst 127\nsecond 127\n",
            "{}",
            board.name()
        );
    }
}

#[test]
fn verbatim_text_calls_the_firmwares_functions() {
    let files = policy("{* led(1); *} if (|RQ| > 0) { RQ => current; dispatch current; }");
    let config = "void led(int on);\n#define ATTUNE_PATIENCE 50\n";
    let led = "#include \"board.h\"\nvoid led(int on);\n\
               void led(int on) { board_print(on ? \"*\" : \"\"); }\n";
    for board in boards() {
        let project = [("failures.c", FAILURES), ("attune_config.h", config), ("led.c", led)];
        let outcome = run(board, &files, &project, &["-DCASE=0"]);
        assert!(outcome.said.starts_with("*1\n*1\n"), "{}", outcome.said);
        assert_eq!(outcome.status, Some(0));
    }
}

#[test]
fn an_interrupt_wakes_a_thread_that_waits_for_its_semaphore() {
    // The board's own timer handler calls attune_tick; this one gives as well.
    let main = "
#include \"attune.h\"
#include \"board.h\"
static struct attune_semaphore pressed;
static unsigned char stack[1024] __attribute__((aligned(8)));
void board_interrupt(void);
void board_interrupt(void) { attune_give_from_interrupt(&pressed); }
static void thread(void *unused) { (void)unused;
    for (int i = 0; i < 3; i++) { attune_take(&pressed, ATTUNE_FOREVER);
        board_print_number(\"pressed \", i, \"\\n\"); } board_exit(0); }
int main(void) {
    attune_init(); attune_semaphore_init(&pressed, 0);
    attune_create(thread, NULL, stack, sizeof stack, NULL);
    board_start_ticks(25000);
    attune_run();
    return 1;
}
";
    let files = library("fifo");
    for board in boards() {
        let outcome = run(board, &files, &[("main.c", main)], &[]);
        assert_eq!(outcome.said, "pressed 0\npressed 1\npressed 2\n", "{}", board.name());
    }
}

#[test]
fn every_policy_of_the_library_compiles_for_the_board_with_the_size_that_was_told() {
    let complete = attune_schedulers::LIBRARY.iter().filter(|entry| !entry.is_partial());
    for entry in complete {
        let files = library(entry.name);
        assert!(files.sizes.thread >= 104, "{}: {:?}", entry.name, files.sizes);
        for board in boards().filter(|&board| board == Board::Mps2An385) {
            let folder = tempfile::tempdir().expect("a folder");
            // The static assertion in attune.c compares the size.
            let image = built(folder.path(), board, &files, &[("life.c", LIFE)], &[]);
            let footprint = image.footprint().expect("its size");
            assert!(footprint.flash < 20_000, "{}: {footprint:?}", entry.name);
        }
    }
}

#[test]
fn a_run_on_the_emulator_repeats_to_the_byte() {
    let files = library("weather");
    let counter = LIFE.replace("return 7;", "return (int)board_counter() & 127;");
    for board in boards() {
        let project = [("life.c", counter.as_str())];
        let runs: Vec<Outcome> = (0..2).map(|_| run(board, &files, &project, &[])).collect();
        assert_eq!(runs[0], runs[1]);
    }
}
