//! Each workload, small, on this machine's own scheduler: it ends, and says what it should.

use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use serde_json::Value;

fn run(words: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_attune-load"))
        .args(words.split_whitespace())
        .output()
        .expect("it runs")
}

fn figures(words: &str) -> Value {
    figures_of(words, run(words))
}

fn figures_of(words: &str, output: Output) -> Value {
    assert!(output.status.success(), "{words}: {}", String::from_utf8_lossy(&output.stderr));
    let result: Value = serde_json::from_slice(&output.stdout).expect("a line of JSON");
    assert!(result.get("scheduler").is_some());
    result["figures"].clone()
}

fn number(figures: &Value, name: &str) -> f64 {
    figures[name].as_f64().unwrap_or_else(|| panic!("no number {name} in {figures}"))
}

#[test]
fn switches_are_counted() {
    let figures = figures("ping-pong --turns 500");
    assert_eq!(number(&figures, "turns"), 500.0);
    // Each turn blocks once on this side unless the answer was there at once.
    assert!(number(&figures, "switches") > 0.0 && number(&figures, "ns_per_switch") > 0.0);
}

/// The test itself listens, so the server may be any program that lasts.
#[test]
fn clients_of_a_server_print_the_figures() {
    let socket = std::env::temp_dir().join(format!("attune-served-{}", std::process::id()));
    let _listener = std::os::unix::net::UnixListener::bind(&socket).expect("a socket");
    let served = |server: &str, clients: &str| {
        Command::new(env!("CARGO_BIN_EXE_attune-load"))
            .args(["served", "--server", server, "--socket"])
            .arg(&socket)
            .arg("--")
            .args(clients.split_whitespace())
            .output()
            .expect("it runs")
    };
    let line = r#"echo {"figures":{"answers":3}}"#;
    assert_eq!(number(&figures_of(line, served("sleep 1000", line)), "answers"), 3.0);
    for (server, clients, why) in [
        ("sleep 1000", "false", "the clients failed (exit status: 1)"),
        ("sleep 1000", "echo answers", "the clients print no figures"),
        ("sleep 1000", "no-such-clients", "cannot start no-such-clients"),
        ("no-such-server", line, "cannot start no-such-server"),
        ("true", "sleep 1", "the server has ended"),
    ] {
        let output = served(server, clients);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains(why), "{server}, {clients}: {said}");
    }
    let _ = std::fs::remove_file(&socket);
}

#[test]
fn hogs_share_by_weight_and_the_index_knows_it() {
    let figures = figures("hogs --count 3 --seconds 0.3 --nice 0,19");
    assert_eq!(figures["nice"], serde_json::json!([0, 19, 0]));
    assert_eq!(figures["cpu_ns"].as_array().expect("a list").len(), 3);
    let jain = number(&figures, "jain");
    assert!((1.0 / 3.0..=1.0).contains(&jain), "{jain}");
}

#[test]
fn every_wake_up_is_counted() {
    let figures = figures("wakeups --hogs 1 --period 5000 --seconds 0.2");
    assert_eq!(figures["late_ns"]["count"], 40);
    assert!(figures["late_ns"]["max"].as_u64() >= figures["late_ns"]["p50"].as_u64());
}

#[test]
fn processes_and_messages_all_arrive() {
    assert_eq!(figures("forks --count 50 --at-once 4")["processes"], 50);
    assert_eq!(figures("messages --groups 2 --size 3 --messages 5")["messages"], 90);
}

#[test]
fn stays_end_where_another_runs() {
    // On one CPU, so that they take turns.
    let alone = "0";
    let mut command = Command::new("taskset");
    command.args([
        "-c",
        alone,
        env!("CARGO_BIN_EXE_attune-load"),
        "slices",
        "--count",
        "2",
        "--seconds",
        "1",
    ]);
    let output = command.output().expect("it runs");
    let result: Value = serde_json::from_slice(&output.stdout).expect("a line of JSON");
    let stays = &result["figures"]["stay_ns"];
    assert!(
        stays["count"].as_u64() > Some(0) && stays["min"].as_u64() <= stays["max"].as_u64(),
        "{result}"
    );
}

#[test]
fn every_job_and_request_is_counted() {
    let periodic = figures("periodic --task 5000,100 --task 20000,500 --hogs 1 --seconds 0.2");
    assert_eq!(periodic["jobs"], 50);
    assert!(periodic["missed"].as_u64() <= Some(50));
    let requests = figures("requests --workers 2 --hogs 1 --seconds 0.3");
    assert!(number(&requests, "requests_per_second") > 0.0);
    assert!(requests["wakeup_ns"]["max"].as_u64() >= requests["wakeup_ns"]["p50"].as_u64());
}

#[test]
fn a_periodic_process_says_who_reserved_for_it() {
    let words = "periodic --task 20000,500,1000 --task 20000,500 --hogs 0 --seconds 0.2";
    let nobody = figures(words);
    assert_eq!(nobody["tasks"][0]["reserved"], "nobody");
    assert_eq!(nobody["tasks"][0]["late_ns"]["count"], nobody["tasks"][0]["response_ns"]["count"]);
    // Only root may, and only while others have not reserved too much.
    let output = run(&format!("--class deadline {words}"));
    if output.status.success() {
        let result: Value = serde_json::from_slice(&output.stdout).expect("a line of JSON");
        let tasks = &result["figures"]["tasks"];
        assert_eq!(
            (&tasks[0]["reserved"], &tasks[1]["reserved"]),
            (&"deadline".into(), &"nobody".into())
        );
    } else {
        assert!(String::from_utf8_lossy(&output.stderr).contains("no reservation"), "{output:?}");
    }
}

#[test]
fn programs_are_run_and_timed_and_one_that_fails_is_told() {
    assert_eq!(figures("compile --count 2 --at-once 2")["commands"], 2);
    assert!(number(&figures("command --count 3 -- true"), "ns_per_command") > 0.0);
    let output = run("command -- false");
    assert!(String::from_utf8_lossy(&output.stderr).contains("a command failed"), "{output:?}");
    assert!(!output.status.success());
}

#[test]
fn players_serve_their_timers_with_and_without_cooperation() {
    let session = std::env::temp_dir().join(format!("attune-load-players-{}", std::process::id()));
    let words = "players --count 3 --hogs 1 --seconds 0.5 --group 2";
    for transport in ["none".to_owned(), format!("shared:{}", session.display())] {
        let figures = &figures(&format!("--coop {transport} {words}"));
        assert!(transport.starts_with(figures["transport"].as_str().expect("a name")));
        // 100 releases of sound and 24 of pictures a second, one more of each at the edges; a busy
        // machine serves fewer in time.
        let timers = number(&figures["late_ns"], "count");
        assert!((3.0..=192.0).contains(&timers), "{timers}");
        assert!(number(figures, "steps") > 0.0 && number(figures, "jain") > 0.3);
        // On a busy machine no player may have had a reason to yield.
        let yields = number(figures, "yields");
        assert!(yields == 0.0 || transport != "none", "{figures}");
        assert_eq!(figures["switches_per_yield"].is_null(), yields == 0.0, "{figures}");
    }
    let _ = std::fs::remove_dir(&session);
}

#[test]
fn real_time_tasks_take_their_share_or_say_what_they_need() {
    for class in ["fifo", "deadline"] {
        let output = run(&format!("real-time --class {class} --share 10 --seconds 0.5"));
        if output.status.success() {
            let result: Value = serde_json::from_slice(&output.stdout).expect("a line of JSON");
            assert!(number(&result["figures"], "jobs") > 20.0, "{result}");
        } else {
            assert!(String::from_utf8_lossy(&output.stderr).contains("needs root"));
            // Reservations may be taken, even for root.
            assert!(class == "deadline" || !possible("the rights of root", is_root()));
        }
    }
    assert!(String::from_utf8_lossy(&run("real-time --share 95").stderr).contains("0 to 90 %"));
}

#[test]
fn a_program_that_loads_no_scheduler_is_told() {
    let output = run("--scx /bin/false ping-pong --turns 10");
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && message.contains("/bin/false ended"), "{message}");
    let output = run("hogs --count 0");
    assert!(String::from_utf8_lossy(&output.stderr).contains("at least one process"));
}

/// Whether this test has the rights that it needs; with CI=true it must.
fn possible(what: &str, has: bool) -> bool {
    assert!(has || std::env::var("CI").as_deref() != Ok("true"), "this machine lacks {what}");
    if !has {
        eprintln!("not tested: this machine lacks {what}");
    }
    has
}

fn is_root() -> bool {
    attune_linux::process::effective_user() == 0
}

/// As root, on a machine with tracefs.
#[test]
fn a_tracer_sees_what_a_workload_says() {
    let tracefs = std::path::Path::new("/sys/kernel/tracing/instances").exists();
    if !possible("root or tracefs", is_root() && tracefs) {
        return;
    }
    // With the hog on one CPU: there are machines whose tracer misses switches away from idle.
    let words = "--traced wakeups --hogs 1 --period 5000 --seconds 0.2";
    let mut command = Command::new("taskset");
    command.args(["-c", "0", env!("CARGO_BIN_EXE_attune-load")]).args(words.split_whitespace());
    let sleeps = figures_of(words, command.output().expect("it runs"));
    // A release that has passed already needs no sleep.
    assert!(
        (1..=40).contains(&sleeps["seen"]["own_sleeps_ns"]["count"].as_u64().unwrap_or(0)),
        "{sleeps}"
    );
    let players = figures("--traced --coop none players --count 1 --seconds 0.5");
    let (said, seen) = (&players["late_ns"]["count"], &players["seen"]["timers_ns"]["count"]);
    // The loop's own timers, at the beginning and the end, are seen, too.
    assert!(seen.as_u64() >= said.as_u64() && said.as_u64() > Some(0), "{players}");
    assert!(
        !std::path::Path::new("/sys/kernel/tracing/events/attune_load").exists(),
        "nothing is left behind"
    );
}

/// What a person types is on the screen, and the tracer tells which program did what for it.
#[test]
fn a_person_types_and_the_screen_shows_it() {
    let Some(phases) = desktop(&["Xvfb", "xterm"], &["--typed", "xterm -e cat"]) else { return };
    for phase in &phases {
        let keys = &phase["screen"]["keys"];
        assert!(keys["to_screen_ns"]["count"].as_u64() > Some(0), "{phase}");
        for program in ["Xvfb", "xterm"] {
            let late = &phase["programs"][program]["wake_ns"];
            assert!(late["count"].as_u64() > Some(0), "{program}: {phase}");
        }
    }
    assert_eq!((&phases[0]["hogs"], &phases[1]["hogs"]), (&0.into(), &1.into()));
}

#[test]
fn a_person_starts_a_command_and_waits_for_it() {
    let awaited = "exec sha256sum /dev/zero";
    let words = ["--manager", "openbox", "--awaited", awaited];
    let Some(phases) = desktop(&["Xvfb", "xterm", "openbox"], &words) else { return };
    let used: Vec<Option<f64>> =
        phases.iter().map(|phase| phase["programs"]["sha256sum"]["cpu_percent"].as_f64()).collect();
    assert!(used[0].is_none() && used[1] > Some(0.0), "{phases:?}");
}

/// The two phases, without and with a hog, of a small desktop. None: it cannot be had here.
fn desktop(programs: &[&str], words: &[&str]) -> Option<Vec<Value>> {
    let tracefs = std::path::Path::new("/sys/kernel/tracing/instances").exists();
    let there = |program: &&str| {
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path).any(|folder| folder.join(program).exists())
    };
    let needed = format!("{} (tools/setup.sh test)", programs.join(" and "));
    if !possible("root or tracefs", is_root() && tracefs)
        || !possible(&needed, programs.iter().all(there))
    {
        return None;
    }
    static DISPLAYS: AtomicU32 = AtomicU32::new(0);
    // A display's port is 6000 + its number, and there are 65 536 ports.
    let own = DISPLAYS.fetch_add(1, Relaxed) * 25_000;
    let display = 1000 + own + std::process::id() % 25_000;
    let server = format!("Xvfb :{display} -screen 0 640x480x24 -nolisten tcp -ac -noreset -r");
    let output = Command::new(env!("CARGO_BIN_EXE_attune-load"))
        .args(["desktop", "--server", &server, "--hogs", "0,1"])
        .args(["--begin", "0.1", "--seconds", "1.5"])
        .args(words)
        .output()
        .expect("it runs");
    let figures = figures_of("desktop", output);
    let phases = figures["phases"].as_array().expect("phases").clone();
    assert_eq!(phases.len(), 2, "{figures}");
    Some(phases)
}
