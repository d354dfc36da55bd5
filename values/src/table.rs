//! A table by process in the kernel: how one privileged program supplies values for processes that
//! know nothing of it. Engines that run in the kernel read it as imports.
//!
//! The table is a BPF hash that the program (its *writer*) makes, fills and owns. A row belongs to
//! one process and holds eight words.
//!
//! ```text
//!     key    u64            the process: its start << 22 | its number   (`key`)
//!     value  i64 words[8]   word w is the import that the writer named for it, or the writer's own
//! ```
//!
//! - **Start**: hundredths of a second since the machine started, as field 22 of /proc/PID/stat
//!   tells them. An engine looks a thread up by the number and the start of its process, so a
//!   process that is given an old number does not find its predecessor's row.
//! - **Units and ranges** are the import's own: a time is in nanoseconds of CLOCK_MONOTONIC or of
//!   a length, any 64-bit number is possible. `input_rating` and `output_rating` go from 0 to 1000.
//! - **Rows** may be changed at any time, by user space and by BPF programs of the writer. An
//!   engine copies the words when the policy hears of a thread. Two words of a row are not read at
//!   one instant.
//! - **Bounds**: at most [`MOST_ROWS`] rows; the kernel refuses a new row where the table is full.
//!
//! **Ownership.** The writer hands the map's descriptor over the engine's socket
//! ([`Request::Table`](crate::wire::Request::Table)) and keeps the connection. When the writer
//! ends, however it ends, the kernel closes the connection, and the engine drops the table: every
//! import is back at its default when the policy hears of the thread next. A pin below /sys/fs/bpf
//! was the other way. It outlives a writer that is killed, so its ratings would stay in force for
//! ever.
//!
//! **Precedence.** As long as a table is there, it alone says what the imports are that its columns
//! name: a process without a row has the default, and what a program supplies under the same name
//! is not heard. What the kernel itself supplies, no table can replace.

/// Bytes of a key.
pub const KEY_BYTES: u32 = 8;
/// Words of a row.
pub const WORDS: usize = 8;
/// Bytes of a row.
pub const VALUE_BYTES: u32 = 8 * WORDS as u32;
/// Rows of a table.
pub const MOST_ROWS: u32 = 65_536;
/// Tables that one engine reads at a time. Each import stands in one of them.
pub const TABLES: usize = 4;

/// The kernel's numbers of processes stay below 2^22.
const PID_BITS: u32 = 22;

/// The key of a process. `start`: in hundredths of a second.
pub fn key(process: u32, start: u64) -> u64 {
    start << PID_BITS | u64::from(process)
}

/// Number and start of the process with that key.
pub fn process_of(key: u64) -> (u32, u64) {
    ((key & ((1 << PID_BITS) - 1)) as u32, key >> PID_BITS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_holds_number_and_start() {
        let (process, start) = (4_194_303, 123_456_789_012);
        assert_eq!(process_of(key(process, start)), (process, start));
    }
}
