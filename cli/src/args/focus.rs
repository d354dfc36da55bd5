//! The words about focus: which programs the person at the display deals with.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args as ClapArgs, Subcommand};

use super::seconds;

#[derive(ClapArgs)]
#[command(args_conflicts_with_subcommands = true)]
pub struct FocusArgs {
    #[command(subcommand)]
    pub command: Option<FocusCommand>,
    #[command(flatten)]
    pub monitor: MonitorArgs,
}

#[derive(ClapArgs)]
pub struct MonitorArgs {
    /// An X display, such as :0, or the socket of a sway [default: what the session says]
    #[arg(long, value_name = "DISPLAY")]
    pub display: Option<String>,
    /// Do not use the RECORD extension: keys count for the focused window's client
    #[arg(long)]
    pub raw_input: bool,
    /// End after so many seconds
    #[arg(long, value_name = "S", value_parser = seconds)]
    pub seconds: Option<Duration>,
    /// Write what is observed to a file, for `attune focus replay`
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
    /// One line of JSON a second
    #[arg(long)]
    pub json: bool,
    /// Settings in TOML [default: attune/focus.toml in ~/.config or /etc, if it is there]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Change a setting, such as ceiling=5 (may be repeated; a wrong name lists them all)
    #[arg(long = "set", value_name = "NAME=VALUE")]
    pub set: Vec<String>,
}

#[derive(Subcommand)]
pub enum FocusCommand {
    /// Say why a process has its ratings: which input, which output, which path
    Explain {
        /// The process
        pid: u32,
        /// One line of JSON
        #[arg(long)]
        json: bool,
    },
    /// Show what the running monitor knows
    Show {
        /// One line of JSON
        #[arg(long, conflicts_with = "dot")]
        json: bool,
        /// A picture of the graph, for `dot -Tsvg`
        #[arg(long)]
        dot: bool,
    },
    /// Compute the ratings of a recording again, perhaps with other settings
    Replay {
        /// A file that `attune focus --record` wrote
        file: PathBuf,
        /// One line of JSON a second
        #[arg(long)]
        json: bool,
        /// Print it as a workload for `attune sim` instead
        #[arg(long, conflicts_with = "json")]
        workload: bool,
        /// Change a setting
        #[arg(long = "set", value_name = "NAME=VALUE")]
        set: Vec<String>,
    },
}
