//! Containers as they lie in memory: `struct attune_container` and the links of `struct attune_thread`, which container.h and
//! tree.h draw.

use crate::memory::Words;

/// Offsets in a container.
const FIRST: u64 = 0;
const SIZE: u64 = 24;
const KIND: u64 = 28;
const SORTED_ON: u64 = 32;
pub(crate) const ELEMENT: u64 = 36;
/// Offsets in a record.
const WHERE: u64 = 16;
const LEFT: u64 = 24;
const NEXT: u64 = 32;
const PARENT: u64 = 40;

/// What container.h says of the size of a container.
pub(crate) const CONTAINER_SIZE: u64 = 48;

/// The records in a container, in its order. None if the container is not what it says: somebody is at work on it, or has
/// overwritten it.
pub(crate) fn records(memory: &impl Words, container: u64) -> Option<Vec<u64>> {
    let size = memory.u32(container + SIZE)? as usize;
    let sorted = memory.u32(container + SORTED_ON)? != 0;
    let mut records = Vec::new();
    let mut record = memory.u64(container + FIRST)?;
    while record != 0 {
        if records.len() == size || memory.u64(record + WHERE)? != container {
            return None;
        }
        records.push(record);
        record = if sorted { after(memory, record)? } else { memory.u64(record + NEXT)? };
    }
    (records.len() == size).then_some(records)
}

/// Its kind, as enum attune_kind counts.
pub(crate) fn kind(memory: &impl Words, container: u64) -> Option<usize> {
    memory.u8(container + KIND).map(usize::from)
}

/// The number of the attribute that it is sorted on, from 0; None if it is not sorted.
pub(crate) fn sorted_on(memory: &impl Words, container: u64) -> Option<usize> {
    (memory.u32(container + SORTED_ON)? as usize).checked_sub(1)
}

/// Bytes from the start of the array that it is an element of.
pub(crate) fn index(memory: &impl Words, container: u64) -> Option<u64> {
    let element = memory.u32(container + ELEMENT)? as i32;
    Some(u64::try_from(element).ok()? * CONTAINER_SIZE)
}

/// The record behind one in a tree; 0 behind the last.
fn after(memory: &impl Words, record: u64) -> Option<u64> {
    // Deeper than any tree of records that fit into the arena.
    let mut steps = 0..64;
    let mut at = memory.u64(record + NEXT)?;
    if at != 0 {
        loop {
            steps.next()?;
            match memory.u64(at + LEFT)? {
                0 => return Some(at),
                left => at = left,
            }
        }
    }
    at = record;
    loop {
        steps.next()?;
        let parent = memory.u64(at + PARENT)?;
        if parent == 0 || memory.u64(parent + NEXT)? != at {
            return Some(parent);
        }
        at = parent;
    }
}
