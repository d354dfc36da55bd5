//! Processes and threads as /proc tells them.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;

/// The kernel's name for the time since it was started.
pub fn boot_id() -> io::Result<String> {
    Ok(fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned())
}

/// When a thread began, in clock ticks since boot; None if it is gone.
pub fn start_time(thread: u32) -> Option<u64> {
    let (state, start) = state_and_start(thread)?;
    // A zombie has nothing left to schedule.
    (!matches!(state, 'Z' | 'X')).then_some(start)
}

/// Whether a thread waits for something other than a CPU; also if it is gone.
pub fn is_waiting(thread: u32) -> bool {
    state_and_start(thread).is_none_or(|(state, _)| state != 'R')
}

fn state_and_start(thread: u32) -> Option<(char, u64)> {
    let text = fs::read_to_string(format!("/proc/{thread}/stat")).ok()?;
    // The name, in parentheses, may hold anything; the state comes behind it as the third field, the start as the 22nd.
    let mut fields = text.rsplit_once(')')?.1.split_whitespace();
    Some((fields.next()?.chars().next()?, fields.nth(18)?.parse().ok()?))
}

/// The threads of a process; empty when it is gone.
pub fn threads(process: u32) -> Vec<u32> {
    let Ok(entries) = fs::read_dir(format!("/proc/{process}/task")) else { return Vec::new() };
    entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// A process' or thread's short name.
pub fn name(id: u32) -> String {
    fs::read_to_string(format!("/proc/{id}/comm")).map(|name| name.trim_end().to_owned()).unwrap_or_default()
}

/// Who owns a process.
pub fn owner(process: u32) -> Option<u32> {
    use std::os::unix::fs::MetadataExt;
    fs::metadata(format!("/proc/{process}")).ok().map(|metadata| metadata.uid())
}

/// All processes' numbers.
pub fn all() -> Vec<u32> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// What a thread has had since it began, in ns.
#[derive(Clone, Copy, Debug, Default)]
pub struct CpuTime {
    pub used: u64,
    /// It was ready, and another had the CPU; counted when that is over. Zero on a kernel that does not count it.
    pub waited: u64,
}

/// The CPU time of a thread, read again and again.
pub struct CpuClock(File);

impl CpuClock {
    pub fn open(process: u32, thread: u32) -> io::Result<CpuClock> {
        File::open(format!("/proc/{process}/task/{thread}/schedstat")).map(CpuClock)
    }

    /// None when the thread is gone.
    pub fn read(&self) -> Option<CpuTime> {
        let mut bytes = [0; 64];
        let length = self.0.read_at(&mut bytes, 0).ok()?;
        let mut fields = std::str::from_utf8(&bytes[..length]).ok()?.split_whitespace();
        Some(CpuTime { used: fields.next()?.parse().ok()?, waited: fields.next()?.parse().ok()? })
    }
}
