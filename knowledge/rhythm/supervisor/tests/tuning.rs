//! The supervisor with real programs, on the real kernel: every policy is as before, however it ends. Needs root and BTF; elsewhere it
//! says so and passes, but fails where CI=true. No time is asserted; waiting is bounded.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use attune_supervisor::policy::{DEADLINE, Policy, RECLAIM, ROUND_ROBIN};
use attune_supervisor::{Error, process};

/// One test at a time: together they would want more than there is.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn state(test: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("state-{test}"));
    let _ = std::fs::remove_dir_all(&folder);
    folder
}

/// The daemon with its own state and socket, a tuner in a process of its own.
fn attuned(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_attuned"));
    command.env("ATTUNE_STATE_DIR", folder).stderr(Stdio::null()).stdin(Stdio::null());
    command
}

/// Whether this machine lets us. A tuner starts its own program as its guardian, which a test's program is not: tests drive the daemon.
fn possible() -> bool {
    match missing() {
        None => true,
        Some(error) => {
            assert!(std::env::var("CI").as_deref() != Ok("true"), "{error}");
            eprintln!("cannot run here: {error}");
            false
        }
    }
}

fn missing() -> Option<String> {
    if !attune_supervisor::policy::may_reserve() {
        return Some(Error::NoPrivilege.to_string());
    }
    (!Path::new("/sys/kernel/btf/vmlinux").exists()).then(|| "this kernel has no BTF".to_owned())
}

/// A program that is ended when the test is.
struct Running(Child);

impl Running {
    /// One that has all its threads.
    fn beat(words: &[&str]) -> Running {
        let threads =
            words.iter().find_map(|word| word.strip_prefix("threads=")).map_or(1, |n| n.parse().unwrap());
        let beat = Running(
            Command::new(env!("CARGO_BIN_EXE_attune-beat"))
                .args(words)
                .stdout(Stdio::null())
                .spawn()
                .unwrap(),
        );
        assert!(eventually(|| process::threads(beat.id()).len() == threads));
        beat
    }

    fn id(&self) -> u32 {
        self.0.id()
    }

    fn signal(&self, signal: i32) {
        // SAFETY: no memory is involved; the child was not waited for, so the number is its own.
        unsafe { libc::kill(i32::try_from(self.id()).unwrap(), signal) };
    }

    fn kill(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}

fn policies(process: u32) -> Vec<Policy> {
    process::threads(process).into_iter().filter_map(|thread| Policy::of(thread).ok()).collect()
}

fn reserved(process: u32) -> usize {
    policies(process).iter().filter(|policy| policy.is_reservation()).count()
}

/// Whether the beat is a whole number of the reservation's periods.
fn has_beat(policy: &Policy, millis: u64) -> bool {
    let periods = millis as f64 * 1e6 / policy.period as f64;
    periods >= 0.99 && (periods - periods.round()).abs() < 0.01 * periods
}

fn share(policy: &Policy) -> f64 {
    policy.runtime as f64 / policy.period as f64
}

fn stopped(process: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('T'))
}

/// Waits until something is so; false if it is not within 90 s, on however busy a machine.
fn eventually(what: impl Fn() -> bool) -> bool {
    let begun = Instant::now();
    while !what() {
        if begun.elapsed() > Duration::from_secs(90) {
            return false;
        }
        sleep(Duration::from_millis(20));
    }
    true
}

/// A daemon, and words with it.
struct Daemon {
    running: Running,
    folder: PathBuf,
}

impl Daemon {
    fn start(folder: &Path) -> Daemon {
        let daemon = Daemon { running: Running(attuned(folder).spawn().unwrap()), folder: folder.to_owned() };
        assert!(eventually(|| folder.join("attuned.sock").exists()), "the daemon listens");
        daemon
    }

    fn ask(&self, request: &str) -> serde_json::Value {
        use std::io::{BufRead, BufReader, Write};
        let mut stream = std::os::unix::net::UnixStream::connect(self.folder.join("attuned.sock")).unwrap();
        writeln!(stream, "{request}").unwrap();
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }

    fn tune(&self, process: u32) {
        let answer = self.ask(&format!("{{\"request\":\"tune\",\"process\":{process}}}"));
        assert_eq!(answer["ok"], true, "{answer}");
    }

    fn guardian(&self) -> u32 {
        let guardian = self.ask("{\"request\":\"status\"}")["status"]["guardian"].as_u64().unwrap();
        u32::try_from(guardian).unwrap()
    }
}

#[test]
fn a_program_is_reserved_with_its_period_and_given_back() {
    let (_alone, possible) = (alone(), possible());
    if !possible {
        return;
    }
    let beat = Running::beat(&["40", "4", "threads=2"]);
    let before = policies(beat.id());
    let mut daemon = Daemon::start(&state("back"));
    daemon.tune(beat.id());
    assert!(eventually(|| reserved(beat.id()) == 2), "{:?}", policies(beat.id()));
    for policy in policies(beat.id()) {
        assert!(has_beat(&policy, 40), "{policy:?}");
        assert_eq!(policy.deadline, policy.period);
        assert!(share(&policy) >= 0.0975 && share(&policy) < 1.0, "{policy:?}");
        assert!(policy.flags & RECLAIM != 0, "a long job has what nobody reserved: {policy:?}");
    }
    let status = daemon.ask("{\"request\":\"status\"}");
    assert_eq!(status["status"]["programs"][0]["process"], beat.id());
    // Asked to end, it gives back before it is gone, and leaves no state behind.
    daemon.running.signal(libc::SIGTERM);
    daemon.running.0.wait().unwrap();
    assert_eq!(policies(beat.id()), before);
    assert_eq!(std::fs::read_dir(&daemon.folder).unwrap().count(), 0);
}

#[test]
fn a_killed_tuner_is_cleaned_up_by_its_guardian() {
    let (_alone, possible) = (alone(), possible());
    if !possible {
        return;
    }
    let beat = Running::beat(&["20", "2", "threads=3"]);
    let before = policies(beat.id());
    let mut daemon = Daemon::start(&state("killed"));
    daemon.tune(beat.id());
    assert!(eventually(|| reserved(beat.id()) == 3));
    daemon.running.kill();
    assert!(eventually(|| policies(beat.id()) == before), "{:?}", policies(beat.id()));
    assert!(eventually(|| !std::fs::read_dir(&daemon.folder)
        .unwrap()
        .flatten()
        .any(|entry| entry.path().extension().is_some_and(|extension| extension == "journal"))));
}

#[test]
fn a_killed_guardian_is_replaced() {
    let (_alone, possible) = (alone(), possible());
    if !possible {
        return;
    }
    let beat = Running::beat(&["20", "2"]);
    let before = policies(beat.id());
    let mut daemon = Daemon::start(&state("guardian"));
    daemon.tune(beat.id());
    let guardian = daemon.guardian();
    // SAFETY: no memory is involved; the number is the daemon's child's, which it has not waited for.
    unsafe { libc::kill(i32::try_from(guardian).unwrap(), libc::SIGKILL) };
    assert!(eventually(|| daemon.guardian() != guardian));
    assert!(eventually(|| reserved(beat.id()) == 1));
    daemon.running.kill();
    assert!(eventually(|| policies(beat.id()) == before));
}

#[test]
fn when_both_are_killed_the_next_start_repairs() {
    let (_alone, possible) = (alone(), possible());
    if !possible {
        return;
    }
    let beat = Running::beat(&["20", "2"]);
    let before = policies(beat.id());
    let folder = state("both");
    let mut daemon = Daemon::start(&folder);
    daemon.tune(beat.id());
    assert!(eventually(|| reserved(beat.id()) == 1));
    let guardian = i32::try_from(daemon.guardian()).unwrap();
    // A stopped tuner starts no other guardian. (To stop the guardian would not do: it is alone in its process group, and the
    // kernel continues a stopped group that its parent's death orphans.) It must hold a reservation at that moment: the beat
    // may have been lost in between, and be found again.
    assert!(eventually(|| {
        daemon.running.signal(libc::SIGSTOP);
        let held = eventually(|| stopped(daemon.running.id())) && reserved(beat.id()) == 1;
        if !held {
            daemon.running.signal(libc::SIGCONT);
        }
        held
    }));
    // SAFETY: no memory is involved; the number is the daemon's child's, which it cannot have waited for.
    unsafe { libc::kill(guardian, libc::SIGKILL) };
    daemon.running.kill();
    assert_eq!(reserved(beat.id()), 1, "nobody is left to give it back");
    assert!(eventually(|| attune_supervisor::journal::repair_all(&folder).unwrap() == 1));
    assert_eq!(policies(beat.id()), before);
}

#[test]
fn new_threads_and_children_join() {
    let (_alone, possible) = (alone(), possible());
    if !possible {
        return;
    }
    // A shell that starts the program a second time, later.
    let program = env!("CARGO_BIN_EXE_attune-beat");
    let script = format!("{program} 40 3 & sleep 4; {program} 40 2; wait");
    let shell = Running(Command::new("/bin/sh").args(["-c", &script]).stdout(Stdio::null()).spawn().unwrap());
    let daemon = Daemon::start(&state("children"));
    daemon.tune(shell.id());
    let children = || -> BTreeSet<u32> {
        attune_tracer::descendants(shell.id())
            .into_iter()
            .filter(|&child| process::name(child) == "attune-beat")
            .collect()
    };
    assert!(eventually(|| children().len() == 2 && children().iter().all(|&child| reserved(child) == 1)));
    children().into_iter().for_each(|child| {
        // SAFETY: no memory is involved; children of a shell that the test started.
        unsafe { libc::kill(i32::try_from(child).unwrap(), libc::SIGKILL) };
    });
}

#[test]
fn two_tuners_share_the_machine_and_leave_each_others_threads_alone() {
    let (_alone, possible) = (alone(), possible());
    if !possible {
        return;
    }
    let (beat, other) = (Running::beat(&["40", "4"]), Running::beat(&["25", "3"]));
    let before = policies(beat.id());
    let (mut first, second) = (Daemon::start(&state("first")), Daemon::start(&state("second")));
    first.tune(beat.id());
    assert!(eventually(|| reserved(beat.id()) == 1));
    second.tune(beat.id());
    second.tune(other.id());
    assert!(eventually(|| reserved(other.id()) == 1));
    // The second tells that the thread is somebody else's, and takes over when the first has gone.
    let refused = || second.ask("{\"request\":\"status\"}").to_string().contains("somebody else");
    assert!(eventually(refused));
    first.running.signal(libc::SIGTERM);
    first.running.0.wait().unwrap();
    assert!(eventually(|| reserved(beat.id()) == 1));
    let mut second = second;
    second.running.kill();
    assert!(eventually(|| policies(beat.id()) == before));
}

#[test]
fn a_pinned_program_is_told_about_and_left_alone() {
    let (_alone, possible) = (alone(), possible());
    if !possible || std::thread::available_parallelism().is_ok_and(|cpus| cpus.get() == 1) {
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
    assert!(eventually(|| daemon.ask("{\"request\":\"status\"}").to_string().contains("taskset -ap")));
    assert_eq!(reserved(beat.id()), 0);
}

#[test]
fn a_program_that_stops_gives_back_and_gets_again() {
    let (_alone, possible) = (alone(), possible());
    if !possible {
        return;
    }
    let beat = Running::beat(&["40", "4"]);
    let daemon = Daemon::start(&state("stops"));
    daemon.tune(beat.id());
    assert!(eventually(|| reserved(beat.id()) == 1));
    beat.signal(libc::SIGSTOP);
    assert!(eventually(|| reserved(beat.id()) == 0));
    beat.signal(libc::SIGCONT);
    assert!(eventually(|| reserved(beat.id()) == 1));
}

#[test]
fn a_new_rate_is_followed() {
    let (_alone, possible) = (alone(), possible());
    if !possible {
        return;
    }
    let beat = Running::beat(&["40", "4", "to=25"]);
    let daemon = Daemon::start(&state("rate"));
    daemon.tune(beat.id());
    let keeps = |millis: u64| {
        policies(beat.id()).iter().any(|policy| policy.is_reservation() && has_beat(policy, millis))
    };
    assert!(eventually(|| keeps(40)));
    beat.signal(libc::SIGUSR2);
    assert!(eventually(|| keeps(25)), "{:?}", policies(beat.id()));
}

#[test]
fn a_program_that_only_loops_loses_its_reservation() {
    let (_alone, possible) = (alone(), possible());
    if !possible {
        return;
    }
    let beat = Running::beat(&["40", "4"]);
    let daemon = Daemon::start(&state("loops"));
    daemon.tune(beat.id());
    assert!(eventually(|| reserved(beat.id()) == 1));
    beat.signal(libc::SIGUSR1);
    assert!(eventually(|| reserved(beat.id()) == 0));
}

#[test]
fn the_sum_stays_below_the_bound_and_the_program_ends() {
    let (_alone, possible) = (alone(), possible());
    if !possible {
        return;
    }
    let folder = state("bound");
    let config = Path::new(env!("CARGO_TARGET_TMPDIR")).join("bound.toml");
    // A fifth of a CPU is needed; what the first budgets are on top of it is cut.
    let cpus = std::thread::available_parallelism().unwrap().get() as f64;
    let bound = 0.24;
    let text = format!("bound = {}\n[[program]]\nname = \"attune-beat\"\n", bound / cpus);
    std::fs::write(&config, text).unwrap();
    let mut first = Running::beat(&["40", "4"]);
    let second = Running::beat(&["50", "5"]);
    let mut daemon = Running(attuned(&folder).arg("--config").arg(&config).spawn().unwrap());
    let all = || {
        [first.id(), second.id()]
            .into_iter()
            .flat_map(policies)
            .filter(|policy| policy.policy == DEADLINE)
            .collect::<Vec<_>>()
    };
    assert!(eventually(|| all().len() == 2));
    let sum: f64 = all().iter().map(share).sum();
    assert!(sum <= bound + 1e-6, "{sum}");
    first.kill();
    assert!(eventually(|| reserved(second.id()) == 1));
    daemon.signal(libc::SIGTERM);
    daemon.0.wait().unwrap();
    assert_eq!(reserved(second.id()), 0);
}

#[test]
fn who_is_cut_keeps_to_what_it_is_given() {
    let (_alone, possible) = (alone(), possible());
    if !possible {
        return;
    }
    let folder = state("cut");
    let config = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cut.toml");
    let cpus = std::thread::available_parallelism().unwrap().get() as f64;
    std::fs::write(&config, format!("bound = {}\n", 0.05 / cpus)).unwrap();
    // Half of the tenth of a CPU that it needs.
    let beat = Running::beat(&["40", "4"]);
    let running = Running(attuned(&folder).arg("--config").arg(&config).spawn().unwrap());
    assert!(eventually(|| folder.join("attuned.sock").exists()));
    let daemon = Daemon { running, folder };
    daemon.tune(beat.id());
    assert!(eventually(|| reserved(beat.id()) == 1));
    for policy in policies(beat.id()) {
        assert!(policy.flags & RECLAIM == 0 && share(&policy) <= 0.05 + 1e-6, "{policy:?}");
    }
}

#[test]
fn strangers_and_nonsense_are_refused() {
    let (_alone, possible) = (alone(), possible());
    if !possible {
        return;
    }
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
            answer["ok"] == false && answer["error"].as_str().is_some_and(|error| !error.is_empty()),
            "{request}"
        );
    }
    assert_eq!(daemon.ask("{\"request\":\"status\"}")["ok"], true);
}

#[test]
fn no_beat_no_reservation() {
    let (_alone, possible) = (alone(), possible());
    if !possible {
        return;
    }
    let busy = Running(Command::new("/bin/sh").args(["-c", "while :; do :; done"]).spawn().unwrap());
    let daemon = Daemon::start(&state("no-beat"));
    daemon.tune(busy.id());
    let program = || daemon.ask("{\"request\":\"status\"}")["status"]["programs"][0].clone();
    assert!(eventually(|| program()["listening"] == true));
    assert!(eventually(|| program()["listening"] == false));
    assert!(program()["frequency_hz"].is_null());
    assert_eq!(reserved(busy.id()), 0);
}

/// The daemon as it would be on another machine: files of this one's kernel are hidden behind others, for it alone.
fn attuned_elsewhere(folder: &Path, hide: &str) -> Command {
    let mut command = Command::new("unshare");
    let script = format!("{hide} && exec {}", env!("CARGO_BIN_EXE_attuned"));
    command.args(["--mount", "sh", "-c", &script]);
    command.env("ATTUNE_STATE_DIR", folder).stdin(Stdio::null());
    command
}

#[test]
fn a_kernel_without_btf_is_told_about() {
    let (_alone, possible) = (alone(), possible());
    if !possible {
        return;
    }
    let folder = state("no-btf");
    let hide = "mount -t tmpfs none /sys/kernel/btf";
    let output = attuned_elsewhere(&folder, hide).output().unwrap();
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && words.contains("CONFIG_DEBUG_INFO_BTF"), "{words}");
}

#[test]
fn no_more_is_given_than_the_kernel_gives_to_real_time() {
    let (_alone, possible) = (alone(), possible());
    if !possible {
        return;
    }
    let folder = state("throttled");
    std::fs::create_dir_all(&folder).unwrap();
    let limit = folder.join("runtime");
    std::fs::write(&limit, "300000\n").unwrap();
    let hide = format!("mount --bind {} /proc/sys/kernel/sched_rt_runtime_us", limit.display());
    let running = Running(attuned_elsewhere(&folder, &hide).stderr(Stdio::null()).spawn().unwrap());
    assert!(eventually(|| folder.join("attuned.sock").exists()));
    let daemon = Daemon { running, folder };
    let cpus = std::thread::available_parallelism().unwrap().get() as f64;
    let bound = daemon.ask("{\"request\":\"status\"}")["status"]["bound"].as_f64().unwrap();
    assert!((bound - 0.3 * cpus).abs() < 1e-6, "{bound}");
}

/// Takes what the kernel gives, in reservations of so many per cent of a CPU; less than that is left.
fn fill(percent: u64) -> Vec<Running> {
    let take = || {
        let other = Running::beat(&["1000", "0"]);
        Policy::reservation(percent * 1_000_000, 100_000_000).give(other.id()).is_ok().then_some(other)
    };
    let mut others = Vec::new();
    // What a program had comes back when its last period is over, which may be after its end.
    for _ in 0..3 {
        others.extend(std::iter::from_fn(take));
        sleep(Duration::from_millis(150));
    }
    others
}

/// In time beside whatever real-time programs; what it starts is scheduled as usual.
#[test]
fn the_tuner_has_a_reservation_of_its_own() {
    let (_alone, possible) = (alone(), possible());
    if !possible {
        return;
    }
    let daemon = Daemon::start(&state("own"));
    assert_eq!(reserved(daemon.running.id()), 1);
    let first = daemon.guardian();
    assert!(policies(first).iter().all(Policy::is_ordinary), "{:?}", policies(first));
    // SAFETY: no memory is involved; the number is the daemon's child's, which it has not waited for.
    unsafe { libc::kill(i32::try_from(first).unwrap(), libc::SIGKILL) };
    // This one is started from under the reservation.
    assert!(eventually(|| daemon.guardian() != first));
    let second = policies(daemon.guardian());
    assert!(!second.is_empty() && second.iter().all(Policy::is_ordinary), "{second:?}");
}

#[test]
fn a_tuner_that_gets_no_reservation_has_a_real_time_priority_and_tunes() {
    let (_alone, possible) = (alone(), possible());
    if !possible {
        return;
    }
    let others: Vec<Running> = fill(20).into_iter().chain(fill(2)).collect();
    assert!(!others.is_empty());
    let daemon = Daemon::start(&state("no-own"));
    let own = policies(daemon.running.id());
    assert_eq!(own.iter().map(|policy| policy.policy).collect::<Vec<_>>(), [ROUND_ROBIN]);
    drop(others);
    let beat = Running::beat(&["40", "4"]);
    daemon.tune(beat.id());
    assert!(eventually(|| reserved(beat.id()) == 1));
}

/// Others take all but a little of what the kernel gives: that is no failure, and passes.
#[test]
fn on_a_full_kernel_a_program_gets_what_is_left_and_more_when_there_is_room() {
    let (_alone, possible) = (alone(), possible());
    if !possible {
        return;
    }
    let daemon = Daemon::start(&state("full"));
    let mut others = fill(10);
    // A tenth of a CPU is left, or a little more; the beat needs a fifth.
    others.pop().expect("the kernel gives reservations");
    let beat = Running::beat(&["40", "8"]);
    daemon.tune(beat.id());
    let given = || policies(beat.id()).iter().find(|policy| policy.is_reservation()).map(share);
    assert!(eventually(|| given().is_some()));
    let first = given().unwrap_or_default();
    assert!(first > 0.08 && first < 0.2, "{first}");
    drop(others);
    assert!(eventually(|| given() > Some(0.199)));
}

#[test]
fn another_user_may_ask_for_his_own_programs_alone() {
    let (_alone, possible) = (alone(), possible());
    if !possible {
        return;
    }
    const NOBODY: u32 = 65534;
    // Where everybody may go.
    let folder = std::env::temp_dir().join(format!("attune-stranger-{}", std::process::id()));
    let (ours, daemon) = (Running::beat(&["40", "2"]), Daemon::start(&folder));
    let theirs = Running(
        Command::new("setpriv")
            .args([&format!("--reuid={NOBODY}"), "--clear-groups", "sleep", "100"])
            .spawn()
            .unwrap(),
    );
    assert!(eventually(|| process::owner(theirs.id()) == Some(NOBODY)));
    let (ours, theirs) = (ours.id(), theirs.id());
    let answers = std::thread::scope(|scope| {
        let stranger = scope.spawn(|| {
            // SAFETY: numbers alone; the call itself, unlike the library's function, changes this thread only.
            let changed = unsafe { libc::syscall(libc::SYS_setresuid, NOBODY, NOBODY, NOBODY) };
            assert_eq!(changed, 0);
            [
                format!("{{\"request\":\"tune\",\"process\":{ours}}}"),
                format!("{{\"request\":\"leave\",\"process\":{ours}}}"),
                format!("{{\"request\":\"tune\",\"process\":{theirs},\"weight\":1000.0}}"),
                format!("{{\"request\":\"tune\",\"process\":{theirs}}}"),
                "{\"request\":\"status\"}".to_owned(),
            ]
            .map(|request| daemon.ask(&request))
        });
        stranger.join().unwrap()
    });
    let ok = answers.each_ref().map(|answer| answer["ok"] == true);
    assert_eq!(ok, [false, false, false, true, true], "{answers:?}");
    assert!(answers[0]["error"].as_str().is_some_and(|error| error.contains("another user's")));
    assert_eq!(reserved(ours), 0);
    drop(daemon);
    let _ = std::fs::remove_dir_all(&folder);
}
