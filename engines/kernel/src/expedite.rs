//! Lets the kernel change its scheduler soon. While it attaches or detaches one, it runs all
//! threads by itself, first in, first out, and waits for several grace periods of RCU. The threads
//! that end those wait for their turn, too: behind a hundred threads that compute, a change took a
//! second. So the calling thread and those threads are in SCHED_FIFO meanwhile, grace periods are
//! expedited, and turns are short.
//!
//! Invariant: when the change is over, all is as it was. A process that is killed meanwhile leaves
//! them so; they run for microseconds, and nothing else depends on it.

use std::fs;
use std::os::fd::OwnedFd;
use std::sync::OnceLock;

use attune_linux::procfs;
use attune_linux::scheduling::{Attributes, Class};

/// How the kernel's threads that end grace periods begin their names; which of them do depends on
/// the kernel.
const ENDERS: [&str; 3] = ["rcu_preempt", "rcu_sched", "rcu_exp_"];
/// The parent of the kernel's own threads. Anybody may name a program like one of them.
const KTHREADD: u32 = 2;
/// Settings of the kernel's, and what they are meanwhile: grace periods are expedited, and a turn
/// is the shortest that there is, in us, which is a tick.
const SETTINGS: [(&str, &str); 2] = [
    ("/sys/kernel/rcu_expedited", "1"),
    ("/sys/module/sched_ext/parameters/slice_bypass_us", "100"),
];
const THIS_THREAD: u32 = 0;

/// Attaches or detaches; one change may be part of another. What cannot be set is left: then the
/// change takes longer.
pub(crate) fn expedited<T>(change: impl FnOnce() -> T) -> T {
    // Finding them takes longer than the change.
    static THREADS: OnceLock<Vec<u32>> = OnceLock::new();
    let enders = THREADS.get_or_init(enders);
    let raised: Vec<_> = [THIS_THREAD].iter().chain(enders).filter_map(|it| raise(*it)).collect();
    let set: Vec<_> = SETTINGS.iter().filter_map(|(file, value)| set(file, value)).collect();
    let result = change();
    for (file, before) in set {
        let _ = fs::write(file, before.trim());
    }
    for (thread, before) in raised.into_iter().rev() {
        let _ = before.apply_to(thread);
    }
    result
}

fn enders() -> Vec<u32> {
    let ends = |process: &u32| {
        let name = procfs::name(*process);
        ENDERS.iter().any(|begin| name.starts_with(begin))
            && procfs::parent(*process) == Some(KTHREADD)
    };
    procfs::processes().into_iter().filter(ends).collect()
}

/// Puts the thread into SCHED_FIFO; what it was before. None: it has a guarantee already, perhaps
/// for a change that this one is part of, or may not have one.
fn raise(thread: u32) -> Option<(u32, Attributes)> {
    let before = Attributes::of(thread).ok()?;
    let has_none = before.class.is_fair() || before.class == Class::EXT;
    (has_none && Attributes::fifo(1).apply_to(thread).is_ok()).then_some((thread, before))
}

/// What the setting was before. None: there is none, it may not be changed, or it is so already,
/// perhaps by another process that puts it back.
fn set(file: &'static str, value: &str) -> Option<(&'static str, String)> {
    let before = fs::read_to_string(file).ok().filter(|before| before.trim() != value)?;
    fs::write(file, value).is_ok().then_some((file, before))
}

/// A scheduler that the kernel has, until this is dropped.
pub(crate) struct Attached(Option<OwnedFd>);

impl From<OwnedFd> for Attached {
    fn from(link: OwnedFd) -> Attached {
        Attached(Some(link))
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        expedited(|| drop(self.0.take()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_what_it_was_after_a_change() {
        let before = Attributes::of(THIS_THREAD).unwrap();
        let meanwhile = expedited(|| Attributes::of(THIS_THREAD).unwrap());
        // Without privilege nothing is raised.
        assert!([Class::FIFO, before.class].contains(&meanwhile.class));
        assert_eq!(Attributes::of(THIS_THREAD).unwrap(), before);
    }
}
