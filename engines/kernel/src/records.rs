//! Finds the records of threads: where they lie, and which thread each belongs to.

use crate::containers;
use crate::image::Image;
use crate::memory::{Memory, Words};

/// Chunks that fit into the arena.
const MOST_CHUNKS: usize = 65536;
/// Records of a chunk; more is no chunk.
const MOST_RECORDS: u64 = 4096;

/// Where a thread is.
pub(crate) struct Found {
    pub container: Option<String>,
    /// The scheduler's line that put it there; 0: none did.
    pub line: u32,
    /// The policy that it follows.
    pub policy: u32,
}

/// The addresses of all chunks of records, the newest first. They stay where they are.
pub(crate) fn chunks(image: &Image, memory: &Memory) -> Vec<u64> {
    let Some(engine) = &image.layout().engine else { return Vec::new() };
    let newest = memory.address(image, "attune_chunks").and_then(|at| memory.u64(at));
    let before = |chunk: &u64| memory.u64(*chunk + engine.chunk_before).filter(|it| *it != 0);
    std::iter::successors(newest.filter(|chunk| *chunk != 0), before).take(MOST_CHUNKS).collect()
}

/// The addresses of a chunk's records.
fn of_chunk<W: Words>(image: &Image, words: &W, chunk: u64) -> impl Iterator<Item = u64> + use<W> {
    let bytes = image.layout().record.bytes;
    let engine = image.layout().engine.as_ref();
    let count = engine.and_then(|engine| words.u64(chunk + engine.chunk_records)).unwrap_or(0);
    let first = chunk + engine.map_or(0, |engine| engine.chunk_first);
    (0..count.min(MOST_RECORDS)).map(move |index| first + index * bytes)
}

/// The addresses of the records of these chunks.
pub(crate) fn all(image: &Image, words: &impl Words, chunks: &[u64]) -> Vec<u64> {
    chunks.iter().flat_map(|chunk| of_chunk(image, words, *chunk)).collect()
}

/// The record of the thread to which a policy has given a CPU, by the machine's number.
pub(crate) fn on_cpu(image: &Image, memory: &Memory, cpu: u32) -> Option<u64> {
    let at = cpu_at(image, memory, cpu)? + image.layout().engine.as_ref()?.running;
    memory.u64(at).filter(|record| *record != 0)
}

/// Where the engine keeps what it knows of a CPU.
pub(crate) fn cpu_at(image: &Image, memory: &Memory, cpu: u32) -> Option<u64> {
    let bytes = image.layout().engine.as_ref()?.cpu_bytes;
    Some(memory.address(image, "attune_cpus")? + u64::from(cpu) * bytes)
}

pub(crate) fn find(image: &Image, memory: &Memory, pid: u64) -> Option<Found> {
    let layout = &image.layout().record;
    let mut all = all(image, memory, &chunks(image, memory)).into_iter();
    let record = all.find(|record| memory.u64(record + layout.id) == Some(pid))?;
    // When the kernel has ended the scheduler, all threads have left it.
    let container = match memory.u64(record + layout.container)? {
        0 => memory.u64(record + layout.last_container)?,
        container => container,
    };
    let name =
        if container == 0 { None } else { containers::name(image, memory, memory, container) };
    let policy = u32::from(memory.u8(record + layout.domain)?);
    Some(Found { container: name, line: memory.u32(record + layout.line)?, policy })
}
