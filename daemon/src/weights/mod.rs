//! Ratings on a stock kernel: the programs that the person deals with get more of the CPU.
//!
//! `attune focus` tells the daemon its ratings each second. A process that has a cgroup of its own
//! gets a greater cgroup weight, any other a smaller nice value, by the same scale: each of up to
//! [`MOST_STEPS`] steps counts a quarter more, as the fair class counts nice values.
//!
//! Invariants:
//!
//! - What a user has set stays: a thread with a nice value other than 0, or in another class, is
//!   left alone, and a cgroup's own weight is what the steps multiply. A change that somebody makes
//!   meanwhile stands.
//! - Children do not inherit it (SCHED_RESET_ON_FORK; a nice value below 0 then becomes 0).
//! - Before a thread or cgroup is first changed it stands in the journal, and a guardian waits to
//!   give it back.
//! - While an Attune policy schedules the machine nothing is changed: it has the ratings itself.
//! - Ratings that are not told again in time are over.

mod groups;
mod threads;

use std::io;
use std::path::Path;

use attune_linux::procfs;
use attune_linux::time::{self, SECOND, Time};
use serde::{Deserialize, Serialize};

use crate::guardian::Guardian;
use crate::journal::Journal;
use crate::kernel::Kernel;
use groups::Groups;
use threads::{Favour, Threads};
pub use threads::{INPUT_SLICE, SLICE};

/// A rating at the ceiling is so many steps; a nice value below -10 would keep system services
/// away from the CPU.
pub const MOST_STEPS: u8 = 10;
/// What counts as the ceiling.
const FULL: i64 = 1000;
/// Ratings hold for so long.
const PATIENCE: Time = 5 * SECOND;
/// Where sched_ext says which scheduler runs.
const SCHED_EXT: &str = "/sys/kernel/sched_ext";

/// A process and its ratings: `[4702, 4117732, 970, 40]`.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
pub struct Rating(
    /// The process.
    pub u32,
    /// Its start in clock ticks since boot.
    pub u64,
    /// Input, 0 to 1000.
    pub i64,
    /// Output, 0 to 1000.
    pub i64,
);

impl Rating {
    /// By how many steps the process counts more: by its greater rating.
    fn steps(self) -> u8 {
        steps(self.2.max(self.3))
    }

    /// What its threads get, where it has no cgroup of its own.
    fn favour(self) -> Favour {
        let slice = if steps(self.2) > 0 { INPUT_SLICE } else { SLICE };
        Favour { nice: -i32::from(self.steps()), slice }
    }
}

fn steps(rating: i64) -> u8 {
    ((rating.clamp(0, FULL) * i64::from(MOST_STEPS) + FULL / 2) / FULL) as u8
}

/// What the daemon has changed by ratings. Dropping it puts all back.
pub struct Weights {
    journal: Option<Journal>,
    guardian: Option<Guardian>,
    threads: Threads,
    groups: Groups,
    until: Time,
    /// The user whose ratings are followed.
    rater: u32,
}

impl Weights {
    /// `folder`: where the journal lies. Repairs nothing; the supervisor has.
    pub fn start(folder: &Path, kernel: Kernel) -> io::Result<Weights> {
        let journal = Journal::create(folder, "weights")?;
        let guardian = Guardian::start(&journal)?;
        Ok(Weights {
            journal: Some(journal),
            guardian: Some(guardian),
            threads: Threads::new(kernel),
            groups: Groups::default(),
            until: 0,
            rater: 0,
        })
    }

    /// The user whose ratings are in force.
    pub fn rater(&self) -> Option<u32> {
        (time::now() < self.until).then_some(self.rater)
    }

    /// Follows a user's new ratings; a process that is not among them is not rated. `reserved`:
    /// processes that have reservations, which weights are no use for. An error is the journal's:
    /// what it does not name has not been changed.
    pub fn rate(
        &mut self,
        rater: u32,
        ratings: &[Rating],
        reserved: impl Fn(u32) -> bool,
    ) -> io::Result<()> {
        self.rater = rater;
        if attune_policy_runs(Path::new(SCHED_EXT)) {
            return self.release();
        }
        self.keep_guardian()?;
        self.until = time::now() + PATIENCE;
        let Some(journal) = &mut self.journal else { return Ok(()) };
        let is_there = |rating: &&Rating| {
            rating.steps() > 0
                && procfs::start_time(rating.0) == Some(rating.1)
                && !reserved(rating.0)
        };
        let mut of_threads = Vec::new();
        let mut of_groups = Vec::new();
        for rating in ratings.iter().filter(is_there) {
            match groups::own(rating.0) {
                Some(group) => of_groups.push((group, rating.steps())),
                None => of_threads.push((rating.0, rating.favour())),
            }
        }
        self.threads.follow(&of_threads, journal)?;
        self.groups.follow(&of_groups, journal)
    }

    /// To be called each round: ends ratings that are too old.
    pub fn step(&mut self) -> io::Result<()> {
        let busy = self.threads.count() + self.groups.count() > 0;
        if busy && (time::now() >= self.until || attune_policy_runs(Path::new(SCHED_EXT))) {
            return self.release();
        }
        self.keep_guardian()
    }

    /// Puts all back.
    pub fn release(&mut self) -> io::Result<()> {
        let Some(journal) = &mut self.journal else { return Ok(()) };
        self.threads.follow(&[], journal)?;
        self.groups.follow(&[], journal)
    }

    /// Puts one process's threads back: it is to get reservations.
    pub fn release_process(&mut self, process: u32) -> io::Result<()> {
        let Some(journal) = &mut self.journal else { return Ok(()) };
        self.threads.release(process, journal)
    }

    /// Threads and cgroups that are changed now.
    pub fn changed(&self) -> (usize, usize) {
        (self.threads.count(), self.groups.count())
    }

    fn keep_guardian(&mut self) -> io::Result<()> {
        let alive = self.guardian.as_mut().is_some_and(Guardian::is_alive);
        if let (false, Some(journal)) = (alive, &self.journal) {
            self.guardian = Some(Guardian::start(journal)?);
        }
        Ok(())
    }
}

impl Drop for Weights {
    fn drop(&mut self) {
        // What cannot be written down as given back, the guardian gives back once more.
        let released = self.release();
        if let (Some(journal), Ok(())) = (self.journal.take(), released) {
            // Then the guardian finds nothing to do.
            let _ = journal.close();
        }
        if let Some(guardian) = self.guardian.take() {
            guardian.end();
        }
    }
}

/// Whether a scheduler of the kernel engine runs, by sched_ext's folder. Another sched_ext
/// scheduler looks at weights itself.
fn attune_policy_runs(folder: &Path) -> bool {
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap_or_default();
    read("state").trim() == "enabled" && read("root/ops").starts_with("attune_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_greater_rating_makes_the_steps() {
        let steps = |input, output| Rating(1, 1, input, output).steps();
        assert_eq!([steps(0, 0), steps(49, 0), steps(50, 0), steps(400, 970)], [0, 0, 1, 10]);
        assert_eq!([steps(-5, i64::MIN), steps(i64::MAX, 0), steps(0, 1000)], [0, 10, 10]);
    }

    #[test]
    fn only_attunes_own_scheduler_keeps_weights_away() {
        let folder = tempfile::tempdir().unwrap();
        let runs = |state: &str, ops: &str| {
            std::fs::create_dir_all(folder.path().join("root")).unwrap();
            std::fs::write(folder.path().join("state"), state).unwrap();
            std::fs::write(folder.path().join("root/ops"), ops).unwrap();
            attune_policy_runs(folder.path())
        };
        assert!(runs("enabled\n", "attune_human\n"));
        assert!(!runs("disabled\n", "attune_human\n"));
        assert!(!runs("enabled\n", "bpfland_1.1.4\n"));
        assert!(!attune_policy_runs(Path::new("/nowhere")));
    }
}
