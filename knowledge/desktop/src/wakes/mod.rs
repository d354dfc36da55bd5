//! Which process wakes which, counted in the kernel; and the ratings that the kernel hands on at
//! once, between two seconds.
//!
//! Needs Linux 5.15 or newer with BTF, and the capabilities CAP_BPF and CAP_PERFMON (root has
//! both). Dropping [`Wakes`] detaches and unloads the program.

mod program;

use std::cell::Cell;
use std::collections::BTreeSet;
use std::os::fd::AsFd;

use attune_bpf::load::{attach, map, refused};
pub use attune_client::Change;
use attune_client::Table;
use attune_values::names;
use attune_values::table::VALUE_BYTES;
use libbpf_rs::{Link, MapCore, MapFlags, Object};

use crate::observation::{Handed, Handover, Time, Wakes as Count};
use crate::process::Process;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("counting wake-ups needs the capabilities CAP_BPF and CAP_PERFMON: run it as root")]
    NoPrivilege,
    #[error(
        "this kernel does not describe its types (/sys/kernel/btf/vmlinux is missing): use a \
         kernel with CONFIG_DEBUG_INFO_BTF, as distributions ship"
    )]
    NoBtf,
    #[error("the kernel does not take the program that counts wake-ups: {what}")]
    Refused { what: String },
}

impl From<attune_bpf::Error> for Error {
    fn from(error: attune_bpf::Error) -> Error {
        match error {
            attune_bpf::Error::NoPrivilege => Error::NoPrivilege,
            attune_bpf::Error::NoBtf => Error::NoBtf,
            attune_bpf::Error::Refused(what) => Error::Refused { what },
        }
    }
}

/// A rating in the kernel's table, in thousandths of the ceiling.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    pub process: Process,
    pub input: i64,
    pub output: i64,
    pub hub: bool,
}

/// What the kernel handed on, with the rating in thousandths of the ceiling.
const BY_WAKE: u32 = 1;
const BY_FORK: u32 = 2;
/// struct row of bpf/graph.bpf.c, which is a row of a table by process.
const ROW_BYTES: usize = VALUE_BYTES as usize;
/// What engines read of it.
const COLUMNS: [Option<&str>; 2] = [Some(names::INPUT_RATING), Some(names::OUTPUT_RATING)];
/// Entries that one call of the kernel copies.
const BATCH: u32 = 4096;

pub struct Wakes {
    /// Which engine reads the ratings.
    table: Table,
    // Detached before the maps go.
    _links: Vec<Link>,
    object: Object,
    /// How often the kernel has been told that ratings have changed.
    changes: Cell<u64>,
}

impl Wakes {
    pub fn start() -> Result<Wakes, Error> {
        let object = program::load()?;
        let links = attach(&object)?;
        Ok(Wakes { table: Table::new(&COLUMNS), _links: links, object, changes: Cell::new(0) })
    }

    /// The wake-ups since the last call, each pair of processes once.
    pub fn take(&self) -> Result<Vec<Count>, Error> {
        let edges = map(&self.object, "edges")?;
        let none = MapFlags::ANY;
        let entries = edges.lookup_and_delete_batch(BATCH, none, none).map_err(refused)?;
        let count = |(key, value): (Vec<u8>, Vec<u8>)| {
            let process = |at| word(&key, at).map(Process::from_key);
            Some(Count { from: process(0)?, to: process(8)?, count: word(&value, 0)? })
        };
        Ok(entries.filter_map(count).collect())
    }

    /// Makes the kernel's table what user space has computed. Rows that the kernel made itself
    /// since `handovers` was called last are replaced or removed: by now they are part of what was
    /// computed.
    pub fn publish(&self, rows: &[Row]) -> Result<(), Error> {
        let table = map(&self.object, "ratings")?;
        let kept: BTreeSet<u64> = rows.iter().map(|row| row.process.key()).collect();
        for key in table.keys().collect::<Vec<_>>() {
            if word(&key, 0).is_some_and(|key| !kept.contains(&key)) {
                // The process may have ended meanwhile.
                let _ = table.delete(&key);
            }
        }
        self.put(&rows[..rows.len().min(table.max_entries() as usize)])
    }

    /// Adds or changes some rows, at once.
    pub fn put(&self, rows: &[Row]) -> Result<(), Error> {
        let mut done = Ok(());
        // One that has no room keeps none of the others out.
        for row in rows {
            done = done.and(self.put_one(row));
        }
        self.changes.set(self.changes.get() + 1);
        let published = map(&self.object, "published")?;
        let number = self.changes.get().to_ne_bytes();
        published.update(&0u32.to_ne_bytes(), &number, MapFlags::ANY).map_err(refused)?;
        done
    }

    fn put_one(&self, row: &Row) -> Result<(), Error> {
        let table = map(&self.object, "ratings")?;
        let mut value = [0; ROW_BYTES];
        value[0..8].copy_from_slice(&row.input.to_ne_bytes());
        value[8..16].copy_from_slice(&row.output.to_ne_bytes());
        value[36..40].copy_from_slice(&u32::from(row.hub).to_ne_bytes());
        let key = row.process.key().to_ne_bytes();
        Ok(table.update(&key, &value, MapFlags::ANY).map_err(refused)?)
    }

    /// What the kernel handed on since `publish` was called last. `full`: the ceiling of ratings.
    pub fn handovers(&self, full: f64) -> Result<Vec<Handover>, Error> {
        let table = map(&self.object, "ratings")?;
        let none = MapFlags::ANY;
        let entries = table.lookup_batch(BATCH, none, none).map_err(refused)?;
        let handover = |(key, value): (Vec<u8>, Vec<u8>)| {
            let how = match u32::from_ne_bytes(value.get(32..36)?.try_into().ok()?) {
                BY_WAKE => Handed::Wake,
                BY_FORK => Handed::Fork,
                _ => return None,
            };
            let rating = |at| word(&value, at).map(|value| value as i64 as f64 / 1000.0 * full);
            Some(Handover {
                from: Process::from_key(word(&value, 16)?),
                to: Process::from_key(word(&key, 0)?),
                how,
                input: rating(0)?,
                output: rating(8)?,
                at: word(&value, 24)? as Time,
            })
        };
        Ok(entries.filter_map(handover).collect())
    }

    /// The row of a process as the kernel has it now.
    pub fn row(&self, process: Process) -> Option<Row> {
        let table = map(&self.object, "ratings").ok()?;
        let value = table.lookup(&process.key().to_ne_bytes(), MapFlags::ANY).ok()??;
        let hub = value.get(36..40)?.iter().any(|&byte| byte != 0);
        Some(Row { process, input: word(&value, 0)? as i64, output: word(&value, 8)? as i64, hub })
    }

    /// Wake-ups that found no room, since it was loaded.
    pub fn lost(&self) -> u64 {
        let cpus = map(&self.object, "lost")
            .ok()
            .and_then(|map| map.lookup_percpu(&0u32.to_ne_bytes(), MapFlags::ANY).ok().flatten());
        cpus.into_iter().flatten().filter_map(|value| word(&value, 0)).sum()
    }

    /// Hands the table of ratings to the engine that runs, if none has it; to be called now and
    /// then. What has changed about its reader.
    pub fn offer(&mut self) -> Result<Option<Change>, Error> {
        Ok(self.table.keep(map(&self.object, "ratings")?.as_fd()))
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}
