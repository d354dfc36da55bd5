//! The shared page: where things lie, and how they are read.
//!
//! ```text
//! header   magic, version
//! lanes    one per CPU:  baton, until, floor
//! slots    one per member: owner, lane, state, offer, virtual time, alarm
//! ```
//!
//! Every field is an atomic; a member writes its own slot, its lane by compare-and-swap, and of
//! others' slots only `owner` (to free it) and `deaf`. Any field may hold garbage: indexes are
//! checked here, times and virtual times by their users.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering::SeqCst};

use super::segment::{Locked, Segment};
use crate::offer::Offer;
use crate::time::Time;

/// Members of a session at one time.
pub const SLOTS: usize = 64;
/// CPUs that have a lane of their own; CPU n uses lane n modulo this.
pub const LANES: usize = 256;

/// A page of ours, of whatever version.
const NAME: &[u8] = b"coop";
/// Changes whenever the layout or the sockets' names do: programs of different versions do not
/// meet.
const MAGIC: u64 = u64::from_le_bytes(*b"coop0002");

#[repr(C)]
struct Page {
    magic: AtomicU64,
    lanes: [Lane; LANES],
    slots: [Slot; SLOTS],
}

/// A CPU's turn. At most one member holds the baton, and it alone runs; the baton is free when the
/// CPU is idle.
#[repr(C, align(64))]
pub struct Lane {
    baton: AtomicU64,
    /// By when the holder is to poll.
    pub until: AtomicU64,
    /// See [`super::decision`].
    pub floor: AtomicI64,
}

/// The holder of the baton, and how often it has moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Baton(u64);

const HOLDER: u32 = 16;

impl Baton {
    /// The slot that holds it; None: it is free (or holds garbage, which is as good).
    pub fn holder(self) -> Option<u32> {
        let holder = (self.0 & ((1 << HOLDER) - 1)) as u32;
        (1..=SLOTS as u32).contains(&holder).then(|| holder - 1)
    }

    fn moved_to(self, slot: Option<u32>) -> Baton {
        let moves = (self.0 >> HOLDER).wrapping_add(1);
        Baton(moves << HOLDER | slot.map_or(0, |slot| u64::from(slot) + 1))
    }
}

impl Lane {
    pub fn baton(&self) -> Baton {
        Baton(self.baton.load(SeqCst))
    }

    /// Moves the baton, if it is still where it was seen; says where it is then.
    pub fn pass(&self, seen: Baton, to: Option<u32>) -> Option<Baton> {
        let moved = seen.moved_to(to);
        self.baton.compare_exchange(seen.0, moved.0, SeqCst, SeqCst).is_ok().then_some(moved)
    }
}

/// The state of a member, as its slot says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Has nothing to do before its timer.
    Sleeping = 0,
    /// Waits for its turn.
    Waiting = 1,
    /// Has left `poll` with the turn.
    Running = 2,
}

#[repr(C, align(128))]
pub struct Slot {
    /// 0: the slot is free. Otherwise a random number by which the owner knows that it still is.
    pub owner: AtomicU64,
    pub virtual_time: AtomicI64,
    pub timer: AtomicU64,
    pub best_effort: AtomicI64,
    /// When it wakes up by itself.
    pub alarm: AtomicU64,
    /// When it last polled.
    pub polled: AtomicU64,
    pub lane: AtomicU32,
    pub group: AtomicU32,
    pub weight: AtomicU32,
    state: AtomicU32,
    /// Not 0: it was given the baton and did nothing. It clears this itself when it wakes up.
    pub deaf: AtomicU32,
}

impl Slot {
    pub fn state(&self) -> State {
        match self.state.load(SeqCst) {
            1 => State::Waiting,
            2 => State::Running,
            _ => State::Sleeping,
        }
    }

    pub fn set_state(&self, state: State) {
        self.state.store(state as u32, SeqCst);
    }

    pub fn publish(&self, offer: &Offer, now: Time) {
        self.group.store(offer.group, SeqCst);
        self.timer.store(offer.timer, SeqCst);
        self.best_effort.store(offer.best_effort, SeqCst);
        self.polled.store(now, SeqCst);
    }

    pub fn is_free(&self) -> bool {
        self.owner.load(SeqCst) == 0
    }

    pub fn free(&self) {
        self.owner.store(0, SeqCst);
    }
}

/// The page, mapped.
pub struct Shared {
    segment: Segment,
}

impl Shared {
    /// The session's page; no program joins or leaves while the lock lives.
    pub fn open(directory: &Path) -> io::Result<(Shared, Locked)> {
        let (segment, lock) = Segment::open(&directory.join("page"), size_of::<Page>())?;
        let shared = Shared { segment };
        let magic = &shared.page().magic;
        let found = magic.load(SeqCst);
        if found != MAGIC && found.to_le_bytes().starts_with(NAME) {
            drop(lock);
            let message =
                "its page was made by another version of attune-coop; end the programs that use it";
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        // A new page, or one that was scribbled on.
        magic.store(MAGIC, SeqCst);
        Ok((shared, lock))
    }

    fn page(&self) -> &Page {
        // SAFETY: the segment has this size and is aligned to a page; all fields are atomics, for
        // which every content is valid; it is mapped as long as `self` lives.
        unsafe { self.segment.address().cast::<Page>().as_ref() }
    }

    pub fn lane(&self, lane: u32) -> &Lane {
        &self.page().lanes[lane as usize % LANES]
    }

    pub fn slot(&self, slot: u32) -> &Slot {
        &self.page().slots[slot as usize % SLOTS]
    }

    pub fn slots(&self) -> impl Iterator<Item = (u32, &Slot)> {
        (0..).zip(&self.page().slots)
    }
}
