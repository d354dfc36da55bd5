//! What a failed check found, as the running handler notes it.

use attune_language::ir::CheckId;

/// A check failed; [`super::state::State::found`] says which.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tripped;

#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    pub check: Option<CheckId>,
    pub what: What,
}

/// Containers are given by their slots.
#[derive(Clone, Copy, Debug)]
pub(super) enum What {
    Empty { container: u32, destination: Option<u32> },
    Full { container: u32, thread: u32, source: Option<u32> },
    Gone { thread: u32 },
    Index { at: i64, length: u32 },
    NotStored { thread: u32 },
    NotEmpty { container: u32 },
    Endless,
    Invariant { container: u32 },
}
