//! Reads containers as they lie in memory: `struct attune_container` and the links of `struct
//! attune_thread`, which container.h and tree.h draw.

use crate::image::Image;
use crate::memory::{Memory, Words};

/// Deeper than any tree of records that fits into the arena.
const DEEPEST: u32 = 64;

/// The records in a container, in its order. None if the container is not what it says: a handler
/// changes it meanwhile, or something has overwritten it.
pub(crate) fn records(image: &Image, memory: &impl Words, container: u64) -> Option<Vec<u64>> {
    let (layout, record_layout) = (&image.layout().container, &image.layout().record);
    let size = memory.u32(container + layout.size)? as usize;
    let sorted = memory.u32(container + layout.sorted_on)? != 0;
    let mut records = Vec::new();
    let mut record = memory.u64(container + layout.first)?;
    while record != 0 {
        if records.len() == size || memory.u64(record + record_layout.container)? != container {
            return None;
        }
        records.push(record);
        record = if sorted {
            after(image, memory, record)?
        } else {
            memory.u64(record + record_layout.next)?
        };
    }
    (records.len() == size).then_some(records)
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

/// The record behind one in a tree; 0 behind the last.
fn after(image: &Image, memory: &impl Words, record: u64) -> Option<u64> {
    let layout = &image.layout().record;
    let mut steps = 0..DEEPEST;
    let mut at = memory.u64(record + layout.next)?;
    if at != 0 {
        loop {
            steps.next()?;
            match memory.u64(at + layout.left)? {
                0 => return Some(at),
                left => at = left,
            }
        }
    }
    at = record;
    loop {
        steps.next()?;
        let parent = memory.u64(at + layout.parent)?;
        if parent == 0 || memory.u64(parent + layout.next)? != at {
            return Some(parent);
        }
        at = parent;
    }
}
