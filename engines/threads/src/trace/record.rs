//! What workers write down for a trace.

use crate::thread::{ThreadId, WaitsFor};

/// One change, at a time of the engine's clock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Record {
    pub at: i64,
    /// 0: the worker itself.
    pub thread: ThreadId,
    pub what: What,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum What {
    /// One of the halves of the thread's name; the second one follows the first.
    Name {
        half: u8,
        bytes: [u8; NAME_HALF],
    },
    Running,
    /// `outcome`: how its wait ended, if it waited.
    Ready {
        container: Container,
        outcome: i32,
    },
    Suspended {
        container: Container,
    },
    Waiting {
        container: Container,
        waits_for: WaitsFor,
    },
    Ended,
    /// The thread goes to another worker, for the time of that number.
    Leaves {
        turn: u32,
    },
    /// It comes from the worker of that index, where [`What::Leaves`] of that number stands.
    Arrives {
        from: u32,
        turn: u32,
    },
    /// The thread `by` (0: no thread, but the worker) ends its wait. `turn` is the number of the
    /// wait among those of the thread.
    Wakes {
        by: ThreadId,
        turn: u32,
    },
    /// A message that another worker sent at [`What::Wakes`] has come.
    Woken {
        turn: u32,
    },
    /// The user gives the thread import of that number a value, for this thread or all.
    Hint {
        import: u32,
        value: i64,
    },
    /// So many records found no room between `at` and `until`.
    Lost {
        until: i64,
        count: u64,
    },
}

pub const NAME_HALF: usize = crate::thread::NAME_SIZE / 2;

/// The container that holds a thread: its offset in the instance of the scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Container(pub u32);

impl Container {
    pub const NONE: Container = Container(u32::MAX);
}

/// The records are many, so they stay small.
const _: () = assert!(size_of::<Record>() <= 40);
