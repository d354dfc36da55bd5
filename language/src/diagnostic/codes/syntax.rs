//! E01xx, W01xx: the text itself.

codes! {
    UNKNOWN_CHARACTER = "E0101", "a character that means nothing";
        "A scheduler is written in the characters of C: letters without accents, digits, `_`, and \
         the signs of the operators. Comments and verbatim text may hold anything.";
        wrong r#"partial scheduler s {
    data {
        int größe;
    }
}"#;
        right r#"partial scheduler s {
    data {
        int size;    // Größe
    }
}"#;

    UNTERMINATED_COMMENT = "E0102", "a comment that does not end";
        "A comment that begins with `/*` goes on to the next `*/`. Without one, the rest \
         of the file is comment. Note that `a/*b` begins a comment too: write `a / *b` to \
         divide by something of b's first thread.";
        wrong r#"partial scheduler s {
    /* the ready threads
    data { queue RQ; }
}"#;
        right r#"partial scheduler s {
    /* the ready threads */
    data { queue RQ; }
}"#;

    UNTERMINATED_VERBATIM = "E0103", "verbatim text that does not end";
        "`(*` opens an expression in the target language, which goes on to the next `*)`; `{*` \
         opens a statement in it, which goes on to `*}`. Only after `if`, `while`, `for`, \
         `foreach` and a handler's name is `(*` read as a parenthesis and the first thread of \
         a container. Anywhere else, put a space between the two.";
        wrong r#"partial scheduler s {
    thread { int key; }
    data { queue RQ; int x; }
    event newthread(t) {
        t => RQ;
        x = 2 * (*RQ.key + 1);
    }
}"#;
        right r#"partial scheduler s {
    thread { int key; }
    data { queue RQ; int x; }
    event newthread(t) {
        t => RQ;
        x = 2 * ( *RQ.key + 1);
    }
}"#;

    UNTERMINATED_STRING = "E0104", "a file name without its closing quote";
        "The name of a node scheduler's file stands between two quotes on one line.";
        wrong [("example.sched", r#"distributed scheduler s {
    nodefamilies { "web.subsched : web; }
    nodes { queue idle; }
    arrival(n) { n => idle; }
}"#), ("web.subsched", "partial scheduler w { }")];
        right [("example.sched", r#"distributed scheduler s {
    nodefamilies { "web.subsched" : web; }
    nodes { queue idle; }
    arrival(n) { n => idle; }
}"#), ("web.subsched", "partial scheduler w { }")];

    MALFORMED_NUMBER = "E0105", "neither a number nor a time";
        "A number is written `12`, `0x1f`, `1.5` or `1e-3`. A time is a decimal number and \
         a unit without a space between: ns, us, ms, s, min or h. It must come out as a \
         whole number of nanoseconds.";
        wrong r#"partial scheduler s {
    data { time slice; }
    event init { slice = 20msec; }
}"#;
        right r#"partial scheduler s {
    data { time slice; }
    event init { slice = 20ms; }
}"#;

    NUMBER_OUT_OF_RANGE = "E0106", "a number that is too large";
        "Integers and times have 64 bits and a sign: integers reach from -9223372036854775808 \
         to 9223372036854775807, times to about 292 years.";
        wrong r#"partial scheduler s {
    data { int far; }
    event init { far = 9223372036854775808; }
}"#;
        right r#"partial scheduler s {
    data { int far; }
    event init { far = 9223372036854775807; }
}"#;

    MISSING_SEMICOLON = "E0107", "a missing semicolon";
        "Declarations, and statements that end in no block, end with a semicolon.";
        wrong r#"partial scheduler s {
    data { threadref current; queue RQ; }
    event newthread(t) { t => RQ; }
    event schedule {
        if (|RQ| > 0 && |current| == 0) {
            RQ => current
            dispatch current;
        }
    }
}"#;
        right r#"partial scheduler s {
    data { threadref current; queue RQ; }
    event newthread(t) { t => RQ; }
    event schedule {
        if (|RQ| > 0 && |current| == 0) {
            RQ => current;
            dispatch current;
        }
    }
}"#;

    UNCLOSED = "E0108", "something opened and not closed";
        "Every `{`, `(`, `[` and size bar needs its counterpart. The message names the place \
         where it was expected at the latest and the place where the open one stands; the \
         right place for it is in between.";
        wrong r#"partial scheduler s {
    data { int x; }
    event init {
        x = 0;
    event quantum_expired(t) { x++; }
}"#;
        right r#"partial scheduler s {
    data { int x; }
    event init {
        x = 0;
    }
    event quantum_expired(t) { x++; }
}"#;

    UNEXPECTED = "E0109", "something else was expected here";
        "What stands here does not continue what was begun before it. The message says what could.";
        wrong r#"partial scheduler s {
    queue RQ;
    event newthread(t) { t => RQ; }
}"#;
        right r#"partial scheduler s {
    data { queue RQ; }
    event newthread(t) { t => RQ; }
}"#;

    TOO_DEEP = "E0110", "nested too deeply";
        "Blocks, conditions and expressions may stand inside each other about 250 levels \
         deep; each `else if` and each further operand of a chain like `a + b + c` is a level \
         too. Compute parts in statements of their own.";
        wrong [];
        right [];

    MISSPELT_WORD = "E0111", "a misspelt word";
        "A word stands where only a few are possible, and is very near to one of them. \
         It was read as that one.";
        wrong r#"partial scheduler s {
    data { queue RQ; }
    evnt newthread(t) { t => RQ; }
}"#;
        right r#"partial scheduler s {
    data { queue RQ; }
    event newthread(t) { t => RQ; }
}"#;

    RESERVED_WORD = "E0112", "a reserved word used as a name";
        "The words that the grammar is made of cannot be names: not of variables, not of \
         attributes, not of schedulers. The newer words (now, cpu, cpus, random, alarm, at, \
         preempt, tunable, percpu, is) are not reserved.";
        wrong r#"partial scheduler s {
    data {
        queue data;
    }
}"#;
        right r#"partial scheduler s {
    data {
        queue records;
    }
}"#;

    TRAILING_TEXT = "E0113", "text behind the end of the scheduler";
        "A file holds one scheduler, and a scheduler ends with the `}` that closes its `{`. \
         When text follows, often one `}` before it is too many.";
        wrong r#"partial scheduler s {
    data { int x; }
    event init { x = 0; } }
    event quantum_expired(t) { x++; }
}"#;
        right r#"partial scheduler s {
    data { int x; }
    event init { x = 0; }
    event quantum_expired(t) { x++; }
}"#;

    NO_SCHEDULER = "E0114", "a file that holds no scheduler";
        "A file holds `scheduler NAME { .. }`, perhaps with `partial` before it, or \
         `distributed scheduler NAME { .. }`, or sections, invariants and aspects that are \
         to be added to a scheduler.";
        wrong r#"x = 1;"#;
        right r#"partial scheduler s {
    data { int x; }
    event init { x = 1; }
}"#;

    EXPECTED_EXPRESSION = "E0115", "a missing expression";
        "An operator, a parenthesis or a statement here needs a value: a number, a name, \
         `|C|`, `*C`, or something made of them.";
        wrong r#"partial scheduler s {
    data { int x, y; }
    event init { x = y * ; }
}"#;
        right r#"partial scheduler s {
    data { int x, y; }
    event init { x = y * 2; }
}"#;

    NOT_ASSIGNABLE = "E0116", "something that cannot be assigned to";
        "Variables, elements of arrays and attributes can be given a value. Sizes, first threads \
         and results cannot: they follow from what the containers hold.";
        wrong r#"partial scheduler s {
    data { queue RQ; int ready; }
    event init { |RQ| = 0; }
}"#;
        right r#"partial scheduler s {
    data { queue RQ; int ready; }
    event init { ready = |RQ|; }
}"#;

    NOT_A_CONTAINER = "E0117", "no container where one is needed";
        "A transfer, `dispatch`, `destroy`, `foreach`, `alarm`, `|..|` and `*` are about \
         a container or a thread, which is named: `RQ`, `RQ[2]`, `t`. `*RQ` is a thread's \
         name to compare or to ask for attributes; to move that thread, move from RQ: its \
         first thread is the one that goes.";
        wrong r#"partial scheduler s {
    data { threadref current; queue RQ; }
    event newthread(t) { t => RQ; }
    event schedule { if (|RQ| > 0 && |current| == 0) *RQ => current; }
}"#;
        right r#"partial scheduler s {
    data { threadref current; queue RQ; }
    event newthread(t) { t => RQ; }
    event schedule { if (|RQ| > 0 && |current| == 0) RQ => current; }
}"#;

    IMPORT_WITHOUT_DEFAULT = "E0118", "an import without a default";
        "An import is a variable of the application. Until the application has registered it \
         the default holds, so every import needs one.";
        wrong r#"partial scheduler s {
    imports { int idle = 0; }
}"#;
        right r#"partial scheduler s {
    imports { int idle default 0; }
}"#;

    UNKNOWN_TYPE = "E0119", "a type that does not exist";
        "Values are `int`, `float` or `time`; containers of threads are `threadref`, `queue`, \
         `stack`, `pqueue` or `pstack`.";
        wrong r#"partial scheduler s {
    data {
        long total;
    }
}"#;
        right r#"partial scheduler s {
    data {
        int total;
    }
}"#;

    LONE_DECLARATION = "E0120", "a declaration where nothing can follow it";
        "A name is known from its declaration to the end of the block around it. As the only \
         statement of a branch or in the head of `for`, a declaration has no block of its own.";
        wrong r#"partial scheduler s {
    data { int x; }
    event init { for (int i = 0; i < 3; i++) x += i; }
}"#;
        right r#"partial scheduler s {
    data { int x; }
    event init { int i; for (i = 0; i < 3; i++) x += i; }
}"#;

    NOT_AN_ATTRIBUTE = "E0121", "a declaration that no attribute can have";
        "The attributes of a thread are plain values: int, float or time. Containers, constants, \
         tunables and per-CPU variables belong to the scheduler, in `data { .. }`.";
        wrong r#"partial scheduler s {
    thread { queue waiters; }
}"#;
        right r#"partial scheduler s {
    data { queue waiters; }
}"#;

    OR_WITHOUT_LEFT = "E0122", "a logical or without a left side";
        "Two bars with nothing between them are a logical or. One container between two bars \
         is the number of its threads; an expression cannot stand there.";
        wrong r#"partial scheduler s {
    data { queue RQ; int x; }
    event newthread(t) {
        x = ||RQ| - 3|;
        t => RQ;
    }
}"#;
        right r#"partial scheduler s {
    data { queue RQ; int x; }
    event newthread(t) {
        x = |RQ| - 3;
        if (x < 0) x = -x;
        t => RQ;
    }
}"#;

    VERBATIM_ARGUMENT = "E0123", "verbatim text behind an operand";
        "`(*` opens verbatim text, except after `if`, `while`, `for`, `foreach` and a \
         handler's name. An argument that begins with the first thread of a container needs \
         a space: `random( *RQ.key)`.";
        wrong r#"partial scheduler s {
    thread { int key; }
    data { queue RQ; int x; }
    event newthread(t) {
        t => RQ;
        x = random(*RQ.key) + (* 3 *);
    }
}"#;
        right r#"partial scheduler s {
    thread { int key; }
    data { queue RQ; int x; }
    event newthread(t) {
        t => RQ;
        x = random( *RQ.key) + (* 3 *);
    }
}"#;

    FOREIGN_OPERATOR = "E0124", "an operator that the language lacks";
        "The operators are = *= /= %= += -=, ||, &&, == !=, < > <= >=, + -, * / %, ++ -- - !, \
         and the dot. There are none on bits, no `->` and no `? :`.";
        wrong r#"partial scheduler s {
    data { int a, b, x; }
    event init { if (a & b) x = 1; }
}"#;
        right r#"partial scheduler s {
    data { int a, b, x; }
    event init { if (a && b) x = 1; }
}"#;

    MISSING_PARENTHESES = "E0125", "a condition without parentheses";
        "The conditions of `if`, `while` and `do .. while` stand in parentheses.";
        wrong r#"partial scheduler s {
    data { int a, x; }
    event init { if a > 0 { x = 1; } }
}"#;
        right r#"partial scheduler s {
    data { int a, x; }
    event init { if (a > 0) { x = 1; } }
}"#;

    FILE_TOO_LONG = "E0126", "a file that is too long";
        "A scheduler file may be 16 MiB long. A scheduler that people wrote is a thousand \
         times shorter.";
        wrong [];
        right [];

    ARRAY_INITIALIZER = "E0127", "an array with an initial value";
        "An array's elements begin as 0, or as empty containers. Other values are assigned \
         in `event init`.";
        wrong r#"partial scheduler s {
    data {
        int weight[4] = 1;
    }
}"#;
        right r#"partial scheduler s {
    data { int weight[4]; }
    event init {
        int i;
        for (i = 0; i < 4; i++) weight[i] = 1;
    }
}"#;

    REPEATED_WORD = "E0128", "a word said twice";
        "`const`, `tunable` and `percpu` stand before a type at most once each.";
        wrong r#"partial scheduler s {
    data {
        const const int N = 3;
    }
}"#;
        right r#"partial scheduler s {
    data {
        const int N = 3;
    }
}"#;

    NOT_CALLABLE = "E0129", "a call of something that is no function";
        "Only the functions of the language can be called, by their name: `random(10)`. Functions \
         of the target language are called in verbatim text: `(* f(3) *)`.";
        wrong r#"partial scheduler s {
    data { int f, x; }
    event init { x = (f)(3); }
}"#;
        right r#"partial scheduler s {
    data { int x; }
    event init { x = random(3); }
}"#;

    UNKNOWN_SUPPLIER = "E0130", "a supplier of an import that does not exist";
        "`by` names the part of the system that may say the value of an import: the `owner` of the \
         thread, the `loader` of the policy, a `table` by process, or the `kernel`.";
        wrong r#"partial scheduler s {
    threadimports { int prio default 0 by root; }
}"#;
        right r#"partial scheduler s {
    threadimports { int prio default 0 by loader; }
}"#;

    TOO_MANY_ERRORS = "E0199", "more problems than are shown";
        "One mistake can make much of what follows unreadable. After a hundred messages about \
         a file the rest is left out; the first few are those to look at.";
        wrong [];
        right [];

    LEADING_ZERO = "W0101", "a number with a leading zero";
        "In C a leading zero makes a number octal: 010 is eight. Here every number without `0x` \
         is decimal: 010 is ten. Without its zeros the number means the same to everyone.";
        wrong r#"partial scheduler s {
    data { int x; }
    event init { x = 010; }
}"#;
        right r#"partial scheduler s {
    data { int x; }
    event init { x = 10; }
}"#;
}
