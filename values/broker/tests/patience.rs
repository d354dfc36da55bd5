//! Programs of one user that all begin at once, and that do not wait for long: each is heard after
//! a while, though the user's part of the broker's time does not suffice for all at first.

mod common;

use std::io;
use std::time::{Duration, Instant};

use attune_broker::{Broker, Memory, Store};
use attune_values::page::PageInParts;
use attune_values::socket::{Connection, Received};
use attune_values::wire::{Import, Reply, Request, VERSION};
use common::{become_user, is_root, open_to_all};

/// A page takes so much of the broker's CPU time: of a user's sixtieth part, 0.3 s.
const COST: Duration = Duration::from_millis(5);
const PATIENCE: Duration = Duration::from_secs(1);
const PROGRAMS: usize = 24;
/// Far more than their pages take, 5 s.
const LONG: Duration = Duration::from_secs(60);
const USER: u32 = 65_533;

struct Slow(Memory);

impl Store for Slow {
    fn scheduler(&self) -> &str {
        self.0.scheduler()
    }

    fn imports(&self) -> &[Import] {
        self.0.imports()
    }

    fn slots(&self) -> u32 {
        self.0.slots()
    }

    fn open(&mut self, slot: u32, process: i32, page: &mut PageInParts) -> io::Result<()> {
        let end = Instant::now() + COST;
        while Instant::now() < end {}
        self.0.open(slot, process, page)
    }

    fn reads(&self, slot: u32, process: i32) -> bool {
        self.0.reads(slot, process)
    }

    fn declare(&mut self, slot: u32, import: usize, word: Option<u8>) -> io::Result<()> {
        self.0.declare(slot, import, word)
    }

    fn bind(
        &mut self,
        slot: u32,
        page: &mut PageInParts,
        row: u16,
        process: i32,
        thread: i32,
    ) -> io::Result<()> {
        self.0.bind(slot, page, row, process, thread)
    }

    fn unbind(&mut self, slot: u32, process: i32, thread: i32) {
        self.0.unbind(slot, process, thread)
    }

    fn close(&mut self, slot: u32, process: i32) {
        self.0.close(slot, process)
    }
}

/// Whether it has a page by then. It asks again and again, each time without much patience.
fn is_heard(socket: &std::path::Path, until: Instant) -> bool {
    while Instant::now() < until {
        let Ok(connection) = Connection::to(socket, PATIENCE) else { continue };
        let asked = connection.send(&Request::Hello { version: VERSION }, None).is_ok();
        let answer = asked.then(|| connection.receive::<Reply>());
        if let Some(Ok(Received::Message(Reply::Welcome { .. }, Some(_)))) = answer {
            return true;
        }
    }
    false
}

#[test]
fn those_that_give_up_keep_none_from_being_heard() {
    if !is_root() {
        return;
    }
    let (_folder, socket) = open_to_all();
    let _broker = Broker::start(&socket, Slow(Memory::new(&[("urgent", 0)], 64))).unwrap();
    let until = Instant::now() + LONG;
    std::thread::scope(|scope| {
        let program = || {
            become_user(USER);
            is_heard(&socket, until)
        };
        let programs: Vec<_> = (0..PROGRAMS).map(|_| scope.spawn(program)).collect();
        let heard = programs.into_iter().map(|it| it.join().unwrap());
        assert_eq!(heard.filter(|heard| *heard).count(), PROGRAMS);
    });
}
