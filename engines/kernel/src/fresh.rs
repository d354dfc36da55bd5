//! Puts the memory of a loaded scheduler back into the state in which the kernel loaded it, so that
//! the same object can be attached again.
//!
//! What stays: counters, the notes of rescued threads, and the records of threads and cgroups, all
//! of which are free again. Invariant: the scheduler is not attached, and the caller keeps the
//! copier away. Only callbacks of timers may run meanwhile; they look, kick, and change nothing
//! that matters.

use crate::image::{ARENA, Image};
use crate::memory::Memory;
use crate::records;

/// Variables of the engine that go on as they are.
const KEPT: [&str; 5] = [
    "attune_statistics",
    "attune_rescues",
    "attune_domains",
    "attune_chunks",
    "attune_free_cgroups",
];

/// None if the object is not of this engine.
pub(crate) fn restore(image: &Image, memory: &Memory) -> Option<()> {
    let kept = KEPT.iter().map(|name| {
        let at = memory.address(image, name)?;
        Some((at, memory.bytes(at, image.variable(name)?.bytes)?))
    });
    let kept = kept.collect::<Option<Vec<_>>>()?;
    let (variables, bytes) = memory.variables(image);
    memory.store(variables, &image.initial(ARENA, bytes as usize)?).then_some(())?;
    for section in memory.plain_sections().filter(|section| section.name != ".rodata") {
        memory.store(section.start, &image.initial(&section.name, section.bytes)?).then_some(())?;
    }
    for (at, bytes) in kept {
        memory.store(at, &bytes).then_some(())?;
    }
    none_is_ready(image, memory)?;
    free_all(image, memory)
}

/// All threads have left the policies; no timer looks for one that waits too long.
pub(crate) fn none_is_ready(image: &Image, memory: &Memory) -> Option<()> {
    let engine = image.layout().engine.as_ref()?;
    let domains = memory.address(image, "attune_domains")?;
    let count = image.variable("attune_domains")?.bytes / engine.domain_bytes.max(1);
    for domain in 0..count {
        memory.set_u64(domains + domain * engine.domain_bytes + engine.ready, 0).then_some(())?;
    }
    Some(())
}

/// Links all records, which are zero from now on, into the list of free ones.
fn free_all(image: &Image, memory: &Memory) -> Option<()> {
    let layout = &image.layout().record;
    let engine = image.layout().engine.as_ref()?;
    let zeros = vec![0; layout.bytes as usize];
    let (mut first, mut count) = (0, 0);
    for record in records::all(image, memory, &records::chunks(image, memory)) {
        memory.store(record, &zeros).then_some(())?;
        memory.set_u64(record + layout.next, first).then_some(())?;
        (first, count) = (record, count + 1);
    }
    memory.set_u64(memory.address(image, "attune_free")?, first).then_some(())?;
    let counters = memory.address(image, "attune_statistics")?;
    memory.set_u64(counters + engine.records, count).then_some(())
}
