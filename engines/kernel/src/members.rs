//! Which threads are whose, where several schedulers share the machine: a thread of a command has
//! the number of its run (`bpf/domain.h`).
//!
//! The numbers lie in a map of the kernel. Objects that follow each other use the same map, so that
//! a thread stays a member of its run.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use libbpf_rs::{MapCore, Object, OpenMapMut};

/// Its name in an object.
pub(crate) const MAP: &str = "attune_members";

/// The runs whose commands an object knows.
#[derive(Clone, Debug, Default)]
pub struct Members {
    /// Their numbers, in the order of the schedulers. None is 0, and the first is that of the run
    /// that loads the object. Empty: there is one command.
    pub runs: Vec<u32>,
    /// The map that holds the threads' numbers, of another object; None: the object makes one.
    pub map: Option<Arc<OwnedFd>>,
}

/// The number of the only command.
const ONLY: u32 = 1;

impl Members {
    /// The numbers for an object of so many schedulers, of which the last has no command.
    pub(crate) fn numbers(&self, policies: usize) -> impl Iterator<Item = u32> {
        let only = (policies > 1 && self.runs.is_empty()).then_some(ONLY);
        only.into_iter().chain(self.runs.iter().copied()).take(policies.saturating_sub(1))
    }

    /// The number of the command that the object is loaded for.
    pub(crate) fn own(&self) -> u32 {
        self.runs.first().copied().unwrap_or(ONLY)
    }

    /// The object uses the map that there is.
    pub(crate) fn share(&self, map: &mut OpenMapMut<'_>) -> libbpf_rs::Result<()> {
        self.map.as_ref().map_or(Ok(()), |known| map.reuse_fd(known.as_fd()))
    }
}

/// A loaded object's map, which is there as long as somebody holds it.
pub(crate) fn map_of(object: &Object) -> io::Result<OwnedFd> {
    let map = object.maps().find(|map| map.name() == MAP).ok_or(io::ErrorKind::NotFound)?;
    map.as_fd().try_clone_to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_policies_but_the_last_have_a_run() {
        let numbers = |runs: &[u32], policies| {
            let members = Members { runs: runs.to_vec(), map: None };
            (members.numbers(policies).collect::<Vec<_>>(), members.own())
        };
        assert_eq!(numbers(&[], 1), (vec![], 1));
        assert_eq!(numbers(&[], 2), (vec![1], 1));
        assert_eq!(numbers(&[3, 7, 9], 4), (vec![3, 7, 9], 3));
    }
}
