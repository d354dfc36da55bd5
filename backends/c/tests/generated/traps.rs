//! What a failed check says: the place, what was tried, what was found.

use attune_backend_c::Options;

use crate::support::{Compiled, run};

/// A scheduler whose `alarm` handler has that body.
fn with_alarm(body: &str) -> String {
    format!(
        "scheduler trapping {{
    thread {{ int level = 0; }}
    data {{ threadref current, other; queue RQ, levels[4]; int n = 7; int seen[3]; }}
    event newthread(t) {{ t => RQ; }}
    event event_raised(t) {{ t => RQ; }}
    event schedule {{ if (|RQ| > 0 && |current| == 0) RQ => current; if (|current| > 0) dispatch \
        current; }}
    event switch_out {{ if (|current| > 0) current => RQ; }}
    event resume_thread(t) {{ t => levels[t.level]; }}
    event set_next_thread(t) {{ t => other; }}
    event alarm(t) {{
{body}
    }}
    query threads_total {{ return |current| + |other| + |RQ| + |levels[0]| + |levels[1]| + \
        |levels[2]| + |levels[3]|; }}
}}"
    )
}

const THREE: [&str; 6] = [
    "thread 1",
    "call newthread 1 0 0",
    "thread 2",
    "call newthread 2 0 0",
    "thread 3",
    "call newthread 3 0 0",
];

fn message(name: &str, body: &str, more: &[&str]) -> String {
    let commands: Vec<&str> = THREE.iter().chain(more).copied().collect();
    run(name, &with_alarm(body), &commands).message().to_string()
}

#[test]
fn a_transfer_says_where_and_what_both_containers_hold() {
    assert_eq!(
        message("empty_source", "levels[1] => RQ;", &["call alarm 1 0 0"]),
        "empty_source.sched:11:1: cannot take a thread from levels[1]: it is empty \
         (RQ holds threads 1, 2, 3; levels[1] is empty)"
    );
    assert_eq!(
        message(
            "full",
            "RQ => other;",
            &["call schedule 0 0 0", "call alarm 1 0 0", "call alarm 1 0 0"]
        ),
        "full.sched:11:7: cannot move RQ to other: there is a thread already \
         (other holds thread 2; RQ holds thread 3)"
    );
}

#[test]
fn a_long_container_is_cut() {
    let commands: Vec<String> = (1..21)
        .flat_map(|id| [format!("thread {id}"), format!("call newthread {id} 0 0")])
        .collect();
    let mut commands: Vec<&str> = commands.iter().map(String::as_str).collect();
    commands.push("call alarm 1 0 0");
    assert_eq!(
        run("long", &with_alarm("other => RQ;"), &commands).message(),
        "long.sched:11:1: cannot take a thread from other: it is empty (RQ holds threads 1, 2, 3, \
            4, 5, 6, 7, 8, 9, 10, \
         11, 12, 13, 14, 15, 16 and 4 more; other is empty)"
    );
}

#[test]
fn other_checks_say_what_they_found() {
    assert_eq!(
        message("index", "seen[5 * |RQ|] = 1;", &["call alarm 1 0 0"]),
        "index.sched:11:1: the index in seen[5 * |RQ|] is out of range (it is 15, outside 0..2)"
    );
    assert_eq!(
        message("attribute", "other.level = 3;", &["call alarm 1 0 0"]),
        "attribute.sched:11:1: cannot use other: it is empty (other is empty)"
    );
    assert_eq!(
        message("first", "n = *levels[2].level;", &["call alarm 1 0 0"]),
        "first.sched:11:5: cannot use the first thread of levels[2]: there is none (levels[2] is \
            empty)"
    );
    assert_eq!(
        message("destroyed", "if (|RQ| > 1) destroy t; t => RQ;", &["call alarm 2 0 0"]),
        "destroyed.sched:11:26: cannot move t: it was destroyed before (thread 2)"
    );
    assert_eq!(
        message("endless", "while (n > 0) n = 2 + n % 2;", &["call alarm 1 0 0"]),
        "endless.sched:11:1: the loops of alarm took more than 1048576 iterations in one call"
    );
    assert_eq!(
        message("local", "threadref tmp; if (|RQ| > 1) RQ => tmp;", &["call alarm 1 0 0"]),
        "local.sched:11:11: tmp is local and not empty at the end of alarm (tmp holds thread 1)"
    );
}

#[test]
fn a_new_thread_must_be_stored() {
    let text = "scheduler careless {
    threadimports { int lost default 0; }
    data { threadref current; queue RQ; }
    event newthread(t) { if (!t.lost) t => RQ; }
    event event_raised(t) { t => RQ; }
    event schedule { if (|RQ| > 0) { RQ => current; dispatch current; } }
    event switch_out { if (|current| > 0) current => RQ; }
}";
    let run = run("careless", text, &["thread 5", "linkthread lost 3 5 1", "call newthread 5 0 0"]);
    let message = run.message();
    assert!(message.starts_with("careless.sched:4:"), "{message}");
    assert!(message.ends_with(": newthread has put t into no container (thread 5)"), "{message}");
}

#[test]
fn invariants_run_in_debug_builds_and_only_there() {
    let text = "scheduler watched {
    data { threadref current; queue RQ; }
    event newthread(t) { t => RQ; }
    event event_raised(t) { t => RQ; }
    event schedule { if (|RQ| > 0) { RQ => current; dispatch current; } }
    event switch_out { if (|current| > 0) current => RQ; }
    invariant RQ { foreach t in RQ { if (|RQ| > 2) return 0; } }
}";
    let debug = Compiled::new("watched_debug", text, &Options { debug: true }, &[]).run(&THREE);
    assert_eq!(
        debug.message().split_once(": ").unwrap().1,
        "the invariant of RQ does not hold (RQ holds threads 1, 2, 3)"
    );
    assert!(!run("watched", text, &THREE).trapped);
}

#[test]
fn a_record_that_the_program_has_overwritten_is_noticed_in_debug_builds() {
    let text = "scheduler overwritten {
    data { threadref current; queue RQ; }
    event newthread(t) { t => RQ; }
    event event_raised(t) { {* t->attune.where = NULL; *} }
    event alarm(t) { if (|RQ| > 0) { RQ => current; current => RQ; } }
    event schedule { if (|RQ| > 0) { RQ => current; dispatch current; } }
    event switch_out { if (|current| > 0) current => RQ; }
}";
    let commands: Vec<&str> =
        THREE.into_iter().chain(["call event_raised 2 0 0", "call alarm 1 0 0"]).collect();
    let debug = Compiled::new("overwritten", text, &Options { debug: true }, &[]).run(&commands);
    assert_eq!(
        debug.message(),
        "overwritten.sched:1:1: a container is inconsistent: the program has overwritten a \
            thread's record (RQ)"
    );
}
