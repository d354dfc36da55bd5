//! Chooses the threads to show where all are too many to be copied at once: those that have a CPU,
//! the first ones of each container, and others as far as there is room.
//!
//! It reads memory that handlers change meanwhile. So this is a choice and no picture: what is
//! shown is read from a copy of the records chosen ([`crate::snapshot`]).

use std::collections::BTreeSet;

use crate::containers::{self, Step, Walk};
use crate::image::Image;
use crate::locked_copy::{LARGEST, MOST_PARTS, Part, ROOM};
use crate::memory::Memory;
use crate::records;
use crate::snapshot::Place;

/// Threads that are chosen: more than a person reads.
const MOST: usize = 1024;

pub(crate) struct Selection {
    /// The addresses of their records.
    pub records: BTreeSet<u64>,
    /// So many threads each policy knows.
    pub known: Vec<u64>,
    /// So many of each container were chosen, or all of it.
    pub of_each: usize,
}

impl Selection {
    /// `most` threads, or all.
    pub fn choose(image: &Image, memory: &Memory, cpus: u32, most: usize) -> Selection {
        let Threads { known, containers, loose } = threads(image, memory);
        let mut records: BTreeSet<u64> =
            (0..cpus).filter_map(|cpu| records::on_cpu(image, memory, cpu)).collect();
        // Just before the copy, since their order does not last.
        let of_each = first_ones(image, memory, &containers, most, &mut records);
        let left = most.saturating_sub(records.len());
        records.extend(loose.into_iter().take(left));
        Selection { records, known, of_each }
    }
}

/// Threads whose records fit into a copy beside so many bytes.
pub(crate) fn most(image: &Image, beside: u64) -> usize {
    let room = LARGEST.saturating_sub(beside) / image.layout().record.bytes.max(1);
    let parts = MOST_PARTS.saturating_sub(beside.div_ceil(ROOM) as usize);
    MOST.min(room as usize).min(parts)
}

/// What is to be copied: records that lie behind each other are one part.
pub(crate) fn parts(image: &Image, records: &BTreeSet<u64>) -> Vec<Part> {
    let bytes = image.layout().record.bytes;
    let mut parts: Vec<Part> = Vec::new();
    for from in records {
        match parts.last_mut() {
            Some(part) if part.from + part.bytes == *from => part.bytes += bytes,
            _ => parts.push(Part { from: *from, bytes }),
        }
    }
    parts
}

/// The threads that policies know.
struct Threads {
    /// By policy.
    known: Vec<u64>,
    /// Containers with threads.
    containers: BTreeSet<u64>,
    /// Records of threads in none, no more than could be chosen.
    loose: Vec<u64>,
}

fn threads(image: &Image, memory: &Memory) -> Threads {
    let mut threads = Threads {
        known: vec![0; image.description.policies.len()],
        containers: BTreeSet::new(),
        loose: Vec::new(),
    };
    for record in records::all(image, memory, &records::chunks(image, memory)) {
        let Some(place) = Place::of(image, memory, record) else { continue };
        let Some(known) = threads.known.get_mut(place.policy) else { continue };
        *known += 1;
        match place.container {
            0 if threads.loose.len() < MOST => threads.loose.push(record),
            0 => {}
            container => _ = threads.containers.insert(container),
        }
    }
    threads
}

/// Adds the first record of each container, the second, and so on, until there are `most`; each
/// with those above it in its tree, which lead on to the next. Returns how many of each.
fn first_ones(
    image: &Image,
    memory: &Memory,
    containers: &BTreeSet<u64>,
    most: usize,
    records: &mut BTreeSet<u64>,
) -> usize {
    let walk = |at: &u64| Walk::new(image, memory, *at);
    let mut walks: Vec<_> = containers.iter().map(walk).collect();
    let mut of_each = 0;
    // A container that changes meanwhile may lead round in a circle.
    while !walks.is_empty() && records.len() < most && of_each < most {
        walks.retain_mut(|walk| {
            let Step::To(record) = walk.next() else { return false };
            if records.len() < most {
                records.insert(record);
                let above = containers::above(image, memory, record);
                for above in above.take_while(|_| walk.is_sorted()) {
                    if !records.insert(above) {
                        break;
                    }
                }
            }
            true
        });
        of_each += 1;
    }
    of_each
}
