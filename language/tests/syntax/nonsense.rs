//! Any text at all becomes a tree of the same text, not higher than promised, with messages that
//! point into it.

use attune_language::diagnostic::{codes::syntax as codes, render};
use attune_language::resolve::SourceText;
use attune_language::syntax::{MAX_DIAGNOSTICS, MAX_HEIGHT};
use attune_language::{Options, check as check_scheduler};
use proptest::prelude::*;

use super::{codes_of, parse};

/// Tokens of the grammar, and some that only look like it.
const TOKENS: &[&str] = &[
    "scheduler",
    "partial",
    "distributed",
    "extends",
    "thread",
    "threadimports",
    "data",
    "imports",
    "invariant",
    "event",
    "query",
    "before",
    "after",
    "fixed",
    "default",
    "const",
    "int",
    "float",
    "time",
    "threadref",
    "queue",
    "stack",
    "pqueue",
    "pstack",
    "reverse",
    "increasing",
    "decreasing",
    "sortable",
    "on",
    "if",
    "else",
    "while",
    "do",
    "for",
    "foreach",
    "in",
    "continue",
    "break",
    "return",
    "dispatch",
    "destroy",
    "true",
    "false",
    "tunable",
    "percpu",
    "alarm",
    "at",
    "preempt",
    "is",
    "nodefamilies",
    "nodes",
    "node",
    "global",
    "arrival",
    "departure",
    "GLOBAL",
    "x",
    "RQ",
    "current",
    "shedule",
    "evnt",
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    ";",
    ",",
    ":",
    ".",
    "|",
    "||",
    "*",
    "/",
    "%",
    "+",
    "-",
    "++",
    "--",
    "!",
    "=",
    "+=",
    "==",
    "!=",
    "<",
    ">",
    "<=",
    "=>",
    "&&",
    "&",
    "(*",
    "*)",
    "{*",
    "*}",
    "/*",
    "*/",
    "//",
    "\n",
    "\"",
    "\"a\"",
    "0",
    "12",
    "1.5",
    "20ms",
    "3sec",
    "99999999999999999999",
    "@",
    "é",
    " ",
];

/// What holds of the tree of any text.
fn check(text: &str) {
    let (sources, parse) = parse(text);
    assert_eq!(parse.syntax().text().to_string(), text);
    assert!(parse.height() <= MAX_HEIGHT);
    assert!(parse.diagnostics.len() <= MAX_DIAGNOSTICS + 1);
    for diagnostic in &parse.diagnostics {
        assert!(diagnostic.primary.span.end as usize <= text.len());
        render(diagnostic, &sources);
    }
}

proptest! {
    #[test]
    fn any_text_parses(text in "\\PC*") {
        check(&text);
    }

    #[test]
    fn any_characters_inside_a_handler_parse(
        text in "[-a-c0-9 \\n(){}\\[\\]|*/+=<>&.,;:\"é]{0,80}",
    ) {
        check(&format!("scheduler s {{ event init {{ {text} }} }}"));
    }

    #[test]
    fn any_tokens_parse(
        tokens in prop::collection::vec(prop::sample::select(TOKENS), 0..120),
        spaces in any::<bool>(),
    ) {
        check(&tokens.join(if spaces { " " } else { "" }));
    }

    #[test]
    fn any_tokens_inside_a_handler_parse(
        tokens in prop::collection::vec(prop::sample::select(TOKENS), 0..60),
    ) {
        check(&format!("scheduler s {{ data {{ queue RQ; }} event init {{ {} }} \
            }}", tokens.join(" ")));
    }

    /// A scheduler with a token lost still gives a tree, and what stands before the loss is read as
    /// before.
    #[test]
    fn a_scheduler_with_a_piece_lost_parses(from in 0usize..900, length in 1usize..40) {
        let mut text = include_str!("accepted/web_proxy.sched").to_string();
        let from = text.floor_char_boundary(from.min(text.len()));
        let to = text.floor_char_boundary((from + length).min(text.len()));
        text.replace_range(from..to, "");
        check(&text);
    }
}

#[test]
fn deep_and_long_texts_end() {
    const MANY: usize = 20_000;
    let inside = |text: String| {
        format!("scheduler s {{ event init {{ {text} }} event schedule {{ x = 1 }} }}")
    };
    let deep: &[(&str, &str)] = &[
        ("(", ")"),
        ("x[", "]"),
        ("{", "}"),
        ("- ", ""),
        ("!", ""),
        ("f(", ")"),
        ("if (x) ", ";"),
        ("do ", ""),
        ("while (x) ", ";"),
        ("for (;;) ", ";"),
        ("foreach t in RQ ", ";"),
        ("if (x) ; else ", ";"),
        ("x = ", "1"),
        ("x + ", "1"),
        ("x || ", "1"),
        ("x.", "y"),
        ("x", ".y"),
        ("(x + ", ")"),
        ("*RQ[", "]"),
        ("|RQ[", "]|"),
    ];
    for (open, close) in deep {
        let text = inside(format!("{} {};", open.repeat(MANY), close.repeat(MANY)));
        check(&text);
        let codes = codes_of(&text);
        assert!(codes.contains(&codes::TOO_DEEP), "{open}: {codes:?}");
        assert!(
            codes.contains(&codes::MISSING_SEMICOLON),
            "{open}: what follows is read again: {codes:?}"
        );
    }
}

#[test]
fn long_nonsense_ends() {
    let repeated = |piece: &str| piece.repeat((100 << 10) / piece.len());
    for piece in [
        "@",
        "@ ",
        "(*",
        "{*",
        "/*",
        "\"",
        "}",
        "{",
        ")",
        "a b ",
        "event ",
        "evnt x ",
        "1",
        "x\n",
        "||",
        "| ",
        "data {",
        "thread }",
        "int ",
        "=> ",
        "else ",
        "scheduler s { ",
        "distributed scheduler s { nodes ",
    ] {
        check(&repeated(piece));
        check(&format!("scheduler s {{ event init {{ {}", repeated(piece)));
    }
}

#[test]
fn too_many_problems_are_counted_not_shown() {
    let codes = codes_of(&"scheduler s { @ @ } ".repeat(200));
    assert!(codes.len() <= MAX_DIAGNOSTICS + 1);
    let statements = "x = ;\n".repeat(500);
    let codes = codes_of(&format!("scheduler s {{ event init {{ {statements} }} }}"));
    assert_eq!(codes.len(), MAX_DIAGNOSTICS + 1);
    assert_eq!(codes.last(), Some(&codes::TOO_MANY_ERRORS));
}

#[test]
fn a_file_of_many_megabytes_is_refused_at_once() {
    let text = " ".repeat((16 << 20) + 1);
    check(&text);
    assert_eq!(codes_of(&text), [codes::FILE_TOO_LONG]);
}

/// As deep as the parser allows, the passes behind it must go too.
#[test]
fn the_deepest_texts_pass_the_whole_check() {
    let deep: &[(&str, &str, &str)] = &[
        ("x = ", "(", ")"),
        ("x = ", "- ", ""),
        ("x = 1", " + x", ""),
        ("x = 1", " || x", ""),
        ("", "x = ", ""),
        ("x = ", "a[", "]"),
        ("x = ", "random(", ")"),
        ("", "if (x) ", ""),
        ("", "{ x; ", "}"),
        ("", "while (x) ", ""),
        ("", "foreach t in RQ ", ""),
        ("", "if (x) x = 2; else ", ""),
    ];
    for (before, open, close) in deep {
        let body = |levels: usize| {
            let core = if open.starts_with([' ', '{']) { "" } else { "x" };
            format!("{before}{}{core}{};", open.repeat(levels), close.repeat(levels))
        };
        let scheduler = |levels: usize| {
            format!(
                "partial scheduler s {{ data {{ int x; int a[3]; queue RQ; }} event init {{ {} }} \
                    }}",
                body(levels)
            )
        };
        let fits = |levels: &usize| codes_of(&scheduler(*levels)).is_empty();
        let deepest = (1..=MAX_HEIGHT as usize).rev().find(fits).unwrap();
        assert!(deepest >= 100, "{open}: {deepest}");
        let text = scheduler(deepest);
        let main = SourceText { name: "deep.sched".to_string(), text };
        let no_files: &[(&str, &str)] = &[];
        let checked = check_scheduler(&main, &mut { no_files }, &Options::default());
        assert_eq!(checked.scheduler_name.as_deref(), Some("s"), "{open}");
    }
}
