//! Source text in, verdict out: what somebody who writes a first scheduler must be told.

use attune_language::diagnostic::render;
use attune_language::engine::Engine;
use attune_language::resolve::SourceText;
use attune_language::{Checked, Options, check};

fn checked(files: &[(&str, &str)]) -> Checked {
    let source = SourceText { name: files[0].0.to_string(), text: files[0].1.to_string() };
    let mut loader = files;
    check(&source, &mut loader, &Options::default())
}

fn drawn(checked: &Checked) -> String {
    checked.diagnostics.iter().map(|it| render(it, &checked.sources)).collect()
}

fn codes(checked: &Checked) -> Vec<&'static str> {
    checked.diagnostics.iter().map(|it| it.code.name()).collect()
}

/// A complete scheduler with these sections and handlers added.
fn complete(more: &str) -> Checked {
    let text = format!(
        "scheduler s {{
            thread {{ int blocked = 0; }}
            data {{ threadref current; queue RQ, WQ; }}
            event set_waiting(fixed t) {{ t.blocked = 1; }}
            event schedule {{ if (|RQ| > 0) {{ RQ => current; dispatch current; }} }}
            event switch_out {{ if (current.blocked) current => WQ; else current => RQ; }}
            event event_raised(t) {{ t.blocked = 0; t => RQ; }}
            {more}
        }}"
    );
    checked(&[("s.sched", &text)])
}

#[test]
fn an_index_by_a_thread_variable_is_guarded_by_a_condition_on_it() {
    let levels = |guard: &str| {
        let checked = complete(&format!(
            "threadimports {{ int level default 0; }} thread {{ int own = 0; }}
             data {{ const int N = 4; queue LQ[N]; }}
             event newthread(t) {{ {guard} else t => RQ; }}
             event init {{ if (|LQ[0]| > 0) LQ[0] => RQ; }}"
        ));
        assert!(!checked.has_errors(), "{}", drawn(&checked));
        [Engine::Simulator, Engine::Threads, Engine::Kernel]
            .map(|engine| checked.engine(engine).other_checks)
    };
    assert_eq!(levels("if (t.level >= 0 && t.level < N) t => LQ[t.level];"), [0; 3]);
    assert_eq!(levels("if (t.own >= 1 && t.own <= N) t => LQ[t.own - 1];"), [0; 3]);
    assert_eq!(
        levels("if (t.level < 0 || t.level >= N) t => WQ; else if (1) t => LQ[t.level];"),
        [0; 3]
    );
    // Half a guard is none, and what is assigned in between is another value.
    assert_eq!(levels("if (t.level < N) t => LQ[t.level];"), [1; 3]);
    assert_eq!(
        levels("if (t.own >= 0 && t.own < N) { t.own = t.own + 1; t => LQ[t.own]; }"),
        [1; 3]
    );
    assert_eq!(
        levels("if (t.own >= 0 && t.own < N) { foreach o in RQ o.own = 9; t => LQ[t.own]; }"),
        [0; 3],
        "a new thread is in no container, so no other name means it"
    );
    assert_eq!(
        levels("if (t.level >= 0 && t.level < N) { t.level = t.level; t => LQ[t.level]; }"),
        [1; 3],
        "the application may keep another value than the one that is written"
    );
}

/// Whatever names a thread in the container makes it leave, but for what may befall a thread
/// anywhere.
#[test]
fn a_container_that_threads_enter_for_ever_draws_a_warning_in_every_shape() {
    let lost = |more: &str| {
        let checked = complete(&format!("data {{ queue lost; }} {more}"));
        codes(&checked)
    };
    for more in [
        "event newthread(t) { if (|RQ| > 9) t => lost; else t => RQ; }",
        "event newthread(t) { if (|RQ| > 9) t => lost; else t => RQ; }
         event set_dead(fixed t) { t.blocked = 0; }",
        "event newthread(t) { t => RQ; } event suspend_thread(t) { t => lost; }",
        "event newthread(t) { t => RQ; } event suspend_thread(t) { t => lost; }
         event set_dead(fixed t) { t.blocked = 0; }",
        "event newthread(t) { if (|RQ| > 9) t => lost; else t => RQ; }
         event suspend_thread(t) { t => WQ; } event resume_thread(t) { t => RQ; }",
        "event newthread(t) { if (|RQ| > 9) t => lost; else t => RQ; }
         event set_next_thread(t) { t => RQ; }",
    ] {
        assert_eq!(lost(more), ["W0610"], "{more}");
    }
    for more in [
        "event newthread(t) { if (|RQ| > 9) t => lost; else t => RQ; }
         before schedule { if (|lost| > 0) lost => RQ; } ",
        "event newthread(t) { if (|RQ| > 9) t => lost; else t => RQ; }
         before schedule { foreach t in lost t => RQ; } ",
        "event newthread(t) { t => RQ; } event suspend_thread(t) { t => lost; }
         event resume_thread(t) { t => RQ; }",
    ] {
        assert_eq!(lost(more), [""; 0], "{more}");
    }
}

#[test]
fn a_base_that_is_not_there_is_one_error_with_a_suggestion() {
    let checked = checked(&[
        (
            "s.sched",
            "scheduler s extends lifecyle {
                data { queue urgent; }
                event alarm(t) { if (t.waiting == 0 && !t.suspended) t => urgent; }
                event schedule {
                    foreach t in ready t => urgent;
                    if (|urgent| > 0) { urgent => current; dispatch current; }
                }
                before switch_out { current.waiting = 0; }
            }",
        ),
        ("lifecycle.sched", "partial scheduler lifecycle { }"),
    ]);
    assert_eq!(codes(&checked), ["E0201"], "{}", drawn(&checked));
    assert!(drawn(&checked).contains("did you mean `lifecycle`?"), "{}", drawn(&checked));
}

#[test]
fn aspects_around_a_missing_handler_meet_no_requirement() {
    let text = "scheduler s {
        data { threadref current; queue RQ; int n; }
        event newthread(t) { t => RQ; }
        event schedule { if (|RQ| > 0) { RQ => current; dispatch current; } }
        event switch_out { if (|current| > 0) current => RQ; }
        before event_raised(t) { n++; }
        MORE
    }";
    let missing = |more: &str| {
        let checked = checked(&[("s.sched", &text.replace("MORE", more))]);
        assert_eq!(codes(&checked), ["W0501"], "{}", drawn(&checked));
        let report = checked.engine(Engine::Threads);
        assert_eq!(report.accepted, report.missing.is_empty());
        report.missing.clone()
    };
    assert_eq!(missing(""), ["event_raised or resume_thread"]);
    // The engine calls the aspect at a wake-up, so `resume_thread` would never hear of one.
    assert_eq!(missing("event resume_thread(t) { t => RQ; }"), ["event_raised or resume_thread"]);
}
