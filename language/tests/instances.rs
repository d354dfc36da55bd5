//! Threads that go over from one instance of a scheduler to another: `leaves` and `arrives`.

use attune_language::diagnostic::render;
use attune_language::engine::Engine;
use attune_language::engine::event::Event;
use attune_language::engine::protocol::{Class, Fate, Protocol, Subject};
use attune_language::resolve::SourceText;
use attune_language::{Checked, Options, check};

fn checked(handlers: &str) -> Checked {
    let text = format!(
        "scheduler s {{
            thread {{ int blocked = 0; int suspended = 0; }}
            data {{ threadref current; queue RQ, WQ, SQ; int moved; }}
            event newthread(t) {{ t => RQ; }}
            event set_waiting(fixed t) {{ t.blocked = 1; }}
            event schedule {{ if (|RQ| > 0) {{ RQ => current; dispatch current; }} }}
            event switch_out {{
                if (|current| > 0) {{ if (current.blocked) current => WQ; else current => RQ; }}
            }}
            event event_raised(t) {{ t.blocked = 0; if (!t.suspended) t => RQ; }}
            event suspend_thread(t) {{ t.suspended = 1; t => SQ; }}
            event resume_thread(t) {{
                t.suspended = 0;
                if (t.blocked) t => WQ; else t => RQ;
            }}
            query threads_total {{ return moved; }}
            {handlers}
        }}"
    );
    let source = SourceText { name: "s.sched".to_string(), text };
    check(&source, &mut [].as_slice(), &Options::default())
}

fn drawn(checked: &Checked) -> String {
    checked.diagnostics.iter().map(|it| render(it, &checked.sources)).collect()
}

const ENGINES: [Engine; 3] = [Engine::Simulator, Engine::Threads, Engine::Kernel];

/// The policy's own checks by engine: proved, checked, others.
fn proofs(checked: &Checked) -> [(usize, usize, usize); 3] {
    ENGINES.map(|engine| {
        let report = checked.engine(engine);
        (report.transfers.proved, report.transfers.checked, report.other_checks)
    })
}

const ARRIVES: &str = "event arrives(t) {
    if (t.suspended) t => SQ; else if (t.blocked) t => WQ; else t => RQ;
}";

#[test]
fn threads_that_come_and_go_cost_no_proof() {
    let alone = checked("");
    assert_eq!(drawn(&alone), "");
    for handlers in [
        ARRIVES.to_string(),
        format!("{ARRIVES} event leaves(t) {{ moved++; }}"),
        format!("{ARRIVES} event leaves(t) {{ moved++; t => SQ; }}"),
    ] {
        let several = checked(&handlers);
        assert_eq!(drawn(&several), "", "{handlers}");
        assert_eq!(proofs(&several), proofs(&alone), "{handlers}");
    }
}

#[test]
fn a_thread_that_arrives_is_stored_like_a_new_one() {
    let nowhere = checked("event arrives(t) { moved++; }");
    assert!(drawn(&nowhere).contains("the thread that arrives is put into no container"));
    let ready_only = checked("event arrives(t) { if (!t.suspended && !t.blocked) t => RQ; }");
    assert!(!ready_only.has_errors(), "{}", drawn(&ready_only));
    for engine in ENGINES {
        assert_eq!(ready_only.engine(engine).other_checks, 1, "{engine}");
    }
}

/// What `leaves` does to a thread is what `arrives` finds: here, that none is marked as suspended.
#[test]
fn attributes_go_along() {
    let handlers = |leaves: &str| {
        checked(&format!(
            "event leaves(t) {{ moved++; {leaves} }}
             event arrives(t) {{ if (!t.suspended) t => RQ; }}"
        ))
    };
    let kept = handlers("");
    let reset = handlers("t.suspended = 0;");
    for engine in ENGINES {
        assert_eq!(kept.engine(engine).other_checks, 1, "{engine}");
        assert_eq!(reset.engine(engine).other_checks, 0, "{engine}");
    }
}

/// A container that a thread has left is not full any more.
#[test]
fn a_thread_that_leaves_takes_its_place_along() {
    let asked = |handlers: &str| {
        let checked = checked(&format!(
            "data {{ threadref next; int chosen; }}
             event set_next_thread(t) {{ if (|next| > 0) next => RQ; t => next; chosen = 1; }}
             before schedule {{ if (chosen) {{ chosen = 0; next => RQ; }} }} {handlers}"
        ));
        assert!(!checked.has_errors(), "{}", drawn(&checked));
        checked.engine(Engine::Threads).transfers.checked
    };
    assert!(asked(ARRIVES) >= asked(""), "what may leave is proved no more than what stays");
}

/// The kernel engine takes a ready thread that waits too long from any policy that can have it
/// back; others take threads only from policies that say themselves how one arrives.
#[test]
fn the_kernel_engine_takes_ready_threads_for_a_while() {
    let base = "partial scheduler lifecycle {
        data { threadref current; queue RQ; }
        event newthread(t) { t => RQ; }
        event switch_out { if (|current| > 0) current => RQ; }
        event arrives(t) { t => RQ; }
    }";
    let source = SourceText {
        name: "s.sched".to_string(),
        text: "scheduler s extends lifecycle {
            event schedule { if (|RQ| > 0) { RQ => current; dispatch current; } }
        }"
        .to_string(),
    };
    let checked = check(&source, &mut [("lifecycle.sched", base)].as_slice(), &Options::default());
    let program = checked.program.as_ref().expect("it has no errors");
    assert!(!program.may_be_split);
    let classes = |engine, event| {
        let calls = Protocol::of(engine, program).occasions.into_iter().flat_map(|it| it.calls);
        let subjects = calls.filter(move |call| call.event == event).map(|call| call.subject);
        subjects
            .flat_map(|subject| match subject {
                Subject::Other(pairs) | Subject::Arriving(pairs) => pairs.to_vec(),
                _ => Vec::new(),
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(classes(Engine::Kernel, Event::Leaves), [(Class::Ready, Fate::GoesOver)]);
    assert_eq!(
        classes(Engine::Kernel, Event::Arrives),
        [(Class::Ready, Fate::Becomes(Class::Ready))]
    );
    for event in [Event::Leaves, Event::Arrives] {
        assert_eq!(classes(Engine::Simulator, event), []);
    }
}
