//! Nice values of rated processes that have no cgroup of their own, and short slices.
//!
//! The fair class lets a thread that wakes up take the CPU from one that has asked for longer
//! slices (Linux 6.12 and newer); otherwise it waits for the end of that slice, whatever it weighs.
//! So a thread with an input rating goes before one that only shows something, and both go before a
//! thread that nobody rates.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use attune_linux::procfs;
use attune_linux::scheduling::{Attributes, Class, RESET_ON_FORK};

use crate::journal::{self, Journal, ThreadId};
use crate::kernel::Kernel;

/// The slice that a rated thread asks for, in ns, if the usual one is longer.
pub const SLICE: u64 = 500_000;
/// The same for a thread with an input rating. With that of all others, a terminal that woke up
/// waited for the end of a player's (docs/measured/focus.md).
pub const INPUT_SLICE: u64 = 250_000;

/// What a process's ratings give to its threads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Favour {
    /// 0 to -10.
    pub nice: i32,
    /// The longest slice, ns.
    pub slice: u64,
}

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
    favour: Favour,
}

impl Threads {
    pub fn new(kernel: Kernel) -> Threads {
        Threads { kernel, raised: BTreeMap::new(), left: BTreeSet::new() }
    }

    pub fn count(&self) -> usize {
        self.raised.len()
    }

    /// Makes it so that the threads of these processes, and no others, are favoured.
    pub fn follow(&mut self, wanted: &[(u32, Favour)], journal: &mut Journal) -> io::Result<()> {
        let mut now: BTreeMap<ThreadId, (u32, Favour)> = BTreeMap::new();
        for &(process, favour) in wanted {
            for thread in procfs::threads(process) {
                if let Some(start) = procfs::start_time(thread) {
                    now.insert(ThreadId { thread, start }, (process, favour));
                }
            }
        }
        self.release_where(journal, |id, _| !now.contains_key(id))?;
        self.left.retain(|id| procfs::start_time(id.thread) == Some(id.start));
        for (id, (process, favour)) in now {
            self.raise(id, process, favour, journal)?;
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
            if let Some(Raised { before, favour, .. }) = self.raised.remove(&id) {
                match Attributes::of(id.thread) {
                    Ok(now) if is_ours(&now, favour.nice) => drop(journal::lower(id, &before)),
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
        favour: Favour,
        journal: &mut Journal,
    ) -> io::Result<()> {
        // It may have ended just now.
        let Ok(now) = Attributes::of(id.thread) else { return Ok(()) };
        if let Some(raised) = self.raised.get_mut(&id) {
            if !is_ours(&now, raised.favour.nice) {
                unmark(id, &raised.before);
                self.raised.remove(&id);
                self.left.insert(id);
                return journal.give(id);
            }
            let wanted = self.kernel.given(&raised.before, favour);
            if raised.favour != favour && wanted.apply_to(id.thread).is_ok() {
                raised.favour = favour;
            }
            return Ok(());
        }
        let ordinary = matches!(now.class, Class::NORMAL | Class::BATCH) && now.nice == 0;
        if !ordinary || self.left.contains(&id) {
            return Ok(());
        }
        let before = self.kernel.to_restore(now);
        journal.raise(id, &before)?;
        match self.kernel.given(&before, favour).apply_to(id.thread) {
            Ok(()) => {
                self.raised.insert(id, Raised { process, before, favour });
                Ok(())
            }
            Err(_) => journal.give(id),
        }
    }
}

impl Kernel {
    /// What a thread with these attributes gets. One that asked for a slice keeps it.
    fn given(&self, before: &Attributes, Favour { nice, slice }: Favour) -> Attributes {
        let runtime = match before.runtime == 0 && self.usual_slice > slice {
            true => slice,
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
