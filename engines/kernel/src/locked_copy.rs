//! Has the kernel copy words under the engine's lock, while no handler runs (`bpf/copy.h`).
//!
//! Invariant: what one [`Copier::take`] gives was all true at one moment; what one
//! [`Copier::store`] stores appears between two handlers. Copies go through rooms in the arena that
//! only this side uses; they are made when they are first needed, and stay.

use std::cell::Cell;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use crate::image::Image;
use crate::memory::{Memory, Words};
use crate::program_call;

/// Bytes of a room: ATTUNE_CHUNK pages.
pub(crate) const ROOM: u64 = 16 * 4096;
/// Bytes that are copied at once: some 6000 threads of `coop`, or more of a policy with fewer
/// attributes. Copying them takes less than a tick of the kernel's.
pub(crate) const LARGEST: u64 = 4 << 20;
/// Parts that one copy may have.
pub(crate) const MOST_PARTS: usize = (ROOM / ENTRY) as usize;
/// The first room holds the list of copies, and behind it the words to be stored.
const LIST: u64 = ROOM / 2;
/// Bytes of struct attune_copy.
const ENTRY: u64 = 24;

#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    #[error(
        "{bytes} bytes would have to be copied at once; more than {LARGEST} would hold the machine \
            up for too long"
    )]
    TooLarge { bytes: u64 },
    #[error("the kernel did not copy the scheduler's memory: {0}")]
    Kernel(#[from] io::Error),
}

/// Asks the kernel to copy.
pub(crate) struct Copier {
    make_room: OwnedFd,
    copy: OwnedFd,
    rooms: Vec<u64>,
}

/// A part of the arena. Both are multiples of eight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    pub from: u64,
    pub bytes: u64,
}

/// Parts of the arena as they were at one moment.
pub(crate) struct CopiedParts<'a> {
    memory: &'a Memory,
    /// In the order of their addresses, each with where it lies now.
    parts: Vec<(Part, u64)>,
    /// The one that was found last. Most words are read with others of the same record.
    last: Cell<usize>,
    /// When that was, in ns of CLOCK_MONOTONIC.
    pub at: i64,
    /// How long the lock was held, in ns.
    pub held: i64,
}

impl Copier {
    /// Finds the program that copies; None if the object is not of this engine.
    pub fn new(object: &libbpf_rs::Object) -> Option<Copier> {
        let program = |name: &str| {
            let program = object.progs().find(|program| program.name() == name)?;
            program.as_fd().try_clone_to_owned().ok()
        };
        Some(Copier {
            make_room: program("attune_make_room")?,
            copy: program("attune_copy_words")?,
            rooms: Vec::new(),
        })
    }

    /// The parts, all as they are at one moment.
    pub fn take<'a>(
        &'a mut self,
        image: &Image,
        memory: &'a Memory,
        parts: &[Part],
    ) -> Result<CopiedParts<'a>, CopyError> {
        let bytes = parts.iter().map(|part| part.bytes).sum();
        let pieces = parts.iter().flat_map(|part| {
            (0..part.bytes.div_ceil(ROOM)).map(|piece| Part {
                from: part.from + piece * ROOM,
                bytes: (part.bytes - piece * ROOM).min(ROOM),
            })
        });
        let pieces: Vec<Part> = pieces.collect();
        if bytes > LARGEST || pieces.len() > MOST_PARTS {
            return Err(CopyError::TooLarge { bytes });
        }
        let places = places(&pieces);
        self.rooms(image, memory, places.last().map_or(0, |place| place.room + 1))?;
        let to = places.iter().map(|place| self.rooms[place.room] + place.at);
        let mut pieces: Vec<(Part, u64)> = pieces.into_iter().zip(to).collect();
        let list: Vec<[u64; 3]> =
            pieces.iter().map(|(part, to)| [part.from, *to, part.bytes / 8]).collect();
        self.run(memory, &list)?;
        pieces.sort_by_key(|(part, _)| part.from);
        let word =
            |name| memory.address(image, name).and_then(|at| memory.u64(at)).unwrap_or(0) as i64;
        let (at, held) = (word("attune_copied_at"), word("attune_copied_for"));
        Ok(CopiedParts { memory, parts: pieces, last: Cell::new(0), at, held })
    }

    /// Stores each value at its address, all between two handlers.
    pub fn store(
        &mut self,
        image: &Image,
        memory: &Memory,
        values: &[(u64, u64)],
    ) -> Result<(), CopyError> {
        self.rooms(image, memory, 1)?;
        let words = self.rooms[0] + LIST;
        let list: Vec<[u64; 3]> =
            values.iter().enumerate().map(|(i, (to, _))| [words + 8 * i as u64, *to, 1]).collect();
        if list.len() as u64 > LIST / ENTRY {
            return Err(CopyError::TooLarge { bytes: 8 * list.len() as u64 });
        }
        for ([from, ..], (_, value)) in list.iter().zip(values) {
            memory.set_u64(*from, *value);
        }
        self.run(memory, &list)
    }

    /// A room for the caller, until anything is copied next.
    pub fn room(&mut self, image: &Image, memory: &Memory) -> Result<u64, CopyError> {
        self.rooms(image, memory, 1)?;
        Ok(self.rooms[0])
    }

    /// Ensures that at least `count` rooms exist.
    fn rooms(&mut self, image: &Image, memory: &Memory, count: usize) -> Result<(), CopyError> {
        while self.rooms.len() < count {
            let room = self.make_room(image, memory)?;
            self.rooms.push(room);
        }
        Ok(())
    }

    /// A room of the caller's own.
    pub fn make_room(&self, image: &Image, memory: &Memory) -> Result<u64, CopyError> {
        program_call::with(self.make_room.as_fd(), 0u64)?;
        let room = memory.address(image, "attune_room").and_then(|at| memory.u64(at));
        Ok(room.ok_or(io::Error::from(io::ErrorKind::OutOfMemory))?)
    }

    /// Each entry is an address, an address and a number of words.
    fn run(&self, memory: &Memory, list: &[[u64; 3]]) -> Result<(), CopyError> {
        let at = self.rooms[0];
        for (entry, words) in list.iter().enumerate() {
            for (word, value) in words.iter().enumerate() {
                memory.set_u64(at + ENTRY * entry as u64 + 8 * word as u64, *value);
            }
        }
        Ok(program_call::with(self.copy.as_fd(), [at, list.len() as u64])?)
    }
}

/// Where a piece goes: its room, and the byte in it.
struct Place {
    room: usize,
    at: u64,
}

/// Places for pieces that are no larger than a room each. The first room is the list's.
fn places(pieces: &[Part]) -> Vec<Place> {
    let (mut room, mut used) = (0, ROOM);
    let place = |piece: &Part| {
        if used + piece.bytes > ROOM {
            (room, used) = (room + 1, 0);
        }
        used += piece.bytes;
        Place { room, at: used - piece.bytes }
    };
    pieces.iter().map(place).collect()
}

impl CopiedParts<'_> {
    /// Where that byte lies now.
    fn find(&self, address: u64, bytes: u64) -> Option<u64> {
        let in_part = |index: usize| {
            let (part, to) = self.parts.get(index)?;
            let at = address.checked_sub(part.from)?;
            (at + bytes <= part.bytes).then_some(to + at)
        };
        in_part(self.last.get()).or_else(|| {
            let behind = self.parts.partition_point(|(part, _)| part.from <= address);
            self.last.set(behind.checked_sub(1)?);
            in_part(self.last.get())
        })
    }
}

impl Words for CopiedParts<'_> {
    fn u64(&self, address: u64) -> Option<u64> {
        self.memory.u64(self.find(address, 8)?)
    }

    fn u32(&self, address: u64) -> Option<u32> {
        self.memory.u32(self.find(address, 4)?)
    }

    fn u8(&self, address: u64) -> Option<u8> {
        self.memory.u8(self.find(address, 1)?)
    }
}
