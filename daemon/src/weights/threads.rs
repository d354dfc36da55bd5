//! Nice values of rated processes that have no cgroup of their own, and short slices.
//!
//! The fair class lets a thread that wakes up take the CPU from one that has asked for longer
//! slices (Linux 6.12 and newer); otherwise it waits for the end of that slice, whatever it weighs.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use attune_linux::procfs;
use attune_linux::scheduling::{Attributes, Class, RESET_ON_FORK};

use crate::journal::{self, Journal, ThreadId};
use crate::kernel::Kernel;

/// The slice that a rated thread asks for, in ns, if the usual one is longer. A rated thread that
/// wakes up waits for so long for another one: with 1 ms, a terminal beside a player was only 4.5
/// times sooner than without weights (docs/measured/focus.md).
pub const SLICE: u64 = 500_000;

/// Threads that have another nice value than their user's.
pub struct Threads {
    kernel: Kernel,
    raised: BTreeMap<ThreadId, Raised>,
    /// Somebody changed them since: they are left alone while they live.
    left: BTreeSet<ThreadId>,
}

struct Raised {
    process: u32,
    before: Attributes,
    nice: i32,
}

impl Threads {
    pub fn new(kernel: Kernel) -> Threads {
        Threads { kernel, raised: BTreeMap::new(), left: BTreeSet::new() }
    }

    pub fn count(&self) -> usize {
        self.raised.len()
    }

    /// Makes it so that the threads of these processes, and no others, count more by that many
    /// steps.
    pub fn follow(&mut self, wanted: &[(u32, u8)], journal: &mut Journal) -> io::Result<()> {
        let mut now: BTreeMap<ThreadId, (u32, i32)> = BTreeMap::new();
        for &(process, steps) in wanted {
            for thread in procfs::threads(process) {
                if let Some(start) = procfs::start_time(thread) {
                    now.insert(ThreadId { thread, start }, (process, -i32::from(steps)));
                }
            }
        }
        self.release_where(journal, |id, _| !now.contains_key(id))?;
        self.left.retain(|id| procfs::start_time(id.thread) == Some(id.start));
        for (id, (process, nice)) in now {
            self.raise(id, process, nice, journal)?;
        }
        Ok(())
    }

    /// Gives the process's threads their nice values back.
    pub fn release(&mut self, process: u32, journal: &mut Journal) -> io::Result<()> {
        self.release_where(journal, |_, raised| raised.process == process)
    }

    fn release_where(
        &mut self,
        journal: &mut Journal,
        over: impl Fn(&ThreadId, &Raised) -> bool,
    ) -> io::Result<()> {
        let over: Vec<ThreadId> =
            self.raised.iter().filter(|(id, it)| over(id, it)).map(|(id, _)| *id).collect();
        for id in over {
            if let Some(Raised { before, nice, .. }) = self.raised.remove(&id) {
                match Attributes::of(id.thread) {
                    Ok(now) if is_ours(&now, nice) => drop(journal::lower(id, &before)),
                    // Another nice value is somebody's choice; a thread that has gone needs none.
                    _ => unmark(id, &before),
                }
                journal.give(id)?;
            }
        }
        Ok(())
    }

    fn raise(
        &mut self,
        id: ThreadId,
        process: u32,
        nice: i32,
        journal: &mut Journal,
    ) -> io::Result<()> {
        // It may have ended just now.
        let Ok(now) = Attributes::of(id.thread) else { return Ok(()) };
        if let Some(raised) = self.raised.get_mut(&id) {
            if !is_ours(&now, raised.nice) {
                unmark(id, &raised.before);
                self.raised.remove(&id);
                self.left.insert(id);
                return journal.give(id);
            }
            let wanted = self.kernel.given(&raised.before, nice);
            if raised.nice != nice && wanted.apply_to(id.thread).is_ok() {
                raised.nice = nice;
            }
            return Ok(());
        }
        let ordinary = matches!(now.class, Class::NORMAL | Class::BATCH) && now.nice == 0;
        if !ordinary || self.left.contains(&id) {
            return Ok(());
        }
        let before = self.kernel.to_restore(now);
        journal.raise(id, &before)?;
        match self.kernel.given(&before, nice).apply_to(id.thread) {
            Ok(()) => {
                self.raised.insert(id, Raised { process, before, nice });
                Ok(())
            }
            Err(_) => journal.give(id),
        }
    }
}

impl Kernel {
    /// What a thread with these attributes gets. One that asked for a slice keeps it.
    fn given(&self, before: &Attributes, nice: i32) -> Attributes {
        let runtime = match before.runtime == 0 && self.usual_slice > SLICE {
            true => SLICE,
            false => before.runtime,
        };
        Attributes { nice, runtime, flags: before.flags | RESET_ON_FORK, ..*before }
    }
}

/// Whether the thread is as it was left.
fn is_ours(now: &Attributes, nice: i32) -> bool {
    journal::is_raised(now) && now.nice == nice
}

/// A thread that somebody has reniced keeps that value; its children inherit as before.
fn unmark(id: ThreadId, before: &Attributes) {
    let same = procfs::start_time(id.thread) == Some(id.start);
    if let (true, Ok(now)) = (same, Attributes::of(id.thread))
        && matches!(now.class, Class::NORMAL | Class::BATCH)
        && now.flags & RESET_ON_FORK != 0
    {
        // Should it fail, the thread has ended.
        let runtime = before.runtime;
        let _ = Attributes { flags: before.flags, runtime, ..now }.apply_to(id.thread);
    }
}
