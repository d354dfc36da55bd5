//! The numbers that a node's handlers and its cluster share, exchanged between two handlers
//! (`bpf/node.h`).

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use attune_replica::Change;
use attune_replica::exchange::Number;
use attune_replica::schema::Export;
use la_arena::Idx;

use crate::description::Policy;
use crate::loaded::Loaded;
use crate::locked_copy::ROOM;
use crate::memory::Words;
use crate::program_call;

/// Bytes of struct attune_entry, and from its start to its members.
const ENTRY: u64 = 40;
const AT: u64 = 0;
const OWNER: u64 = 8;
const GLOBAL: u64 = 12;
const NUMBER: u64 = 16;
const SCALE: u64 = 24;
const SHIFT: u64 = 32;

/// Whose a number is: enum attune_owner.
#[derive(Clone, Copy, Debug)]
enum Owner {
    Cluster,
    Node,
    Container,
}

/// Where a number of the list is.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    at: u64,
    owner: Owner,
    global: u32,
}

pub struct Exchange {
    loaded: Arc<Loaded>,
    program: OwnedFd,
    room: u64,
}

impl Exchange {
    /// An error: the object is no node's.
    pub fn new(loaded: Arc<Loaded>) -> io::Result<Exchange> {
        let name = "attune_exchange_with_cluster";
        let program = loaded.object.progs().find(|program| program.name() == name);
        let program = program.ok_or(io::ErrorKind::NotFound)?.as_fd().try_clone_to_owned()?;
        let room = loaded.copier_now().make_room(&loaded.image, &loaded.memory);
        let room = room.map_err(io::Error::other)?;
        Ok(Exchange { loaded, program, room })
    }

    fn policy(&self) -> &Policy {
        self.loaded.image.description.first()
    }

    /// What others share, by the number of the import. None, here as below: the object lacks it.
    pub fn of_cluster<T>(&self, global: Idx<T>) -> Option<Entry> {
        let global = index(global);
        self.entry(Owner::Cluster, global, self.global(global)?)
    }

    /// What others see of the node.
    pub fn of_node(&self, export: Export) -> Option<Entry> {
        match export {
            Export::Global(global) => self.entry(Owner::Node, 0, self.global(index(global))?),
            Export::Size(container) => {
                let container = self.policy().containers.get(index(container) as usize)?;
                self.entry(Owner::Container, 0, self.in_state(&container.c_name)?)
            }
        }
    }

    fn entry(&self, owner: Owner, global: u32, at: u64) -> Option<Entry> {
        Some(Entry { at, owner, global })
    }

    fn global(&self, index: u32) -> Option<u64> {
        let global = self.policy().globals.get(index as usize)?;
        Some(self.in_state(&global.c_name)? + global.offset())
    }

    fn in_state(&self, name: &str) -> Option<u64> {
        self.loaded.memory.in_state(&self.loaded.image, 0, name)
    }

    /// What the number is at this moment, without an exchange.
    pub fn look(&self, entry: &Entry) -> Option<i64> {
        let Loaded { image, memory, .. } = &*self.loaded;
        match entry.owner {
            Owner::Container => memory.u32(entry.at + image.layout().container.size).map(i64::from),
            Owner::Cluster | Owner::Node => memory.u64(entry.at).map(|it| it as i64),
        }
    }

    /// All entries, between two handlers. `heard_at`: when the manager was heard of; 0: never.
    pub fn run(&self, entries: &[Entry], numbers: &mut [Number], heard_at: i64) -> io::Result<()> {
        let memory = &self.loaded.memory;
        if entries.len() as u64 * ENTRY > ROOM {
            let room = ROOM / ENTRY;
            let message = format!("a node in the kernel shares {room} numbers at most");
            return Err(io::Error::other(message));
        }
        let places = || (self.room..).step_by(ENTRY as usize);
        for (at, (entry, number)) in places().zip(entries.iter().zip(&*numbers)) {
            memory.set_u64(at + AT, entry.at);
            memory.set_u32(at + OWNER, entry.owner as u32);
            memory.set_u32(at + GLOBAL, entry.global);
            memory.set_u64(at + NUMBER, number.number as u64);
            memory.set_u64(at + SCALE, number.change.scale as u64);
            memory.set_u64(at + SHIFT, number.change.shift as u64);
        }
        let exchanging = [self.room, entries.len() as u64, heard_at as u64];
        program_call::with(self.program.as_fd(), exchanging)?;
        for (at, number) in places().zip(numbers) {
            let word = |member| memory.u64(at + member).unwrap_or(0) as i64;
            number.number = word(NUMBER);
            number.change = Change { scale: word(SCALE), shift: word(SHIFT) };
        }
        Ok(())
    }

    /// The object, for what tells that handlers have written.
    pub fn object(&self) -> &libbpf_rs::Object {
        &self.loaded.object
    }
}

/// Globals and containers are described in their order in the program.
fn index<T>(id: Idx<T>) -> u32 {
    id.into_raw().into_u32()
}
