//! E02xx: files, inheritance, aspects.

codes! {
    UNREADABLE = "E0200", "a file cannot be read";
        "The file is not there, may not be read, or is no text in UTF-8. A scheduler is named by \
         its path, or by its name in the standard library (`attune schedulers` lists it).";
        wrong [];
        right [];

    NOT_FOUND = "E0201", "a file that a scheduler names is not there";
        "A base is looked for as NAME.sched in the folder of the file that extends it, in the \
         folders given with `-I`, and in the standard library, in this order. A node scheduler's \
         file is looked for by the name that is written.";
        wrong r#"
scheduler mine extends no_such_scheduler {
}
"#;
        right [("mine.sched", r#"
scheduler mine extends base {
    event schedule { if (|RQ| > 0) { RQ => current; dispatch current; } }
}
"#), ("base.sched", r#"
partial scheduler base {
    data { threadref current; queue RQ; }
    event newthread(t) { t => RQ; }
    event switch_out { if (|current| > 0) current => RQ; }
    event event_raised(t) { t => RQ; }
}
"#)];

    CYCLE = "E0202", "a scheduler extends itself";
        "A scheduler is its base with something added. If the base, or the base's base, extends \
         the scheduler again, there is no first one to begin with.";
        wrong [("a.sched", "scheduler a extends b { }"), ("b.sched", "scheduler b extends a { }")];
        right [("a.sched", r#"
scheduler a extends b {
    event schedule { if (|RQ| > 0) { RQ => current; dispatch current; } }
}
"#), ("b.sched", r#"
partial scheduler b {
    data { threadref current; queue RQ; }
    event newthread(t) { t => RQ; }
    event switch_out { if (|current| > 0) current => RQ; }
    event event_raised(t) { t => RQ; }
}
"#)];

    NOT_A_BASE = "E0203", "a file that should hold a scheduler holds something else";
        "Only an ordinary scheduler can be extended, or be a node's scheduler: not a distributed \
         scheduler, and not a file of aspects.";
        wrong [("a.sched", "scheduler a extends b { }"), ("b.sched", "before switch_out { }")];
        right [("a.sched", "partial scheduler a extends b { }"), ("b.sched", "partial \
            scheduler b { }")];

    DUPLICATE_HANDLER = "E0204", "two handlers for one event";
        "An event has one handler in a scheduler. A derived scheduler's handler replaces its \
         base's; code that shall run around a handler is a `before` or an `after`.";
        wrong r#"
partial scheduler twice {
    data { queue RQ; int n = 0; }
    event newthread(t) { t => RQ; }
    event newthread(t) { n++; t => RQ; }
}
"#;
        right r#"
partial scheduler once {
    data { queue RQ; int n = 0; }
    event newthread(t) { t => RQ; }
    after newthread(t) { n++; }
}
"#;

    ASPECT_OF_QUERY = "E0205", "an aspect of a query";
        "`before` and `after` add something to what an event does. A query does nothing: \
         it returns a value.";
        wrong r#"
partial scheduler counts {
    data { queue RQ; int asked = 0; }
    event newthread(t) { t => RQ; }
    query threads_ready { return |RQ|; }
    before threads_ready { asked++; }
}
"#;
        right r#"
partial scheduler counts {
    data { queue RQ; }
    event newthread(t) { t => RQ; }
    query threads_ready { return |RQ|; }
}
"#;

    ASPECTS_ONLY = "E0206", "a file of aspects where a scheduler is wanted";
        "Aspects are added to a scheduler; they are none by themselves. `attune check fifo \
         --aspect FILE` checks the two together.";
        wrong "before switch_out { }";
        right "partial scheduler s { data { int n; } event switch_out { n = 1; } before \
            switch_out { n = 0; } }";

    NOT_ASPECTS = "E0207", "a scheduler where a file of aspects is wanted";
        "A file given with `--aspect` holds sections, `before` and `after` parts and invariants, \
         with no `scheduler { .. }` around them. To build on a scheduler, extend it.";
        wrong [("a.sched", "partial scheduler a { }"), ("--aspect", "partial scheduler b { }")];
        right [
            ("a.sched", "partial scheduler a { data { int n; } event switch_out { n = 1; } }"),
            ("--aspect", "before switch_out { n = 0; }")
        ];

    HANDLER_AMONG_ASPECTS = "E0208", "a handler in a file of aspects";
        "Aspects add to what a scheduler does and leave its handlers alone, so that a \
         reader of the scheduler can rely on them. A scheduler that extends this one \
         can replace a handler.";
        wrong [("a.sched", r#"
scheduler a {
    data { threadref current; queue RQ; }
    event newthread(t) { t => RQ; }
    event schedule { if (|RQ| > 0) { RQ => current; dispatch current; } }
    event switch_out { if (|current| > 0) current => RQ; }
    event event_raised(t) { t => RQ; }
}
"#), ("--aspect", "event newthread(t) { t => RQ; }")];
        right [("a.sched", r#"
scheduler a {
    data { threadref current; queue RQ; int n = 0; }
    event newthread(t) { t => RQ; }
    event schedule { if (|RQ| > 0) { RQ => current; dispatch current; } }
    event switch_out { if (|current| > 0) current => RQ; }
    event event_raised(t) { t => RQ; }
}
"#), ("--aspect", "before newthread(t) { n++; }")];
}
