//! Requests that the tuner refuses, and kernels that refuse the tuner, are told.

use std::io::{BufRead, BufReader};
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};

use crate::machine::{
    Daemon, Running, alone_where_possible, attuned_elsewhere, eventually, reserved, state,
};

#[test]
fn a_pinned_program_is_told_about_and_left_alone() {
    let Some(_alone) = alone_where_possible() else { return };
    if std::thread::available_parallelism().is_ok_and(|cpus| cpus.get() == 1) {
        return;
    }
    let beat = Running(
        Command::new("taskset")
            .args(["-c", "0", env!("CARGO_BIN_EXE_attune-beat"), "40", "4"])
            .stdout(Stdio::null())
            .spawn()
            .unwrap(),
    );
    let daemon = Daemon::start(&state("pinned"));
    daemon.tune(beat.id());
    assert!(eventually(|| daemon
        .ask("{\"request\":\"status\"}")
        .to_string()
        .contains("taskset -ap")));
    assert_eq!(reserved(beat.id()), 0);
}

#[test]
fn requests_without_sense_are_refused() {
    let Some(_alone) = alone_where_possible() else { return };
    let daemon = Daemon::start(&state("nonsense"));
    for request in [
        "",
        "{",
        "{\"request\":\"dance\"}",
        "{\"request\":\"tune\",\"process\":4294967295}",
        "{\"request\":\"leave\",\"process\":1}",
    ] {
        let answer = daemon.ask(request);
        assert!(
            answer["ok"] == false
                && answer["error"].as_str().is_some_and(|error| !error.is_empty()),
            "{request}"
        );
    }
    assert_eq!(daemon.ask("{\"request\":\"status\"}")["ok"], true);
}

#[test]
fn another_user_may_ask_for_his_own_programs_alone() {
    let Some(_alone) = alone_where_possible() else { return };
    const NOBODY: u32 = 65534;
    // A folder that every user may enter.
    let folder = std::env::temp_dir().join(format!("attune-stranger-{}", std::process::id()));
    let (ours, daemon) = (Running::beat(&["40", "2"]), Daemon::start(&folder));
    let theirs = Running::of_user(NOBODY, &["sleep", "100"]);
    let (ours, theirs) = (ours.id(), theirs.id());
    let answers = std::thread::scope(|scope| {
        let stranger = scope.spawn(|| {
            let nobody = Some(rustix::process::Uid::from_raw(NOBODY));
            rustix::thread::set_thread_res_uid(nobody, nobody, nobody).unwrap();
            [
                format!("{{\"request\":\"tune\",\"process\":{ours}}}"),
                format!("{{\"request\":\"leave\",\"process\":{ours}}}"),
                format!("{{\"request\":\"tune\",\"process\":{theirs},\"weight\":1000.0}}"),
                format!("{{\"request\":\"rate\",\"ratings\":[[{theirs},1,1000,0]]}}"),
                format!("{{\"request\":\"tune\",\"process\":{theirs}}}"),
                "{\"request\":\"status\"}".to_owned(),
            ]
            .map(|request| daemon.ask(&request))
        });
        stranger.join().unwrap()
    });
    let ok = answers.each_ref().map(|answer| answer["ok"] == true);
    assert_eq!(ok, [false, false, false, false, true, true], "{answers:?}");
    assert!(answers[0]["error"].as_str().is_some_and(|error| error.contains("another user's")));
    assert_eq!(answers[3]["error"], "root rates programs, and the user at the machine their own");
    assert_eq!(reserved(ours), 0);
    // Each sees what is theirs, and root sees all.
    let programs = |status: &serde_json::Value| -> Vec<u64> {
        let programs = status["status"]["programs"].as_array().unwrap().iter();
        programs.map(|program| program["process"].as_u64().unwrap()).collect()
    };
    let request = format!("{{\"request\":\"tune\",\"process\":{ours}}}");
    assert_eq!(daemon.ask(&request)["ok"], true);
    assert_eq!(programs(&answers[5]), [u64::from(theirs)]);
    let all = daemon.ask("{\"request\":\"status\"}");
    assert_eq!(programs(&all), [u64::from(theirs), u64::from(ours)]);
    drop(daemon);
    let _ = std::fs::remove_dir_all(&folder);
}

#[test]
fn one_users_connections_shut_nobody_else_out() {
    let Some(_alone) = alone_where_possible() else { return };
    const NOBODY: u32 = 65534;
    // A folder that every user may enter.
    let folder = std::env::temp_dir().join(format!("attune-crowd-{}", std::process::id()));
    let daemon = Daemon::start(&folder);
    let connect = || UnixStream::connect(folder.join("attuned.sock")).unwrap();
    std::thread::scope(|scope| {
        let crowd = scope.spawn(|| {
            let nobody = Some(rustix::process::Uid::from_raw(NOBODY));
            rustix::thread::set_thread_res_uid(nobody, nobody, nobody).unwrap();
            let silent: Vec<UnixStream> = (0..16).map(|_| connect()).collect();
            let mut line = String::new();
            BufReader::new(connect()).read_line(&mut line).unwrap();
            (silent, line)
        });
        let (silent, line) = crowd.join().unwrap();
        assert!(line.contains("user 65534 has 16 connections"), "{line}");
        assert_eq!(daemon.ask("{\"request\":\"status\"}")["ok"], true);
        drop(silent);
    });
    drop(daemon);
    let _ = std::fs::remove_dir_all(&folder);
}

#[test]
fn a_kernel_without_btf_is_told_about() {
    let Some(_alone) = alone_where_possible() else { return };
    let folder = state("no-btf");
    let hide = "mount -t tmpfs none /sys/kernel/btf";
    let output = attuned_elsewhere(&folder, hide).output().unwrap();
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && words.contains("CONFIG_DEBUG_INFO_BTF"), "{words}");
}
