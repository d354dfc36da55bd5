//! Weights of cgroups that belong to one rated process each.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;

use attune_linux::cgroup::Cgroup;
use attune_linux::procfs;

use super::MOST_STEPS;
use crate::journal::{self, Journal, Weighed};

/// The greatest weight of a cgroup.
const HEAVIEST: u32 = 10_000;
/// Ancestors that are followed to see whose child a process is.
const MOST_ANCESTORS: usize = 64;

/// Cgroups that have another weight than their user's, by inode.
#[derive(Default)]
pub struct Groups {
    changed: BTreeMap<u64, Changed>,
}

struct Changed {
    group: Cgroup,
    before: u32,
    now: u32,
}

/// The process's cgroup, if it has one to itself: with a weight, with no cgroup below it, and with
/// no processes but it and its descendants.
pub fn own(process: u32) -> Option<Cgroup> {
    let group = Cgroup::of(process).ok()?;
    belongs_to(&group, process).then_some(group)
}

fn belongs_to(group: &Cgroup, process: u32) -> bool {
    let divided = fs::read_dir(group.folder())
        .is_ok_and(|entries| entries.flatten().any(|it| it.path().is_dir()));
    // The journal names a folder on one line.
    let writable = group.folder().to_str().is_some_and(|name| !name.contains('\n'));
    group.name() != "/"
        && !divided
        && writable
        && group.weight().is_ok_and(|weight| weight > 0)
        && group.processes().is_ok_and(|all| all.into_iter().all(|it| descends(it, process)))
}

fn descends(process: u32, from: u32) -> bool {
    let ancestors = std::iter::successors(Some(process), |&it| procfs::parent(it));
    ancestors.take(MOST_ANCESTORS).any(|it| it == from)
}

/// The weight that counts more by so many steps of a quarter.
fn weighed(before: u32, steps: u8) -> u32 {
    let factor = 1.25f64.powi(i32::from(steps.min(MOST_STEPS)));
    ((f64::from(before) * factor).round() as u32).clamp(1, HEAVIEST)
}

impl Groups {
    pub fn count(&self) -> usize {
        self.changed.len()
    }

    /// Makes it so that these cgroups, and no others, weigh more by that many steps; where one is
    /// named twice, the more.
    pub fn follow(&mut self, wanted: &[(Cgroup, u8)], journal: &mut Journal) -> io::Result<()> {
        let mut now: BTreeMap<u64, (&Cgroup, u8)> = BTreeMap::new();
        for (group, steps) in wanted {
            if let Ok(about) = fs::metadata(group.folder()) {
                let entry = now.entry(about.ino()).or_insert((group, *steps));
                entry.1 = entry.1.max(*steps);
            }
        }
        let over = self.changed.keys().copied().filter(|inode| !now.contains_key(inode));
        for inode in over.collect::<Vec<_>>() {
            if let Some(Changed { group, before, now }) = self.changed.remove(&inode) {
                let folder = group.folder().to_owned();
                // One that has gone, or that somebody gave another weight, is left alone.
                journal::unweigh(inode, &Weighed { folder, before, given: BTreeSet::from([now]) });
                journal.unweigh(inode)?;
            }
        }
        for (inode, (group, steps)) in now {
            self.weigh(inode, group, steps, journal)?;
        }
        Ok(())
    }

    fn weigh(
        &mut self,
        inode: u64,
        group: &Cgroup,
        steps: u8,
        journal: &mut Journal,
    ) -> io::Result<()> {
        let Ok(found) = group.weight() else { return Ok(()) };
        let before = match self.changed.get(&inode) {
            Some(changed) if changed.now == found => changed.before,
            // It is new, or somebody has set another weight: that is its user's now.
            _ => found,
        };
        let wanted = weighed(before, steps);
        if wanted == found {
            return Ok(());
        }
        journal.weigh(inode, before, wanted, group.folder())?;
        if fs::write(group.folder().join("cpu.weight"), wanted.to_string()).is_ok() {
            let group = group.clone();
            self.changed.insert(inode, Changed { group, before, now: wanted });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A cgroup as its files look, and this process in it.
    fn group(mount: &std::path::Path, name: &str, weight: u32) -> Cgroup {
        let group = Cgroup::under(mount, name);
        fs::create_dir_all(group.folder()).unwrap();
        fs::write(group.folder().join("cpu.weight"), weight.to_string()).unwrap();
        fs::write(group.folder().join("cgroup.procs"), std::process::id().to_string()).unwrap();
        group
    }

    #[test]
    fn a_cgroup_is_a_processs_own_if_nobody_else_is_in_it() {
        let mount = tempfile::tempdir().unwrap();
        let (own, process) = (group(mount.path(), "/app.scope", 100), std::process::id());
        assert!(belongs_to(&own, process));
        // A child belongs to its parent, which is in there too; the parent does not to its child.
        let parent = procfs::parent(process).unwrap();
        assert!(belongs_to(&own, parent));
        fs::write(own.folder().join("cgroup.procs"), format!("{process}\n{parent}\n")).unwrap();
        assert!(!belongs_to(&own, process) && belongs_to(&own, parent));
        let above = group(mount.path(), "/app.slice", 100);
        group(mount.path(), "/app.slice/one.scope", 100);
        assert!(!belongs_to(&above, process), "it is divided");
        fs::remove_file(own.folder().join("cpu.weight")).unwrap();
        assert!(!belongs_to(&own, parent), "its CPU time is not controlled");
    }

    #[test]
    fn a_cgroup_weighs_more_by_its_users_weight_and_gets_it_back() {
        let folder = tempfile::tempdir().unwrap();
        let mut journal = Journal::create(folder.path(), "groups").unwrap();
        let (one, two) =
            (group(folder.path(), "/one", 100), group(folder.path(), "/two words", 40));
        let mut groups = Groups::default();
        let weights = || (one.weight().unwrap(), two.weight().unwrap());
        let ask = [(one.clone(), 4), (one.clone(), 10), (two.clone(), 1)];
        groups.follow(&ask, &mut journal).unwrap();
        assert_eq!(weights(), (931, 50));
        groups.follow(&[(one.clone(), 5), (two.clone(), 1)], &mut journal).unwrap();
        assert_eq!(weights(), (305, 50));
        // A person sets another weight: that is what counts, and what comes back.
        fs::write(one.folder().join("cpu.weight"), "200").unwrap();
        groups.follow(&[(one.clone(), 5), (two.clone(), 1)], &mut journal).unwrap();
        assert_eq!(weights(), (610, 50));
        groups.follow(&[(one.clone(), 5)], &mut journal).unwrap();
        assert_eq!(weights(), (610, 40));
        // The daemon dies here: the guardian reads the journal.
        let path = journal.path().to_owned();
        let mut file = journal.share().unwrap();
        assert_eq!(journal::repair_from(&mut file, &path).unwrap(), 1);
        assert_eq!(weights(), (200, 40));
    }
}
