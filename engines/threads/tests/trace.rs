//! The traces of programs, read back: what a person sees in Perfetto, and what becomes of a trace
//! when the disk is full, the program is killed or forks, or records come too fast.

mod common;

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use attune_timeline_reader::{Slice, Trace, Track};
use attune_values::enclosed;
use attune_values::program::Program;
use attune_values::socket::{Connection, Received};
use attune_values::wire::{Hint, Reply, Request};

use common::{Ended, compile, directory, program, run, scheduler};

const PATIENCE: Duration = Duration::from_secs(30);

/// A folder with tests/programs/traced.c under the policy `fifo`.
struct Traced {
    directory: tempfile::TempDir,
    program: PathBuf,
}

impl Traced {
    fn new() -> Traced {
        let directory = directory();
        let program = program(directory.path(), "traced");
        compile(Path::new("fifo"), &directory.path().join("fifo.so"));
        Traced { directory, program }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn command(&self, what: &str, file: &Path) -> Command {
        let mut command = Command::new(&self.program);
        command.arg(what).env("ATTUNE_TRACE", file).env("ATTUNE_SCHED", self.path("fifo.so"));
        command
    }

    fn file(&self) -> PathBuf {
        self.path("t.pftrace")
    }

    fn run(&self, what: &str) -> (Ended, Trace) {
        let ended = run(&mut self.command(what, &self.file()));
        (ended, self.read())
    }

    fn read(&self) -> Trace {
        Trace::read(&std::fs::read(self.file()).expect("the trace is there"))
    }
}

/// A program that runs; one that still does at the end of the test is killed.
struct Running(Child);

impl Running {
    fn start(command: &mut Command) -> Running {
        Running(command.spawn().expect("it starts"))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The number that the program printed last: how often its engine chose a thread.
fn switches(ended: &Ended) -> usize {
    let words: Vec<&str> = ended.stdout.split_whitespace().collect();
    let [.., number, "switches"] = words[..] else { panic!("{}", ended.stdout) };
    number.parse().expect("a number")
}

fn quiet(ended: &Ended) {
    assert_eq!((ended.status, ended.stderr.as_str()), (Some(0), ""), "{}", ended.stdout);
}

fn names(track: &Track) -> Vec<&str> {
    track.slices.iter().map(|slice| slice.event.name.as_str()).collect()
}

fn threads(trace: &Trace) -> Vec<&Track> {
    trace.of_group("threads").collect()
}

fn workers(trace: &Trace) -> Vec<&Track> {
    trace.of_group("workers").filter(|track| !track.is_counter).collect()
}

/// No slice of a track begins before the one before it has ended, and all have ended.
fn follow_each_other(track: &Track) {
    let mut end = 0;
    for slice in &track.slices {
        assert!(slice.event.at >= end && slice.depth == 0, "{}: {slice:?}", track.name);
        end = slice.end.unwrap_or_else(|| panic!("{}: {slice:?} is open", track.name));
    }
}

/// The threads' running slices are those of the workers, one by one.
fn workers_run_what_threads_run(trace: &Trace) {
    let mut by_thread = Vec::new();
    for thread in threads(trace) {
        let running = thread.slices_named("running");
        by_thread.extend(running.map(|it| (it.event.at, it.end, thread.name.as_str())));
    }
    let mut by_worker = Vec::new();
    for worker in workers(trace) {
        let stays = worker.slices.iter().filter(|it| it.event.name != "records lost");
        by_worker.extend(stays.map(|it| (it.event.at, it.end, it.event.name.as_str())));
    }
    by_thread.sort();
    by_worker.sort();
    assert_eq!(by_thread, by_worker);
}

fn sound(trace: &Trace) {
    assert_eq!(trace.beginnings, 1);
    threads(trace).into_iter().chain(workers(trace)).for_each(follow_each_other);
    workers_run_what_threads_run(trace);
    for counter in trace.of_group("workers").filter(|track| track.is_counter) {
        assert!(counter.values.iter().all(|(_, ready)| *ready >= 0), "{:?}", counter.values);
    }
}

/// The slice in which an arrow to it ends, and the instant where it begins.
fn arrows(trace: &Trace) -> Vec<(&Track, u64, &Track, &Slice)> {
    let mut arrows = Vec::new();
    for from in &trace.tracks {
        for instant in from.instants.iter().filter(|instant| instant.name == "wakes") {
            let [number] = instant.starts[..] else { panic!("{instant:?}") };
            let ends = trace
                .tracks
                .iter()
                .flat_map(|track| track.slices.iter().map(move |slice| (track, slice)));
            let (to, slice) = ends
                .clone()
                .find(|(_, slice)| slice.event.ends == [number])
                .unwrap_or_else(|| panic!("no end of the arrow from {}: {instant:?}", from.name));
            // The name of another worker's thread may not have come yet; its number has.
            let (said, label) = (&instant.arguments["thread"], &to.name);
            assert!(said == label || label.starts_with(&format!("{said} ")), "{said}, {label}");
            assert!(slice.event.at >= instant.at, "{instant:?} {slice:?}");
            arrows.push((from, instant.at, to, slice));
        }
    }
    arrows
}

#[test]
fn a_trace_shows_what_each_thread_does() {
    let (ended, trace) = Traced::new().run("works");
    quiet(&ended);
    sound(&trace);
    let process = trace.track("traced");
    assert!(process.process.is_some_and(|number| number > 1));
    assert_eq!(trace.track("workers").description, "policy fifo");
    let threads = threads(&trace);
    let labels: Vec<_> = threads.iter().map(|track| track.name.as_str()).collect();
    assert_eq!(labels, ["1 main", "2 locker", "3 reader", "4 filler", "5 drainer"]);
    assert_eq!(threads[0].groups, ["traced", "threads"]);

    let chosen = threads.iter().map(|track| track.slices_named("running").count()).sum::<usize>();
    assert_eq!(chosen, switches(&ended));
    assert_eq!(names(threads[1])[..3], ["ready", "running", "waiting for a mutex"]);
    assert!(names(threads[0]).contains(&"sleeping"));
    let woken_by = |track: &Track, wait: &str| {
        let at = names(track).iter().position(|name| *name == wait).expect(wait);
        let next = &track.slices[at + 1].event;
        assert_eq!(next.name, "ready", "{wait}");
        assert_eq!(track.slices[at].event.arguments["container"], "WQ");
        assert_eq!(next.arguments["container"], "ready");
        next.arguments["woken by"].clone()
    };
    assert_eq!(woken_by(threads[0], "sleeping"), "its time");
    assert_eq!(woken_by(threads[0], "waiting for the end of a thread"), "a thread");
    assert_eq!(woken_by(threads[2], "waiting for a descriptor"), "its descriptor");
    assert_eq!(woken_by(threads[4], "waiting for a semaphore"), "a thread");
    let ends = threads[0].slices_named("waiting for the end of a thread");
    let joined: Vec<_> = ends.map(|slice| slice.event.arguments["thread"].as_str()).collect();
    assert!(joined.contains(&"2"), "{joined:?}");

    let arrows = arrows(&trace);
    let between = |from, to| arrows.iter().any(|it| (&*it.0.name, &*it.2.name) == (from, to));
    assert!(between("1 main", "2 locker"), "the mutex");
    assert!(between("4 filler", "5 drainer") && between("5 drainer", "4 filler"), "semaphores");
    assert!(between("2 locker", "1 main"), "the end that main waits for");
    for (from, at, ..) in &arrows {
        let mut runs = from.slices_named("running");
        assert!(runs.any(|it| it.event.at <= *at && it.end.is_some_and(|end| *at <= end)));
    }
    let ready = trace.track("ready on worker 1");
    assert!(ready.values.iter().any(|(_, threads)| *threads >= 2), "{:?}", ready.values);
}

#[test]
fn a_trace_agrees_with_attune_top_to_the_nanosecond() {
    let directory = directory();
    let (place, file) = (directory.path().join("control"), directory.path().join("t.pftrace"));
    let mut command = Command::new(program(directory.path(), "controlled"));
    command.arg("waits").env("ATTUNE_CONTROL", &place).env("ATTUNE_TRACE", &file);
    command.env("ATTUNE_SCHED", scheduler(directory.path(), "tuned"));
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut running = Running::start(&mut command);
    let child = &mut running.0;
    let mut begun = String::new();
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe"));
    lines.read_line(&mut begun).expect("a line");
    let connection = Connection::to(&place, PATIENCE).expect("it listens");
    let hint = |thread, value| {
        let values = vec![("urgent".to_owned(), Some(value))];
        Request::Hint(Hint { process: child.id() as i32, thread, values })
    };
    let ask = |request: &Request| {
        connection.send(request, None).expect("sent");
        connection.receive::<Reply>().expect("an answer")
    };
    let end = Instant::now() + PATIENCE;
    let seen = loop {
        assert!(Instant::now() < end, "the threads never rest");
        let Received::Message(Reply::Enclosed, Some(memory)) = ask(&Request::Snapshot) else {
            continue;
        };
        let seen: Program =
            serde_json::from_slice(&enclosed::read(memory).expect("a text")).expect("JSON");
        if seen.threads.iter().all(|it| it.state != "ready" && it.state != "running") {
            break seen;
        }
    };
    for request in [hint(Some(3), 7), hint(None, 8)] {
        assert!(matches!(ask(&request), Received::Message(Reply::Done, _)));
    }
    drop(child.stdin.take());
    assert!(child.wait().expect("it ends").success());

    let trace = Trace::read(&std::fs::read(&file).expect("the trace is there"));
    sound(&trace);
    assert_eq!(seen.threads.len(), 3);
    for thread in &seen.threads {
        let track = trace.track(&format!("{} {}", thread.thread, thread.name));
        let before = |name| {
            let slices = track.slices_named(name);
            let slices: Vec<_> =
                slices.filter(|slice| slice.event.at < seen.at as u64).map(Slice::lasts).collect();
            (slices.len() as u64, slices.iter().sum::<u64>() as i64)
        };
        assert_eq!(before("running"), (thread.chosen, thread.run_ns), "{}", track.name);
        assert_eq!(before("ready").1, thread.ready_ns, "{}", track.name);
    }
    let hints = |name: &str| {
        let hints = &trace.track(name).instants;
        let hints: Vec<_> = hints.iter().filter(|it| it.name.starts_with("hint")).collect();
        hints.iter().map(|it| (it.name.clone(), it.arguments["value"].clone())).collect::<Vec<_>>()
    };
    assert_eq!(hints("3 second"), [("hint urgent".into(), "7".into())]);
    assert_eq!(hints("worker 1"), [("hint urgent".into(), "8".into())]);
}

#[test]
fn arrows_lead_from_one_worker_to_the_other() {
    let traced = Traced::new();
    let ended = run(traced.command("crosses", &traced.file()).env("ATTUNE_WORKERS", "2"));
    quiet(&ended);
    let trace = traced.read();
    sound(&trace);
    let worker = |track: &Track| {
        let of: Vec<_> =
            track.slices_named("running").map(|it| &it.event.arguments["worker"]).collect();
        assert!(of.iter().all(|it| *it == of[0]), "{}: {of:?}", track.name);
        of[0].clone()
    };
    let (main, taker) = (trace.track("1 main"), trace.track("2 taker"));
    assert_eq!((worker(main), worker(taker)), ("1".into(), "2".into()));
    let arrows = arrows(&trace);
    for (from, to) in [(main, taker), (taker, main)] {
        let between = arrows.iter().filter(|it| it.0.name == from.name && it.2.name == to.name);
        assert_eq!(between.count(), 1, "{} to {}", from.name, to.name);
    }
    assert_eq!(workers(&trace).len(), 2);
    assert!(workers(&trace).iter().all(|worker| !worker.slices.is_empty()));
}

#[test]
fn a_thread_that_moves_is_shown_on_one_worker_after_the_other() {
    let traced = Traced::new();
    let policy = traced.path("round_robin.so");
    compile(Path::new("round_robin"), &policy);
    let mut command = traced.command("moves", &traced.file());
    let ended = run(command.env("ATTUNE_WORKERS", "2").env("ATTUNE_SCHED", policy));
    quiet(&ended);
    let trace = traced.read();
    sound(&trace);
    let goer = trace.track("5 goer");
    let on = |number: &str| {
        goer.slices_named("running").filter(|it| it.event.arguments["worker"] == number).count()
    };
    // It may have gone before it ran.
    assert!(on("2") > 5 && on("1") + on("2") == goer.slices_named("running").count());
    let moves = goer.instants.iter().filter(|it| it.name == "moves");
    let moves: Vec<_> =
        moves.map(|it| (&*it.arguments["from worker"], &*it.arguments["to worker"])).collect();
    assert_eq!(moves, [("1", "2")]);
    let ready = trace.track("ready on worker 2");
    assert!(ready.values.iter().all(|(_, threads)| *threads <= 1), "{:?}", ready.values);
}

/// A pipe that is read late stands for a slow disk.
#[test]
fn records_that_find_no_room_are_counted_where_they_are_missing() {
    let traced = Traced::new();
    let pipe = traced.path("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo").success());
    let mut reader = File::options();
    let mut reader = reader.read(true).custom_flags(libc::O_NONBLOCK).open(&pipe).expect("opened");
    rustix::fs::fcntl_setfl(&reader, rustix::fs::OFlags::empty()).expect("reads wait");
    let mut command = traced.command("bursts", &pipe);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut running = Running::start(&mut command);
    let child = &mut running.0;
    let mut line = String::new();
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe"));
    lines.read_line(&mut line).expect("a line");
    assert_eq!(line, "lost\n");
    let (told, tells) = std::sync::mpsc::channel();
    let read = std::thread::spawn(move || {
        let (mut bytes, mut part) = (Vec::new(), vec![0; 1 << 16]);
        loop {
            let count = reader.read(&mut part).expect("the trace");
            if count == 0 {
                return bytes;
            }
            // A name is spelled out where it comes first.
            let from = bytes.len().saturating_sub(20);
            bytes.extend(&part[..count]);
            if bytes[from..].windows(12).any(|it| it == b"records lost") {
                told.send(()).expect("the test waits");
            }
        }
    });
    tells.recv_timeout(PATIENCE).expect("the trace goes on");
    child.stdin.take().expect("a pipe").write_all(b"x").expect("written");
    assert!(child.wait().expect("it ends").success());
    let trace = Trace::read(&read.join().expect("it reads"));
    sound(&trace);
    let worker = trace.track("worker 1");
    let gaps: Vec<_> = worker.slices_named("records lost").collect();
    let lost: u64 =
        gaps.iter().map(|gap| gap.event.arguments["records"].parse::<u64>().unwrap()).sum();
    // Two threads yield 100000 times each, and each time one stops and the other runs.
    let kept = trace.track("2 first").slices.len() + trace.track("3 second").slices.len();
    assert!(lost > 0 && lost + (kept as u64) > 400_000, "{lost} lost, {kept} kept");
    for thread in threads(&trace) {
        let mut inside = thread.slices.iter().filter(|slice| {
            gaps.iter()
                .any(|gap| slice.event.at > gap.event.at && slice.event.at < gap.end.unwrap())
        });
        assert!(inside.next().is_none(), "{}", thread.name);
    }
    let last = gaps.iter().filter_map(|gap| gap.end).max();
    for name in ["4 third", "5 fourth"] {
        let late = trace.track(name);
        assert_eq!(late.slices_named("running").count(), 4, "{name}");
        assert!(Some(late.slices[0].event.at) >= last, "{name}");
    }
}

#[test]
fn a_file_that_cannot_be_written_is_told_once_and_the_program_goes_on() {
    let traced = Traced::new();
    let goes_on = |file: &Path, message: &str| {
        let ended = run(&mut traced.command("works", file));
        assert_eq!(ended.status, Some(0), "{}", ended.stderr);
        assert!(switches(&ended) > 10);
        assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
        let wanted =
            format!("attune: traced: {}", message.replace("FILE", &file.display().to_string()));
        assert!(ended.stderr.starts_with(&wanted), "{}", ended.stderr);
    };
    let without = "; the program runs without a trace";
    goes_on(
        &traced.path("none/t.pftrace"),
        &format!("ATTUNE_TRACE=FILE: No such file or directory (os error 2){without}"),
    );
    goes_on(
        traced.directory.path(),
        &format!("ATTUNE_TRACE=FILE: Is a directory (os error 21){without}"),
    );
    goes_on(
        Path::new("/dev/full"),
        "the trace FILE ends here: No space left on device (os error 28); the program goes on",
    );
    let pipe = traced.path("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo").success());
    goes_on(&pipe, &format!("ATTUNE_TRACE=FILE: no program reads from that pipe{without}"));
    // What another process writes there stays whole.
    let file = traced.file();
    std::fs::write(&file, "theirs").expect("written");
    let held = File::options().write(true).open(&file).expect("opened");
    held.try_lock().expect("locked");
    goes_on(&file, &format!("ATTUNE_TRACE=FILE: another process writes its trace there{without}"));
    assert_eq!(std::fs::read_to_string(&file).expect("read"), "theirs");
}

#[test]
fn a_killed_program_leaves_a_trace_up_to_its_last_moments() {
    let traced = Traced::new();
    let mut running = Running::start(&mut traced.command("yields", &traced.file()));
    let child = &mut running.0;
    let end = Instant::now() + PATIENCE;
    let long = || std::fs::metadata(traced.file()).is_ok_and(|file| file.len() > 1 << 20);
    while !long() {
        assert!(Instant::now() < end, "no trace comes");
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().expect("killed");
    assert_eq!(child.wait().expect("it ends").signal(), Some(9));
    let trace = traced.read();
    for track in threads(&trace).into_iter().chain(workers(&trace)) {
        // Only the last slice may be open.
        let (_, before) = track.slices.split_last().expect("slices");
        assert!(before.iter().all(|slice| slice.end.is_some() && slice.depth == 0));
    }
    let labels: Vec<_> = threads(&trace).iter().map(|track| track.name.clone()).collect();
    assert_eq!(labels, ["1 main", "2 first"]);
    assert!(trace.track("2 first").slices_named("running").count() > 1000);
}

#[test]
fn a_forked_child_leaves_the_trace_to_its_parent() {
    let traced = Traced::new();
    let (ended, trace) = traced.run("forks");
    quiet(&ended);
    sound(&trace);
    let labels: Vec<_> = threads(&trace).iter().map(|track| track.name.clone()).collect();
    assert_eq!(labels, ["1 main", "2 before", "3 after"]);
    assert_eq!(trace.track("3 after").slices_named("running").count(), 4);
}

#[test]
fn a_program_that_cannot_go_on_leaves_the_trace_that_shows_why() {
    let traced = Traced::new();
    let (ended, trace) = traced.run("hangs");
    assert_eq!(ended.status, Some(71), "{}", ended.stderr);
    sound(&trace);
    let last = |name: &str| trace.track(name).slices.last().expect("slices").event.name.clone();
    assert_eq!(last("1 main"), "waiting for a semaphore");
    assert_eq!(last("2 stuck"), "waiting for a mutex");
}

#[test]
fn a_program_begins_and_ends_traces_itself() {
    for workers in ["1", "2"] {
        let traced = Traced::new();
        let mut command = traced.command("begins", Path::new(""));
        command.arg(traced.file()).env("ATTUNE_WORKERS", workers);
        let ended = run(&mut command);
        assert_eq!(ended.status, Some(0), "{}", ended.stderr);
        assert_eq!(ended.stderr.lines().count(), 1, "the full disk is told: {}", ended.stderr);
        let trace = traced.read();
        sound(&trace);
        let count = |name: &str| {
            let tracks = threads(&trace).into_iter().filter(|track| track.name.ends_with(name));
            tracks.flat_map(|track| track.slices_named("running")).count()
        };
        // The second trace replaces the first, and nothing is in it of what came after.
        assert_eq!((count(" within"), count(" outside")), (4, 0));
        let early = threads(&trace).into_iter().find(|track| track.name.ends_with(" early"));
        assert_eq!(names(early.expect("a thread that did nothing")), ["waiting for a descriptor"]);
    }
}
