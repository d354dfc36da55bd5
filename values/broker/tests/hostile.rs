//! Hostile peers: the broker goes on, and other clients notice nothing.

mod common;

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use attune_broker::{Broker, Memory};
use attune_linux::poll;
use attune_linux::process::Process;
use attune_values::enclosed;
use attune_values::socket::{Connection, Received};
use attune_values::wire::{Refusal, Reply, Request, Tunable, VERSION};
use common::{PATIENCE, all_is_well, become_user, connect, is_root, open_to_all};
use rustix::process::{PidfdGetfdFlags, pidfd_getfd};

/// A peer that sends bytes instead of messages.
fn connect_raw(socket: &Path) -> attune_linux::socket::Connection {
    attune_linux::socket::Connection::to(socket, PATIENCE).unwrap()
}

fn refusal(connection: &Connection) -> Option<Refusal> {
    match connection.receive() {
        Ok(Received::Message(Reply::Refused { why, .. }, _)) => Some(why),
        _ => None,
    }
}

fn is_garbled(connection: &attune_linux::socket::Connection) -> bool {
    let mut bytes = [0; 8192];
    let attune_linux::socket::Received::Packet(length, _) = connection.receive(&mut bytes).unwrap()
    else {
        return false;
    };
    let reply = serde_json::from_slice(&bytes[..length]).unwrap();
    matches!(reply, Reply::Refused { why: Refusal::Garbled, .. })
}

#[test]
fn a_packet_that_is_no_message_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("values");
    let _broker = Broker::start(&socket, Memory::new(&[("urgent", 0)], 4)).unwrap();

    let connection = connect_raw(&socket);
    let mut noise = fastrand::Rng::with_seed(1);
    for length in (1..8192).step_by(97) {
        let bytes: Vec<u8> = (0..length).map(|_| noise.u8(..)).collect();
        connection.send(&bytes, None).unwrap();
        assert!(is_garbled(&connection), "{length} bytes");
    }
    // Longer than any message.
    connection.send(&[b'['; 60_000], None).unwrap();
    assert!(is_garbled(&connection));
    all_is_well(&socket);
}

#[test]
fn requests_out_of_turn_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("values");
    let _broker = Broker::start(&socket, Memory::new(&[("urgent", 0)], 4)).unwrap();
    let connection = connect(&socket);
    let ask = |request: Request| {
        connection.send(&request, None).unwrap();
        refusal(&connection)
    };
    assert_eq!(
        ask(Request::Declare { word: 1, name: "urgent".to_owned() }),
        Some(Refusal::Garbled)
    );
    assert_eq!(ask(Request::Bind { row: 1, thread: 1 }), Some(Refusal::Garbled));
    assert_eq!(ask(Request::Hello { version: VERSION + 1 }), Some(Refusal::Garbled));
    connection.send(&Request::Hello { version: VERSION }, None).unwrap();
    assert!(matches!(connection.receive(), Ok(Received::Message(Reply::Welcome { .. }, Some(_)))));
    assert_eq!(ask(Request::Hello { version: VERSION }), Some(Refusal::Forbidden));
    assert_eq!(ask(Request::Bind { row: 1, thread: 1 }), Some(Refusal::NoSuchThread));
    assert_eq!(ask(Request::Bind { row: 1, thread: -7 }), Some(Refusal::NoSuchThread));
    assert_eq!(ask(Request::Bind { row: u16::MAX, thread: 1 }), Some(Refusal::Garbled));
    let long = "x".repeat(5000);
    assert_eq!(ask(Request::Declare { word: 1, name: long }), Some(Refusal::UnknownImport));
    all_is_well(&socket);
}

#[test]
fn the_user_who_runs_it_sets_tunables_and_takes_snapshots() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("values");
    let me = attune_linux::process::user();
    let _broker = Broker::start(&socket, Memory::new(&[], 0).owned_by(me)).unwrap();
    let connection = connect(&socket);
    let ask = |request: Request| {
        connection.send(&request, None).unwrap();
        match connection.receive().unwrap() {
            Received::Message(Reply::Enclosed, Some(memory)) => Ok(enclosed::read(memory).unwrap()),
            Received::Message(Reply::Done, None) => Ok(Vec::new()),
            Received::Message(Reply::Refused { why, message }, None) => Err((why, message)),
            other => panic!("{other:?}"),
        }
    };
    let set =
        |value: &str| ask(Request::Set { settings: vec![("level".to_owned(), value.to_owned())] });
    assert_eq!(set("8"), Ok(Vec::new()));
    assert_eq!(set("high").unwrap_err(), (Refusal::Unsuitable, "level cannot be high".to_owned()));
    assert_eq!(ask(Request::Snapshot).unwrap(), b"8");
    let tunables: Vec<Tunable> = serde_json::from_slice(&ask(Request::Tunables).unwrap()).unwrap();
    assert_eq!((tunables[0].name.as_str(), tunables[0].value), ("level", 8));
    // There is nothing to supply, and that is said.
    let (why, message) = ask(Request::Hello { version: VERSION }).unwrap_err();
    assert_eq!(
        (why, message.as_str()),
        (Refusal::UnknownImport, "there are no thread imports in memory")
    );
    let long = vec![("level".to_owned(), "1".repeat(9000))];
    let refused = connection.send(&Request::Set { settings: long }, None).unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::InvalidInput);
}

#[test]
fn a_client_that_never_reads_is_cut_off() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("values");
    let _broker = Broker::start(&socket, Memory::new(&[("urgent", 0)], 4)).unwrap();
    let deaf = connect_raw(&socket);
    let cut_off = (0..5000).any(|_| deaf.send(b"?", None).is_err());
    assert!(cut_off);
    all_is_well(&socket);
}

#[test]
fn a_flood_of_connections_ends_at_its_limit() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("values");
    let _broker = Broker::start(&socket, Memory::new(&[("urgent", 0)], 4)).unwrap();
    // As many as the system lets one process have.
    let flood: Vec<Connection> =
        (0..900).map_while(|_| Connection::to(&socket, Duration::from_millis(200)).ok()).collect();
    drop(flood);
    all_is_well(&socket);
}

/// Asks by a new connection each time, until that moment. How often it was answered.
fn flood(socket: &Path, until: Instant) -> usize {
    let mut answers = 0;
    while Instant::now() < until {
        let Ok(connection) = Connection::to(socket, PATIENCE) else { continue };
        let asked = connection.send(&Request::Tunables, None).is_ok();
        answers += usize::from(asked && refusal(&connection).is_some());
    }
    answers
}

/// What a broker of this process has computed, in nanoseconds: the busiest, for each test has one.
fn computed_by_busiest() -> u64 {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().map(|task| task.unwrap().path());
    let computed = tasks.filter_map(|task| {
        let name = std::fs::read_to_string(task.join("comm")).ok()?;
        let times = std::fs::read_to_string(task.join("schedstat")).ok()?;
        (name == "attune-values\n").then(|| times.split(' ').next()?.parse().ok())?
    });
    computed.max().unwrap()
}

/// A user who connects all the time gets a part of the broker's time: less than two per cent, and
/// 40 ms at once. Root gets as much as it asks for, and a third user is served meanwhile.
#[test]
fn a_flood_of_connections_costs_the_broker_a_bounded_part() {
    if !is_root() {
        return;
    }
    let (_folder, socket) = open_to_all();
    let _broker = Broker::start(&socket, Memory::new(&[("urgent", 0)], 4)).unwrap();
    let begun = Instant::now();
    let until = begun + Duration::from_secs(5);
    let (strangers, roots) = std::thread::scope(|scope| {
        let stranger = scope.spawn(|| {
            become_user(65534);
            flood(&socket, until)
        });
        let third = scope.spawn(|| {
            become_user(65533);
            (0..20).for_each(|_| all_is_well(&socket));
        });
        let roots = flood(&socket, until);
        third.join().unwrap();
        (stranger.join().unwrap(), roots)
    });
    assert!(strangers > 0);
    // An answer costs the same for each user. A bounded part is not an exact one: twice that.
    let each = computed_by_busiest() / (strangers + roots) as u64;
    let part = Duration::from_millis(100) + begun.elapsed() / 50;
    let cost = Duration::from_nanos(each * strangers as u64);
    assert!(cost < part * 2, "{strangers} answers cost {cost:?}, not {part:?} (root: {roots})");
}

/// Connections of one user that say nothing. The next one learns why it has no place; root has one.
#[test]
fn one_users_connections_shut_nobody_else_out() {
    if !is_root() {
        return;
    }
    let (_folder, socket) = open_to_all();
    let _broker = Broker::start(&socket, Memory::new(&[("urgent", 0)], 4)).unwrap();
    std::thread::scope(|scope| {
        let stranger = scope.spawn(|| {
            become_user(65534);
            let silent: Vec<Connection> = (0..128).map(|_| connect(&socket)).collect();
            let more = connect(&socket);
            more.send(&Request::Hello { version: VERSION }, None).unwrap();
            let Ok(Received::Message(Reply::Refused { why, message }, _)) = more.receive() else {
                panic!("the connection beyond the limit has a place");
            };
            assert_eq!(why, Refusal::Full);
            assert!(message.contains("user 65534 has 128 connections"), "{message}");
            (silent, more)
        });
        let connections = stranger.join().unwrap();
        all_is_well(&socket);
        drop(connections);
    });
}

/// Each hello makes the one before count no more; the connections are there all the same.
#[test]
fn a_process_that_greets_again_and_again_has_no_more_connections_than_others() {
    if !is_root() {
        return;
    }
    let (_folder, socket) = open_to_all();
    let _broker = Broker::start(&socket, Memory::new(&[("urgent", 0)], 4)).unwrap();
    let stranger = std::thread::scope(|scope| {
        let greets = || {
            become_user(65534);
            let mut kept = Vec::new();
            for _ in 0..300 {
                let connection = connect(&socket);
                connection.send(&Request::Hello { version: VERSION }, None).unwrap();
                let Ok(Received::Message(Reply::Welcome { .. }, _)) = connection.receive() else {
                    break;
                };
                kept.push(connection);
            }
            kept
        };
        scope.spawn(greets).join().unwrap()
    });
    // 128 that supply nothing, and the one that does.
    assert_eq!(stranger.len(), 129);
    all_is_well(&socket);
}

#[test]
fn a_connection_ends_with_its_process_though_another_process_holds_it() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("values");
    let _broker = Broker::start(&socket, Memory::new(&[("urgent", 0)], 4)).unwrap();
    let (mut supplier, connection) = supplier(&socket);
    let ends_within = |time: Duration| {
        let mut end = [poll::readable(connection.as_raw_fd())];
        poll::wait(&mut end, time.as_nanos() as u64).unwrap() > 0
    };
    assert!(!ends_within(Duration::from_millis(100)));
    supplier.kill().unwrap();
    supplier.wait().unwrap();
    assert!(ends_within(PATIENCE));
    all_is_well(&socket);
}

/// A process that supplies values until it is killed, and a descriptor of its connection.
fn supplier(socket: &Path) -> (Child, OwnedFd) {
    const KEPT: RawFd = 100;
    let path = socket.to_owned();
    let supplies = move || {
        let connection = Connection::to(&path, PATIENCE)?;
        connection.send(&Request::Hello { version: VERSION }, None)?;
        assert!(matches!(connection.receive()?, Received::Message(Reply::Welcome { .. }, _)));
        // The copy stays open in the program that is executed.
        // SAFETY: no descriptor of that number is in use in this process.
        let mut kept = unsafe { OwnedFd::from_raw_fd(KEPT) };
        rustix::io::dup2(&connection, &mut kept)?;
        std::mem::forget(kept);
        Ok(())
    };
    let mut command = Command::new("sleep");
    command.arg("100");
    // SAFETY: beside system calls the closure allocates, which the C library allows after a fork.
    unsafe { command.pre_exec(supplies) };
    let child = command.spawn().unwrap();
    let process = Process::open(child.id()).unwrap();
    let connection = pidfd_getfd(&process, KEPT, PidfdGetfdFlags::empty()).unwrap();
    (child, connection)
}

#[test]
fn two_engines_do_not_share_a_place() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("values");
    let first = Broker::start(&socket, Memory::new(&[("urgent", 0)], 4)).unwrap();
    let second = Broker::start(&socket, Memory::new(&[("urgent", 0)], 4));
    assert_eq!(second.unwrap_err().kind(), std::io::ErrorKind::AddrInUse);
    all_is_well(&socket);
    drop(first);
    assert!(!socket.exists());
    // The socket of an engine that was killed is no obstacle.
    std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let _third = Broker::start(&socket, Memory::new(&[("urgent", 0)], 4)).unwrap();
    all_is_well(&socket);
}
