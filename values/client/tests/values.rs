//! A C program, its values, and an engine that comes, goes and comes back.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use attune_broker::{Broker, Memory};
use attune_values::socket::{Connection, Received};
use attune_values::wire::{Hint, Reply, Request};

/// tests/programs/values.c, compiled once.
static PROGRAM: LazyLock<PathBuf> = LazyLock::new(|| {
    let test = std::env::current_exe().expect("the test's own path");
    // Where cargo has put libattune_client.so.
    let library = test.parent().expect("tests lie in a directory");
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("values");
    let output = Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()))
        .args(["-g", "-Wall", "-Wextra", "-Werror", "-std=gnu11", "-I"])
        .arg(here.join("../../engines/threads/include"))
        .arg("-o")
        .args([&program, &here.join("tests/programs/values.c")])
        .arg("-L")
        .arg(library)
        .arg(format!("-Wl,-rpath,{}", library.display()))
        .args(["-lattune_client", "-lpthread"])
        .output()
        .expect("the C compiler");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    program
});

struct Client {
    child: Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
    number: i32,
}

impl Client {
    fn start(socket: &Path) -> Client {
        let mut child = Command::new(&*PROGRAM)
            .env("ATTUNE_VALUES", socket)
            .env_remove("ATTUNE_UNKNOWN_IMPORTS")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let orders = child.stdin.take().unwrap();
        let answers = BufReader::new(child.stdout.take().unwrap());
        let mut client = Client { child, orders, answers, number: 0 };
        client.number = client.answer().strip_prefix("process ").unwrap().parse().unwrap();
        client
    }

    fn answer(&mut self) -> String {
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    fn ask(&mut self, order: &str) -> String {
        writeln!(self.orders, "{order}").unwrap();
        self.answer()
    }

    /// Ends it, and gives what it said on stderr.
    fn end(self) -> String {
        drop(self.orders);
        let output = self.child.wait_with_output().unwrap();
        assert!(output.status.success(), "{:?}", output.status);
        String::from_utf8(output.stderr).unwrap()
    }
}

fn engine(imports: &[(&str, i64)], socket: &Path) -> (Memory, Broker) {
    let memory = Memory::new(imports, 16);
    let broker = Broker::start(socket, memory.clone()).unwrap();
    (memory, broker)
}

/// Things that another process does take their time, but end.
#[track_caller]
fn becomes<T: PartialEq + std::fmt::Debug>(wanted: T, look: impl Fn() -> T) {
    let patience = Instant::now() + Duration::from_secs(90);
    while look() != wanted && Instant::now() < patience {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(look(), wanted);
}

#[test]
fn a_stored_value_reaches_the_engine() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("values");
    let (memory, _broker) = engine(&[("urgent", 0), ("deadline", -1)], &socket);
    let mut client = Client::start(&socket);
    let me = client.number;
    assert_eq!(client.ask("get deadline"), "-1"); // the value in force
    assert_eq!(client.ask("set deadline 40000000"), "40000000");
    assert_eq!(memory.value(me, me, "deadline"), Some(40_000_000));
    assert_eq!(memory.value(me, me, "urgent"), Some(0));
    assert!(memory.assign(me, me, "deadline", 5)); // as a scheduler that assigns to an import
    assert_eq!(client.ask("get deadline"), "5");
    assert_eq!(client.ask("unregister deadline"), "0");
    assert_eq!(memory.value(me, me, "deadline"), Some(-1));
    assert_eq!(client.ask("unregister deadline"), "-1");
    assert_eq!(client.end(), "");
    becomes(vec![], || memory.processes());
}

/// A program may block a signal in its threads, to read it from a signalfd. The signal must not end
/// the program by way of the library's thread.
#[test]
fn the_library_s_thread_takes_no_signals() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("values");
    let (_memory, _broker) = engine(&[("urgent", 0)], &socket);
    let mut client = Client::start(&socket);
    assert_eq!(client.ask("set urgent 1"), "1");
    // A thread gives itself its name after it has begun.
    let library_s = || {
        let threads = std::fs::read_dir(format!("/proc/{}/task", client.number)).unwrap();
        let statuses = threads
            .filter_map(|thread| std::fs::read_to_string(thread.ok()?.path().join("status")).ok());
        statuses.into_iter().find(|status| status.contains("attune-values"))
    };
    becomes(true, || library_s().is_some());
    let status = library_s().expect("it was there");
    let blocked = status.lines().find_map(|line| line.strip_prefix("SigBlk:")).unwrap().trim();
    let blocked = u64::from_str_radix(blocked, 16).unwrap();
    for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGUSR1, libc::SIGCHLD, libc::SIGALRM] {
        assert_ne!(blocked & 1 << (signal - 1), 0, "signal {signal}: {blocked:x}");
    }
    assert_eq!(client.end(), "");
}

#[test]
fn each_thread_has_values_of_its_own_while_it_lives() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("values");
    let (memory, _broker) = engine(&[("urgent", 0)], &socket);
    let mut client = Client::start(&socket);
    let me = client.number;
    assert_eq!(client.ask("set urgent 1"), "1");
    // More threads, one after the other, than a page has rows.
    for i in 2..600 {
        let answer = client.ask(&format!("thread urgent {i}"));
        let words: Vec<&str> = answer.split(' ').collect();
        assert_eq!((words[0], words[2]), ("thread", i.to_string().as_str()));
        assert_ne!(words[1].parse::<i32>().unwrap(), me);
    }
    becomes(vec![me], || memory.threads(me));
    assert_eq!(memory.value(me, me, "urgent"), Some(1));
    assert_eq!(client.end(), "");
}

#[test]
fn an_import_that_the_engine_lacks_is_refused_with_a_reason() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("values");
    let (_memory, _broker) = engine(&[("urgent", 0)], &socket);
    let mut client = Client::start(&socket);
    assert_eq!(client.ask("get urgant"), format!("errno {}", libc::ENOENT));
    assert_eq!(client.ask("register urgent"), "-1 -1");
    assert_eq!(client.ask("set urgent 2"), "2");
    let said = client.end();
    assert!(
        said.contains("attune: values: there is no thread import named urgant in memory"),
        "{said}"
    );
    assert!(said.contains("urgent: global imports of an engine in the kernel belong to"), "{said}");
    assert!(said.contains("attune_thread_import_int gives one that it can"), "{said}");
}

#[test]
fn an_engine_may_come_late_go_and_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("values");
    let mut client = Client::start(&socket);
    let me = client.number;
    assert_eq!(client.ask("set urgent 3"), "3"); // no engine is there
    assert_eq!(client.ask("get deadline"), "0");

    let (memory, broker) = engine(&[("deadline", 9), ("urgent", 0)], &socket);
    becomes(Some(3), || memory.value(me, me, "urgent"));
    assert_eq!(client.ask("get deadline"), "9"); // never stored: the default came
    assert_eq!(client.ask("set urgent 4"), "4");
    assert_eq!(memory.value(me, me, "urgent"), Some(4));
    drop(broker);

    assert_eq!(client.ask("set urgent 5"), "5"); // no engine again
    // Another scheduler, with other imports in another order.
    let (memory, _broker) = engine(&[("weight", 1), ("urgent", 0)], &socket);
    becomes(Some(5), || memory.value(me, me, "urgent"));
    let said = client.end();
    assert!(said.contains("there is no thread import named deadline in memory"), "{said}");
}

#[test]
fn a_child_s_values_are_not_its_parent_s() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("values");
    let (memory, _broker) = engine(&[("urgent", 0)], &socket);
    let mut client = Client::start(&socket);
    let me = client.number;
    assert_eq!(client.ask("set urgent 6"), "6");
    assert_eq!(client.ask("fork urgent 7"), "child has 6");
    assert_eq!(client.answer(), "child 0, parent has 6");
    assert_eq!(memory.value(me, me, "urgent"), Some(6));
    assert_eq!(client.ask("set urgent 8"), "8");
    assert_eq!(memory.value(me, me, "urgent"), Some(8));
    assert_eq!(client.end(), "");
}

#[test]
fn neither_page_nor_connection_outlives_an_exec() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("values");
    let (memory, _broker) = engine(&[("urgent", 0)], &socket);
    let mut client = Client::start(&socket);
    let me = client.number;
    let open = || {
        let entries = std::fs::read_dir(format!("/proc/{me}/fd")).unwrap().flatten();
        let mut targets: Vec<_> =
            entries.filter_map(|entry| std::fs::read_link(entry.path()).ok()).collect();
        targets.sort();
        targets
    };
    let before = open();
    assert_eq!(client.ask("set urgent 6"), "6");
    assert_eq!(memory.value(me, me, "urgent"), Some(6));
    assert_ne!(open(), before);
    assert_eq!(client.ask("exec"), format!("process {me}"));
    assert_eq!(open(), before);
    becomes(vec![], || memory.processes());
    assert_eq!(client.ask("get urgent"), "0");
    assert_eq!(client.ask("set urgent 7"), "7");
    assert_eq!(memory.value(me, me, "urgent"), Some(7));
    assert_eq!(client.end(), "");
}

#[test]
fn a_killed_client_leaves_no_page() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("values");
    let (memory, _broker) = engine(&[("urgent", 0)], &socket);
    let mut client = Client::start(&socket);
    assert_eq!(client.ask("set urgent 6"), "6");
    assert_eq!(memory.processes(), [client.number]);
    client.child.kill().unwrap();
    client.child.wait().unwrap();
    becomes(vec![], || memory.processes());
}

#[test]
fn a_client_without_a_page_is_told_so_once_and_gets_one_when_another_leaves() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("values");
    let memory = Memory::new(&[("urgent", 0)], 1);
    let _broker = Broker::start(&socket, memory.clone()).unwrap();
    let mut first = Client::start(&socket);
    assert_eq!(first.ask("set urgent 1"), "1");
    let mut late = Client::start(&socket);
    assert_eq!(late.ask("set urgent 2"), "2"); // it works, unheard
    // Longer than it waits before it asks again: it is told once.
    std::thread::sleep(Duration::from_millis(2500));
    assert_eq!(memory.processes(), [first.number]);
    assert_eq!(memory.value(first.number, first.number, "urgent"), Some(1));
    assert_eq!(first.end(), "");
    let number = late.number;
    becomes(Some(2), || memory.value(number, number, "urgent"));
    let said = late.end();
    let told = said.matches("attune: values: the scheduler does not hear this process: ").count();
    assert!(told == 1 && said.contains("no place is left"), "{said}");
}

/// An engine that begins after `wait_for_clients` finds all values that the one before had.
#[test]
fn the_next_engine_has_hints_and_values_before_it_begins() {
    let folder = tempfile::tempdir().unwrap();
    let (socket, kept) = (folder.path().join("values"), folder.path().join("kept"));
    let engine = || {
        let memory = Memory::new(&[("urgent", 0), ("deadline", -1)], 16);
        let broker = Broker::keeping(Some(&kept), &socket, memory.clone()).unwrap();
        (memory, broker)
    };
    let (_, first) = engine();
    let mut client = Client::start(&socket);
    let me = client.number;
    assert_eq!(client.ask("set urgent 7"), "7");
    let mut silent = Command::new("sleep").arg("1000").spawn().unwrap();
    let hinted = silent.id() as i32;
    let hint = |name: &str, value| {
        let connection = Connection::to(&socket, Duration::from_secs(90)).unwrap();
        let values = vec![(name.to_owned(), value)];
        let hint = Hint { process: hinted, thread: None, values };
        connection.send(&Request::Hint(hint), None).unwrap();
        assert!(matches!(connection.receive().unwrap(), Received::Message(Reply::Done, _)));
    };
    hint("urgent", Some(4));
    hint("deadline", Some(9));
    hint("deadline", None);
    drop(first);
    let (memory, second) = engine();
    second.wait_for_clients(Duration::from_secs(90));
    assert_eq!(memory.value(me, me, "urgent"), Some(7));
    assert_eq!(memory.value(hinted, hinted, "urgent"), Some(4));
    assert_eq!(memory.value(hinted, hinted, "deadline"), Some(-1));
    // One of the two ends, and nobody waits for it any more.
    client.end();
    drop(second);
    silent.kill().unwrap();
    silent.wait().unwrap();
    let (memory, third) = engine();
    third.wait_for_clients(Duration::from_secs(3600));
    assert!(memory.processes().is_empty());
}
