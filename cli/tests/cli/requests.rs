//! Programs that ask the owner of a shared variable, while managers and programs are killed.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::cluster::{Manager, example, program};
use crate::support::{Folder, err, status};

const DRAWS: usize = 3000;

/// A request, from its beginning to its answer.
#[derive(Clone, Copy, Debug)]
struct Drawn {
    begins: u64,
    ends: u64,
    ticket: u64,
}

impl Drawn {
    fn of(line: &str) -> Option<Drawn> {
        let said: Value = serde_json::from_str(line).ok()?;
        let number = |name: &str| said[name].as_u64();
        Some(Drawn { begins: number("begins")?, ends: number("ends")?, ticket: number("ticket")? })
    }
}

/// A program that draws tickets, gone with its test.
struct Counter(Child);

impl Counter {
    fn start(tickets: &Path, folder: &Folder, words: &[&str]) -> Counter {
        let mut command = Command::new(tickets);
        command.args(words).current_dir(&folder.0);
        command.env("ATTUNE_SCHED", "./counter.so").env("ATTUNE_CLUSTER", "./socket");
        Counter(command.stdout(Stdio::piped()).spawn().expect("it starts"))
    }

    fn lines(&mut self) -> BufReader<ChildStdout> {
        BufReader::new(self.0.stdout.take().expect("piped"))
    }
}

impl Drop for Counter {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Three programs draw tickets; the manager is killed and followed by another three times, and one
/// of the programs is killed, too. Every answer is a ticket that comes after all that were drawn
/// before the request, and no other program has it.
#[test]
fn no_ticket_is_given_out_twice_while_managers_and_programs_are_killed() {
    let folder = example("tickets", "tickets");
    let tickets = program(&folder, "tickets");
    let words = ["build", "tickets.sched", "--node", "counter", "--request", "last", "-o"];
    let built = folder.attune(&[&words[..], &["counter.so"]].concat());
    assert_eq!(status(&built), 0, "{}", err(&built));
    let (mut manager, _) = Manager::of(&folder, "tickets.sched", &[]);
    let draws = DRAWS.to_string();
    let mut counters: Vec<Counter> =
        (0..3).map(|_| Counter::start(&tickets, &folder, &["draw", &draws])).collect();
    // Each says what it draws to a thread of its own, so that a full pipe stops none.
    let (say, heard) = std::sync::mpsc::channel();
    for (number, child) in counters.iter_mut().enumerate() {
        let (mut said, say) = (child.lines(), say.clone());
        std::thread::spawn(move || {
            let mut line = String::new();
            while said.read_line(&mut line).is_ok_and(|length| length > 0) {
                // A program that is killed may have said half a line.
                if let Some(drawn) = Drawn::of(&line) {
                    let _ = say.send((number, drawn));
                }
                line.clear();
            }
        });
    }
    drop(say);
    let mut drawn: Vec<(usize, Drawn)> = Vec::new();
    let patience = Duration::from_secs(100);
    for round in 1..=3 {
        while drawn.len() < round * 300 {
            drawn.push(heard.recv_timeout(patience).expect("they draw"));
        }
        manager.child.kill().expect("it runs");
        manager.child.wait().expect("it ended");
        if round == 2 {
            counters[0].0.kill().expect("it runs");
        }
        manager = Manager::of(&folder, "tickets.sched", &[]).0;
    }
    while let Ok(next) = heard.recv_timeout(patience) {
        drawn.push(next);
    }
    for (number, child) in counters.iter_mut().enumerate() {
        let ended = child.0.wait().expect("it ended");
        assert!(number == 0 || ended.success(), "counter {number}: {ended}");
        let count = drawn.iter().filter(|(of, _)| *of == number).count();
        assert!(number == 0 || count == DRAWS, "counter {number} drew {count}");
    }

    let mut in_order: Vec<Drawn> = drawn.iter().map(|(_, drawn)| *drawn).collect();
    in_order.sort_by_key(|drawn| drawn.ticket);
    let twice = in_order.windows(2).find(|pair| pair[0].ticket == pair[1].ticket);
    assert!(twice.is_none(), "{twice:?}");
    // Linearizable: no request ended before one with a smaller ticket began.
    let mut latest_begin = in_order[0];
    for &next in &in_order {
        assert!(next.ends >= latest_begin.begins, "{next:?} came before {latest_begin:?}");
        if next.begins > latest_begin.begins {
            latest_begin = next;
        }
    }
    // The one that was killed may have drawn one ticket without saying so.
    let last = in_order.last().expect("many").ticket;
    let mut line = String::new();
    let mut see = Counter::start(&tickets, &folder, &["see"]);
    see.lines().read_line(&mut line).expect("readable");
    let seen: Value = serde_json::from_str(&line).expect("a line of JSON");
    let final_last = seen["last"].as_u64().expect("a number");
    assert!(final_last >= last && final_last <= in_order.len() as u64 + 1, "{seen}, {last}");
    let sold = seen["sold"].as_u64().expect("a number");
    assert!(sold >= 2 * DRAWS as u64 && sold <= final_last, "{seen}");
    drop(manager);
}

#[test]
fn a_variable_that_is_not_shared_cannot_be_requested() {
    let folder = example("tickets-options", "tickets");
    let words = ["build", "tickets.sched", "--node", "counter", "--request", "lost", "-o", "a.so"];
    let built = folder.attune(&words);
    assert_eq!(status(&built), 2);
    assert!(
        err(&built).contains("no shared variable lost; there are last, sold"),
        "{}",
        err(&built)
    );
}
