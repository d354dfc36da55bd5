//! Source to IR: each construct of the language, and the order of effects.

use super::{check_text, drawn};

fn dump(text: &str) -> String {
    let checked = check_text(text);
    let Some(program) = &checked.program else { panic!("{}", drawn(&checked)) };
    format!("{}\n\n{}{program}", text.trim(), drawn(&checked))
}

macro_rules! shows {
    ($name:ident, $text:literal) => {
        #[test]
        fn $name() {
            insta::assert_snapshot!(stringify!($name), dump($text));
        }
    };
}

shows!(
    a_first_scheduler,
    "
scheduler first {
    thread { int blocked = 0; }
    data   { threadref current; queue RQ, waiting; }

    event newthread(t)         { t => RQ; }
    event set_waiting(fixed t) { t.blocked = 1; }
    event event_raised(t)      { t.blocked = 0; t => RQ; }
    event schedule {
        if (|RQ| > 0) {
            RQ => current;
            dispatch current for 3ms;
        }
    }
    event switch_out {
        if (current.blocked)
            current => waiting;
        else
            current => RQ;
    }
    query first_waiting   { return *waiting; }
    query is_waiting(t)   { return t.blocked; }
    query timeslice_left  { return 3ms; }
}"
);

shows!(
    declarations,
    "
scheduler s {
    imports       { int wanted default N * 2; float share default 1; time period default 20ms; }
    threadimports { time due default 5 * 1ms; }
    thread        { int prio = -1; float weight = 1; time since; int ticket = random(10); }
    data {
        const int N = 3, M = N + 1;
        const float HALF = 1 / 2.0;
        const int SEED = random(100);
        tunable time quantum = N * 2ms;
        percpu int picks = 4;
        percpu time started = now;
        int total, seen[M], start = cpus * 2;
        threadref current, spare[2];
        percpu threadref next;
        queue RQ[N];
        stack undone;
        pqueue by_prio sortable on prio;
        pqueue by_due increasing sortable on due;
        pstack by_weight decreasing sortable on weight;
        pqueue levels[M] reverse sortable on prio;
    }
}"
);

shows!(
    operands_are_read_from_left_to_right,
    "
scheduler s {
    thread { int p; }
    data { int n, m, a[8]; threadref current; queue Q[2]; pqueue P sortable on p; }
    imports { int seen default 0; }
    event init {
        int i = 2;
        n = i + (i = 5) * i;
        n = i++ + i++;
        n = ++i - --i;
        m = n = seen = i;
        n = seen + (seen = 3);
        a[i++] = i;
        a[i] = i++;
        a[i++] += i;
        a[n + 1] *= 2;
        n = a[i] + a[n] + a[m];
        a[a[i]] = a[n];
        n = m / i + a[i];
        n = m / 7 + a[i];
        n = random(6) + random(6);
        n = a[i] + random(6);
    }
    event newthread(t) {
        int i;
        t.p = t.p + (t.p = 2);
        i = *P.p + (t.p = 3);
        i = *Q[i].p + *Q[1].p;
        *Q[i++].p += i;
        Q[i++] => Q[i++];
        t => Q[0];
    }
    event schedule {
        if (|Q[0]| > 0) dispatch Q[n] for n++ * 1ms;
    }
}"
);

shows!(
    and_and_or_skip_their_right_side,
    "
scheduler s {
    thread { int p; }
    data { int n, m; float f; queue A, B; }
    event init {
        if (n && m) n = 1;
        if (n || (m = 2)) n = 1;
        if (n && m++ && random(2)) n = 1;
        m = n && (m = 3);
        n = f || !f;
        if (|A| > 0 && |B| > 0 && *A.p < *B.p) n = 2;
        while (n > 0 && n-- != 5) m++;
    }
}"
);

shows!(
    loops,
    "
scheduler s {
    thread { int p; }
    data { int n, m; queue A; }
    event init {
        int i;
        for (i = 0; i < 3; i++) n += i;
        for (;;) { if (n) break; else continue; }
        for (n = 3; n-- > 0; m = n++) ;
        while (|A| > 0) n++;
        while (m++ < 3) { n = m; }
        do n--; while (n);
        do { if (n == 2) continue; } while ((n = n / 2) > 0);
    }
}"
);

shows!(
    arithmetic_and_conversions,
    "
scheduler s {
    data { int n; float f; time d; }
    event init {
        n = 9223372036854775807 + 1;
        n = 7 / 2 * 2 + 7 % 4;
        n = -7 / 2;
        n = 2.9;
        f = n;
        f = n / 2 + 0.5;
        f += n;
        n *= f;
        d = now + 5ms;
        d = d * 3 + d * f + d / 2 - d % 1ms;
        n = d / 1ms;
        f = d / 1ms;
        n = d > 0 && d != 2ms;
        n = !f + !n + -n;
        n = true + false;
        if (f) n = 1;
        n = f == n;
        d++;
        f--;
    }
}"
);

shows!(
    threads_are_compared_by_name,
    "
scheduler s {
    data { int n, i, a[4]; threadref current, b[3]; queue Q, R[2]; }
    event event_raised(t) {
        if (t == current) n = 1;
        if (t != *Q) n = 2;
        if (b[i] == *R[n]) n = 3;
        if (b[a[i]] != *R[a[n]]) n = 4;
        t => Q;
    }
}"
);

shows!(
    local_variables_and_containers,
    "
scheduler s {
    data { queue RQ; int n; }
    event switch_out {
        const int K = 3;
        int i = K, j, a[K];
        n = i;
        {
            int i = 7;
            n = i;
        }
        if (|RQ| > 1) {
            threadref tmp;
            queue rest[2];
            RQ => tmp;
            while (i > 0) {
                int fresh;
                fresh++;
                i--;
            }
            tmp => rest[1];
            rest[1] => RQ;
        }
        a[j] = n;
        i = 9;
    }
}"
);

shows!(
    foreach_alarm_preempt_destroy,
    "
scheduler s {
    thread { int dead; time due; }
    data { threadref current; queue RQ; pqueue sleeping increasing sortable on due; percpu int load = 1; }
    event alarm(t) { t => RQ; }
    event switch_out(t) {
        foreach x in RQ {
            if (x == t) continue;
            if (x.dead) { destroy x; break; }
            alarm x at x.due + 5ms;
            x => sleeping;
        }
        if (|sleeping| > 0) alarm sleeping at 0;
        load[cpu] = load[(cpu + 1) % cpus] + load;
        preempt (cpu + 1) % cpus;
        preempt load[cpu] at load[cpus] + 1ms;
        destroy current;
    }
}"
);

shows!(
    aspects_are_parts_of_their_handler,
    "
scheduler s {
    data { int n, depth; queue RQ; threadref current; }
    event newthread(t) { threadref keep; t => keep; keep => RQ; return; }
    before newthread(u) { n++; if (u == current) return; depth = 1; }
    after newthread { threadref spare; n--; }
    after schedule { n = 0; }
    event schedule { if (|current| > 0) dispatch current; }
}"
);

shows!(
    invariants,
    "
scheduler s {
    thread { int p; }
    data { queue RQ; const int MOST = 100; }
    invariant RQ {
        int sum = 0;
        foreach t in RQ
            sum += t.p;
        return sum < MOST && |RQ| <= MOST;
    }
}"
);

shows!(
    verbatim_text,
    "
scheduler s {
    data { int n; float f; time d; }
    event init {
        const int K = 3;
        int r = (* rand() *) % 100;
        f = (* drand48() *) * 2.0;
        d = (* time_of_day() *);
        n = n + (* n++ *);
        {* if (n > K) puts(\"lucky\"); *}
        (* puts(\"again\") *);
    }
}"
);

shows!(
    new_words_give_way_to_declarations,
    "
scheduler s {
    data { int now, cpus, random, alarm, preempt, tunable, percpu, at; }
    event init {
        int cpu = 4;
        now = cpu + cpus;
        alarm = at = preempt;
        tunable = percpu;
        random = random(9);
    }
}"
);
