//! Many hints in one request: each is given or refused by itself.

use std::os::fd::AsFd;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use attune_broker::{Broker, Memory};
use attune_values::enclosed;
use attune_values::socket::{Connection, Received};
use attune_values::wire::{Hint, Refusal, Refused, Reply, Request};

const PATIENCE: Duration = Duration::from_secs(90);

/// A process that waits until it is told to end.
struct Sleeper(Child);

impl Sleeper {
    fn new() -> Sleeper {
        let mut command = Command::new("cat");
        Sleeper(command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap())
    }

    fn number(&self) -> i32 {
        self.0.id() as i32
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

fn hint(process: i32, value: i64) -> Hint {
    Hint { process, thread: None, values: vec![("urgent".to_owned(), Some(value))] }
}

fn give(connection: &Connection, hints: &[Hint]) -> Vec<Refused> {
    let list = enclosed::enclose(&serde_json::to_vec(hints).unwrap()).unwrap();
    connection.send(&Request::Hints, Some(list.as_fd())).unwrap();
    match connection.receive().unwrap() {
        Received::Message(Reply::Enclosed, Some(refused)) => {
            serde_json::from_slice(&enclosed::read(refused).unwrap()).unwrap()
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn those_that_are_refused_are_named_and_the_others_given() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("values");
    let memory = Memory::new(&[("urgent", 0)], 256);
    let _broker = Broker::start(&socket, memory.clone()).unwrap();
    let connection = Connection::to(&socket, PATIENCE).unwrap();
    let sleepers: Vec<Sleeper> = (0..40).map(|_| Sleeper::new()).collect();
    // More than are given in one round.
    let mut hints: Vec<Hint> = (1..=400)
        .map(|value| hint(sleepers[value as usize % sleepers.len()].number(), value))
        .collect();
    hints[3].values[0].0 = "urgant".to_owned();
    hints[200].process = i32::MAX;
    let refused = give(&connection, &hints);
    let which: Vec<_> = refused.iter().map(|it| (it.index, it.why)).collect();
    assert_eq!(which, [(3, Refusal::UnknownImport), (200, Refusal::NoSuchThread)]);
    for (place, sleeper) in sleepers.iter().enumerate() {
        let last = if place == 0 { 400 } else { 360 + place as i64 };
        let number = sleeper.number();
        assert_eq!(memory.value(number, number, "urgent"), Some(last));
    }
    // The same connection goes on.
    assert!(give(&connection, &hints[..3]).is_empty());
}

#[test]
fn one_process_has_hints_for_very_many_threads() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("values");
    let memory = Memory::new(&[("urgent", 0)], 4);
    let _broker = Broker::start(&socket, memory.clone()).unwrap();
    let connection = Connection::to(&socket, PATIENCE).unwrap();
    let (go, gone) = std::sync::mpsc::channel::<()>();
    let gone = std::sync::Arc::new(std::sync::Mutex::new(gone));
    std::thread::scope(|scope| {
        let (told, numbers) = std::sync::mpsc::channel();
        for _ in 0..600 {
            let (told, gone) = (told.clone(), gone.clone());
            let thread = std::thread::Builder::new().stack_size(32 << 10);
            let life = move || {
                told.send(attune_linux::process::this_thread() as i32).unwrap();
                // All wait for the first, and that for the test's end.
                let _ = gone.lock().unwrap().recv();
            };
            thread.spawn_scoped(scope, life).unwrap();
        }
        let threads: Vec<i32> = numbers.iter().take(600).collect();
        let me = std::process::id() as i32;
        let one = |thread: &i32| Hint { thread: Some(*thread), ..hint(me, i64::from(*thread)) };
        let hints: Vec<Hint> = threads.iter().map(one).collect();
        assert_eq!(give(&connection, &hints), []);
        for thread in threads {
            assert_eq!(memory.value(me, thread, "urgent"), Some(thread.into()));
        }
        drop(go);
    });
}

#[test]
fn what_is_no_list_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("values");
    let _broker = Broker::start(&socket, Memory::new(&[("urgent", 0)], 4)).unwrap();
    let connection = Connection::to(&socket, PATIENCE).unwrap();
    let (pipe, _open) = std::io::pipe().unwrap();
    let text = enclosed::enclose(b"[{\"process\":").unwrap();
    for list in [None, Some(pipe.as_fd()), Some(text.as_fd())] {
        connection.send(&Request::Hints, list).unwrap();
        let answer = connection.receive().unwrap();
        assert!(
            matches!(answer, Received::Message(Reply::Refused { why: Refusal::Garbled, .. }, _)),
            "{answer:?}"
        );
    }
}
