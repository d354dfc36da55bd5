//! What /proc says of processes and threads. Answers about a process that ends meanwhile are None
//! or empty.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;

/// Differs after each start of the kernel.
pub fn boot_id() -> io::Result<String> {
    Ok(fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned())
}

/// A thread's start in clock ticks since boot, which tells it from a later thread of the same
/// number. None: it has ended.
pub fn start_time(thread: u32) -> Option<u64> {
    let (state, start) = state_and_start(thread)?;
    // A zombie has nothing left to schedule.
    (!matches!(state, 'Z' | 'X')).then_some(start)
}

/// The parent of a process; None: it has none here, or has ended.
pub fn parent(process: u32) -> Option<u32> {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let parent = text.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()?;
    (parent != 0).then_some(parent)
}

/// Whether the thread waits for something, or has ended.
pub fn is_waiting(thread: u32) -> bool {
    state_and_start(thread).is_none_or(|(state, _)| state != 'R')
}

fn state_and_start(thread: u32) -> Option<(char, u64)> {
    parse_stat(&fs::read_to_string(format!("/proc/{thread}/stat")).ok()?)
}

fn parse_stat(text: &str) -> Option<(char, u64)> {
    // The name, in parentheses, may hold anything; the state comes behind it as the third field,
    // the start as the 22nd.
    let mut fields = text.rsplit_once(')')?.1.split_whitespace();
    Some((fields.next()?.chars().next()?, fields.nth(18)?.parse().ok()?))
}

/// The numbers of all processes.
pub fn processes() -> Vec<u32> {
    numbers("/proc")
}

/// The numbers of a process's threads.
pub fn threads(process: u32) -> Vec<u32> {
    numbers(&format!("/proc/{process}/task"))
}

fn numbers(folder: &str) -> Vec<u32> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// The name of a process or thread: at most 15 bytes, which any program can set.
pub fn name(id: u32) -> String {
    fs::read_to_string(format!("/proc/{id}/comm"))
        .map(|name| name.trim_end().to_owned())
        .unwrap_or_default()
}

/// How a thread has spent its life, in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTime {
    pub used: u64,
    /// It was ready, and another thread had the CPU; counted when the wait is over. Zero on a
    /// kernel that does not count it.
    pub waited: u64,
}

/// A thread's [`CpuTime`], to be read often: the file stays open.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_and_spaces_does_not_move_the_fields() {
        let rest = "1 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 4711 0 0";
        assert_eq!(parse_stat(&format!("12 (a) R (b) S {rest}")), Some(('S', 4711)));
        assert_eq!(parse_stat("12 (a"), None);
        assert_eq!(parse_stat("12 (a) S 1 1"), None);
    }

    #[test]
    fn this_process_is_found_with_its_threads() {
        let own = std::process::id();
        assert!(processes().contains(&own));
        assert!(threads(own).contains(&crate::process::this_thread()));
        assert!(start_time(own).is_some_and(|start| start > 0));
    }

    #[test]
    fn a_zombie_has_ended() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let number = child.id();
        while start_time(number).is_some() {
            std::thread::yield_now();
        }
        assert!(is_waiting(number));
        child.wait().unwrap();
        assert_eq!((start_time(number), threads(number)), (None, Vec::new()));
    }

    #[test]
    fn a_thread_that_computes_uses_cpu_time() {
        let thread = crate::process::this_thread();
        let clock = CpuClock::open(std::process::id(), thread).unwrap();
        let before = clock.read().unwrap().used;
        let end = crate::time::thread_cpu_time() + 20 * crate::time::MILLISECOND;
        while crate::time::thread_cpu_time() < end {}
        assert!(clock.read().unwrap().used > before);
    }
}
