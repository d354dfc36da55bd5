//! The words about the beat of programs: finding it, recording it, reserving for it.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use attune_rhythm::controller::Law;
use clap::{Args as ClapArgs, ValueEnum};

use super::seconds;

/// How a period is found.
#[derive(Clone, Copy, ValueEnum)]
pub enum PeriodMethod {
    /// Job starts weighed as evidence; can say that there is no period
    Evidence,
    /// The heuristic of Cucinotta et al., EuroSys 2010
    #[value(name = "spectrum-2010")]
    Spectrum2010,
}

#[derive(ClapArgs)]
pub struct PeriodArgs {
    /// A recording
    pub file: PathBuf,
    /// One line of JSON: per window, or for the whole recording
    #[arg(long)]
    pub json: bool,
    /// Judge each consecutive window of S seconds by itself
    #[arg(long, value_name = "S")]
    pub window: Option<f64>,
    /// How to find it
    #[arg(long, value_enum, default_value = "evidence")]
    pub method: PeriodMethod,
    /// Draw the spectrum with what was chosen in it
    #[arg(long, value_name = "F.svg")]
    pub plot: Option<PathBuf>,
    /// Lowest frequency, in Hz (default: 2; spectrum-2010: 1)
    #[arg(long, value_name = "HZ")]
    pub f_min: Option<f64>,
    /// Highest frequency, in Hz (default: 220; spectrum-2010: 100)
    #[arg(long, value_name = "HZ")]
    pub f_max: Option<f64>,
    /// spectrum-2010: step of its grid, in Hz (default: 0.1)
    #[arg(long, value_name = "HZ")]
    pub df: Option<f64>,
    /// spectrum-2010: least amplitude of a candidate, in means of the spectrum (default: 0.2)
    #[arg(long)]
    pub alpha: Option<f64>,
    /// spectrum-2010: how far from a multiple its peak may lie, in Hz (default: 0.5)
    #[arg(long, value_name = "HZ")]
    pub eps: Option<f64>,
    /// spectrum-2010: number of multiples (default: 10)
    #[arg(long, value_name = "N")]
    pub harmonics: Option<usize>,
}

#[derive(ClapArgs)]
pub struct BandwidthArgs {
    /// A task: C of CPU time every P (may be repeated)
    #[arg(
        long = "task",
        value_name = "C,P",
        required = true,
        value_parser = crate::bandwidth::parse_task
    )]
    pub tasks: Vec<attune_rhythm::bandwidth::Task>,
    /// First server period (default: one step)
    #[arg(long, value_name = "P")]
    pub from: Option<f64>,
    /// Last server period (default: twice the longest period)
    #[arg(long, value_name = "P")]
    pub to: Option<f64>,
    /// Between two server periods (default: a fortieth of the last)
    #[arg(long, value_name = "P")]
    pub step: Option<f64>,
    /// One line of JSON
    #[arg(long)]
    pub json: bool,
    /// Draw both curves
    #[arg(long, value_name = "F.svg")]
    pub plot: Option<PathBuf>,
}

#[derive(ClapArgs)]
pub struct TraceArgs {
    /// A running process (may be repeated)
    #[arg(
        short,
        long = "process",
        value_name = "PID",
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    pub processes: Vec<u32>,
    /// Where the recording goes
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    /// End after this many seconds
    #[arg(long, value_name = "N", value_parser = seconds)]
    pub seconds: Option<Duration>,
    /// Leave out the children that the processes have or start
    #[arg(long)]
    pub no_children: bool,
    /// Only this thread of the processes (may be repeated)
    #[arg(long = "thread", value_name = "TID")]
    pub threads: Vec<u32>,
    /// Only this system call, by name or number (may be repeated)
    #[arg(long = "call", value_name = "CALL")]
    pub calls: Vec<String>,
    /// Leave out when system calls end
    #[arg(long)]
    pub no_exits: bool,
    /// Leave out blocking and waking
    #[arg(long)]
    pub no_transitions: bool,
    /// Room in MiB for events that wait to be written
    #[arg(
        long,
        value_name = "MIB",
        default_value_t = 4,
        value_parser = clap::value_parser!(u32).range(1..=1024)
    )]
    pub ring: u32,
    /// The command to start and trace, and its arguments
    #[arg(last = true, value_name = "CMD", required_unless_present = "processes")]
    pub words: Vec<OsString>,
}

#[derive(ClapArgs)]
pub struct TuneArgs {
    /// A running process, tuned with its children (may be repeated)
    #[arg(
        short,
        long = "process",
        value_name = "PID",
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    pub processes: Vec<u32>,
    /// How its beat is found
    #[arg(long, value_enum, default_value = "evidence")]
    pub method: PeriodMethod,
    /// How budgets follow what is used: ours, lfs++ or lfs
    #[arg(long, value_name = "C", default_value = "ours")]
    pub controller: Law,
    /// Share of each CPU that may be reserved
    #[arg(long, value_name = "SHARE", default_value_t = 0.9, value_parser = share)]
    pub bound: f64,
    /// A program's part when there is not enough for all, in the order of the programs (may be
    /// repeated; 1)
    #[arg(long = "weight", value_name = "W", value_parser = weight)]
    pub weights: Vec<f64>,
    /// Give the display server ($DISPLAY) a share of its own, in the beat of the fastest program
    #[arg(long)]
    pub display: bool,
    /// End after this many seconds
    #[arg(long, value_name = "N", value_parser = seconds)]
    pub seconds: Option<Duration>,
    /// Lines of JSON on standard output
    #[arg(long)]
    pub json: bool,
    /// The command to start and tune, and its arguments
    #[arg(last = true, value_name = "CMD", required_unless_present = "processes")]
    pub words: Vec<OsString>,
}

fn share(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|share| *share > 0.0 && *share <= 1.0)
        .ok_or_else(|| "a share, such as 0.8".to_owned())
}

fn weight(text: &str) -> Result<f64, String> {
    let weight = text.parse().ok().filter(|weight: &f64| weight.is_finite() && *weight > 0.0);
    weight.ok_or_else(|| "a weight above 0, such as 2".to_owned())
}
