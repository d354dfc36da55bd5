//! E08xx, W08xx: where control goes, and what handlers change.

codes! {
    QUERY_WITHOUT_VALUE = "E0801", "a query without a value on some path";
        "A query answers a question, whatever the situation. Each path through it ends \
         in a `return`.";
        wrong r#"
scheduler s {
    data { threadref current; queue RQ; }
    event newthread(t) { t => RQ; }
    event event_raised(t) { t => RQ; }
    query threads_ready { if (|RQ| > 0) return |RQ|; }
    event schedule {
        if (|RQ| > 0) {
            RQ => current;
            dispatch current;
        }
    }
    event switch_out { if (|current| > 0) current => RQ; }
}
"#;
        right r#"
scheduler s {
    data { threadref current; queue RQ; }
    event newthread(t) { t => RQ; }
    event event_raised(t) { t => RQ; }
    query threads_ready { return |RQ|; }
    event schedule {
        if (|RQ| > 0) {
            RQ => current;
            dispatch current;
        }
    }
    event switch_out { if (|current| > 0) current => RQ; }
}
"#;

    QUERY_EFFECT = "E0802", "a query that changes something";
        "An engine may ask a query at any time, as often as it likes, or not at all. What \
         it finds must not depend on that.";
        wrong r#"
scheduler s {
    data { threadref current; queue RQ; int asked; }
    event newthread(t) { t => RQ; }
    event event_raised(t) { t => RQ; }
    query threads_ready { asked++; return |RQ|; }
    event schedule {
        if (|RQ| > 0) {
            RQ => current;
            dispatch current;
        }
    }
    event switch_out { if (|current| > 0) current => RQ; }
}
"#;
        right r#"
scheduler s {
    data { threadref current; queue RQ; }
    event newthread(t) { t => RQ; }
    event event_raised(t) { t => RQ; }
    query threads_ready { return |RQ|; }
    event schedule {
        if (|RQ| > 0) {
            RQ => current;
            dispatch current;
        }
    }
    event switch_out { if (|current| > 0) current => RQ; }
}
"#;

    EVENT_WITHOUT_EFFECT = "W0801", "an event that changes nothing";
        "The handler has a body, but moves no thread and assigns nothing that is still \
         there when it ends.";
        wrong r#"
scheduler s {
    data { threadref current; queue RQ; }
    event newthread(t) { t => RQ; }
    event event_raised(t) { t => RQ; }
    event init { int n = 1; n = n + 1; }
    event schedule {
        if (|RQ| > 0) {
            RQ => current;
            dispatch current;
        }
    }
    event switch_out { if (|current| > 0) current => RQ; }
}
"#;
        right r#"
scheduler s {
    data { threadref current; queue RQ; int n; }
    event newthread(t) { t => RQ; n++; }
    event event_raised(t) { t => RQ; }
    event init { n = 1; n = n + 1; }
    event schedule {
        if (|RQ| > 0) {
            RQ => current;
            dispatch current;
        }
    }
    event switch_out { if (|current| > 0) current => RQ; }
}
"#;

    UNREACHABLE = "W0802", "code that is never reached";
        "`dispatch` and `return` end a handler, `break` ends a loop, `continue` a turn of it. \
         What follows them in the same block is never executed.";
        wrong r#"
scheduler s {
    data { threadref current; queue RQ; }
    event newthread(t) { t => RQ; }
    event event_raised(t) { t => RQ; }
    event schedule {
        if (|RQ| > 0) {
            RQ => current;
            dispatch current;
            RQ => RQ;
        }
    }
    event switch_out { if (|current| > 0) current => RQ; }
}
"#;
        right r#"
scheduler s {
    data { threadref current; queue RQ; }
    event newthread(t) { t => RQ; }
    event event_raised(t) { t => RQ; }
    event schedule {
        if (|RQ| > 0) {
            RQ => current;
            dispatch current;
        }
    }
    event switch_out { if (|current| > 0) current => RQ; }
}
"#;

    ENDLESS = "W0803", "a loop that may not end";
        "A loop is seen to end if each turn counts towards a bound, or moves a thread out of the \
         container that the condition asks about. Any other is bounded at run time: 1 048 576 \
         turns of all loops of a handler call are the scheduler's error.";
        wrong r#"
scheduler s {
    data { threadref current; queue RQ; }
    event newthread(t) { t => RQ; }
    event event_raised(t) { t => RQ; }
    event schedule {
        int found = 0;
        while (!found)
            found = |RQ| > 3;
        if (|RQ| > 0) {
            RQ => current;
            dispatch current;
        }
    }
    event switch_out { if (|current| > 0) current => RQ; }
}
"#;
        right r#"
scheduler s {
    data { threadref current; queue RQ; }
    event newthread(t) { t => RQ; }
    event event_raised(t) { t => RQ; }
    event schedule {
        if (|RQ| > 0) {
            RQ => current;
            dispatch current;
        }
    }
    event switch_out { if (|current| > 0) current => RQ; }
}
"#;
}
