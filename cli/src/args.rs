//! The words of the command line.

mod focus;
mod help;
mod kernel;
mod rhythm;
mod vm;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};

pub use focus::{FocusArgs, FocusCommand, MonitorArgs};
pub use kernel::{HintArgs, RunArgs, SetArgs, StatusArgs, TopArgs};
pub use rhythm::{BandwidthArgs, PeriodArgs, PeriodMethod, TraceArgs, TuneArgs};
pub use vm::{VmArgs, VmCommand, VmRunArgs, VmSetupArgs};

/// Application-aware CPU scheduling: schedulers as a page of text, checked, simulated, compiled.
#[derive(Parser)]
#[command(
    name = "attune",
    version,
    about,
    after_help = help::START
)]
pub struct Args {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand)]
pub enum Command {
    /// Check schedulers: names, types, and that no thread can be lost
    #[command(
        after_help = help::CHECK
    )]
    Check(CheckArgs),
    /// Explain a diagnostic's code, with a wrong and a right example
    #[command(
        after_help = help::EXPLAIN
    )]
    Explain(ExplainArgs),
    /// Compile a scheduler for an engine
    #[command(after_help = help::BUILD)]
    Build(BuildArgs),
    /// Keep what the nodes of a cluster on this machine share, and run its master
    #[command(after_help = help::MANAGER)]
    Manager(ManagerArgs),
    /// Join a cluster on behalf of a device, whose firmware was built with --node FAMILY
    #[command(after_help = help::GATEWAY)]
    Gateway(GatewayArgs),
    /// Draw a scheduler's containers and the transfers between them
    #[command(after_help = help::DIAGRAM)]
    Diagram(DiagramArgs),
    /// Run a scheduler in the simulator
    #[command(
        after_help = help::SIM
    )]
    Sim(SimArgs),
    /// Find the periods of a recorded program
    #[command(after_help = help::PERIOD)]
    Period(PeriodArgs),
    /// Let this machine's threads follow a scheduler, as long as a command runs or until Ctrl-C
    #[command(
        after_help = help::RUN
    )]
    Run(RunArgs),
    /// Cooperative polling, for programs that know nothing of it
    Coop(CoopArgs),
    /// Tell a scheduler something about a program that does not say it itself
    #[command(after_help = help::HINT)]
    Hint(HintArgs),
    /// Change tunables and global imports of the scheduler that runs, or list them
    #[command(
        after_help = help::SET
    )]
    Set(SetArgs),
    /// Show the scheduler that runs, each thread in its container and why, and what is reserved for
    /// tuned programs
    #[command(
        after_help = help::TOP
    )]
    Top(TopArgs),
    /// Say which scheduler this machine has, since when, and why the last one ended
    #[command(after_help = help::STATUS)]
    Status(StatusArgs),
    /// The least bandwidth that tasks need, against the period of their server
    #[command(
        after_help = help::BANDWIDTH
    )]
    Bandwidth(BandwidthArgs),
    /// Run an experiment and see whether what is claimed holds
    #[command(
        after_help = help::LAB
    )]
    Lab(LabArgs),
    /// Record what a program does: system calls, blocking and waking, CPU time
    #[command(
        after_help = help::TRACE
    )]
    Trace(TraceArgs),
    /// Reserve CPU time for programs that run to a beat, by listening to them
    #[command(
        after_help = help::TUNE
    )]
    Tune(TuneArgs),
    /// Rate programs by what the person at the display deals with, and say why
    #[command(after_help = help::FOCUS)]
    Focus(FocusArgs),
    /// What a tuner starts for itself: gives threads back if it is killed
    #[command(name = attune_daemon::guardian::WORD, hide = true)]
    TunerGuardian { journal: PathBuf },
    /// Run a command in a virtual machine whose kernel has sched_ext
    #[command(
        args_conflicts_with_subcommands = true,
        after_help = help::VM
    )]
    Vm(VmArgs),
    /// List the schedulers of the standard library
    #[command(
        after_help = help::SCHEDULERS
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

impl SourceArgs {
    /// For the other threads' scheduler: aspects are the command's.
    pub fn without_aspects(&self) -> SourceArgs {
        SourceArgs { include: self.include.clone(), aspects: Vec::new() }
    }
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
    /// Make this engine's refusal an error; with `embedded` also tell how many steps and bytes of
    /// stack each handler takes at most
    #[arg(long, value_enum)]
    pub engine: Option<EngineArg>,
    /// With `--engine embedded`: the most threads that live at a time, ATTUNE_THREADS
    #[arg(long, value_name = "N", default_value_t = 8)]
    pub threads: u32,
    /// Let this machine's kernel verify them too (needs sched_ext and root); SCHED may be an object
    /// of `attune build` then
    #[arg(long)]
    pub load: bool,
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
pub struct ManagerArgs {
    /// The file of a distributed scheduler
    #[arg(value_name = "MASTER")]
    pub scheduler: PathBuf,
    #[command(flatten)]
    pub source: SourceArgs,
    /// The cluster's name, which nodes say as ATTUNE_CLUSTER; without it, the master's. With a
    /// slash in it, the path of the socket
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// The first value of a shared variable, instead of the text's; several times for several
    #[arg(long, value_name = "NAME=VALUE")]
    pub set: Vec<String>,
    #[command(flatten)]
    pub machines: MachinesArgs,
    /// Say what happens as lines of JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(ClapArgs)]
pub struct GatewayArgs {
    /// The file of a distributed scheduler
    #[arg(value_name = "MASTER")]
    pub scheduler: PathBuf,
    #[command(flatten)]
    pub source: SourceArgs,
    /// The family that the firmware was built for
    #[arg(long, value_name = "FAMILY")]
    pub node: String,
    /// The cluster's name, as its manager has it; without it, the master's
    #[arg(long, value_name = "NAME")]
    pub cluster: Option<String>,
    /// The device's serial line or another file of bytes; -: standard input and output
    #[arg(value_name = "LINK")]
    pub link: PathBuf,
}

/// How a manager reaches those of other machines.
#[derive(ClapArgs)]
pub struct MachinesArgs {
    /// Share the cluster with the managers of other machines through the etcd at these addresses,
    /// such as https://db1:2379,https://db2:2379
    #[arg(long, value_name = "URL", value_delimiter = ',')]
    pub at: Vec<String>,
    /// The authority that signed etcd's certificate (PEM); without it, those of the system
    #[arg(long, value_name = "FILE", requires = "at")]
    pub ca: Option<PathBuf>,
    /// The manager's own certificate (PEM)
    #[arg(long, value_name = "FILE", requires_all = ["at", "key"])]
    pub cert: Option<PathBuf>,
    /// The key of the manager's certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub key: Option<PathBuf>,
    /// The manager's name in etcd
    #[arg(long, value_name = "NAME", requires_all = ["at", "password_file"])]
    pub user: Option<String>,
    /// The first line of this file is its password
    #[arg(long, value_name = "FILE", requires = "user")]
    pub password_file: Option<PathBuf>,
}

#[derive(ClapArgs)]
pub struct BuildArgs {
    /// A scheduler file, or the name of a library scheduler
    #[arg(value_name = "SCHED")]
    pub scheduler: PathBuf,
    /// SCHED is a master: compile the node scheduler of this family
    #[arg(long, value_name = "FAMILY")]
    pub node: Option<String>,
    /// A shared variable that the node's program reads and writes at the owner, and waits for;
    /// several times for several
    #[arg(long, value_name = "VARIABLE", requires = "node")]
    pub request: Vec<String>,
    #[command(flatten)]
    pub source: SourceArgs,
    /// The engine to compile for
    #[arg(long, value_enum, default_value = "threads")]
    pub engine: EngineArg,
    /// Kernel engine: a second scheduler, which all threads but a command's will follow
    #[arg(long, value_name = "SCHED")]
    pub others: Option<PathBuf>,
    /// OUT.c is the C, OUT.so the compiled scheduler; for the kernel engine OUT.bpf.c and
    /// OUT.bpf.o; for the embedded engine a folder for attune.c and attune.h
    #[arg(short, long, value_name = "OUT")]
    pub output: PathBuf,
    /// Keep source lines, check containers and invariants at run time
    #[arg(long)]
    pub debug: bool,
    /// Kernel engine: the most CPUs that the object can run on
    #[arg(
        long,
        value_name = "N",
        default_value = "64",
        value_parser = clap::value_parser!(u32).range(1..=4096)
    )]
    pub cpus: u32,
    /// Kernel engine: the instances of the scheduler that the object has, as many as `attune run
    /// --per` asks for where it will run
    #[arg(
        long,
        value_name = "N",
        default_value = "1",
        value_parser = clap::value_parser!(u32).range(1..=4096)
    )]
    pub instances: u32,
    /// Kernel engine: how the program's parts are ordered; plain if the kernel's compiler gives up
    /// on the usual
    #[arg(long, value_enum, default_value = "usual")]
    pub layout: LayoutArg,
}

#[derive(Clone, Copy, ValueEnum)]
pub enum LayoutArg {
    Usual,
    Plain,
}

impl From<LayoutArg> for attune_kernel::Layout {
    fn from(layout: LayoutArg) -> Self {
        match layout {
            LayoutArg::Usual => Self::Usual,
            LayoutArg::Plain => Self::Plain,
        }
    }
}

#[derive(ClapArgs)]
pub struct DiagramArgs {
    /// A scheduler file, or the name of a library scheduler
    #[arg(value_name = "SCHED")]
    pub scheduler: PathBuf,
    #[command(flatten)]
    pub source: SourceArgs,
    /// Show under which conditions threads move
    #[arg(long)]
    pub conditions: bool,
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
    /// A workload: TOML, rt-app's JSON, or the name of one that is built in, such as players
    #[arg(long, value_name = "FILE")]
    pub workload: PathBuf,
    /// Number of CPUs, 1 to 1024 (default: the workload's)
    #[arg(long, value_name = "N")]
    pub cpus: Option<u32>,
    /// What one instance of the scheduler schedules; a scheduler with an `arrives` of its own gets
    /// one for each cache unless this says otherwise
    #[arg(long, value_enum)]
    pub per: Option<PerArg>,
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
    #[arg(long, value_name = "F.pftrace")]
    pub trace: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PerArg {
    Machine,
    Cache,
    Cpu,
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
    /// Run one or several, and say whether their claims hold
    #[command(after_help = help::LAB_RUN)]
    Run(LabRunArgs),
    /// The web server's pairs inside a virtual machine; the experiment starts it
    #[command(hide = true)]
    Pairs {
        fifo: PathBuf,
        shortest_reply: PathBuf,
        #[arg(long)]
        quick: bool,
    },
    /// Other people's sched_ext schedulers, which experiments compare with: list them, or build
    /// them
    #[command(
        after_help = help::PEERS
    )]
    Peers {
        #[command(subcommand)]
        command: Option<PeersCommand>,
    },
}

#[derive(Subcommand)]
pub enum PeersCommand {
    /// List them, and whether they are built (the default)
    List,
    /// Build them
    Build {
        /// Which (default: all)
        names: Vec<String>,
    },
}

#[derive(ClapArgs)]
pub struct LabRunArgs {
    /// The experiments, by name or pattern
    #[arg(required = true, value_name = "NAME")]
    pub names: Vec<String>,
    /// Fewer repetitions and loads
    #[arg(long)]
    pub quick: bool,
    /// Measure again what was measured before with all the same inputs
    #[arg(long)]
    pub fresh: bool,
    /// Run the others where one lacks something
    #[arg(long)]
    pub keep_going: bool,
    /// Print JSON instead of tables, a line for each experiment
    #[arg(long)]
    pub json: bool,
    /// Where the report goes (default: demo, beside the folder of this program)
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds =
        text.parse::<f64>().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    seconds
        .filter(|time| !time.is_zero())
        .ok_or_else(|| "a number of seconds, such as 90 or 1.5".to_owned())
}

#[derive(ClapArgs)]
pub struct SchedulersArgs {
    /// Print this scheduler's text
    pub name: Option<String>,
    /// As JSON
    #[arg(long)]
    pub json: bool,
}

impl From<EngineArg> for attune_language::engine::Engine {
    fn from(engine: EngineArg) -> Self {
        match engine {
            EngineArg::Simulator => Self::Simulator,
            EngineArg::Threads => Self::Threads,
            EngineArg::Embedded => Self::Embedded,
            EngineArg::Kernel => Self::Kernel,
        }
    }
}

#[derive(ClapArgs)]
pub struct CoopArgs {
    #[command(subcommand)]
    pub command: CoopCommand,
}

#[derive(Subcommand)]
pub enum CoopCommand {
    /// Run an event-driven program whose poll-type calls cooperate
    #[command(
        after_help = help::COOP_RUN
    )]
    Run(CoopRunArgs),
    /// Tell whether programs that start now cooperate, and through what
    #[command(after_help = help::COOP_STATUS)]
    Status(CoopStatusArgs),
}

#[derive(ClapArgs)]
pub struct CoopRunArgs {
    /// none, kernel, shared or shared:DIRECTORY; without it what ATTUNE_COOP says, else kernel
    /// where a scheduler listens, else shared
    #[arg(long)]
    pub transport: Option<String>,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    pub words: Vec<OsString>,
}

#[derive(ClapArgs)]
pub struct CoopStatusArgs {
    /// auto, none, kernel, shared or shared:DIRECTORY, as for `attune coop run`
    #[arg(long)]
    pub transport: Option<String>,
}
