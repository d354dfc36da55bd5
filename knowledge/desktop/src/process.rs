//! A process, told apart from every other that has had or will have its number.

use std::fmt;
use std::fs;

use attune_values::table;
use serde::{Deserialize, Serialize};

/// A process of this machine: its number and when it started. Numbers are used again, pairs are
/// not. Processes that share one address space are one, under the number of the one that owns it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Process {
    pub pid: u32,
    /// Hundredths of a second since the machine started, as /proc/PID/stat tells them.
    pub start: u64,
}

impl Process {
    /// The process that has this number now.
    pub fn now(pid: u32) -> Option<Process> {
        Facts::read(pid).map(|facts| facts.process)
    }

    /// Both parts in one number, as the BPF program and the table by process use it.
    pub fn key(self) -> u64 {
        table::key(self.pid, self.start)
    }

    pub fn from_key(key: u64) -> Process {
        let (pid, start) = table::process_of(key);
        Process { pid, start }
    }
}

impl fmt::Display for Process {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        write!(out, "{}", self.pid)
    }
}

/// All processes that have one of these names.
pub fn named(names: &[String]) -> Vec<Facts> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter_map(Facts::read).filter(|facts| names.contains(&facts.name)).collect()
}

/// What /proc tells of a process that lives.
#[derive(Clone, Debug, PartialEq)]
pub struct Facts {
    pub process: Process,
    pub name: String,
    pub parent: u32,
}

impl Facts {
    /// None when there is no such process, or only its exit status is left.
    pub fn read(pid: u32) -> Option<Facts> {
        let bytes = fs::read(format!("/proc/{pid}/stat")).ok()?;
        let text = String::from_utf8_lossy(&bytes);
        // The name, in parentheses, may hold anything. Behind it come the state (third field), the
        // parent (fourth) and, as the 22nd, the start.
        let (head, tail) = text.rsplit_once(')')?;
        let name = head.split_once('(')?.1.to_owned();
        let mut fields = tail.split_whitespace();
        if matches!(fields.next()?, "Z" | "X") {
            return None;
        }
        let parent = fields.next()?.parse().ok()?;
        let start = fields.nth(17)?.parse().ok()?;
        Some(Facts { process: Process { pid, start }, name, parent })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_holds_number_and_start() {
        let process = Process { pid: 4_194_303, start: 123_456_789_012 };
        assert_eq!(Process::from_key(process.key()), process);
    }

    #[test]
    fn this_process_is_known_and_an_unused_number_is_not() {
        let own = Facts::read(std::process::id()).unwrap();
        assert_eq!(own.process.pid, std::process::id());
        assert!(own.process.start > 0 && !own.name.is_empty());
        assert_eq!(Process::now(0), None);
    }
}
