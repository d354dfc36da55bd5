//! Files to one scheduler: what is looked for, what is joined, in which order aspects run.

use attune_language::diagnostic::Diagnostic;
use attune_language::resolve::{Flat, Resolved, SourceText, resolve};
use attune_language::source::SourceMap;
use attune_language::syntax::ast::AstNode;

type Files<'a> = &'a [(&'a str, &'a str)];

fn read(files: Files<'_>, aspects: Files<'_>) -> (Option<Resolved>, Vec<Diagnostic>) {
    let text =
        |(name, text): &(&str, &str)| SourceText { name: name.to_string(), text: text.to_string() };
    let mut diagnostics = Vec::new();
    let aspects: Vec<SourceText> = aspects.iter().map(text).collect();
    let mut loader = files;
    let resolved =
        resolve(&text(&files[0]), &aspects, &mut loader, &mut SourceMap::new(), &mut diagnostics);
    (resolved, diagnostics)
}

fn flat(files: Files<'_>, aspects: Files<'_>) -> Flat {
    match read(files, aspects) {
        (Some(Resolved::Scheduler(flat)), diagnostics) if diagnostics.is_empty() => flat,
        other => panic!("no flat scheduler: {other:?}"),
    }
}

fn codes(files: Files<'_>, aspects: Files<'_>) -> Vec<&'static str> {
    read(files, aspects).1.iter().map(|diagnostic| diagnostic.code.name()).collect()
}

/// The bodies of an event's parts, in the order in which they run, with `|` around the handler's
/// own.
fn order(flat: &Flat, event: &str) -> String {
    let handler =
        flat.handlers.iter().find(|handler| handler.name == event).expect("the event has parts");
    let body = |body: Option<attune_language::syntax::ast::Compound>| {
        let text = body.expect("a part has a body").syntax().text().to_string();
        text.trim_matches(['{', '}', ' ', ';']).to_string()
    };
    let before: Vec<String> = handler.before.iter().map(|part| body(part.node.body())).collect();
    let own = handler.own.iter().map(|own| body(own.node.body())).collect::<String>();
    let after: Vec<String> = handler.after.iter().map(|part| body(part.node.body())).collect();
    format!("{} |{own}| {}", before.join(" "), after.join(" "))
}

#[test]
fn sections_join_from_the_base_on_and_derived_handlers_replace() {
    let files: Files = &[
        ("c.sched", "scheduler c extends b { data { int z; } event init { z = 3; } }"),
        ("b.sched", "scheduler b extends a { data { int y; } }"),
        (
            "a.sched",
            "partial scheduler a { data { int x; } event init { x = 1; } event schedule { x = 2; } \
                }",
        ),
    ];
    let flat = flat(files, &[]);
    assert_eq!((flat.name.as_str(), flat.partial), ("c", false));
    let names: Vec<String> = flat
        .data
        .iter()
        .flat_map(|declaration| {
            declaration.node.declarators().filter_map(|it| Some(it.name()?.text()))
        })
        .collect();
    assert_eq!(names, ["x", "y", "z"]);
    assert_eq!(order(&flat, "init"), " |z = 3| ");
    assert_eq!(order(&flat, "schedule"), " |x = 2| ");
}

#[test]
fn aspects_wrap_what_was_there_before_them() {
    let files: Files = &[
        (
            "b.sched",
            "scheduler b extends a { before init { b1; } before init { b2; } after init { b3; } }",
        ),
        (
            "a.sched",
            "partial scheduler a { event init { own; } before init { a1; } after init { a2; } \
                after init { a3; } }",
        ),
    ];
    let flat = flat(
        files,
        &[("x", "before init { x1; } after init { x2; }"), ("y", "before init { y1; }")],
    );
    assert_eq!(order(&flat, "init"), "y1 x1 b1 b2 a1 |own| a2 a3 b3 x2");
}

#[test]
fn a_derived_handler_keeps_the_aspects_of_its_base() {
    let files: Files = &[
        ("b.sched", "scheduler b extends a { event init { derived; } }"),
        (
            "a.sched",
            "partial scheduler a { event init { base; } after init { a2; } after schedule \
                { only; } }",
        ),
    ];
    let flat = flat(files, &[]);
    assert_eq!(order(&flat, "init"), " |derived| a2");
    assert_eq!(order(&flat, "schedule"), " || only");
}

#[test]
fn a_base_that_is_missing_or_leads_back_is_one_error() {
    assert_eq!(codes(&[("a.sched", "scheduler a extends nowhere { }")], &[]), ["E0201"]);
    let cycle: Files =
        &[("a.sched", "scheduler a extends b { }"), ("b.sched", "scheduler b extends a { }")];
    assert_eq!(codes(cycle, &[]), ["E0202"]);
    assert_eq!(codes(&[("a.sched", "scheduler a extends a { }")], &[]), ["E0202"]);
    let longer: Files = &[
        ("a.sched", "scheduler a extends b { }"),
        ("b.sched", "scheduler b extends c { }"),
        ("c.sched", "scheduler c extends b { }"),
    ];
    assert_eq!(codes(longer, &[]), ["E0202"]);
}

#[test]
fn an_error_in_a_base_is_reported_with_the_base() {
    let files: Files =
        &[("a.sched", "scheduler a extends b { }"), ("b.sched", "scheduler b { data { int x } }")];
    let (resolved, diagnostics) = read(files, &[]);
    assert!(resolved.is_some());
    assert!(!diagnostics.is_empty());
    assert!(
        diagnostics.iter().all(|diagnostic| diagnostic.primary.span.source.0 == 1),
        "{diagnostics:?}"
    );
}

#[test]
fn handlers_and_files_in_the_wrong_place() {
    assert_eq!(
        codes(&[("a.sched", "scheduler a { event init { } event init { } }")], &[]),
        ["E0204"]
    );
    assert_eq!(codes(&[("a.sched", "scheduler a { before is_new(t) { } }")], &[]), ["E0205"]);
    assert_eq!(codes(&[("a.sched", "before init { }")], &[]), ["E0206"]);
    assert_eq!(codes(&[("a.sched", "scheduler a { }")], &[("x", "scheduler x { }")]), ["E0207"]);
    assert_eq!(
        codes(&[("a.sched", "scheduler a { event init { } }")], &[("x", "event init { }")]),
        ["E0208"]
    );
    let aspects: Files =
        &[("a.sched", "scheduler a extends b { }"), ("b.sched", "before init { }")];
    assert_eq!(codes(aspects, &[]), ["E0203"]);
}

#[test]
fn a_master_brings_its_node_schedulers() {
    let master = r#"distributed scheduler m {
        nodefamilies { "web.subsched" : web; "gone.subsched" : gone; }
        nodes { queue idle; }
        arrival(n) { n => idle; }
    }"#;
    let files: Files = &[
        ("m.sched", master),
        ("web.subsched", "scheduler w extends a { }"),
        ("a.sched", "scheduler a { }"),
    ];
    let (resolved, diagnostics) = read(files, &[]);
    assert_eq!(diagnostics.iter().map(|it| it.code.name()).collect::<Vec<_>>(), ["E0201"]);
    let Some(Resolved::Distributed(distributed)) = resolved else {
        panic!("no distributed scheduler")
    };
    let families: Vec<(&str, bool)> = distributed
        .families
        .iter()
        .map(|family| (family.name.as_str(), family.scheduler.is_some()))
        .collect();
    assert_eq!(families, [("web", true), ("gone", false)]);
}
