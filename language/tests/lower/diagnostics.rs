//! Source to diagnostics, as a person sees them.

use super::{check_text, codes_of, drawn};

macro_rules! says {
    ($name:ident, $text:literal) => {
        #[test]
        fn $name() {
            insta::assert_snapshot!(stringify!($name), drawn(&check_text($text)));
        }
    };
}

says!(
    unknown_names,
    "
scheduler s {
    thread { int prio; }
    threadimports { int remaining default 0; }
    data { queue ready; threadref current; int count; }
    event newthread(t) {
        t => redy;
        t.remaning = 1;
        t.colour = 2;
        coumt = prio;
        later = 1;
        int later;
        later = rnadom(5) + sqrt(2);
        if (t == CURRENT) nothing_of_the_kind++;
    }
    event set_wating(fixed t) { }
    event woken_up(t) { }
    invariant redy { }
}"
);

says!(
    declarations,
    "
scheduler s {
    thread { int prio, prio; int seen[4]; int x sortable on prio; }
    threadimports { queue mine default 0; int prio default 0; }
    imports { int wanted default random(3); int many default wanted; }
    data {
        const int A = B;
        const int B = 2, C;
        int A;
        tunable int t = cpus;
        tunable int ts[3];
        const queue K;
        percpu int p[4];
        int none[0], lots[10000000], some[wanted], half[2.9];
        pqueue Q;
        queue R sortable on prio;
        pqueue S sortable on size;
        threadref first = *R;
    }
    event init {
        tunable int x = 3;
        int x;
        queue x;
        const int y;
    }
}"
);

says!(
    containers_and_threads_are_no_numbers,
    "
scheduler s {
    thread { int prio; }
    data { queue RQ, A[3]; threadref current; int n; }
    event event_raised(t) {
        if (RQ > 0) n = 1;
        if (current) n = 2;
        n = t;
        n = RQ + A[1];
        if (t == 0) n = 3;
        if (RQ == t) n = 4;
        n = |t| + |n|;
        n = RQ.prio;
        n = n.prio;
        RQ = current;
        t = current;
        foreach x in t { n++; }
        A => RQ;
        RQ[1] => RQ;
        n => RQ;
        t => n;
        t => t;
        t => A[7];
    }
    query first_waiting { if (n) return RQ; return 0; }
    query is_ready(t) { return t; }
}"
);

says!(
    times_and_numbers,
    "
scheduler s {
    data { time d = 5, e = 0; int n = 3; float f; }
    event init {
        d = now + n;
        d = e - 2.5;
        if (d > 100) d = 0;
        if (d == 0) d = 20;
        n = d * e;
        n = 3 / d;
        d = d % n;
        d++;
        n = d;
        f = n / 0;
    }
    event schedule {
        threadref t;
        if (|t| > 0) { alarm t at n; dispatch t for 5; }
    }
}"
);

says!(
    constants_are_not_assigned,
    "
scheduler s {
    data { const int K = 3; tunable time quantum = 4ms; const int R = random(3); }
    event init {
        const int local = 2;
        K = 4;
        quantum *= 2;
        R++;
        local--;
    }
}"
);

says!(
    shapes_of_handlers,
    "
scheduler s {
    data { queue RQ; threadref current; int n; }
    event newthread { n = 1; }
    event init(t) { n = 1; }
    event threads_ready { return 1; }
    query schedule { return 1; }
    event switch_out(t) { dispatch t; break; return 5; }
    event set_waiting(t) { t => RQ; destroy t; }
    event event_raised(fixed t) { t => RQ; }
    query threads_total { return; }
    before alarm(t) { n = 2; }
    before init { return 1; }
    invariant RQ { n = 1; return |RQ| > random(3); }
    event resume_thread(t) { if (n = 1) n == 2; while (1) { continue; } }
}"
);

says!(
    words_of_distributed_schedulers,
    "
scheduler s {
    data { int n; threadref current; }
    event init { n = GLOBAL.n; if (current is worker) n = 2; }
}"
);

/// One slip is one message, whatever is made of it later.
#[test]
fn a_broken_declaration_is_reported_once() {
    let checked = check_text(
        "scheduler s {
            data { pqueue Q; int a[0]; const int K; }
            event newthread(t) { t => Q; a[1] = K; K++; if (|Q| > a[2] && t == *Q) Q => Q; }
        }",
    );
    assert_eq!(codes_of(&checked), ["E0309", "E0307", "E0312"]);
}

#[test]
fn what_the_syntax_was_refused_for_is_not_refused_again() {
    let checked = check_text(
        "scheduler s { data { queue RQ; int n; } event init { 5 = n; *RQ => RQ; n = ; } }",
    );
    assert!(codes_of(&checked).iter().all(|code| code.starts_with("E01")), "{}", drawn(&checked));
}

#[test]
fn names_may_be_declared_anew_in_an_inner_block() {
    let checked = check_text(
        "scheduler s {
            data { int n; queue RQ; }
            event newthread(t) {
                int n = 3;
                foreach t in RQ { int n = 4; { int n = 5; n++; } n++; }
                n++;
                t => RQ;
            }
        }",
    );
    assert_eq!(drawn(&checked), "");
}

/// Ten thousand slips are not ten thousand messages, and take no time quadratic in the text.
#[test]
fn very_many_errors_are_cut_short() {
    let slips: String = (0..10_000).map(|n| format!("nome_{n} = nume_{n};\n")).collect();
    let checked = check_text(&format!("scheduler s {{ event init {{ {slips} }} }}"));
    let codes = codes_of(&checked);
    assert_eq!(codes.len(), 101);
    assert_eq!(codes.last(), Some(&"E0199"));
}

#[test]
fn an_error_behind_very_many_warnings_is_still_one() {
    let slips = "n;\n".repeat(1000);
    let checked =
        check_text(&format!("scheduler s {{ data {{ int n; }} event init {{ {slips} m = 1; }} }}"));
    assert!(checked.program.is_none());
    assert!(codes_of(&checked).contains(&"E0301"));
}
