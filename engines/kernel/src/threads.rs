//! The records of threads, as a loader sees them: `struct attune_thread` and `struct attune_task` behind it.

use crate::failure::container_name;
use crate::image::Image;
use crate::memory::{Memory, Words};

/// Offsets in a record.
const WHERE: u64 = 16;
const LINE: u64 = 68;
const WAS: u64 = 72;
const DOMAIN: u64 = 104;

/// Where a thread is.
pub(crate) struct Found {
    pub container: Option<String>,
    /// The scheduler's line that put it there; 0: none did.
    pub line: u32,
    /// Which policy it follows.
    pub policy: u32,
}

pub(crate) fn find(image: &Image, memory: &Memory, pid: u64) -> Option<Found> {
    let record = record(image, memory, pid)?;
    // When the kernel has ended the scheduler, all threads have left it.
    let container = match memory.u64(record + WHERE)? {
        0 => memory.u64(record + WAS)?,
        container => container,
    };
    let name = if container == 0 { None } else { container_name(image, memory, container) };
    let policy = u32::from(memory.u8(record + DOMAIN)?);
    Some(Found { container: name, line: memory.u32(record + LINE)?, policy })
}

/// Records lie in chunks, each linked to the one before.
fn record(image: &Image, memory: &Memory, pid: u64) -> Option<u64> {
    let size = u64::from(memory.address(image, "attune_record_size").and_then(|at| memory.u32(at))?);
    let mut chunk = memory.address(image, "attune_chunks").and_then(|at| memory.u64(at))?;
    let mut rest = 65536;
    while chunk != 0 && rest > 0 {
        let records = memory.u64(chunk + 8)?;
        for index in 0..records.min(4096) {
            let record = chunk + 16 + index * size;
            if memory.u64(record)? == pid {
                return Some(record);
            }
        }
        chunk = memory.u64(chunk)?;
        rest -= 1;
    }
    None
}
