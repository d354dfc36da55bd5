//! What `attune check` tells somebody who tries it for the first time.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn folder(test: &str, files: &[(&str, &str)]) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).unwrap();
    for (name, text) in files {
        std::fs::write(path.join(name), text).unwrap();
    }
    path
}

fn attune(folder: &Path, words: &[&str]) -> Output {
    let mut attune = Command::new(env!("CARGO_BIN_EXE_attune"));
    attune.args(words).current_dir(folder).output().unwrap()
}

/// Exit status and everything printed.
fn said(output: Output) -> (i32, String) {
    let text = [output.stdout, output.stderr].concat();
    (output.status.code().unwrap(), String::from_utf8(text).unwrap())
}

#[test]
fn a_scheduler_that_no_engine_runs_is_not_ok() {
    let text = "scheduler s { data { queue RQ; } event newthread(t) { t => RQ; } }";
    let folder = folder("nowhere", &[("s.sched", text)]);
    let (status, text) = said(attune(&folder, &["check", "s.sched"]));
    assert_eq!(status, 1, "{text}");
    assert!(text.contains("s.sched: s: no engine runs it"), "{text}");
    assert!(text.contains("schedule, switch_out, event_raised or resume_thread"), "{text}");
}

#[test]
fn the_line_that_may_fail_is_told_without_asking() {
    let text = "scheduler s extends fifo {
    data { threadref first; }
    event newthread(t) { if (|first| == 0) t => first; else if (|ready| < 9) t => ready; }
    event schedule {
        first => current;
        dispatch current;
    }
}";
    let folder = folder("line", &[("s.sched", text)]);
    let (status, text) = said(attune(&folder, &["check", "s.sched"]));
    assert_eq!(status, 0, "{text}");
    assert!(text.contains("s.sched:5:9: `first`"), "{text}");
    assert_eq!(text.matches("s.sched:5:9: ").count(), 1, "once for all engines: {text}");
    assert!(text.contains("1 new thread may be lost"), "{text}");
    assert!(text.contains("s.sched:3:21: there is a path"), "{text}");
}

const MASTER: &str = r#"distributed scheduler farm {
    nodefamilies { "web.subsched" : web; }
    nodes { queue all; }
    arrival (n) { n => all; }
}"#;

const WEB: &str = "scheduler web extends fifo { }";

#[test]
fn commands_say_what_they_cannot_do_with_a_distributed_scheduler() {
    let files = [("farm.sched", MASTER), ("web.subsched", WEB)];
    let folder = folder("farm", &files);
    let is_master = "farm.sched is a master: `attune manager` runs it";
    for engine in ["threads", "kernel", "embedded"] {
        let words = ["build", "farm.sched", "--engine", engine, "-o", "farm.c"];
        let (status, text) = said(attune(&folder, &words));
        assert_eq!(status, 2, "{engine}: {text}");
        assert!(text.contains(is_master), "{engine}: {text}");
    }
}

#[test]
fn a_distributed_scheduler_is_checked_and_drawn_with_its_nodes() {
    let folder = folder("drawn", &[("farm.sched", MASTER), ("web.subsched", WEB)]);
    let (status, text) = said(attune(&folder, &["check", "farm.sched"]));
    assert_eq!(status, 0, "{text}");
    assert!(text.contains("farm.sched: farm: ok"), "{text}");
    assert!(text.contains("farm, the master:\n    cluster    yes: "), "{text}");
    assert!(text.contains("nodes of family web:\n    simulator  yes: "), "{text}");
    let (status, text) = said(attune(&folder, &["diagram", "farm.sched", "-o", "farm.dot"]));
    assert_eq!(status, 0, "{text}");
    let drawn = std::fs::read_to_string(folder.join("farm.dot")).unwrap();
    assert!(drawn.contains("label=\"master\"") && drawn.contains("arrival"), "{drawn}");
    assert!(drawn.contains("label=\"nodes of family web\""), "{drawn}");
}
