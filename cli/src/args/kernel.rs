//! The words about schedulers in the kernel: running them, and speaking to one that runs.

use std::path::PathBuf;

use clap::Args as ClapArgs;

use super::{PerArg, SourceArgs};

#[derive(ClapArgs)]
pub struct RunArgs {
    /// A scheduler file, the name of a library scheduler, or an object made by `attune build
    /// --engine kernel`
    #[arg(value_name = "SCHED")]
    pub scheduler: PathBuf,
    #[command(flatten)]
    pub source: SourceArgs,
    /// SCHED is a master: be a node of this family in its cluster, whose manager `attune manager`
    /// is
    #[arg(long, value_name = "FAMILY")]
    pub node: Option<String>,
    /// The cluster's name, or with a slash in it the path of its manager's socket; without it, the
    /// master's name
    #[arg(long, value_name = "NAME")]
    pub cluster: Option<String>,
    /// Every thread of the machine follows SCHED
    #[arg(long)]
    pub all: bool,
    /// What all threads but the command's follow [default: fair]
    #[arg(long, value_name = "SCHED", conflicts_with_all = ["all", "partial"])]
    pub others: Option<PathBuf>,
    /// Parts of the CPUs: the command's, and that of all others (1 if it is not said)
    #[arg(
        long,
        value_name = "W[:W]",
        default_value = "1:1",
        value_parser = shares,
        conflicts_with_all = ["all", "partial"]
    )]
    pub weight: [u32; 2],
    /// Only threads that ask for the class SCHED_EXT follow SCHED; all others go first
    #[arg(long, conflicts_with = "all")]
    pub partial: bool,
    /// What one instance of SCHED schedules; cache and cpu need --all or --partial, and a scheduler
    /// with an `arrives` of its own [default: machine]
    #[arg(long, value_enum)]
    pub per: Option<PerArg>,
    /// Tell SCHED what threads wait until, from the time-outs of their system calls: programs that
    /// say nothing cooperate so (SCHED: coop)
    #[arg(long)]
    pub implicit: bool,
    /// Set a tunable or a global import, such as period=10ms or fair.period=10ms (may be repeated)
    #[arg(long = "set", value_name = "NAME=VALUE")]
    pub set: Vec<String>,
    /// Print what happens every so many seconds
    #[arg(long, value_name = "SECONDS")]
    pub stats: Option<u64>,
    /// Seed of everything random
    #[arg(long, value_name = "S", default_value = "0")]
    pub seed: u64,
    /// The kernel ends a scheduler that leaves a ready thread waiting for so long, in milliseconds.
    /// Before that, the engine runs the thread for a moment, names the line that put it there, and
    /// goes on
    #[arg(long, value_name = "MS", default_value = "5000")]
    pub timeout: u32,
    /// Leave a thread that SCHED forgets to wait, so that the kernel ends SCHED
    #[arg(long)]
    pub strict: bool,
    /// Every user's programs may supply what SCHED takes from root and from you alone (`by loader`)
    #[arg(long)]
    pub trust_programs: bool,
    /// What `attuned` says: settings are kept for the next start
    #[arg(long, hide = true, conflicts_with = "command")]
    pub service: bool,
    /// The same, for a process that waits until the one that runs is killed
    #[arg(long, hide = true, requires = "service")]
    pub standby: bool,
    /// A command that runs under SCHED
    #[arg(last = true, value_name = "CMD", required_unless_present_any = ["all", "partial"])]
    pub command: Vec<String>,
}

#[derive(ClapArgs)]
pub struct HintArgs {
    /// The process, or PROCESS/THREAD for one of its threads
    #[arg(required_unless_present = "from")]
    pub process: Option<String>,
    /// NAME=VALUE, VALUE a number or a time such as 40ms
    #[arg(required_unless_present = "from")]
    pub values: Vec<String>,
    /// Many at once: a line each, PROCESS[/THREAD] NAME=VALUE ..; `-` is the standard input
    #[arg(long, value_name = "FILE", conflicts_with = "process")]
    pub from: Option<PathBuf>,
}

#[derive(ClapArgs)]
pub struct SetArgs {
    /// What to set, such as period=10ms or fair.period=10ms; nothing: list all
    #[arg(value_name = "[POLICY.]NAME=VALUE")]
    pub settings: Vec<String>,
    /// One line of JSON: all of them as they are now, times in nanoseconds
    #[arg(long)]
    pub json: bool,
}

#[derive(ClapArgs)]
pub struct TopArgs {
    /// Print how it stands now, and end
    #[arg(long)]
    pub once: bool,
    /// The same as one line of JSON; times in nanoseconds
    #[arg(long)]
    pub json: bool,
    /// Seconds between two looks
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = interval)]
    pub interval: f64,
}

#[derive(ClapArgs)]
pub struct StatusArgs {
    /// One line of JSON; times are seconds since 1970
    #[arg(long)]
    pub json: bool,
}

/// From a tenth of a second to an hour.
fn interval(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.1..=3600.0).contains(&seconds) => Ok(seconds),
        _ => Err("a number of seconds from 0.1 to 3600".to_owned()),
    }
}

/// `3:1`, `3`: each 1 to 100.
fn shares(text: &str) -> Result<[u32; 2], String> {
    let one = |text: &str| text.trim().parse().ok().filter(|share| (1..=100).contains(share));
    let (command, others) = text.split_once(':').unwrap_or((text, "1"));
    match (one(command), one(others)) {
        (Some(command), Some(others)) => Ok([command, others]),
        _ => Err("two numbers from 1 to 100, such as 3:1, or one".to_owned()),
    }
}
