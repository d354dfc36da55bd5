//! The words of the command line.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};

/// Application-aware CPU scheduling: schedulers as a page of text, checked, simulated, compiled.
#[derive(Parser)]
#[command(
    name = "attune",
    version,
    about,
    after_help = "Start with: attune check fifo\n            attune sim fair --workload lab/workloads/players.toml"
)]
pub struct Args {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand)]
pub enum Command {
    /// Check schedulers: names, types, and that no thread can be lost
    #[command(
        after_help = "Example: attune check fair my.sched -I common --engine threads\n\nExit status: 0 without errors, 1 with, 2 when a file cannot be read."
    )]
    Check(CheckArgs),
    /// Explain a diagnostic's code, with a wrong and a right example
    #[command(
        after_help = "Example: attune explain E0601\n         attune explain            (lists all codes)"
    )]
    Explain(ExplainArgs),
    /// Compile a scheduler for an engine
    #[command(
        after_help = "Example: attune build shortest_reply --engine threads -o shortest_reply.so\n         ATTUNE_SCHED=./shortest_reply.so ./my-server"
    )]
    Build(BuildArgs),
    /// Draw a scheduler's containers and the transfers between them
    #[command(after_help = "Example: attune diagram pth -o pth.svg")]
    Diagram(DiagramArgs),
    /// Run a scheduler in the simulator
    #[command(
        after_help = "Example: attune sim fair --workload lab/workloads/players.toml --cpus 2 --report out.html"
    )]
    Sim(SimArgs),
    /// Run an experiment and see whether what is claimed holds
    #[command(
        after_help = "Example: attune lab run webserver --quick\n         attune lab list\n\nExit status: 0 when every claim holds, 1 when one does not."
    )]
    Lab(LabArgs),
    /// List the schedulers of the standard library
    #[command(
        after_help = "Example: attune schedulers\n         attune schedulers fair    (prints its text)"
    )]
    Schedulers(SchedulersArgs),
}

/// Where a scheduler's files are.
#[derive(ClapArgs)]
pub struct SourceArgs {
    /// Look for base schedulers in DIR too (may be repeated)
    #[arg(short = 'I', value_name = "DIR")]
    pub include: Vec<PathBuf>,
    /// Add the aspects in FILE (may be repeated)
    #[arg(long = "aspect", value_name = "FILE")]
    pub aspects: Vec<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
pub enum EngineArg {
    Simulator,
    Threads,
    Embedded,
    Kernel,
}

#[derive(ClapArgs)]
pub struct CheckArgs {
    /// Scheduler files, or names of library schedulers
    #[arg(required = true, value_name = "SCHED")]
    pub schedulers: Vec<PathBuf>,
    #[command(flatten)]
    pub source: SourceArgs,
    /// Make this engine's refusal an error
    #[arg(long, value_enum)]
    pub engine: Option<EngineArg>,
    /// Say of each check that is left to run time why it could not be proved
    #[arg(short, long)]
    pub verbose: bool,
    /// One line of JSON per scheduler
    #[arg(long)]
    pub json: bool,
}

#[derive(ClapArgs)]
pub struct ExplainArgs {
    /// A code such as E0601
    pub code: Option<String>,
}

#[derive(ClapArgs)]
pub struct BuildArgs {
    /// A scheduler file, or the name of a library scheduler
    #[arg(value_name = "SCHED")]
    pub scheduler: PathBuf,
    #[command(flatten)]
    pub source: SourceArgs,
    /// The engine to compile for
    #[arg(long, value_enum, default_value = "threads")]
    pub engine: EngineArg,
    /// OUT.c is the C, OUT.so the compiled scheduler
    #[arg(short, long, value_name = "OUT")]
    pub output: PathBuf,
    /// Keep source lines, check containers and invariants at run time
    #[arg(long)]
    pub debug: bool,
}

#[derive(ClapArgs)]
pub struct DiagramArgs {
    /// A scheduler file, or the name of a library scheduler
    #[arg(value_name = "SCHED")]
    pub scheduler: PathBuf,
    #[command(flatten)]
    pub source: SourceArgs,
    /// OUT.dot, OUT.svg or OUT.png
    #[arg(short, long, value_name = "OUT")]
    pub output: PathBuf,
}

#[derive(ClapArgs)]
pub struct SimArgs {
    /// A scheduler file, or the name of a library scheduler
    #[arg(value_name = "SCHED")]
    pub scheduler: PathBuf,
    #[command(flatten)]
    pub source: SourceArgs,
    /// A workload: TOML (docs/workloads.md), or rt-app's JSON
    #[arg(long, value_name = "FILE")]
    pub workload: PathBuf,
    /// Number of CPUs, 1 to 1024 (default: the workload's)
    #[arg(long, value_name = "N")]
    pub cpus: Option<u32>,
    /// Seed of everything random
    #[arg(long, value_name = "S")]
    pub seed: Option<u64>,
    /// Set a tunable, such as period=10ms (may be repeated)
    #[arg(long = "set", value_name = "NAME=VALUE")]
    pub set: Vec<String>,
    /// Run invariants
    #[arg(long)]
    pub debug: bool,
    /// Print JSON instead of a table
    #[arg(long)]
    pub json: bool,
    /// Write a self-contained report with plots
    #[arg(long, value_name = "F.html")]
    pub report: Option<PathBuf>,
    /// Write a trace that Perfetto (ui.perfetto.dev) opens
    #[arg(long, value_name = "F.json")]
    pub trace: Option<PathBuf>,
}

#[derive(ClapArgs)]
pub struct LabArgs {
    #[command(subcommand)]
    pub command: LabCommand,
}

#[derive(Subcommand)]
pub enum LabCommand {
    /// List the experiments
    List,
    /// Run one
    Run(LabRunArgs),
}

#[derive(ClapArgs)]
pub struct LabRunArgs {
    /// The experiment
    pub name: String,
    /// Fewer repetitions and loads
    #[arg(long)]
    pub quick: bool,
    /// Print JSON instead of tables
    #[arg(long)]
    pub json: bool,
    /// Where the report goes (default: demo, beside the folder of this program)
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
}

#[derive(ClapArgs)]
pub struct SchedulersArgs {
    /// Print this scheduler's text
    pub name: Option<String>,
    /// As JSON
    #[arg(long)]
    pub json: bool,
}

impl From<EngineArg> for attune_language::event::Engine {
    fn from(engine: EngineArg) -> Self {
        match engine {
            EngineArg::Simulator => Self::Simulator,
            EngineArg::Threads => Self::Threads,
            EngineArg::Embedded => Self::Embedded,
            EngineArg::Kernel => Self::Kernel,
        }
    }
}
