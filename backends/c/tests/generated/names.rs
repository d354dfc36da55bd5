//! Names that C has taken.

use attune_backend_c::Options;

use crate::support::{Compiled, c_of, complaints};

const HOSTILE: &str = "scheduler auto {
    imports { int errno default 1; float linux default 0.5; }
    threadimports { int volatile default 2; int next default 0; }
    thread {
        int userdata = 3; int register = 0; int attune = 4; int where = 1;
        int key = 0; int NULL = 6;
    }
    data {
        threadref current;
        pqueue static increasing sortable on key;
        queue malloc, attune_first, t, free;
        int read = 0, index = 0, clock = 1, struct_ = 2, head = 3, container = 4, c = 5, u = 6, \
            on_schedule = 7;
        int check_1_1 = 8, attune_call = 9, INT64_MAX = 10, unix = 11, typeof = 12, main = 13, \
            bool = 14, size_t = 15;
        percpu int stdin = 0;
        int inline[3];
    }
    event newthread(union) { union.register = union.volatile + union.attune; union => static; }
    event event_raised(goto) { goto.NULL = goto.userdata; goto => malloc; }
    event schedule {
        int restrict = read + index;
        foreach enum in malloc { if (enum.where) enum => static; restrict++; }
        foreach enum in static { inline[restrict % 3] += enum.key; }
        if (|static| > 0) {
            threadref double_; static => double_; double_ => current; stdin++; dispatch current;
        }
    }
    event switch_out {
        if (|current| > 0) current => malloc; c = head + container + u + typeof + unix;
    }
    query threads_ready { return |static| + |malloc|; }
}";

#[test]
fn taken_names_are_moved_aside() {
    let verbatim = HOSTILE
        .replace("int restrict =", "{* (void)current->userdata; (void)stdin; *} int restrict =");
    for text in [HOSTILE, verbatim.as_str()] {
        for debug in [false, true] {
            let c = c_of("auto.sched", text, &Options { debug });
            for compiler in ["gcc", "clang-19"] {
                assert_eq!(complaints(compiler, &[], &c), "", "{compiler}");
            }
        }
    }
}

#[test]
fn the_engine_sees_the_names_as_written() {
    let compiled = Compiled::new("taken", HOSTILE, &Options::default(), &[]);
    let run = compiled.run(&[
        "thread 1",
        "call newthread 1 0 0",
        "call schedule 0 0 0",
        "call switch_out 1 0 0",
    ]);
    let end = run.end();
    for part in [
        "| static: |",
        "| malloc: 1 |",
        " check_1_1 8 ",
        " c 36 ",
        " stdin 1 ",
        " errno 1 ",
        " linux 0.5 ",
    ] {
        assert!(end.contains(part), "{part} is missing in {end}");
    }
}
