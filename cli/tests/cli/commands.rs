//! Words, exit statuses, JSON, files written or left alone.

use serde_json::Value;

use crate::support::{Folder, err, lines, out, status};

const GOOD: &str = "scheduler good extends fifo { }";
const BAD: &str =
    "scheduler bad { data { queue RQ; } event newthread(t) { t => QR; } event init { x = 1; } }";

#[test]
fn check_says_by_its_status_whether_all_is_well() {
    let folder = Folder::new("status").with("good.sched", GOOD).with("bad.sched", BAD);
    assert_eq!(status(&folder.attune(&["check", "good.sched"])), 0);
    assert_eq!(status(&folder.attune(&["check", "fair"])), 0);
    assert_eq!(status(&folder.attune(&["check", "good.sched", "bad.sched"])), 1);
    assert_eq!(status(&folder.attune(&["check", "missing.sched", "good.sched"])), 2);
    assert_eq!(status(&folder.attune(&["check"])), 2);
    assert_eq!(status(&folder.attune(&["check", "--engine", "toaster", "fifo"])), 2);
}

#[test]
fn an_engine_that_is_asked_for_must_accept() {
    let folder = Folder::new("engine");
    assert_eq!(status(&folder.attune(&["check", "lifecycle"])), 0);
    let refused = folder.attune(&["check", "lifecycle", "--engine", "threads"]);
    assert_eq!(status(&refused), 1);
    assert!(err(&refused).contains("partial"), "{}", err(&refused));
}

#[test]
fn json_is_one_line_a_file_with_every_engine_and_place() {
    let folder = Folder::new("json").with("good.sched", GOOD).with("bad.sched", BAD);
    let output = folder.attune(&["check", "--json", "good.sched", "bad.sched", "missing.sched"]);
    assert_eq!(status(&output), 2);
    let lines = lines(&output);
    assert_eq!(lines.len(), 3);
    for line in &lines {
        let engines: Vec<&String> = line["engines"].as_object().unwrap().keys().collect();
        assert_eq!(engines, ["embedded", "kernel", "simulator", "threads"]);
        for engine in line["engines"].as_object().unwrap().values() {
            let t = &engine["transfers"];
            let sum: u64 = ["proved", "checked", "refuted", "trivial"]
                .iter()
                .map(|k| t[k].as_u64().unwrap())
                .sum();
            assert_eq!(sum, t["total"].as_u64().unwrap());
        }
    }
    let [good, bad, missing] = &lines[..] else { unreachable!() };
    assert_eq!(good["scheduler"], "good");
    assert_eq!(good["diagnostics"], Value::Array(vec![]));
    assert_eq!(good["engines"]["threads"]["accepted"], true);
    assert_eq!(good["engines"]["kernel"]["accepted"], true);
    assert_eq!(good["engines"]["embedded"]["accepted"], true);
    assert_eq!(missing["scheduler"], Value::Null);

    assert_eq!(bad["scheduler"], "bad");
    let diagnostics = bad["diagnostics"].as_array().unwrap();
    let errors: Vec<&Value> = diagnostics.iter().filter(|it| it["severity"] == "error").collect();
    assert!(errors.len() >= 2, "both unknown names are reported: {bad}");
    let unknown = &errors[0];
    let keys: Vec<&String> = unknown.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["code", "column", "hint", "line", "message", "severity"]);
    assert_eq!(
        (unknown["line"].as_u64(), unknown["column"].as_u64()),
        (Some(1), Some(62)),
        "{bad}"
    );
    assert!(unknown["hint"].as_str().unwrap().contains("RQ"), "{bad}");
}

#[test]
fn explain_knows_every_code_that_check_prints() {
    let folder = Folder::new("explain").with("bad.sched", BAD);
    let checked = folder.attune(&["check", "--json", "bad.sched"]);
    for diagnostic in lines(&checked)[0]["diagnostics"].as_array().unwrap() {
        let code = diagnostic["code"].as_str().unwrap();
        let explained = folder.attune(&["explain", code]);
        assert_eq!(status(&explained), 0);
        assert!(out(&explained).starts_with(&format!("{code}: ")));
        assert!(out(&explained).contains("Wrong:"));
    }
    assert_eq!(status(&folder.attune(&["explain", "E9999"])), 2);
    assert!(out(&folder.attune(&["explain"])).lines().count() > 30);
}

#[test]
fn schedulers_lists_the_library_and_prints_its_texts() {
    let folder = Folder::new("schedulers");
    let list = folder.attune(&["schedulers"]);
    assert!(out(&list).lines().any(|line| line.starts_with("shortest_reply ")), "{}", out(&list));
    assert!(out(&folder.attune(&["schedulers", "fair"])).contains("scheduler fair extends herd"));
    assert_eq!(status(&folder.attune(&["schedulers", "nobody"])), 2);
    let json: Value = serde_json::from_str(out(&folder.attune(&["schedulers", "--json"]))).unwrap();
    assert!(json.as_array().unwrap().iter().all(|entry| entry["idea"].is_string()));
}

#[test]
fn build_writes_c_or_a_shared_object_and_nothing_on_an_error() {
    let folder = Folder::new("build").with("good.sched", GOOD).with("bad.sched", BAD);
    for (word, bytes) in [("good.c", &b"/*"[..]), ("good.so", &b"\x7fELF"[..])] {
        let built = folder.attune(&["build", "good.sched", "--engine", "threads", "-o", word]);
        assert_eq!(status(&built), 0, "{}", err(&built));
        assert!(std::fs::read(folder.0.join(word)).unwrap().starts_with(bytes), "{word}");
    }
    for (word, bytes) in [("good.bpf.c", &b"/*"[..]), ("good.bpf.o", &b"\x7fELF"[..])] {
        let built = folder.attune(&["build", "good.sched", "--engine", "kernel", "-o", word]);
        assert_eq!(status(&built), 0, "{}", err(&built));
        assert!(std::fs::read(folder.0.join(word)).unwrap().starts_with(bytes), "{word}");
    }
    let before = folder.names();
    assert_eq!(status(&folder.attune(&["build", "bad.sched", "-o", "bad.c"])), 1);
    assert_eq!(status(&folder.attune(&["build", "lifecycle", "-o", "bad.c"])), 1);
    assert_eq!(status(&folder.attune(&["build", "good.sched", "-o", "good.exe"])), 2);
    assert_eq!(status(&folder.attune(&["build", "good.sched", "-o", "no/such/folder.c"])), 2);
    let nowhere = folder.attune(&["build", "good.sched", "-o", "no/such/folder.so"]);
    assert_eq!(status(&nowhere), 2);
    assert!(err(&nowhere).contains("cannot write no/such/folder.so"), "{}", err(&nowhere));
    assert_eq!(
        status(&folder.attune(&["build", "good.sched", "--engine", "kernel", "-o", "k.so"])),
        2
    );
    assert_eq!(folder.names(), before, "nothing was written");
}

#[test]
fn a_text_that_is_not_utf_8_is_told_by_its_place() {
    let folder = Folder::new("latin");
    std::fs::write(folder.0.join("latin.sched"), b"// \xC3\xBCber\n// \xC3\xBC\xFCber\n").unwrap();
    for words in [
        &["check", "latin.sched"][..],
        &["check", "fifo", "--aspect", "latin.sched"],
        &["sim", "fifo", "--workload", "latin.sched"],
    ] {
        let refused = folder.attune(words);
        assert_eq!(status(&refused), 2);
        assert!(
            err(&refused).contains("latin.sched: line 2, column 5: byte 0xfc"),
            "{}",
            err(&refused)
        );
    }
}

#[test]
fn checks_of_other_things_than_transfers_are_not_passed_over() {
    let text = "scheduler hoarder extends fifo {
        before schedule {
            if (|ready| > 0) { threadref mine; ready => mine; if (|ready| > 3) mine => ready; }
        }
    }";
    let folder = Folder::new("others").with("hoarder.sched", text);
    let output = folder.attune(&["check", "-v", "hoarder.sched"]);
    assert_eq!(status(&output), 0, "{}", out(&output));
    assert!(
        out(&output).contains(
            "0 left to run time, 5 of named threads; 1 local container may keep a thread"
        ),
        "{}",
        out(&output)
    );
    assert!(
        out(&output).contains("`mine` may still hold a thread when the handler ends"),
        "{}",
        out(&output)
    );
    let fifo = folder.attune(&["check", "fifo"]);
    let built =
        |line: &&str| line.trim().starts_with("simulator") || line.trim().starts_with("threads");
    assert!(!out(&fifo).lines().filter(built).any(|line| line.contains("may")), "{}", out(&fifo));
}

#[test]
fn aspects_and_folders_given_on_the_command_line_take_part() {
    let folder = Folder::new("aspects")
        .with("count.aspect", "data { int switches = 0; } before switch_out { switches++; }")
        .with("wrong.aspect", "before switch_out { nothing++; }");
    std::fs::create_dir(folder.0.join("common")).unwrap();
    let folder = folder
        .with("common/base.sched", "partial scheduler base extends fifo { }")
        .with("mine.sched", "scheduler mine extends base { }");
    assert_eq!(status(&folder.attune(&["check", "fifo", "--aspect", "count.aspect"])), 0);
    assert_eq!(status(&folder.attune(&["check", "fifo", "--aspect", "wrong.aspect"])), 1);
    assert_eq!(status(&folder.attune(&["check", "fifo", "--aspect", "missing.aspect"])), 2);
    assert_eq!(status(&folder.attune(&["check", "mine.sched"])), 1);
    assert_eq!(status(&folder.attune(&["check", "mine.sched", "-I", "common"])), 0);
}

#[test]
fn diagram_draws_what_its_ending_says() {
    let folder = Folder::new("diagram").with("bad.sched", BAD);
    for (word, bytes) in
        [("p.dot", &b"digraph"[..]), ("p.svg", &b"<?xml"[..]), ("p.png", &b"\x89PNG"[..])]
    {
        let drawn = folder.attune(&["diagram", "pth", "-o", word]);
        assert_eq!(status(&drawn), 0, "{}", err(&drawn));
        assert!(std::fs::read(folder.0.join(word)).unwrap().starts_with(bytes), "{word}");
    }
    assert_eq!(status(&folder.attune(&["diagram", "pth", "-o", "p.bmp"])), 2);
    assert_eq!(status(&folder.attune(&["diagram", "bad.sched", "-o", "bad.dot"])), 1);
    assert!(!folder.0.join("bad.dot").exists());
}

#[test]
fn sim_splits_only_policies_that_may_be_split() {
    let hogs = "duration = '50ms'\ncpus_per_cache = 2\n[[thread]]\nname = 'hog'\ncount = 6\n\
                repeat = 'forever'\ndo = [{ compute = '1ms' }]\n";
    let folder = Folder::new("per").with("hogs.toml", hogs);
    let run = |name: &str, per: &[&str]| {
        let words = ["sim", name, "--workload", "hogs.toml", "--cpus", "4", "--json"];
        folder.attune(&[&words[..], per].concat())
    };
    let instances = |per: &[&str]| {
        let output = run("fair", per);
        assert_eq!(status(&output), 0, "{}", err(&output));
        let json: Value = serde_json::from_str(out(&output)).expect("JSON");
        json["instances"].as_array().map(Vec::len)
    };
    assert_eq!(instances(&["--per", "machine"]), Some(1));
    assert_eq!(instances(&["--per", "cpu"]), Some(4));
    assert_eq!(instances(&["--per", "cache"]), Some(2));
    assert_eq!(instances(&[]), Some(2));
    let refused = run("edf", &["--per", "cpu"]);
    assert_eq!(status(&refused), 2);
    assert!(err(&refused).contains("`edf` has no `arrives` of its own"), "{}", err(&refused));
    assert_eq!(status(&run("edf", &[])), 0);
}

#[test]
fn sim_runs_a_workload_and_says_what_is_wrong_with_one() {
    // Built in: the examples of `--help` work in every folder.
    let workload = "players";
    let folder = Folder::new("sim")
        .with("broken.toml", "duration = \"1s\"\nthreads = 3\n")
        .with("bad.sched", BAD);
    let words = ["sim", "fair", "--workload", workload, "--cpus", "2", "--seed", "7"];
    let table = folder.attune(&words);
    assert_eq!(status(&table), 0, "{}", err(&table));
    assert!(out(&table).contains("p99"), "{}", out(&table));

    let with = |more: &[&str]| folder.attune(&[&words[..], more].concat());
    let json = with(&["--json", "--report", "r.html", "--trace", "t.pftrace"]);
    assert_eq!(status(&json), 0, "{}", err(&json));
    assert_eq!(out(&json), out(&with(&["--json"])), "the same seed gives the same figures");
    serde_json::from_str::<Value>(out(&json)).expect("it is JSON");
    assert!(folder.text("r.html").contains("<svg"));
    let trace = folder.trace("t.pftrace");
    assert!(["CPU 0", "CPU 1"].iter().all(|cpu| !trace.track(cpu).slices.is_empty()));

    assert_eq!(status(&with(&["--set", "period=5ms"])), 0);
    assert_eq!(status(&with(&["--set", "perod=5ms"])), 2);
    assert_eq!(status(&with(&["--set", "period=soon"])), 2);
    // A time has a unit, as for `attune run` and `attune set`.
    let bare = with(&["--set", "period=3"]);
    assert_eq!(status(&bare), 2);
    assert!(err(&bare).contains("such as period=10ms"), "{}", err(&bare));
    assert_eq!(out(&folder.attune(&words)), out(&table));
    let broken = folder.attune(&["sim", "fifo", "--workload", "broken.toml"]);
    assert_eq!(status(&broken), 1);
    assert!(err(&broken).contains("broken.toml:2"), "{}", err(&broken));
    folder.refused(&["sim", "fifo", "--workload", "missing.toml"], "built in are coop_players");
    assert_eq!(status(&folder.attune(&["sim", "bad.sched", "--workload", workload])), 1);
    assert_eq!(status(&folder.attune(&["sim", "fifo", "--workload", workload, "--cpus", "0"])), 2);
}

#[test]
fn two_schedulers_become_one_program_for_the_kernel() {
    let folder = Folder::new("both");
    let build = |others: &[&str], out: &str| {
        folder.attune(&[&["build", "edf", "-o", out], others].concat())
    };
    let both = build(&["--engine", "kernel", "--others", "edf"], "both.bpf.c");
    assert_eq!(status(&both), 0, "{}", err(&both));
    let text = folder.text("both.bpf.c");
    assert!(text.contains(" on_schedule(") && text.contains(" policy1_on_schedule("));
    assert_eq!(text.matches(r#"{\"scheduler\":{\"name\":\"edf\""#).count(), 2);
    assert_eq!(status(&build(&["--others", "fair"], "both.so")), 2, "the threads engine runs one");
    // A machine for all, or a command.
    assert_eq!(status(&folder.attune(&["run", "edf"])), 2);
    assert_eq!(status(&folder.attune(&["run", "edf", "--all", "--others", "fair"])), 2);
    assert_eq!(status(&folder.attune(&["run", "edf", "--weight", "0", "--", "true"])), 2);
    assert_eq!(status(&folder.attune(&["run", "edf", "--weight", "1:101", "--", "true"])), 2);
}

#[test]
fn every_command_shows_an_example_in_its_help() {
    let folder = Folder::new("help");
    let text = out(&folder.attune(&["--help"])).to_owned();
    let commands = text.lines().skip_while(|line| !line.starts_with("Commands:")).skip(1);
    let commands: Vec<&str> = commands.take_while(|line| !line.is_empty()).collect();
    let names = commands.iter().filter_map(|line| line.split_whitespace().next());
    // A line that begins deeper goes on with the description before it.
    let named = |name: &&str| text.contains(&format!("\n  {name} "));
    for command in names.filter(named).filter(|name| *name != "help") {
        let help = folder.attune(&[command, "--help"]);
        assert_eq!(status(&help), 0);
        let shown = out(&help);
        assert!(shown.contains("Example: attune ") || command == "coop", "{command}");
        // A user has no copy of the repository.
        for place in ["lab/", "docs/", "tools/", "examples/", "target/"] {
            assert!(!shown.contains(place) && !text.contains(place), "{command}: {place}");
        }
    }
}

#[test]
fn a_command_that_is_not_there_has_one_exit_status() {
    let folder = Folder::new("nosuch");
    for words in [&["coop", "run"][..], &["tune"], &["trace", "-o", "t.txt"]] {
        let output = folder.attune(&[words, &["--", "/no/such/program"]].concat());
        // Without the rights to trace, these commands end before.
        let denied = err(&output).contains("run it as root");
        assert!(denied || status(&output) == 127, "{words:?}: {}", err(&output));
    }
}
