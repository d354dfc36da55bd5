//! What another process means by the number of a process or thread. In a PID namespace of its own,
//! as containers have, the numbers differ from those here.
//!
//! Invariant: an answer is a number in the PID namespace of this program, or None.

use std::fs;
use std::path::PathBuf;

use crate::procfs;

/// Whether the process lives in another PID namespace than this program, as far as we may see.
pub fn is_foreign(process: u32) -> bool {
    foreign(process).is_some()
}

/// The process that `speaker` calls `said`. Only processes of the speaker's own namespace are
/// found, not those of namespaces below it.
pub fn process(speaker: u32, said: u32) -> Option<u32> {
    let Some(theirs) = foreign(speaker) else { return Some(said) };
    let means = |number: &u32| {
        innermost(&format!("/proc/{number}/status")) == Some(said)
            && of(*number).as_ref() == Some(&theirs)
    };
    procfs::processes().into_iter().find(means)
}

/// The thread of `process` that a process of the namespace of `speaker` calls `said`.
pub fn thread(speaker: u32, process: u32, said: u32) -> Option<u32> {
    if foreign(speaker).is_none() {
        return Some(said);
    }
    let means =
        |thread: &u32| innermost(&format!("/proc/{process}/task/{thread}/status")) == Some(said);
    procfs::threads(process).into_iter().find(means)
}

/// A process's PID namespace, if it is another one than ours and we may see it.
fn foreign(process: u32) -> Option<PathBuf> {
    let ours = of(std::process::id());
    of(process).filter(|theirs| ours.as_ref().is_some_and(|ours| ours != theirs))
}

fn of(process: u32) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{process}/ns/pid")).ok()
}

/// The number in the innermost namespace, in which the thread itself lives.
fn innermost(status: &str) -> Option<u32> {
    last_number(&fs::read_to_string(status).ok()?)
}

fn last_number(status: &str) -> Option<u32> {
    let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
    numbers.split_whitespace().next_back()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_of_the_same_namespace_means_what_it_says() {
        let own = std::process::id();
        assert!(!is_foreign(own));
        assert_eq!(process(own, 4711), Some(4711));
        assert_eq!(thread(own, own, 4711), Some(4711));
    }

    #[test]
    fn the_innermost_number_is_the_last() {
        assert_eq!(last_number("Name:\tsh\nNSpid:\t4711\t12\t3\nNSsid:\t1\n"), Some(3));
        assert_eq!(last_number("NSpid:\t4711\n"), Some(4711));
        assert_eq!(last_number("Name:\tsh\n"), None);
    }
}
