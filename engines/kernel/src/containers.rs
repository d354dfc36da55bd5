//! Reads containers as they lie in memory: `struct attune_container` and the links of `struct
//! attune_thread`, which container.h and tree.h draw.

use crate::image::Image;
use crate::memory::{Memory, Words};

/// Deeper than any tree of records that fits into the arena.
const DEEPEST: u32 = 64;

/// A container's records from its front on.
pub(crate) struct Front {
    pub records: Vec<u64>,
    /// Records behind those: the words of the next one are not there.
    pub left_out: usize,
}

/// The records in a container, in its order. None if the container is not what it says: a handler
/// changes it meanwhile, or something has overwritten it.
pub(crate) fn records(image: &Image, memory: &impl Words, container: u64) -> Option<Vec<u64>> {
    let front = front(image, memory, container)?;
    (front.left_out == 0).then_some(front.records)
}

/// The records in a container as far as their words are there. None if it is not what it says.
pub(crate) fn front(image: &Image, memory: &impl Words, container: u64) -> Option<Front> {
    let size = memory.u32(container + image.layout().container.size)? as usize;
    let mut records = Vec::new();
    let mut walk = Walk::new(image, memory, container);
    loop {
        match walk.next() {
            Step::To(record) if records.len() < size => records.push(record),
            Step::End if records.len() == size => return Some(Front { records, left_out: 0 }),
            Step::Missing => {
                let left_out = size.checked_sub(records.len())?;
                return Some(Front { records, left_out });
            }
            _ => return None,
        }
    }
}

/// Goes through a container's records in its order.
pub(crate) struct Walk<'a, W> {
    image: &'a Image,
    words: &'a W,
    container: u64,
    sorted: bool,
    next: Step,
}

/// What comes next in a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    To(u64),
    End,
    /// The words that would say so are not there.
    Missing,
    /// The container is not what it says.
    Broken,
}

impl<'a, W: Words> Walk<'a, W> {
    pub fn new(image: &'a Image, words: &'a W, container: u64) -> Walk<'a, W> {
        let layout = &image.layout().container;
        let sorted = words.u32(container + layout.sorted_on).unwrap_or(0) != 0;
        let next = words.u64(container + layout.first).map_or(Step::Missing, Step::to);
        Walk { image, words, container, sorted, next }
    }

    pub fn is_sorted(&self) -> bool {
        self.sorted
    }

    /// Behind the last record, or where the way is lost, always the same. A container that another
    /// thread changes meanwhile may have no end.
    pub fn next(&mut self) -> Step {
        let Step::To(record) = self.next else { return self.next };
        let layout = &self.image.layout().record;
        let step = match self.words.u64(record + layout.container) {
            None => Step::Missing,
            Some(container) if container != self.container => Step::Broken,
            Some(_) => self.next,
        };
        self.next = match step {
            Step::To(_) if self.sorted => after(self.image, self.words, record),
            Step::To(_) => self.words.u64(record + layout.next).map_or(Step::Missing, Step::to),
            lost => lost,
        };
        step
    }
}

impl Step {
    /// 0 stands behind the last record.
    fn to(record: u64) -> Step {
        if record == 0 { Step::End } else { Step::To(record) }
    }
}

/// Its kind, as enum attune_kind counts.
pub(crate) fn kind(image: &Image, memory: &impl Words, container: u64) -> Option<usize> {
    memory.u8(container + image.layout().container.kind).map(usize::from)
}

/// The number of the attribute that it is sorted on, from 0; None if it is not sorted.
pub(crate) fn sorted_on(image: &Image, memory: &impl Words, container: u64) -> Option<usize> {
    (memory.u32(container + image.layout().container.sorted_on)? as usize).checked_sub(1)
}

/// Its number in an array; None if it stands alone.
pub(crate) fn element(image: &Image, memory: &impl Words, container: u64) -> Option<u64> {
    let element = memory.u32(container + image.layout().container.element)? as i32;
    u64::try_from(element).ok()
}

/// The address of an element of an array.
pub(crate) fn at(image: &Image, array: u64, element: u64) -> u64 {
    array + element * image.layout().container.bytes
}

/// The name in the scheduler of the container at an address, whichever instance has it: `RQ`,
/// `RQ[3]`.
pub(crate) fn name(
    image: &Image,
    memory: &Memory,
    words: &impl Words,
    address: u64,
) -> Option<String> {
    let first = memory.instance(image, 0)?;
    let place = address.checked_sub(first)? % image.layout().state_bytes;
    // The one that begins last before the place: only the compiler knew how many elements a
    // per-CPU container has.
    let containers = image.description.policies.iter().flat_map(|policy| &policy.containers);
    let bases = containers.filter_map(|it| Some((image.layout().state.get(&it.c_name)?, it)));
    let (_, container) =
        bases.filter(|(base, _)| **base <= place).max_by_key(|(base, _)| **base)?;
    let index = element(image, words, address).map(|index| format!("[{index}]"));
    Some(format!("{}{}", container.name, index.unwrap_or_default()))
}

/// The records above one in a tree, the nearest first.
pub(crate) fn above(image: &Image, words: &impl Words, record: u64) -> impl Iterator<Item = u64> {
    let parent = |at: &u64| words.u64(*at + image.layout().record.parent).filter(|it| *it != 0);
    std::iter::successors(parent(&record), parent).take(DEEPEST as usize)
}

/// The record behind one in a tree.
fn after(image: &Image, words: &impl Words, record: u64) -> Step {
    let layout = &image.layout().record;
    let behind = || {
        let mut at = words.u64(record + layout.next)?;
        if at != 0 {
            for _ in 0..DEEPEST {
                match words.u64(at + layout.left)? {
                    0 => return Some(Step::To(at)),
                    left => at = left,
                }
            }
            return Some(Step::Broken);
        }
        at = record;
        for _ in 0..DEEPEST {
            let parent = words.u64(at + layout.parent)?;
            if parent == 0 || words.u64(parent + layout.next)? != at {
                return Some(Step::to(parent));
            }
            at = parent;
        }
        Some(Step::Broken)
    };
    behind().unwrap_or(Step::Missing)
}
