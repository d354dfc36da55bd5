//! Generated C beside its scheduler, as snapshots: the runtime above it and the table below it left
//! out.

use attune_backend_c::Options;

use crate::support::c_of;

fn shown(name: &str, text: &str, debug: bool) -> String {
    let c = c_of(&format!("{name}.sched"), text, &Options { debug });
    let (_, scheduler) = c.split_once("/* ---- The scheduler").unwrap();
    let (_, scheduler) = scheduler.split_once("#define ATTUNE_FIRST").unwrap();
    let (_, scheduler) = scheduler.split_once('\n').unwrap();
    let (handlers, _) = scheduler.split_once("static void attune_start").unwrap();
    let handlers: Vec<String> = handlers.lines().map(without_place_in_c).collect();
    format!("{text}\n----------\n{}\n", handlers.join("\n"))
}

/// Where the C itself goes on depends on the length of the runtime above it.
fn without_place_in_c(line: &str) -> String {
    match line.strip_prefix("#line ").and_then(|place| place.split_once(' ')) {
        Some((_, file)) if file.ends_with(".c\"") => format!("#line .. {file}"),
        _ => line.to_owned(),
    }
}

const LEVELS: &str = "scheduler levels {
    threadimports { int level default 0; }
    data {
        threadref current;
        queue RQ[4];
        int chosen = 0;
    }
    event newthread(t) { t => RQ[0]; }
    event event_raised(t) {
        if (t.level >= 0 && t.level < 4)
            t => RQ[t.level];
        else
            t => RQ[3];
    }
    event schedule {
        int i;
        for (i = 0; i < 4; i++) {
            if (|RQ[i]| == 0)
                continue;
            RQ[i] => current;
            chosen += i;
            dispatch current for 2ms * (i + 1);
        }
    }
    event switch_out { if (|current| > 0) current => RQ[3]; }
}";

#[test]
fn levels() {
    insta::assert_snapshot!(shown("levels", LEVELS, false));
}

#[test]
fn levels_for_debugging() {
    let text = LEVELS.replace(
        "event newthread",
        "invariant current { return |current| < 2; }\n    event newthread",
    );
    insta::assert_snapshot!(shown("levels", &text, true));
}

#[test]
fn sorted_with_effects_inside_expressions() {
    let text = "scheduler effects {
    imports { float speed default 1.5; }
    thread { float due = 0.0; }
    data { threadref current; pqueue RQ increasing sortable on due; int turns = 0; }
    event newthread(t) { t.due = turns++ / speed; t => RQ; }
    event event_raised(t) { t => RQ; t.due -= random(10); }
    event schedule {
        while (|RQ| > 1 && random(6) == 0) {
            threadref skipped;
            RQ => skipped;
            skipped.due = skipped.due + 1.0;
            skipped => RQ;
        }
        if (|RQ| > 0) { RQ => current; dispatch current; }
    }
    event switch_out { if (|current| > 0) current => RQ; speed = speed * 0.5; }
    before schedule { if (turns > 100) return; turns = turns * 2; }
}";
    insta::assert_snapshot!(shown("effects", text, false));
}

/// Which loops need a cursor.
#[test]
fn visits() {
    let text = "scheduler visits {
    thread { int rank = 0; int seen = 0; }
    data { threadref current; queue NEW; pqueue RQ increasing sortable on rank; }
    event newthread(t) { t => NEW; }
    event event_raised(t) { t => NEW; }
    event switch_out { if (|current| > 0) current => NEW; }
    event schedule {
        foreach t in NEW
            t => RQ;
        foreach t in RQ
            t.seen++;
        foreach t in RQ
            t.rank = t.seen % 4;
        foreach t in RQ
            if (t.seen > 100) {
                t => NEW;
                if (t.rank > 2)
                    continue;
                break;
            }
        foreach t in RQ
            if (t.rank > 1) {
                t => current;
                break;
            }
        foreach t in RQ
            foreach other in NEW
                if (|current| == 0 && other.rank > t.rank) {
                    other => current;
                    dispatch current;
                }
        if (|current| > 0)
            dispatch current;
    }
}";
    insta::assert_snapshot!(shown("visits", text, false));
}

#[test]
fn verbatim_text() {
    let text = "scheduler dice {
    threadimports { int prio default 0; }
    data { threadref current; queue RQ; }
    event newthread(t) { {* t->userdata = NULL; *} t => RQ; }
    event event_raised(t) { t => RQ; }
    event schedule {
        if (|RQ| > 0) {
            int r = (* rand() *) % 100;
            RQ => current;
            {* if (r > 90)
                   fprintf(stderr, \"lucky %d\\n\", (int)current->prio); *}
            dispatch current;
        }
    }
    event switch_out { if (|current| > 0) current => RQ; }
}";
    insta::assert_snapshot!(shown("dice", text, false));
}
