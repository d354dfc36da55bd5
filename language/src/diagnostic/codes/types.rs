//! E04xx, W04xx: types.

codes! {
    CONTAINER_AS_NUMBER = "E0401", "a container where a number is needed";
        "A container is no number. `|C|` is the number of its threads, `*C` is its first thread.";
        wrong r#"
scheduler s {
    data { threadref current; queue RQ; }
    event schedule {
        if (RQ > 0) { RQ => current; dispatch current; }
    }
}
"#;
        right r#"
scheduler s {
    data { threadref current; queue RQ; }
    event schedule {
        if (|RQ| > 0) { RQ => current; dispatch current; }
    }
}
"#;

    THREAD_AS_NUMBER = "E0402", "a thread where a number is needed";
        "A thread is no number; its variables are. Whether a `threadref` C holds a thread \
         is `|C| > 0`.";
        wrong r#"
scheduler s {
    thread { int ready; }
    data { queue RQ; }
    event event_raised(t) { if (t) t => RQ; }
}
"#;
        right r#"
scheduler s {
    thread { int ready; }
    data { queue RQ; }
    event event_raised(t) { if (t.ready) t => RQ; }
}
"#;

    NOT_A_CONTAINER = "E0403", "something else where a container is needed";
        "`|C|`, `*C`, `foreach t in C` and invariants are about containers: `threadref`, \
         `queue`, `stack`, `pqueue`, `pstack`.";
        wrong r#"
scheduler s {
    data { int n; }
    event init { foreach t in n { n++; } }
}
"#;
        right r#"
scheduler s {
    data { int n; queue RQ; }
    event init { foreach t in RQ { n++; } }
}
"#;

    NOT_A_THREAD = "E0404", "something else where a thread is needed";
        "A thread is named by a handler's parameter, by a `foreach` variable, or as the \
         first thread of a container.";
        wrong r#"
scheduler s {
    data { int n; queue RQ; }
    event switch_out { n => RQ; }
}
"#;
        right r#"
scheduler s {
    data { threadref n; queue RQ; }
    event switch_out { if (|n| > 0) n => RQ; }
}
"#;

    NOT_A_VARIABLE = "E0405", "a value where a variable is needed";
        "What is indexed has a name: `RQ[2]`.";
        wrong r#"
scheduler s {
    data { int n; }
    event init { n = 7[0]; }
}
"#;
        right r#"
scheduler s {
    data { int n; int seen[8]; }
    event init { n = seen[0]; }
}
"#;

    NOT_ASSIGNABLE = "E0406", "an assignment to a container or to a thread's name";
        "Numbers are assigned, threads are moved: `source => destination;` takes a thread out of \
         one container and puts it into another, so that it is never in two places or in none.";
        wrong r#"
scheduler s {
    data { threadref current; queue RQ; }
    event schedule { if (|RQ| > 0) { current = 1; dispatch current; } }
}
"#;
        right r#"
scheduler s {
    data { threadref current; queue RQ; }
    event schedule { if (|RQ| > 0) { RQ => current; dispatch current; } }
}
"#;

    ASSIGNED_CONSTANT = "E0407", "an assignment to a constant";
        "What is declared `const` keeps its value; what is `tunable` is changed from outside only.";
        wrong r#"
scheduler s {
    data { const int LEVELS = 4; }
    event init { LEVELS = 5; }
}
"#;
        right r#"
scheduler s {
    data { int levels = 4; }
    event init { levels = 5; }
}
"#;

    INDEX_MISSING = "E0408", "an array where one of its elements is needed";
        "An array is used element by element: `RQ[i]`.";
        wrong r#"
scheduler s {
    data { queue RQ[4]; }
    event newthread(t) { t => RQ; }
}
"#;
        right r#"
scheduler s {
    data { queue RQ[4]; }
    event newthread(t) { t => RQ[0]; }
}
"#;

    NOT_AN_ARRAY = "E0409", "an index on something that is no array";
        "Only arrays have elements, and per-CPU variables, whose index is a CPU's number.";
        wrong r#"
scheduler s {
    data { queue RQ; }
    event newthread(t) { t => RQ[0]; }
}
"#;
        right r#"
scheduler s {
    data { queue RQ[4]; }
    event newthread(t) { t => RQ[0]; }
}
"#;

    INDEX_OUT_OF_RANGE = "E0410", "an index that the array does not have";
        "The elements of an array of length n are numbered from 0 to n-1. An index that is \
         not known here is checked when the scheduler runs.";
        wrong r#"
scheduler s {
    data { queue RQ[4]; }
    event newthread(t) { t => RQ[4]; }
}
"#;
        right r#"
scheduler s {
    data { queue RQ[4]; }
    event newthread(t) { t => RQ[3]; }
}
"#;

    THREAD_AND_NUMBER = "E0411", "a thread compared with a number";
        "`==` and `!=` compare two numbers or two threads. Whether a `threadref` C is \
         empty is `|C| == 0`.";
        wrong r#"
scheduler s {
    data { threadref current; queue RQ; }
    event switch_out { if (current != 0) current => RQ; }
}
"#;
        right r#"
scheduler s {
    data { threadref current; queue RQ; }
    event switch_out { if (|current| != 0) current => RQ; }
}
"#;

    TIME_PRODUCT = "E0412", "the product of two times";
        "A time multiplied by a time is no time. Divide one of them by a unit first: the \
         quotient of two times is a plain number.";
        wrong r#"
scheduler s {
    data { time a = 2ms, b = 3ms, c; }
    event init { c = a * b; }
}
"#;
        right r#"
scheduler s {
    data { time a = 2ms, b = 3ms, c; }
    event init { c = a * (b / 1ms); }
}
"#;

    ARGUMENTS = "E0413", "a call with the wrong number of arguments";
        "`random(n)` takes one argument and gives a number from 0 to n-1.";
        wrong r#"
scheduler s {
    data { int luck; }
    event init { luck = random(1, 6); }
}
"#;
        right r#"
scheduler s {
    data { int luck; }
    event init { luck = 1 + random(6); }
}
"#;

    TIME_AND_NUMBER = "W0401", "a time and a plain number";
        "A plain number that is added to a time, compared with one or stored as one is taken \
         as nanoseconds, which is seldom what is meant. Write the unit: `5ms`, or `n * 1ms` \
         for a number n of milliseconds. The number 0 needs no unit.";
        wrong r#"
scheduler s {
    data { time next; }
    event init { next = now + 5; }
}
"#;
        right r#"
scheduler s {
    data { time next; }
    event init { next = now + 5ms; }
}
"#;

    NO_EFFECT = "W0402", "a statement without an effect";
        "The value of the expression is not used, and computing it changes nothing. Perhaps \
         an assignment was meant, or a call.";
        wrong r#"
scheduler s {
    data { int n; queue RQ; }
    event init { n == |RQ|; }
}
"#;
        right r#"
scheduler s {
    data { int n; queue RQ; }
    event init { n = |RQ|; }
}
"#;

    ASSIGNMENT_AS_CONDITION = "W0403", "an assignment as a condition";
        "`=` assigns and `==` compares. Where the assignment is meant, another pair of \
         parentheses says so.";
        wrong r#"
scheduler s {
    data { int n, m; }
    event init { if (n = m) m = 0; }
}
"#;
        right r#"
scheduler s {
    data { int n, m; }
    event init { if (n == m) m = 0; }
}
"#;

    FIRST_IMPLIED = "W0404", "a variable of a container's threads";
        "A queue holds many threads, and each has its own variable. `*C.a` says that the first \
         one's is meant. A `threadref` holds one thread only and needs no star.";
        wrong r#"
scheduler s {
    thread { int prio; }
    data { int n; queue RQ; }
    event init { if (|RQ| > 0) n = RQ.prio; }
}
"#;
        right r#"
scheduler s {
    thread { int prio; }
    data { int n; queue RQ; }
    event init { if (|RQ| > 0) n = *RQ.prio; }
}
"#;

    DIVISION_BY_ZERO = "W0405", "a division by zero";
        "Arithmetic never fails: x / 0 is 0 and x % 0 is x. A divisor that is always zero \
         is a slip all the same.";
        wrong r#"
scheduler s {
    data { const int PARTS = 0; int n; }
    event init { n = 100 / PARTS; }
}
"#;
        right r#"
scheduler s {
    data { const int PARTS = 4; int n; }
    event init { n = 100 / PARTS; }
}
"#;
}
