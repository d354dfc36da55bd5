//! A program's threads are seen and set by its user, over the socket that `ATTUNE_CONTROL` names.

mod common;

use std::io::{BufRead, BufReader};
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

use attune_linux::process;
use attune_values::enclosed;
use attune_values::program::{Program, UserThread};
use attune_values::socket::{Connection, Received};
use attune_values::wire::{Hint, Refusal, Refused, Reply, Request, Storage, Tunable, Type};
use serde::de::DeserializeOwned;

use common::{directory, program, run, scheduler};

/// tests/programs/controlled.c, and a connection to it.
struct Controlled {
    child: Child,
    /// What ends it when it is closed.
    stdin: Option<ChildStdin>,
    connection: Connection,
    directory: tempfile::TempDir,
}

fn place(directory: &Path) -> PathBuf {
    directory.join("control")
}

impl Controlled {
    fn start(what: &str, workers: &str) -> Controlled {
        let directory = directory();
        let place = place(directory.path());
        let mut command = Command::new(program(directory.path(), "controlled"));
        command.arg(what).env("ATTUNE_CONTROL", &place).env("ATTUNE_WORKERS", workers);
        command.env("ATTUNE_SCHED", scheduler(directory.path(), "tuned"));
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
        // It says so when its threads are there.
        let mut begun = String::new();
        let mut lines = BufReader::new(child.stdout.take().expect("a pipe"));
        lines.read_line(&mut begun).expect("a line");
        assert_eq!(begun, "begun\n");
        let connection = Connection::to(&place, Duration::from_secs(30)).expect("it listens");
        let stdin = child.stdin.take();
        Controlled { child, stdin, connection, directory }
    }

    /// The answer; to the same request again while a busy machine lets no worker switch in time.
    fn answer(&self, request: &Request) -> Received<Reply> {
        let ask = || self.answer_once(request);
        let in_time = |answer: &Received<Reply>| {
            !matches!(answer, Received::Message(Reply::Refused { why: Refusal::Unable, .. }, _))
        };
        (0..10).map(|_| ask()).find(in_time).unwrap_or_else(ask)
    }

    fn answer_once(&self, request: &Request) -> Received<Reply> {
        self.connection.send(request, None).expect("sent");
        self.connection.receive().expect("an answer")
    }

    fn ask<T: DeserializeOwned>(&self, request: &Request) -> T {
        match self.answer(request) {
            Received::Message(Reply::Enclosed, Some(memory)) => {
                serde_json::from_slice(&enclosed::read(memory).expect("a text")).expect("JSON")
            }
            other => panic!("{other:?}"),
        }
    }

    fn tunable(&self, name: &str) -> (Storage, Type, i64) {
        let all: Vec<Tunable> = self.ask(&Request::Tunables);
        assert!(all.len() == 3 && all.iter().all(|it| it.scheduler == "tuned"), "{all:?}");
        let found = all.into_iter().find(|it| it.name == name).expect("it can be set");
        (found.storage, found.ty, found.value)
    }

    /// The threads, once something holds of them.
    fn until(&self, what: &str, holds: impl Fn(&[UserThread]) -> bool) -> Vec<UserThread> {
        let end = Instant::now() + Duration::from_secs(30);
        loop {
            let threads = self.threads();
            if holds(&threads) {
                return threads;
            }
            assert!(Instant::now() < end, "not within 30 s: {what}: {threads:?}");
        }
    }

    fn threads(&self) -> Vec<UserThread> {
        let program: Program = self.ask(&Request::Snapshot);
        assert_eq!((program.process, &*program.scheduler), (self.child.id() as i32, "tuned"));
        program.threads
    }

    /// Err: why it was refused.
    fn set(&self, settings: &[(&str, &str)]) -> Result<(), (Refusal, String)> {
        done(self.answer(&to_set(settings)))
    }

    fn hint(&self, thread: Option<i32>, value: Option<i64>) -> Result<(), (Refusal, String)> {
        let (process, values) = (self.child.id() as i32, vec![("urgent".to_owned(), value)]);
        done(self.answer(&Request::Hint(Hint { process, thread, values })))
    }

    /// The value of `urgent` of each thread that has not ended, by number.
    fn urgent(&self) -> Vec<i64> {
        self.threads().iter().map(|thread| thread.values["urgent"]).collect()
    }
}

fn to_set(settings: &[(&str, &str)]) -> Request {
    let owned = |&(name, value): &(&str, &str)| (name.to_owned(), value.to_owned());
    Request::Set { settings: settings.iter().map(owned).collect() }
}

fn done(received: Received<Reply>) -> Result<(), (Refusal, String)> {
    match received {
        Received::Message(Reply::Done, _) => Ok(()),
        Received::Message(Reply::Refused { why, message }, _) => Err((why, message)),
        other => panic!("{other:?}"),
    }
}

impl Drop for Controlled {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_program_that_waits_is_seen_and_set_and_goes_on() {
    let mut controlled = Controlled::start("waits", "1");
    let rests = |it: &UserThread| it.state != "ready" && it.state != "running";
    let threads = controlled.until("all wait", |threads| threads.iter().all(rests));
    let seen: Vec<_> = threads.iter().map(|it| (it.thread, &*it.name, &*it.state)).collect();
    assert_eq!(
        seen,
        [
            (1, "main", "waiting for descriptor 0"),
            (2, "first", "sleeping"),
            (3, "second", "sleeping")
        ]
    );
    assert!(threads.iter().all(|it| it.container == "WQ" && it.worker == 1), "{threads:?}");
    assert!(threads.iter().all(|it| it.chosen >= 1 && it.run_ns > 0), "{threads:?}");

    assert_eq!(controlled.tunable("pause"), (Storage::Tunable, Type::Time, 5_000_000));
    assert_eq!(controlled.tunable("limit"), (Storage::Tunable, Type::Int, 3));
    assert_eq!(controlled.tunable("switches").0, Storage::Import);
    assert_eq!(controlled.set(&[("tuned.pause", "7ms"), ("switches", "1000")]), Ok(()));
    let values = ["pause", "limit", "switches"].map(|name| controlled.tunable(name).2);
    assert_eq!(values, [7_000_000, 3, 1000]);

    controlled.stdin = None;
    assert!(controlled.child.wait().expect("it ends").success());
}

#[test]
fn all_of_a_setting_or_none() {
    let controlled = Controlled::start("waits", "1");
    for (settings, message) in [
        ([("limit", "4"), ("pause", "4")], "`4` is no value for pause, which is a time"),
        ([("limit", "4"), ("pausse", "4ms")], "there is no tunable `pausse` in tuned; there is "),
        ([("limit", "4"), ("fair.pause", "4ms")], "no scheduler here is called `fair`"),
    ] {
        let (why, said) = controlled.set(&settings).expect_err(message);
        assert!(why == Refusal::Unsuitable && said.contains(message), "{said}");
    }
    assert_eq!(controlled.tunable("limit").2, 3);
}

#[test]
fn a_hint_reaches_the_policy_until_it_is_taken_back() {
    let controlled = Controlled::start("yields", "1");
    assert_eq!(controlled.hint(Some(3), Some(1)), Ok(()));
    let early = controlled.threads();
    // The first thread may have the CPU still. From the next choice on the second alone is chosen.
    let before =
        controlled.until("the hint is followed", |threads| threads[2].chosen > early[2].chosen);
    let after = controlled
        .until("the second is chosen", |threads| threads[2].chosen > before[2].chosen + 100);
    assert_eq!(after[1].chosen, before[1].chosen);
    assert_eq!(after[1].run_ns, before[1].run_ns);
    assert!(after[1].ready_ns > before[1].ready_ns, "{after:?}");
    assert!(after[2].run_ns > before[2].run_ns, "{after:?}");

    assert_eq!(controlled.hint(Some(3), None), Ok(()));
    controlled.until("the first is chosen", |threads| threads[1].chosen > after[1].chosen);

    assert_eq!(controlled.hint(None, Some(7)), Ok(()));
    assert_eq!(controlled.hint(Some(2), Some(8)), Ok(()));
    assert_eq!(controlled.urgent(), [7, 8, 7]);
    assert_eq!(controlled.hint(Some(2), None), Ok(()));
    assert_eq!(controlled.urgent(), [7, 7, 7], "that of all threads holds");
    assert_eq!(controlled.hint(None, None), Ok(()));
    assert_eq!(controlled.urgent(), [0, 0, 0]);
    let unknown = controlled.hint(Some(9), Some(1));
    assert_eq!(unknown.expect_err("no thread 9").0, Refusal::NoSuchThread);
}

#[test]
fn a_list_of_hints_is_followed_but_for_those_that_are_refused() {
    let controlled = Controlled::start("waits", "2");
    let process = controlled.child.id() as i32;
    let one = |(thread, value)| {
        let values = vec![("urgent".to_owned(), Some(value))];
        Hint { process, thread, values }
    };
    let hints = [(None, 4), (Some(9), 1), (Some(2), 5)].map(one);
    let text = serde_json::to_vec(&hints).expect("JSON");
    // As in `answer`: a worker may not switch threads in time.
    let refused = (0..10).find_map(|_| {
        let list = enclosed::enclose(&text).expect("memory");
        controlled.connection.send(&Request::Hints, Some(list.as_fd())).expect("sent");
        match controlled.connection.receive().expect("an answer") {
            Received::Message(Reply::Enclosed, Some(memory)) => {
                let text = enclosed::read(memory).expect("a text");
                serde_json::from_slice::<Vec<Refused>>(&text).ok()
            }
            _ => None,
        }
    });
    let refused = refused.expect("an answer");
    let which: Vec<_> = refused.iter().map(|it| (it.index, it.why)).collect();
    assert_eq!(which, [(1, Refusal::NoSuchThread)]);
    assert_eq!(controlled.urgent(), [4, 5, 4]);
}

#[test]
fn what_the_program_supplies_is_its_own() {
    let controlled = Controlled::start("supplies", "1");
    let (why, message) = controlled.set(&[("switches", "5")]).expect_err("registered");
    assert_eq!((why, &*message), (Refusal::Unsuitable, "the program itself supplies switches"));
    let (why, message) = controlled.hint(None, Some(1)).expect_err("registered");
    assert_eq!((why, &*message), (Refusal::Taken, "the program itself supplies urgent"));
    assert!(controlled.tunable("switches").2 > 0, "the program's variable is read");
}

#[test]
fn every_worker_is_asked() {
    let controlled = Controlled::start("waits", "2");
    let workers: Vec<_> = controlled.threads().iter().map(|it| (it.thread, it.worker)).collect();
    assert_eq!(workers, [(1, 1), (2, 2), (3, 1)]);
    assert_eq!(controlled.hint(None, Some(4)), Ok(()));
    assert_eq!(controlled.urgent(), [4, 4, 4]);
    assert_eq!(controlled.hint(Some(2), Some(5)), Ok(()));
    assert_eq!(controlled.urgent(), [4, 5, 4]);
}

/// The socket says of each connection which user made it.
#[test]
fn another_user_is_refused() {
    if process::effective_user() != 0 {
        assert!(std::env::var("CI").as_deref() != Ok("true"), "this test needs root");
        return eprintln!("not tested: only root can connect as another user");
    }
    let controlled = Controlled::start("waits", "1");
    let everyone = PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(controlled.directory.path(), everyone).expect("permissions");
    let place = place(controlled.directory.path());
    let process = controlled.child.id() as i32;
    let requests = || {
        let values = vec![("urgent".to_owned(), Some(1))];
        let hint = Request::Hint(Hint { process, thread: None, values });
        [Request::Snapshot, Request::Tunables, to_set(&[("limit", "4")]), hint]
    };
    let ask = || {
        let nobody = Some(rustix::process::Uid::from_raw(65534));
        // The call changes this OS thread alone.
        rustix::thread::set_thread_res_uid(nobody, nobody, nobody).expect("another user");
        let connection = Connection::to(&place, Duration::from_secs(30)).expect("it listens");
        let one = |request| {
            connection.send(&request, None).expect("sent");
            done(connection.receive().expect("an answer"))
        };
        requests().map(one)
    };
    let answers = std::thread::scope(|scope| scope.spawn(ask).join().expect("it asks"));
    for (request, answer) in requests().iter().zip(answers) {
        let (why, message) = answer.expect_err("the program is root's");
        assert_eq!(why, Refusal::Forbidden, "{request:?}: {message}");
    }
    assert_eq!(controlled.tunable("limit").2, 3);
    assert_eq!(controlled.urgent(), [0, 0, 0]);
}

#[test]
fn a_thread_that_never_calls_the_library_is_told() {
    let controlled = Controlled::start("computes", "1");
    let begun = Instant::now();
    let (why, message) =
        done(controlled.answer_once(&to_set(&[("limit", "4")]))).expect_err("nobody listens");
    assert!(why == Refusal::Unable && message.contains("worker 1 has not switched"), "{message}");
    assert!(begun.elapsed() >= Duration::from_secs(2));
}

#[test]
fn a_place_where_no_socket_can_be_is_told_at_the_start() {
    let directory = directory();
    let mut command = Command::new(program(directory.path(), "controlled"));
    let ended = run(command.env("ATTUNE_CONTROL", "/proc/control"));
    assert_eq!(ended.status, Some(2));
    assert!(ended.stderr.contains("attune: controlled: ATTUNE_CONTROL=/proc/control: "));
}
