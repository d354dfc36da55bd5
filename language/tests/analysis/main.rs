//! Source text in, verdicts out: what the analyses say of schedulers, engine by engine.
//!
//! Each file in `cases/` and `../published/` has a snapshot: the findings as a person reads them,
//! the number of transfer checks by verdict, and every check that is not proved on every engine
//! that runs it, with the reason.

use std::fmt::Write;
use std::path::Path;

use attune_language::diagnostic::render;
use attune_language::engine::Engine;
use attune_language::ir::{CheckKind, Verdict};
use attune_language::resolve::SourceText;
use attune_language::{Checked, Options, check};

fn check_file(path: &Path) -> Checked {
    let text = std::fs::read_to_string(path).expect("a readable file");
    let name = path.file_name().expect("a file name").to_string_lossy().into_owned();
    check(&SourceText { name, text }, &mut [].as_slice(), &Options::default())
}

/// One letter a verdict: what the line of a check shows for each engine.
fn letter(verdict: Verdict) -> char {
    match verdict {
        Verdict::Proved => 'p',
        Verdict::Checked => 'c',
        Verdict::Refuted => 'R',
        Verdict::Uncalled => '-',
    }
}

fn report(checked: &Checked) -> String {
    let mut out = String::new();
    for diagnostic in &checked.diagnostics {
        out += &render(diagnostic, &checked.sources);
    }
    for report in &checked.engines {
        let t = report.transfers;
        let name = report.engine.name();
        writeln!(
            out,
            "{name:9} {:2} of {:2} proved, {} checked, {} refuted, {} trivial",
            t.proved,
            t.total - t.trivial,
            t.checked,
            t.refuted,
            t.trivial
        )
        .expect("a string");
    }
    let Some(program) = &checked.program else { return out };
    writeln!(out, "\nnot proved everywhere (simulator, threads, embedded, kernel):")
        .expect("a string");
    let mut checks: Vec<_> = program.checks.iter().collect();
    checks.sort_by_key(|(_, check)| (check.span.source, check.span.start));
    for (id, check) in checks {
        let letters: String =
            checked.engines.iter().map(|report| letter(report.verdicts.of(id))).collect();
        if !letters.contains(['c', 'R']) || check.kind == CheckKind::LoopBound {
            continue;
        }
        let place = checked.sources.location(check.span);
        writeln!(out, "{:3}:{:<3} {letters} {:?}", place.line, place.column, check.kind)
            .expect("a string");
        for report in &checked.engines {
            let doubt = report.doubts.iter().find(|(doubted, _)| *doubted == id);
            if let (Some((_, doubt)), Engine::Simulator | Engine::Threads) = (doubt, report.engine)
            {
                writeln!(out, "        {}: {}", report.engine, doubt.text).expect("a string");
            }
        }
    }
    out
}

/// A snapshot for each scheduler in a folder of `tests/`.
fn snapshots(folder: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(folder);
    let mut paths: Vec<_> = std::fs::read_dir(folder)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "sched"))
        .collect();
    paths.sort();
    assert!(!paths.is_empty());
    for path in paths {
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        insta::assert_snapshot!(name, report(&check_file(&path)));
    }
}

#[test]
fn verdicts() {
    snapshots("analysis/cases");
}

#[test]
fn published_schedulers() {
    snapshots("published");
}

/// Nothing is proved by habit: with one guard taken away, exactly what it guarded is left to run
/// time.
#[test]
fn a_deleted_guard_turns_proved_into_checked() {
    let text = "
scheduler guarded {
    thread { int blocked = 0; }
    data { threadref current; threadref next; queue RQ; queue WQ; pqueue late sortable on blocked; }
    event newthread(t) { if (|RQ| > 9) t => late; else t => RQ; }
    event set_waiting(fixed t) { t.blocked = 1; }
    event event_raised(t) { t.blocked = 0; t => RQ; }
    event schedule {
        if (|RQ| > 0) RQ => current;
        else if (|next| > 0) next => current;
        if (|current| == 0 && |late| > 5) late => current;
        if (|late| > 0) late => RQ;
        if (|current| > 0) dispatch current;
    }
    event switch_out {
        if (current.blocked) current => WQ; else current => late;
    }
    event set_next_thread(t) { if (|next| > 0) next => RQ; t => next; }
}
";
    let proved = |text: &str| {
        let checked = check(
            &SourceText { name: "guarded.sched".into(), text: text.into() },
            &mut [].as_slice(),
            &Options::default(),
        );
        let report = checked.engine(Engine::Threads);
        assert!(report.accepted, "{}", self::report(&checked));
        (report.transfers.proved, report.transfers.checked)
    };
    let (all, unproved) = proved(text);
    assert_eq!(unproved, 0, "{text}");
    // With each guard the number of checks that depend on it.
    for (guard, without, lost) in [
        ("if (|next| > 0) next => current;", "next => current;", 1),
        ("if (|current| == 0 && |late| > 5)", "if (|current| == 0)", 1),
        ("if (|current| == 0 && |late| > 5)", "if (|late| > 5)", 1),
        ("if (|late| > 0)", "", 1),
        ("if (|current| > 0) dispatch", "dispatch", 1),
    ] {
        assert!(text.contains(guard), "{guard}");
        assert_eq!(proved(&text.replace(guard, without)), (all - lost, lost), "without {guard}");
    }
}

/// A program's threads may be stopped at any safe point, firmware's may not: `spent` can be full
/// only where a slice ends.
#[test]
fn what_is_proved_for_threads_holds_when_a_slice_ends() {
    let text = "
scheduler spends {
    data { threadref current; threadref spent; queue RQ; queue WQ; }
    event newthread(t) { t => RQ; }
    event event_raised(t) { t => RQ; }
    event schedule {
        if (|RQ| > 0) RQ => current;
        else if (|spent| > 0) spent => current;
        if (|current| > 0) dispatch current for 1ms;
    }
    event quantum_expired(t) { t => spent; }
    event switch_out { if (|current| > 0) current => WQ; }
}
";
    let source = SourceText { name: "spends.sched".into(), text: text.into() };
    let checked = check(&source, &mut [].as_slice(), &Options::default());
    let left = |engine| checked.engine(engine).transfers.checked;
    assert_eq!((left(Engine::Threads), left(Engine::Embedded)), (1, 0), "{}", report(&checked));
}

/// However long a policy is, it keeps its proofs: 1600 queues, each with two transfers of its own.
#[test]
fn a_long_policy_keeps_its_proofs() {
    const QUEUES: u32 = 1600;
    let names: Vec<String> = (0..QUEUES).map(|number| format!("q{number}")).collect();
    let moves: String = names
        .iter()
        .map(|name| format!("if (|RQ| > 0) RQ => {name};\n if (|{name}| > 0) {name} => RQ;\n"))
        .collect();
    let text = format!(
        "scheduler long {{
            data {{ threadref current; queue RQ, {}; }}
            event newthread(t) {{ t => RQ; }}
            event event_raised(t) {{ t => RQ; }}
            event schedule {{
                {moves}
                if (|current| == 0 && |RQ| > 0) RQ => current;
                if (|current| > 0) dispatch current for 5ms;
            }}
            event switch_out {{ if (|current| > 0) current => RQ; }}
        }}",
        names.join(", ")
    );
    let source = SourceText { name: "long.sched".into(), text };
    let checked = check(&source, &mut [].as_slice(), &Options::default());
    for engine in [Engine::Simulator, Engine::Threads, Engine::Kernel] {
        let transfers = checked.engine(engine).transfers;
        assert!(transfers.proved >= 2 * QUEUES as usize, "{engine}: {transfers:?}");
        assert_eq!(transfers.checked, 0, "{engine}");
    }
}
