//! E05xx, W05xx: handlers and their shapes.

codes! {
    UNKNOWN_HANDLER = "E0501", "a handler that no engine calls";
        "The names of events and queries are fixed, for engines call them by name. A \
         misspelt handler would never run.";
        wrong r#"
scheduler s {
    data { queue RQ; }
    event new_thread(t) { t => RQ; }
}
"#;
        right r#"
scheduler s {
    data { queue RQ; }
    event newthread(t) { t => RQ; }
}
"#;

    WRONG_KEYWORD = "E0502", "an event declared as a query, or a query as an event";
        "Events act and return nothing; queries return a value and change nothing.";
        wrong r#"
scheduler s {
    data { queue RQ; }
    event threads_ready { return |RQ|; }
}
"#;
        right r#"
scheduler s {
    data { queue RQ; }
    query threads_ready { return |RQ|; }
}
"#;

    PARAMETER_MISSING = "E0503", "a handler without its parameter";
        "The handler is about a thread, and has to give it a name. Only `switch_out` may do \
         without, for `current` holds that thread unless a handler moved it.";
        wrong r#"
scheduler s {
    data { queue RQ; threadref current; }
    event newthread { current => RQ; }
}
"#;
        right r#"
scheduler s {
    data { queue RQ; }
    event newthread(t) { t => RQ; }
}
"#;

    PARAMETER_UNEXPECTED = "E0504", "a parameter of a handler that is about no thread";
        "The engine gives this handler no thread.";
        wrong r#"
scheduler s {
    data { int n; }
    event init(t) { n = 1; }
}
"#;
        right r#"
scheduler s {
    data { int n; }
    event init { n = 1; }
}
"#;

    DISPATCH_OUTSIDE_SCHEDULE = "E0505", "a dispatch outside of `schedule`";
        "Only `schedule` is asked which thread runs next. Other handlers move threads to where \
         `schedule` will find them, and may make a processor choose again with `preempt`.";
        wrong r#"
scheduler s {
    data { threadref current; queue RQ; }
    event event_raised(t) { dispatch t; }
}
"#;
        right r#"
scheduler s {
    data { threadref current; queue RQ; }
    event event_raised(t) { t => RQ; preempt cpu; }
}
"#;

    OUTSIDE_LOOP = "E0506", "`break` or `continue` outside of a loop";
        "`break` leaves a loop, `continue` begins its next turn. `return` leaves a handler.";
        wrong r#"
scheduler s {
    data { queue RQ; }
    event switch_out { if (|RQ| == 0) break; }
}
"#;
        right r#"
scheduler s {
    data { queue RQ; int longest; }
    event switch_out { if (|RQ| < longest) return; longest = |RQ|; }
}
"#;

    RETURN_VALUE = "E0507", "a returned value in an event, or none in a query";
        "An engine asks a query for a value. It tells an event that something happened, \
         and expects no answer.";
        wrong r#"
scheduler s {
    data { queue RQ; }
    event newthread(t) { t => RQ; return 1; }
}
"#;
        right r#"
scheduler s {
    data { queue RQ; }
    event newthread(t) { t => RQ; }
}
"#;

    INVARIANT_EFFECT = "E0508", "an invariant that changes something";
        "An invariant runs in debug builds only. It says what holds and must not change what \
         the scheduler does; its own variables it may assign.";
        wrong r#"
scheduler s {
    data { queue RQ; int most; }
    invariant RQ { most = |RQ|; return most < 100; }
}
"#;
        right r#"
scheduler s {
    data { queue RQ; }
    invariant RQ { return |RQ| < 100; }
}
"#;

    ASPECT_WITHOUT_HANDLER = "W0501", "an aspect around an event that the scheduler \
        does not handle";
        "Aspects add code before and after a handler. Without the handler they run alone, which \
         is seldom meant: perhaps the event's name is another one.";
        wrong r#"
scheduler s {
    data { int n; }
    before init { n = 1; }
}
"#;
        right r#"
scheduler s {
    data { int n; }
    event init { n = 1; }
}
"#;
}
