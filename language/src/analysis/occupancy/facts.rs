//! The single facts that a [`State`](super::state::State) is made of: how many threads a container
//! holds, which transfer changed that last, and what a variable has to do with it.

use super::lattice::{Grain, Size};
use crate::ir::CheckId;

/// Which container a size is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Site {
    /// A container, or this CPU's instance of it.
    One(u16),
    /// An element of an array, or some CPU's instance.
    Element(u16, Key),
    /// Some element, it is not known which.
    Some(u16),
}

/// An index: a variable's present value plus an offset (wrapping), or a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    pub variable: Option<u16>,
    pub offset: i64,
}

/// What changed a container last, for messages; not part of what is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Nothing since the handler started.
    Entry,
    /// This check's transfer.
    At(CheckId),
    Several,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count {
    pub held: Size,
    pub seen: Size,
}

#[derive(Clone, Copy, Debug)]
pub struct Cell {
    pub count: Count,
    pub cause: Cause,
}

/// The size of one element of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fact {
    pub container: u16,
    pub key: Key,
    pub count: Count,
}

/// `variable == sum of the sizes seen at the sites + offset`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    pub variable: u16,
    pub offset: i64,
    pub sites: [Option<Site>; 3],
}

/// By how much a size changes: at least, at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    pub held: (i32, i32),
    pub seen: (i32, i32),
}

impl Change {
    pub const LEAVES: Change = Change { held: (-1, -1), seen: (-1, -1) };
    pub const ENTERS: Change = Change { held: (1, 1), seen: (1, 1) };
    /// One may leave.
    pub const MAY_LEAVE: Change = Change { held: (-1, 0), seen: (-1, 0) };

    /// The same, for a thread that may not run on this CPU.
    pub fn perhaps_unseen(self) -> Change {
        Change { seen: (self.seen.0.min(0), self.seen.1.max(0)), ..self }
    }
}

impl Count {
    pub const NONE: Count = Count { held: Size::NONE, seen: Size::NONE };

    pub fn both(size: Size) -> Count {
        Count { held: size, seen: size }
    }

    pub fn hull(self, other: Count) -> Count {
        Count { held: self.held.hull(other.held), seen: self.seen.hull(other.seen) }
    }

    pub fn meet(self, other: Count) -> Count {
        Count { held: self.held.meet(other.held), seen: self.seen.meet(other.seen) }
    }

    pub fn includes(self, other: Count) -> bool {
        self.held.includes(other.held) && self.seen.includes(other.seen)
    }

    pub fn shift(self, change: Change, capacity: u16) -> Count {
        let cap = |size: Size| Size { lo: size.lo.min(capacity), hi: size.hi.min(capacity) };
        Count {
            held: cap(self.held.shift(change.held.0, change.held.1)),
            seen: cap(self.seen.shift(change.seen.0, change.seen.1)),
        }
    }

    /// What each number says of the other.
    pub fn consistent(self, filtered: bool) -> Count {
        if filtered {
            let seen = Size { lo: self.seen.lo, hi: self.seen.hi.min(self.held.hi) };
            Count { held: Size { lo: self.held.lo.max(seen.lo), hi: self.held.hi }, seen }
        } else {
            Count::both(self.held.meet(self.seen))
        }
    }

    pub fn is_impossible(self) -> bool {
        self.held.is_empty_set() || self.seen.is_empty_set()
    }

    pub fn coarse(self, grain: Grain) -> Count {
        Count { held: self.held.coarse(grain), seen: self.seen.coarse(grain) }
    }
}

impl Site {
    pub fn container(self) -> u16 {
        match self {
            Site::One(container) | Site::Element(container, _) | Site::Some(container) => container,
        }
    }

    pub fn uses(self, variable: u16) -> bool {
        matches!(self, Site::Element(_, key) if key.variable == Some(variable))
    }
}

impl Fact {
    pub fn site(&self) -> Site {
        Site::Element(self.container, self.key)
    }
}
