//! Commands in machines: what reaches the command, what comes back, and how bad days end.

use std::fs::{self, File};
use std::io::{Read, Seek, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use attune_vm::{
    Cache, Command, Error, Kind, Machine, Options, Output, Streams, Topology, fingerprint,
};

/// The machine that was set up. None: there is none; where all tests must run, that is a failure.
fn cache() -> Option<Cache> {
    match Cache::open(&Cache::default_folder()) {
        Ok(cache) => Some(cache),
        Err(error) if std::env::var("CI").is_ok_and(|ci| ci == "true") => panic!("{error}"),
        Err(error) => {
            eprintln!("not tested: {error}");
            None
        }
    }
}

/// Machines are large: few tests at a time have one.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

fn shell(script: &str) -> Command {
    Command::new(["sh", "-c", script])
}

fn options() -> Options {
    Options {
        topology: Topology::flat(2),
        memory: 512,
        timeout: Some(Duration::from_secs(900)),
        ..Options::default()
    }
}

/// Runs a command in a machine of its own; in a second one where the emulator's own fault ended the
/// first.
fn run(cache: &Cache, options: &Options, command: &Command) -> Result<Output, Error> {
    match attune_vm::run(cache, options, command) {
        Err(error) if error.is_emulators_fault() => attune_vm::run(cache, options, command),
        ended => ended,
    }
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("the output is text")
}

/// A folder in /tmp, whatever TMPDIR says, with a space in its name.
fn folder_in_tmp() -> tempfile::TempDir {
    tempfile::Builder::new().prefix("attune vm ").tempdir_in("/tmp").expect("a folder")
}

#[test]
fn the_guest_has_the_caches_of_its_topology() {
    let (Some(cache), _turn) = (cache(), turn()) else { return };
    let topology = "2:2:2".parse().expect("a topology");
    let script = "cd /sys/devices/system/cpu; cat cpu*/cache/index3/shared_cpu_list | sort -u
        cat cpu*/topology/thread_siblings_list | sort -u";
    let options = Options { topology, ..options() };
    let Output { output, .. } = run(&cache, &options, &shell(script)).expect("it ran");
    assert_eq!(text(&output), "0-3\n4-7\n0-1\n2-3\n4-5\n6-7\n");
}

#[test]
fn a_command_of_the_host_runs_under_a_kernel_with_sched_ext() {
    let (Some(cache), _turn) = (cache(), turn()) else { return };
    let folder = folder_in_tmp();
    fs::write(folder.path().join("file"), "from the host\n").expect("written");
    let script = "cat file; pwd; echo \"$WORD\"; uname -r; cat /sys/kernel/sched_ext/state; nproc
        echo new > /tmp/attune-new && cat /tmp/attune-new
        echo changed >> file && cat file && mkdir sub && echo x > sub/y && cat sub/y
        echo x > /usr/attune-x && rm /etc/passwd && ls /usr/attune-x /etc/passwd 2>/dev/null
        ls /boot; echo to the other stream >&2; exit 7";
    let command = shell(script).in_folder(folder.path()).with_env("WORD", "two words");
    let Output { status, output, error_output } =
        run(&cache, &options(), &command).expect("it ran");
    let release = cache.kernel_release();
    let expected = format!(
        "from the host\n{}\ntwo words\n{release}\ndisabled\n2\nnew\nfrom the host\nchanged\nx\n\
            /usr/attune-x\nconfig-{release}\n",
        folder.path().display()
    );
    assert_eq!(text(&output), expected);
    assert_eq!(text(&error_output), "to the other stream\n");
    assert_eq!(status.code(), Some(7));
    assert_eq!(
        fs::read_to_string(folder.path().join("file")).expect("still there"),
        "from the host\n"
    );
    let written =
        [PathBuf::from("/tmp/attune-new"), "/usr/attune-x".into(), folder.path().join("sub")];
    assert!(written.iter().all(|path| !path.exists()) && PathBuf::from("/etc/passwd").exists());
}

#[test]
fn input_goes_in_and_much_output_comes_out_in_order() {
    let (Some(cache), _turn) = (cache(), turn()) else { return };
    let folder = folder_in_tmp();
    let sent: Vec<u8> = (0..3_000_000u32).map(|number| (number % 251) as u8).collect();
    let mut file = File::create_new(folder.path().join("input")).expect("a file");
    file.write_all(&sent).expect("written");
    let mut file = File::open(folder.path().join("input")).expect("it opens");
    file.rewind().expect("a file");

    let mut command =
        shell("cat; for i in 1 2 3 4 5; do echo out $i; echo err $i >&2; done; kill -TERM $$");
    command.one_stream = true;
    let (mut output, mut error_output) = (vec![], vec![]);
    let streams =
        Streams { input: Some(file), output: &mut output, error_output: &mut error_output };
    let machine = Machine::boot(&cache, &options(), &command).expect("it boots");
    let status = machine.relay(streams).expect("it ran");

    let lines: String = (1..=5).map(|i| format!("out {i}\nerr {i}\n")).collect();
    assert!(output.starts_with(&sent), "all of the input came back");
    assert_eq!(text(&output[sent.len()..]), lines);
    assert!(error_output.is_empty());
    assert_eq!(status.signal(), Some(libc::SIGTERM));
}

#[test]
fn a_command_that_cannot_be_run_is_told_as_a_shell_would() {
    let (Some(cache), _turn) = (cache(), turn()) else { return };
    let fails = |command: Command| run(&cache, &options(), &command).expect_err("it cannot run");
    let missing = fails(Command::new(["no-such-program"]));
    assert_eq!(missing.exit_status(), 127);
    assert!(missing.to_string().contains("cannot run no-such-program: No such file"), "{missing}");
    let folder = fails(Command::new(["/etc"]));
    assert_eq!(folder.exit_status(), 126);
    let nowhere = fails(Command::new(["true"]).in_folder("/no/such/folder"));
    assert!(nowhere.to_string().contains("cannot enter /no/such/folder"), "{nowhere}");
}

#[test]
fn a_guest_that_dies_is_told_with_its_last_words() {
    let (Some(cache), _turn) = (cache(), turn()) else { return };
    let crash = run(&cache, &options(), &shell("echo c > /proc/sysrq-trigger; sleep 60"));
    let error = crash.expect_err("the guest died");
    assert!(
        matches!(&error, Error::GuestDied { console } if console.contains("Kernel panic")),
        "{error}"
    );
    assert_eq!(error.exit_status(), 125);
    // The emulator has been seen to hang once when the machine restarted, so it may try again.
    let options = Options { timeout: Some(Duration::from_secs(120)), ..options() };
    let restart = || run(&cache, &options, &shell("echo b > /proc/sysrq-trigger; sleep 60"));
    let gone = (0..3).map(|_| restart()).find(|gone| !matches!(gone, Err(Error::TimedOut(_))));
    assert!(matches!(gone, Some(Err(Error::GuestDied { .. }))), "{gone:?}");
}

#[test]
fn a_machine_that_takes_too_long_is_ended() {
    let (Some(cache), _turn) = (cache(), turn()) else { return };
    let end = |seconds| {
        let options = Options { timeout: Some(Duration::from_secs(seconds)), ..options() };
        let (mut output, mut error_output) = (vec![], vec![]);
        let streams = Streams { input: None, output: &mut output, error_output: &mut error_output };
        let command = shell("while :; do :; done");
        let machine = Machine::boot(&cache, &options, &command).expect("it boots");
        machine.relay(streams).expect_err("too long")
    };
    // On a busy host it takes longer to come up.
    let begun =
        [5, 30, 120].into_iter().map(end).find(|end| !matches!(end, Error::NotBegun { .. }));
    let error = begun.expect("it begins");
    assert!(matches!(error, Error::TimedOut(_)), "{error}");
    assert_eq!(error.exit_status(), 124);
}

#[test]
fn a_machine_that_has_not_come_up_is_told_apart() {
    let (Some(cache), _turn) = (cache(), turn()) else { return };
    let options = Options { timeout: Some(Duration::from_millis(100)), ..options() };
    let error = run(&cache, &options, &shell("true")).expect_err("too soon");
    assert!(matches!(error, Error::NotBegun { .. }), "{error}");
    assert_eq!(error.exit_status(), 124);
}

#[test]
fn two_machines_run_at_once() {
    let (Some(cache), _turn) = (cache(), turn()) else { return };
    let run = |word: &'static str| {
        let cache = &cache;
        move || run(cache, &options(), &shell(&format!("sleep 1; echo {word}"))).expect("it ran")
    };
    let (one, other) = std::thread::scope(|scope| {
        let (one, other) = (scope.spawn(run("one")), scope.spawn(run("other")));
        (one.join().expect("no panic"), other.join().expect("no panic"))
    });
    assert_eq!((text(&one.output), text(&other.output)), ("one\n", "other\n"));
}

#[test]
fn a_signal_reaches_the_command_and_an_end_is_an_end() {
    let (Some(cache), _turn) = (cache(), turn()) else { return };
    // The command says when it listens.
    let script = "trap 'echo caught; exit 5' INT; echo ready; while :; do sleep 0.1; done";
    let machine = Machine::boot(&cache, &options(), &shell(script)).expect("it boots");
    let control = machine.control();
    let (mut heard, mut output) = std::io::pipe().expect("a pipe");
    std::thread::spawn(move || {
        let mut ready = [0; 6];
        heard.read_exact(&mut ready).expect("it starts");
        control.signal(libc::SIGINT as u8);
        let mut rest = String::new();
        heard.read_to_string(&mut rest).expect("it says more");
        assert_eq!(rest, "caught\n");
    });
    let streams = Streams { input: None, output: &mut output, error_output: &mut std::io::sink() };
    assert_eq!(machine.relay(streams).expect("it ended by itself").code(), Some(5));

    let machine =
        Machine::boot(&cache, &options(), &shell("trap '' INT; sleep 100")).expect("it boots");
    machine.control().end();
    let streams =
        Streams { input: None, output: &mut std::io::sink(), error_output: &mut std::io::sink() };
    assert!(matches!(machine.relay(streams), Err(Error::Interrupted)));
}

#[test]
fn a_deterministic_machine_does_the_same_each_time() {
    let (Some(cache), _turn) = (cache(), turn()) else { return };
    let folder = folder_in_tmp();
    fs::write(folder.path().join("data"), "packed\n").expect("written");
    let script = "cat data; date +%s.%N; for i in 1 2 3; do (date +%N; date +%N >&2) & done; wait
        cat /proc/interrupts /proc/stat /proc/uptime /proc/sys/kernel/random/uuid
        cat /etc/passwd 2>/dev/null || echo not packed; exit 3";
    let command = shell(script).in_folder(folder.path());
    let pack = vec![folder.path().join("data"), "/usr/bin/date".into(), "/bin/cat".into()];
    let kind = |seed| Kind::Deterministic { pack: pack.clone(), seed };
    let run = |seed| {
        let options =
            Options { topology: Topology::flat(1), memory: 256, kind: kind(seed), ..options() };
        run(&cache, &options, &command).expect("it ran")
    };
    let (one, again, other) = (run(1), run(1), run(2));
    assert!(text(&one.output).starts_with("packed\n1767225"), "{}", text(&one.output));
    assert!(text(&one.output).ends_with("not packed\n"), "{}", text(&one.output));
    assert_eq!(text(&one.error_output).lines().count(), 3);
    assert_eq!(one.status.code(), Some(3));
    assert_eq!(text(&one.output), text(&again.output));
    assert_eq!(text(&one.error_output), text(&again.error_output));
    assert_ne!(text(&one.output), text(&other.output), "the seed changes something");
}

/// Each of two deterministic processors stands still while the other has its turn.
#[test]
fn deterministic_processors_take_short_turns() {
    let (Some(cache), _turn) = (cache(), turn()) else { return };
    let folder = folder_in_tmp();
    let program = folder.path().join("turns");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/turns.c");
    let built = std::process::Command::new("cc")
        .args(["-O1", "-pthread", "-o"])
        .arg(&program)
        .arg(source)
        .status();
    assert!(built.expect("the C compiler").success());
    let kind = Kind::Deterministic { pack: vec![], seed: 1 };
    let Output { status, output, error_output } =
        run(&cache, &Options { kind, ..options() }, &Command::new([&program])).expect("it ran");
    let pause: u64 = text(&output).trim().parse().unwrap_or(0);
    assert!(
        status.success() && (1..=125_000).contains(&pause),
        "{}{}",
        text(&output),
        text(&error_output)
    );
}

#[test]
fn files_that_do_not_fit_are_told_and_nothing_runs_without_them() {
    let (Some(cache), _turn) = (cache(), turn()) else { return };
    let folder = folder_in_tmp();
    let large = folder.path().join("large");
    // The machine's first files may have half of its memory.
    fs::File::create(&large).and_then(|file| file.set_len(270 << 20)).expect("made");
    let kind = Kind::Deterministic { pack: vec![large], seed: 1 };
    let options = Options { topology: Topology::flat(1), memory: 512, kind, ..options() };
    let error = run(&cache, &options, &Command::new(["true"])).expect_err("they do not fit");
    assert!(error.to_string().contains("cannot unpack all files"), "{error}");
}

#[test]
fn equal_machines_have_equal_fingerprints_and_others_another() {
    let Some(cache) = cache() else { return };
    let folder = folder_in_tmp();
    let file = folder.path().join("file");
    fs::write(&file, "one").expect("written");
    let print = |seed, words: &[&str]| {
        let kind = Kind::Deterministic { pack: vec![file.clone()], seed };
        let options = Options { topology: Topology::flat(1), memory: 512, kind, timeout: None };
        fingerprint(&cache, &options, &Command::new(words)).expect("a fingerprint")
    };
    let one = print(1, &["cat", "file"]);
    assert_eq!(print(1, &["cat", "file"]), one);
    assert_ne!(print(2, &["cat", "file"]), one);
    assert_ne!(print(1, &["cat", "fila"]), one);
    fs::write(&file, "two").expect("written");
    assert_ne!(print(1, &["cat", "file"]), one);
}
