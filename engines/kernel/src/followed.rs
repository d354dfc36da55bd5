//! CPUs that came or went while the scheduler went on, as its program tells (`bpf/hotplug.h`).
//!
//! Invariant: a change that was told is `open` until the first decision after it is told.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CpuChange {
    Came(u32),
    Went(u32),
}

/// A scheduler has gone on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Followed {
    pub cpu: CpuChange,
    /// From the policy's last decision before to its first one after.
    pub undecided: Duration,
}

/// What the program has told so far.
#[derive(Clone, Default)]
pub(crate) struct Changes(Arc<Mutex<Told>>);

#[derive(Default)]
struct Told {
    /// With the time of the last decision before, in ns.
    open: Vec<(CpuChange, i64)>,
    done: Vec<Followed>,
}

/// `enum attune_what`.
const WENT: u32 = 0;
const CAME: u32 = 1;
const DECIDES: u32 = 2;

impl Changes {
    /// `struct attune_cpu_change`; other messages mean nothing here.
    pub fn hear(&self, message: &[u8]) {
        let Ok(&[at @ .., c0, c1, c2, c3, w0, w1, w2, w3]) = <&[u8; 16]>::try_from(message) else {
            return;
        };
        let (at, cpu) = (i64::from_ne_bytes(at), u32::from_ne_bytes([c0, c1, c2, c3]));
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match u32::from_ne_bytes([w0, w1, w2, w3]) {
            WENT => told.open.push((CpuChange::Went(cpu), at)),
            CAME => told.open.push((CpuChange::Came(cpu), at)),
            DECIDES => {
                let followed = |(cpu, before): (CpuChange, i64)| Followed {
                    cpu,
                    undecided: Duration::from_nanos((at - before).max(0) as u64),
                };
                let open = std::mem::take(&mut told.open);
                told.done.extend(open.into_iter().map(followed));
            }
            _ => {}
        }
    }

    /// Those after which the policy has decided, once each.
    pub fn take(&self) -> Vec<Followed> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner).done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(at: i64, cpu: u32, what: u32) -> Vec<u8> {
        [&at.to_ne_bytes()[..], &cpu.to_ne_bytes(), &what.to_ne_bytes()].concat()
    }

    #[test]
    fn a_change_is_told_once_the_policy_decides_again() {
        let changes = Changes::default();
        changes.hear(&message(1_000, 1, WENT));
        changes.hear(&message(1_500, 1, CAME));
        assert_eq!(changes.take(), []);
        changes.hear(&message(3_000, 0, DECIDES));
        changes.hear(&[1; 8]);
        let wanted = [(CpuChange::Went(1), 2_000), (CpuChange::Came(1), 1_500)];
        let wanted = wanted.map(|(cpu, ns)| Followed { cpu, undecided: Duration::from_nanos(ns) });
        assert_eq!(changes.take(), wanted);
        assert_eq!(changes.take(), []);
    }
}
