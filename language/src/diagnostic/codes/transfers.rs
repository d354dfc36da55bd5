//! E06xx, W06xx: transfers, and what containers hold.

codes! {
    FIXED_MOVED = "E0601", "a fixed thread that is moved";
        "A parameter marked `fixed` stays where it is: the engine is in the middle of something \
         with that thread. `set_waiting` and `set_dead` are about the running thread, which \
         `switch_out` moves right after them.";
        wrong r#"
scheduler s {
    data { queue waiting; }
    event set_waiting(fixed t) { t => waiting; }
}
"#;
        right r#"
scheduler s {
    thread { int blocked; }
    data { threadref current; queue waiting, ready; }
    event set_waiting(fixed t) { t.blocked = 1; }
    event switch_out { if (current.blocked) current => waiting; else current => ready; }
}
"#;

    DESTINATION = "E0602", "a transfer into something that is no container";
        "A thread is put into a container. Another thread, or a number, cannot hold it.";
        wrong r#"
scheduler s {
    data { threadref current; queue RQ; }
    event set_next_thread(t) { if (|RQ| > 0) RQ => t; }
}
"#;
        right r#"
scheduler s {
    data { threadref next; queue RQ; }
    event set_next_thread(t) { t => next; }
}
"#;

    SOURCE_EMPTY = "E0610", "a transfer out of a container that is always empty";
        "On every way that leads to this transfer the container holds no thread, so that \
         the transfer fails whenever it is reached. What a container holds follows from \
         the conditions before it, from what the handler did before, and from the order in \
         which an engine calls the handlers.";
        wrong r#"
scheduler s {
    data { threadref current; queue RQ; }
    event newthread(t) { t => RQ; }
    event event_raised(t) { t => RQ; }
    event schedule {
        if (|RQ| == 0)
            RQ => current;
        if (|current| > 0)
            dispatch current;
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

    DESTINATION_FULL = "E0611", "a transfer into a threadref that is always full";
        "A `threadref` holds one thread. On every way that leads to this transfer it holds \
         another thread than the one that is moved.";
        wrong r#"
scheduler s {
    data { threadref current; queue RQ; }
    event newthread(t) { t => RQ; }
    event event_raised(t) { t => RQ; }
    event schedule {
        if (|RQ| > 1) {
            RQ => current;
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

    DISPATCH_EMPTY = "E0612", "a dispatch from a container that is always empty";
        "`dispatch` lets the first thread of a container run, and the thread stays there. \
         A thread has to be put there first.";
        wrong r#"
scheduler s {
    data { threadref current; queue RQ; }
    event newthread(t) { t => RQ; }
    event event_raised(t) { t => RQ; }
    event schedule {
        if (|RQ| > 0) {
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

    DESTROY_EMPTY = "E0613", "a destroy of a thread in a container that is always empty";
        "`destroy` forgets the first thread of a container. On every way that leads here \
         there is none. A thread that has ended and that no handler destroyed is removed \
         by the engine after `switch_out`.";
        wrong r#"
scheduler s {
    data { threadref current; queue RQ; }
    event newthread(t) { t => RQ; }
    event event_raised(t) { t => RQ; }
    event set_dead(fixed t) { current => RQ; destroy current; }
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
    event set_dead(fixed t) { destroy current; }
    event schedule {
        if (|RQ| > 0) {
            RQ => current;
            dispatch current;
        }
    }
    event switch_out { if (|current| > 0) current => RQ; }
}
"#;

    DESTROYED = "E0614", "a thread that was destroyed before";
        "After `destroy` the name means nothing any more: the thread can be neither \
         moved nor asked.";
        wrong r#"
scheduler s {
    data { threadref current; queue RQ; }
    event newthread(t) { t => RQ; }
    event event_raised(t) { t => RQ; }
    event alarm(t) { destroy t; t => RQ; }
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
    event alarm(t) { t => RQ; }
    event schedule {
        if (|RQ| > 0) {
            RQ => current;
            dispatch current;
        }
    }
    event switch_out { if (|current| > 0) current => RQ; }
}
"#;

    NOT_STORED = "E0615", "a new thread that is put into no container";
        "Every thread sits in exactly one container, always. `newthread` gets a thread that \
         sits in none, and has to put it into one (or to destroy it). Where it does so on \
         some paths only, the rest is checked at run time.";
        wrong r#"
scheduler s {
    data { threadref current; queue RQ; }
    event newthread(t) { if (|RQ| > 0) RQ => RQ; }
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

    LOCAL_FULL = "E0616", "a container of a handler that is never empty at its end";
        "A container that a handler declares goes when the handler ends, and a thread in \
         it would be lost. Move it on before.";
        wrong r#"
scheduler s {
    data { threadref current; queue RQ; }
    event newthread(t) { threadref first; t => first; }
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
        right r#"
scheduler s {
    data { threadref current; queue RQ; }
    event newthread(t) { t => RQ; }
    event event_raised(t) { t => RQ; }
    event schedule {
        if (|RQ| > 0) {
            threadref first;
            RQ => first;
            first => current;
            dispatch current;
        }
    }
    event switch_out { if (|current| > 0) current => RQ; }
}
"#;

    INDEX = "E0617", "an index that is always out of range";
        "An array of n elements has the indices 0 to n - 1. An index that may be out of \
         range is checked at run time.";
        wrong r#"
scheduler s {
    data { threadref current; queue RQ; int seen[4]; }
    event newthread(t) { int i = 4; seen[i] = 1; t => RQ; }
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
        right r#"
scheduler s {
    data { threadref current; queue RQ; int seen[4]; }
    event newthread(t) { int i = 3; seen[i] = 1; t => RQ; }
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

    FIRST_MISSING = "E0618", "a variable of the first thread of a container that is always empty";
        "`*C.x` is the variable x of the first thread of C. On every way that leads here \
         C holds no thread.";
        wrong r#"
scheduler s {
    thread { int turns = 0; }
    data { threadref current; queue RQ; }
    event newthread(t) { t => RQ; }
    event event_raised(t) { t => RQ; }
    event schedule {
        if (|RQ| > 0) {
            current.turns++;
            RQ => current;
            dispatch current;
        }
    }
    event switch_out { if (|current| > 0) current => RQ; }
}
"#;
        right r#"
scheduler s {
    thread { int turns = 0; }
    data { threadref current; queue RQ; }
    event newthread(t) { t => RQ; }
    event event_raised(t) { t => RQ; }
    event schedule {
        if (|RQ| > 0) {
            RQ => current;
            current.turns++;
            dispatch current;
        }
    }
    event switch_out { if (|current| > 0) current => RQ; }
}
"#;

    NEVER_LEFT = "W0610", "a container that threads enter and never leave";
        "A thread in it never runs again: no transfer takes the container's first thread, no \
         handler moves a thread by name that may sit there, and none dies there.";
        wrong r#"
scheduler s {
    data { threadref current; queue RQ, late; }
    event newthread(t) {
        if (|RQ| > 100)
            t => late;
        else
            t => RQ;
    }
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
        right r#"
scheduler s {
    data { threadref current; queue RQ, late; }
    event newthread(t) {
        if (|RQ| > 100)
            t => late;
        else
            t => RQ;
    }
    event event_raised(t) { t => RQ; }
    event schedule {
        if (|RQ| > 0)
            RQ => current;
        else if (|late| > 0)
            late => current;
        if (|current| > 0)
            dispatch current;
    }
    event switch_out { if (|current| > 0) current => RQ; }
}
"#;

    NEVER_ENTERED = "W0611", "a container that threads leave and never enter";
        "Nothing ever puts a thread into it: it is always empty, and what the scheduler \
         does with its threads never happens.";
        wrong r#"
scheduler s {
    data { threadref current; queue RQ, urgent; }
    event newthread(t) { t => RQ; }
    event event_raised(t) { t => RQ; }
    event schedule {
        if (|urgent| > 0) urgent => current;
        else if (|RQ| > 0) RQ => current;
        if (|current| > 0) {
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

    LOCAL_KEPT = "W0613", "a container of a handler that is not empty at the end of some path";
        "A container that a handler declares must be empty when the handler ends. On one \
         path through this handler it is certainly not, so the scheduler is stopped when \
         it takes that path.";
        wrong r#"
scheduler s {
    data { threadref current; queue RQ; int n; }
    event newthread(t) { t => RQ; }
    event event_raised(t) { t => RQ; }
    event schedule {
        threadref tmp;
        if (|RQ| > 1) {
            RQ => tmp;
            if (n > 0)
                tmp => RQ;
        }
        if (|RQ| > 0) {
            RQ => current;
            dispatch current;
        }
    }
    event switch_out { n++; if (|current| > 0) current => RQ; }
}
"#;
        right r#"
scheduler s {
    data { threadref current; queue RQ; int n; }
    event newthread(t) { t => RQ; }
    event event_raised(t) { t => RQ; }
    event schedule {
        threadref tmp;
        if (|RQ| > 1 && n > 0) {
            RQ => tmp;
            tmp => RQ;
        }
        if (|RQ| > 0) {
            RQ => current;
            dispatch current;
        }
    }
    event switch_out { n++; if (|current| > 0) current => RQ; }
}
"#;

    UNUSED = "W0612", "a container or variable that is never used";
        "No handler speaks of it. Remove it, or use it.";
        wrong r#"
scheduler s {
    data { threadref current; queue RQ, spare; }
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
