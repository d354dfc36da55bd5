//! Whatever the text, checking ends and says something.

use proptest::prelude::*;

use super::check_text;

const WORDS: &[&str] = &[
    "scheduler",
    "partial",
    "thread",
    "threadimports",
    "data",
    "imports",
    "invariant",
    "event",
    "query",
    "before",
    "after",
    "default",
    "const",
    "int",
    "float",
    "time",
    "threadref",
    "queue",
    "pqueue",
    "sortable",
    "on",
    "reverse",
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
    "alarm",
    "at",
    "preempt",
    "tunable",
    "percpu",
    "is",
    "GLOBAL",
    "fixed",
    "init",
    "newthread",
    "schedule",
    "switch_out",
    "threads_ready",
    "first_waiting",
    "t",
    "RQ",
    "current",
    "n",
    "p",
    "now",
    "cpu",
    "cpus",
    "random",
    "{",
    "}",
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    ";",
    ";",
    ";",
    ",",
    "=",
    "+=",
    "/=",
    "==",
    "!=",
    "<",
    ">",
    "||",
    "&&",
    "|",
    "*",
    "/",
    "%",
    "+",
    "-",
    "++",
    "--",
    "!",
    "=>",
    ".",
    "0",
    "1",
    "7",
    "2.5",
    "20ms",
    "true",
    "(* x *)",
    "{* y; *}",
    "9223372036854775807",
    "distributed",
    "nodefamilies",
    "nodes",
    "node",
    "global",
    "arrival",
    "departure",
];

const VALID: &str = "
scheduler s {
    thread { int p = 1; float w; time due; }
    threadimports { int remaining default 0; }
    imports { int wanted default 4; }
    data {
        const int N = 4;
        tunable time quantum = 3ms;
        percpu int load = cpus;
        int n, a[N];
        threadref current;
        queue RQ, level[N];
        pqueue P reverse sortable on p;
    }
    event init { n = a[n++] + (n = 3) / n; a[n] += random(n); if (n || n--) n = wanted = 2; }
    event newthread(t) { threadref tmp; t => tmp; tmp => level[n % N]; t.p = *P.p + t.remaining; }
    event schedule {
        foreach x in RQ { if (x != t2) alarm x at now + quantum; x => P; }
        while (n < N && |level[n]| == 0) n++;
        for (n = 0; n < 3; n++) { if (a[n]) continue; else break; }
        if (|P| > 0) { P => current; dispatch current for quantum; }
    }
    event switch_out(t2) { do { load[cpu]++; } while (load < 3); destroy current; preempt 1; }
    query threads_ready { return |RQ| + |P|; }
    query first_waiting { return *RQ; }
    before init { n = 1; return; }
    invariant RQ { return |RQ| < 100; }
}";

/// The words of a text, so that they can be dropped, doubled and exchanged.
fn words(text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let end = if is_word(first) {
            rest.find(|c| !is_word(c)).unwrap_or(rest.len())
        } else {
            first.len_utf8()
        };
        words.push(&rest[..end]);
        rest = &rest[end..];
    }
    words
}

/// What holds of every check, whatever the text.
fn survives(text: &str) {
    let checked = check_text(text);
    assert_eq!(
        checked.program.is_some(),
        !checked.has_errors() && checked.scheduler_name.is_some(),
        "{text}"
    );
    if let Some(program) = &checked.program {
        let _ = program.to_string();
    }
    for diagnostic in &checked.diagnostics {
        assert!(
            !diagnostic.message.is_empty() && !diagnostic.message.ends_with('.'),
            "{}",
            diagnostic.message
        );
        let _ = attune_language::diagnostic::render(diagnostic, &checked.sources);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn a_soup_of_words(words in prop::collection::vec(prop::sample::select(WORDS), 0..120)) {
        survives(&words.join(" "));
    }

    #[test]
    fn a_soup_of_statements(words in prop::collection::vec(prop::sample::select(WORDS), 0..60)) {
        survives(&format!(
            "scheduler s {{ thread {{ int p; }} data {{ int n; threadref current; queue RQ; }}
             event schedule {{ {} }} }}",
            words.join(" ")
        ));
    }

    #[test]
    fn a_scheduler_with_slips(
        slips in prop::collection::vec(
            (any::<prop::sample::Index>(), prop::sample::select(WORDS), 0..3),
            1..6,
        ),
    ) {
        let mut text = words(VALID);
        for (place, word, how) in slips {
            let place = place.index(text.len());
            match how {
                0 => { text.remove(place); }
                1 => text.insert(place, word),
                _ => text[place] = word,
            }
        }
        survives(&text.concat());
    }
}

#[test]
fn the_text_that_slips_are_made_in_is_almost_right() {
    let checked = check_text(&VALID.replace("x != t2", "x != current"));
    assert!(!checked.has_errors(), "{}", super::drawn(&checked));
}
