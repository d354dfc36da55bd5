//! E03xx, W03xx: names and declarations.

codes! {
    UNKNOWN_NAME = "E0301", "a name that nothing declares";
        "Every variable and container is declared: in `data`, `imports`, in the handler before \
         its use, or as the handler's parameter. Variables of threads are declared in `thread` \
         or `threadimports` and need to say whose they are: `t.prio`.";
        wrong r#"
scheduler s {
    data { queue RQ; }
    event newthread(t) { t => RX; }
}
"#;
        right r#"
scheduler s {
    data { queue RQ; }
    event newthread(t) { t => RQ; }
}
"#;

    DUPLICATE_NAME = "E0302", "a name that is declared twice";
        "In one place a name means one thing. A scheduler that extends another one shares its \
         names, so a name of the base cannot be declared anew. In an inner block a name may \
         be declared again and then means the inner one.";
        wrong r#"
scheduler s {
    data { queue RQ; int RQ; }
}
"#;
        right r#"
scheduler s {
    data { queue RQ; int length; }
}
"#;

    USED_BEFORE_DECLARATION = "E0303", "a name that is used before its declaration";
        "Declarations take effect where they stand, from top to bottom.";
        wrong r#"
scheduler s {
    data {
        const int LENGTH = 2 * WIDTH;
        const int WIDTH = 4;
    }
}
"#;
        right r#"
scheduler s {
    data {
        const int WIDTH = 4;
        const int LENGTH = 2 * WIDTH;
    }
}
"#;

    UNKNOWN_ATTRIBUTE = "E0304", "a variable that threads do not have";
        "What stands behind the dot is a variable of the thread, declared in `thread { .. \
         }` or `threadimports { .. }`.";
        wrong r#"
scheduler s {
    thread { int prio; }
    data { queue RQ; }
    event newthread(t) { t.pri = 1; t => RQ; }
}
"#;
        right r#"
scheduler s {
    thread { int prio; }
    data { queue RQ; }
    event newthread(t) { t.prio = 1; t => RQ; }
}
"#;

    UNKNOWN_FUNCTION = "E0305", "a function that the language does not have";
        "The only function is `random(n)`. A function of the target language is called in verbatim \
         text, which ties the scheduler to engines that compile that language.";
        wrong r#"
scheduler s {
    data { int luck; }
    event init { luck = rand(); }
}
"#;
        right r#"
scheduler s {
    data { int luck; }
    event init { luck = random(100); }
}
"#;

    NOT_CONSTANT = "E0306", "a value that must be a constant and is none";
        "The length of an array, the default of an import and the value of a tunable \
         are known before the scheduler runs: they are made of numbers and of constants \
         declared before them.";
        wrong r#"
scheduler s {
    imports { int wanted default 4; }
    data { queue RQ[wanted]; }
}
"#;
        right r#"
scheduler s {
    data { const int LEVELS = 4; queue RQ[LEVELS]; }
}
"#;

    ARRAY_LENGTH = "E0307", "an array of an impossible length";
        "An array has at least one element and at most 1048576.";
        wrong r#"
scheduler s {
    data { int seen[0]; }
}
"#;
        right r#"
scheduler s {
    data { int seen[16]; }
}
"#;

    MISPLACED_DECLARATION = "E0308", "a declaration that has no meaning here";
        "`const`, `tunable` and `percpu` stand alone before a declaration in `data` (`const` also \
         in a handler). Constants and tunables are single numbers. A per-CPU variable is no array: \
         its elements are the CPUs. Imports and variables of threads are single numbers as well.";
        wrong r#"
scheduler s {
    data { tunable queue RQ; }
}
"#;
        right r#"
scheduler s {
    data { queue RQ; }
}
"#;

    SORT_MISSING = "E0309", "a sorted container without a key";
        "A `pqueue` and a `pstack` are sorted by a variable of their threads, and have \
         to say by which one.";
        wrong r#"
scheduler s {
    thread { int prio; }
    data { pqueue RQ; }
}
"#;
        right r#"
scheduler s {
    thread { int prio; }
    data { pqueue RQ sortable on prio; }
}
"#;

    SORT_UNEXPECTED = "E0310", "a key for something that is not sorted";
        "A `queue` is ordered by arrival, a `stack` by arrival from the end, a `threadref` \
         holds one thread. Sorted are `pqueue` and `pstack`.";
        wrong r#"
scheduler s {
    thread { int prio; }
    data { queue RQ sortable on prio; }
}
"#;
        right r#"
scheduler s {
    thread { int prio; }
    data { pqueue RQ sortable on prio; }
}
"#;

    CONTAINER_INITIAL = "E0311", "a container with an initial value";
        "Containers start empty; threads are moved into them by `=>`.";
        wrong r#"
scheduler s {
    data { queue RQ; }
    event switch_out {
        threadref next = *RQ;
    }
}
"#;
        right r#"
scheduler s {
    data { queue RQ; }
    event switch_out {
        if (|RQ| > 0) {
            threadref next;
            RQ => next;
            next => RQ;
        }
    }
}
"#;

    IMPORT_RANGE = "E0313", "a range that an import cannot have";
        "`within LOW to HIGH` bounds an import of type `int` or `time`. The least number comes \
         first, and the default lies in the range.";
        wrong r#"
scheduler s {
    threadimports { int prio default 50 within 0 to 39; }
    event newthread(t) { destroy t; }
}
"#;
        right r#"
scheduler s {
    threadimports { int prio default 0 within 0 to 39; }
    event newthread(t) { destroy t; }
}
"#;

    CONST_WITHOUT_VALUE = "E0312", "a constant without a value";
        "A constant is never assigned, so its declaration gives its value.";
        wrong r#"
scheduler s {
    data { const int LEVELS; }
}
"#;
        right r#"
scheduler s {
    data { const int LEVELS = 4; }
}
"#;
}
