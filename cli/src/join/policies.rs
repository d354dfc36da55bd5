//! The policies of one object: the commands', each with its run, and that of all other threads. A
//! run makes an object of them, and offers them to a newcomer, which makes one more.
//!
//! Invariant: the commands' stand newest first, as in the object; so a run's own is the first, and
//! is called `command`.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use attune_kernel::{Members, role};
use attune_linux::procfs;
use attune_values::wire::Tunable;
use serde::{Deserialize, Serialize};

use crate::args::SourceArgs;
use crate::failure::Failure;
use crate::set::shown;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Policies {
    pub commands: Vec<Command>,
    pub others: Policy,
}

/// A command's policy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Command {
    /// The process that runs it, whose number is the run's, and when that started.
    pub run: u32,
    start: u64,
    /// Its part of the CPUs, and that of all others.
    weight: [u32; 2],
    pub policy: Policy,
}

/// Where its text is, so that another process can make the same.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Policy {
    scheduler: PathBuf,
    include: Vec<PathBuf>,
    aspects: Vec<PathBuf>,
    /// [`crate::load::print`]: the files may have changed since they were read.
    print: u64,
}

/// A tunable of a policy, as `attune set` takes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// Whose policy; 0: that of all other threads.
    run: u32,
    name: String,
    value: String,
}

/// So many parts are fine enough for weights from 1 to 100.
const FINEST: u64 = 1_000_000;

impl Policies {
    /// Those of commands that run still.
    pub fn living(&self) -> Policies {
        let lives = |command: &&Command| procfs::start_time(command.run) == Some(command.start);
        let commands = self.commands.iter().filter(lives).cloned().collect();
        Policies { commands, others: self.others.clone() }
    }

    pub fn count(&self) -> usize {
        self.commands.len() + 1
    }

    pub fn in_order(&self) -> impl Iterator<Item = &Policy> {
        self.commands.iter().map(|command| &command.policy).chain([&self.others])
    }

    pub fn members(&self, map: Option<Arc<OwnedFd>>) -> Members {
        Members { runs: self.commands.iter().map(|command| command.run).collect(), map }
    }

    /// The parts of the policies. Each command's weight says how much it has beside all others, so
    /// theirs is the measure.
    pub fn shares(&self) -> Vec<u32> {
        let measure = self.commands.iter().fold(1, |all, it| {
            let others = u64::from(it.weight[1]);
            (all / divisor(all, others) * others).min(FINEST)
        });
        let part = |it: &Command| {
            let [own, others] = it.weight.map(u64::from);
            (own * measure / others).max(1) as u32
        };
        self.commands.iter().map(part).chain([measure as u32]).collect()
    }

    /// What is set of an object of these policies.
    pub fn changes(&self, tunables: &[Tunable]) -> Vec<Change> {
        let run = |of: &Tunable| {
            let found = self
                .commands
                .iter()
                .zip(0..)
                .find(|(_, index)| of.role.is_some() && of.role == role(*index, self.count()));
            found.map_or(0, |(command, _)| command.run)
        };
        let change = |it: &Tunable| Change {
            run: run(it),
            name: it.name.clone(),
            value: shown(it.ty, it.value),
        };
        tunables.iter().map(change).collect()
    }

    /// What to set of an object of these policies: of the changes those that are theirs.
    pub fn settings(&self, changes: Vec<Change>) -> Vec<(String, String)> {
        let setting = |change: Change| {
            let command = self.commands.iter().position(|it| it.run == change.run);
            let index = command.or((change.run == 0).then_some(self.commands.len()))?;
            let role = role(index, self.count()).map_or(String::new(), |role| role + ".");
            Some((format!("{role}{}", change.name), change.value))
        };
        changes.into_iter().filter_map(setting).collect()
    }
}

fn divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { divisor(b, a % b) }
}

impl Command {
    /// That of this process.
    pub fn own(weight: [u32; 2], policy: Policy) -> Command {
        let run = std::process::id();
        Command { run, start: procfs::start_time(run).unwrap_or(0), weight, policy }
    }
}

impl Policy {
    pub fn new(scheduler: &Path, source: &SourceArgs, print: u64) -> Policy {
        let absolute = |path: &Path| match path.exists() {
            true => std::path::absolute(path).unwrap_or_else(|_| path.to_owned()),
            // The name of a library scheduler.
            false => path.to_owned(),
        };
        let all = |paths: &[PathBuf]| paths.iter().map(|path| absolute(path)).collect();
        Policy {
            scheduler: absolute(scheduler),
            include: all(&source.include),
            aspects: all(&source.aspects),
            print,
        }
    }

    pub fn scheduler(&self) -> &Path {
        &self.scheduler
    }

    pub fn source(&self) -> SourceArgs {
        SourceArgs { include: self.include.clone(), aspects: self.aspects.clone() }
    }

    /// An error: its files have changed since they were loaded; `print` is that of their text now.
    pub fn is_as_it_was(&self, print: u64) -> Result<(), Failure> {
        match self.print == print {
            true => Ok(()),
            false => Err(Failure::usage(format!(
                "the text of {} has changed since it was loaded, so no other run can join it",
                self.scheduler.display()
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use attune_values::wire::{Storage, Type};

    fn policy(name: &str) -> Policy {
        Policy { scheduler: name.into(), include: vec![], aspects: vec![], print: 1 }
    }

    fn policies(weights: &[[u32; 2]]) -> Policies {
        let command = |(weight, run): (&[u32; 2], u32)| Command {
            run,
            start: 5,
            weight: *weight,
            policy: policy("edf"),
        };
        let commands = weights.iter().zip(101..).map(command).collect();
        Policies { commands, others: policy("fair") }
    }

    #[test]
    fn each_commands_weight_is_beside_all_others() {
        assert_eq!(policies(&[]).shares(), [1]);
        assert_eq!(policies(&[[3, 1]]).shares(), [3, 1]);
        assert_eq!(policies(&[[1, 2], [3, 4], [5, 1]]).shares(), [2, 3, 20, 4]);
        // Others' weights without a common divisor: the measure is fine, and each ratio holds.
        let weights = [[100, 97], [1, 89], [7, 83], [100, 79], [1, 73], [5, 71], [3, 67]];
        let shares = policies(&weights).shares();
        let measure = f64::from(shares[7]);
        for (share, [own, others]) in shares.iter().zip(weights) {
            let wanted = f64::from(own) / f64::from(others);
            assert!((f64::from(*share) / measure / wanted - 1.0).abs() < 0.001, "{shares:?}");
        }
    }

    #[test]
    fn what_is_set_follows_the_run_whatever_its_role_is() {
        let tunable = |role: &str, value| Tunable {
            scheduler: "edf".to_owned(),
            role: Some(role.to_owned()),
            name: "level".to_owned(),
            storage: Storage::Tunable,
            ty: Type::Int,
            value,
        };
        let two = policies(&[[1, 1], [1, 1]]);
        let set = [tunable("command", 1), tunable("command2", 2), tunable("others", 3)];
        let changes = two.changes(&set);
        let called = |policies: &Policies| policies.settings(changes.clone());
        let settings = |names: &[(&str, &str)]| -> Vec<(String, String)> {
            names.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
        };
        let mut older = two.clone();
        older.commands.remove(0);
        assert_eq!(called(&older), settings(&[("command.level", "2"), ("others.level", "3")]));
        // The one that had the machine first has one policy, whose names need no role.
        assert_eq!(called(&policies(&[])), settings(&[("level", "3")]));
        assert_eq!(
            policies(&[]).changes(&[Tunable { role: None, ..tunable("", 3) }]),
            [Change { run: 0, name: "level".to_owned(), value: "3".to_owned() }]
        );
    }
}
