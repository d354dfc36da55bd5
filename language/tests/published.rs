//! Schedulers of the kind for which static proof was published (24 of 32 checks of a web proxy's,
//! 19 of 26 of a database's, by looking at one handler at a time), written plainly: how much of
//! them is proved, and that the proofs rest on the guards that are there.

use attune_language::engine::Engine;
use attune_language::ir::Verdict;
use attune_language::resolve::SourceText;
use attune_language::{Checked, Options, Transfers, check};

const WEB_PROXY: &str = include_str!("published/web_proxy.sched");
const DATABASE: &str = include_str!("published/database.sched");

fn checked(text: &str) -> Checked {
    let source = SourceText { name: "published.sched".to_string(), text: text.to_string() };
    let mut loader: &[(&str, &str)] = &[];
    check(&source, &mut loader, &Options::default())
}

fn transfers(text: &str) -> Transfers {
    let checked = checked(text);
    assert!(!checked.has_errors(), "{:?}", checked.diagnostics);
    checked.engine(Engine::Threads).transfers
}

/// How many checks of any kind run time has to perform. More than any number where the analysis
/// shows that one always fails, so that there is no program.
fn left_to_run_time(text: &str) -> usize {
    let checked = checked(text);
    let Some(program) = &checked.program else { return usize::MAX };
    let verdicts = &checked.engine(Engine::Threads).verdicts;
    program.checks.iter().filter(|(check, _)| verdicts.of(*check) == Verdict::Checked).count()
}

#[test]
fn nine_checks_of_ten_are_proved() {
    for text in [WEB_PROXY, DATABASE] {
        let found = transfers(text);
        let worth_proving = found.total - found.trivial;
        assert!(worth_proving >= 25, "{found:?}");
        assert!(found.proved * 10 >= worth_proving * 9, "{found:?}");
    }
}

#[test]
fn each_unproved_check_says_why() {
    for text in [WEB_PROXY, DATABASE] {
        let checked = checked(text);
        for engine in [Engine::Threads, Engine::Simulator] {
            let report = checked.engine(engine);
            assert_eq!(
                report.doubts.len(),
                report.transfers.checked + report.other_checks,
                "{engine}"
            );
            assert!(
                report.doubts.iter().all(|(_, why)| why.text.len() > 20),
                "{:?}",
                report.doubts
            );
        }
    }
}

#[test]
fn without_a_guard_less_is_proved() {
    let guards = [
        (
            WEB_PROXY,
            "while (|NQ| > 0) {",
            "do {",
            Some((
                "tmp => CONNECTQ;\n            }\n        }",
                "tmp => CONNECTQ;\n            }\n        } while (|NQ| > 0);",
            )),
        ),
        (WEB_PROXY, "if (|next| > 0) {", "if (served > 0) {", None),
        (WEB_PROXY, "|acceptor| > 0 && idlehandlers", "idlehandlers", None),
        (WEB_PROXY, "} else if (|CONNECTQ| > 0) {", "} else {", None),
        (WEB_PROXY, "if (|current| == 0)\n            return;\n        if (1 ==", "if (1 ==", None),
        (
            WEB_PROXY,
            "if (|current| == 0)\n            return;\n        if (current.state",
            "if (current.state",
            None,
        ),
        (DATABASE, "if (|checkpoint| > 0 && (", "if ((", None),
        (DATABASE, "if (passed > 16 && |LOCKERS| > 0)", "if (passed > 16)", None),
        (DATABASE, "else if (|RQ| > 0)", "else if (passed == 0)", None),
        (
            DATABASE,
            "if (|current| == 0)             // it suspended itself\n            return;",
            "",
            None,
        ),
        (DATABASE, "t.checkpointer && |checkpoint| == 0", "t.checkpointer", None),
    ];
    for (text, guard, without, rest) in guards {
        assert_eq!(text.matches(guard).count(), 1, "{guard}");
        let mut weaker = text.replace(guard, without);
        if let Some((from, to)) = rest {
            assert_eq!(weaker.matches(from).count(), 1, "{from}");
            weaker = weaker.replace(from, to);
        }
        assert!(left_to_run_time(&weaker) > left_to_run_time(text), "{guard}");
    }
}
