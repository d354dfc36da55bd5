//! Tables by process: which are read, by whose word, and until when.

use std::fs::File;
use std::os::fd::AsFd;
use std::path::Path;
use std::time::{Duration, Instant};

use attune_broker::{Broker, Memory};
use attune_linux::process::effective_user;
use attune_values::socket::{Connection, Received};
use attune_values::wire::{Refusal, Reply, Request, VERSION};

const PATIENCE: Duration = Duration::from_secs(20);

fn offer(socket: &Path, version: u32, columns: &[Option<&str>]) -> (Connection, Reply) {
    let connection = Connection::to(socket, PATIENCE).unwrap();
    let columns = columns.iter().map(|name| name.map(str::to_owned)).collect();
    // The store in memory takes any descriptor.
    let map = File::open("/dev/null").unwrap();
    connection.send(&Request::Table { version, columns }, Some(map.as_fd())).unwrap();
    let Received::Message(reply, None) = connection.receive().unwrap() else { panic!("no reply") };
    (connection, reply)
}

fn reads(columns: &[&str]) -> Reply {
    let columns = columns.iter().map(|&name| name.to_owned()).collect();
    Reply::Reads { scheduler: "memory".to_owned(), columns }
}

fn why(reply: &Reply) -> Option<Refusal> {
    match reply {
        Reply::Refused { why, .. } => Some(*why),
        _ => None,
    }
}

fn engine(owner: u32) -> (tempfile::TempDir, std::path::PathBuf, Memory, Broker) {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("values");
    let memory = Memory::new(&[("urgent", 0), ("heat", 7)], 4).owned_by(owner);
    let broker = Broker::start(&socket, memory.clone()).unwrap();
    (folder, socket, memory, broker)
}

fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < PATIENCE, "{what} did not come");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_table_is_read_as_long_as_its_connection_lasts() {
    let (_folder, socket, memory, _broker) = engine(effective_user());
    let (connection, reply) = offer(&socket, VERSION, &[None, Some("heat"), Some("elsewhere")]);
    assert_eq!(reply, reads(&["heat"]));
    assert_eq!(memory.tabled(), [("heat".to_owned(), 1)]);
    drop(connection);
    wait_until("the table's end", || memory.tabled().is_empty());
}

#[test]
fn an_import_stands_in_one_table_at_a_time() {
    let (_folder, socket, memory, _broker) = engine(effective_user());
    let (first, _) = offer(&socket, VERSION, &[Some("heat")]);
    let (_, reply) = offer(&socket, VERSION, &[Some("urgent"), Some("heat")]);
    assert_eq!(why(&reply), Some(Refusal::Taken));
    let (_second, reply) = offer(&socket, VERSION, &[Some("urgent")]);
    assert_eq!(reply, reads(&["urgent"]));
    assert_eq!(memory.tabled(), [("heat".to_owned(), 0), ("urgent".to_owned(), 0)]);
    drop(first);
    wait_until("the first one's end", || memory.tabled().len() == 1);
    let (_third, reply) = offer(&socket, VERSION, &[Some("heat")]);
    assert_eq!(reply, reads(&["heat"]));
}

#[test]
fn four_tables_are_read_and_no_more() {
    let (_folder, socket, _, _broker) = engine(effective_user());
    let held: Vec<_> = (0..4).map(|_| offer(&socket, VERSION, &[Some("elsewhere")])).collect();
    assert!(held.iter().all(|(_, reply)| *reply == reads(&[])));
    let (_, reply) = offer(&socket, VERSION, &[Some("heat")]);
    assert_eq!(why(&reply), Some(Refusal::Full));
}

#[test]
fn what_makes_no_sense_is_refused_and_leaves_nothing() {
    let (_folder, socket, memory, _broker) = engine(effective_user());
    for columns in [&[Some("heat"); 2][..], &[Some("heat"); 9][..]] {
        assert_eq!(why(&offer(&socket, VERSION, columns).1), Some(Refusal::Garbled));
    }
    assert_eq!(why(&offer(&socket, VERSION + 1, &[Some("heat")]).1), Some(Refusal::Garbled));
    let connection = Connection::to(&socket, PATIENCE).unwrap();
    let request = Request::Table { version: VERSION, columns: vec![Some("heat".to_owned())] };
    connection.send(&request, None).unwrap();
    let Received::Message(reply, None) = connection.receive().unwrap() else { panic!("no reply") };
    assert_eq!(why(&reply), Some(Refusal::Garbled), "a table without its descriptor");
    let (connection, _) = offer(&socket, VERSION, &[Some("heat")]);
    let map = File::open("/dev/null").unwrap();
    connection.send(&request, Some(map.as_fd())).unwrap();
    let Received::Message(reply, None) = connection.receive().unwrap() else { panic!("no reply") };
    assert_eq!(why(&reply), Some(Refusal::Garbled), "a second table of one connection");
    assert_eq!(memory.tabled().len(), 1);
}
