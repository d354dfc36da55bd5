//! The words of the command line.

mod kernel;
mod rhythm;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};

pub use kernel::{HintArgs, RunArgs, SetArgs, TopArgs};
pub use rhythm::{BandwidthArgs, PeriodArgs, PeriodMethod, TraceArgs, TuneArgs};

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
    /// Find the periods of a recorded program
    #[command(
        after_help = "FILE holds an event a line: TIME [THREAD [KIND [NUMBER]]], TIME in seconds.\n\nExample: attune period player.txt --window 2 --json\n         attune period player.txt --method spectrum-2010 --plot spectrum.svg\n\nExit status: 0 whether or not there is a period, 2 when the file is no recording."
    )]
    Period(PeriodArgs),
    /// Let this machine's threads follow a scheduler, as long as a command runs or until Ctrl-C
    #[command(
        after_help = "Example: attune run edf -- ./player film.avi\n         attune run fair --others round_robin --weight 3:1 -- make -j8\n         attune run round_robin --all --set quantum=3ms --stats 1\n\nThe command and all that it starts follow SCHED, all other threads another scheduler, and the two share the CPUs by\nweight; what one of them does not use, the other one has. --all gives every thread to SCHED.\n\nExit status: the command's; 1 when the kernel has ended the scheduler."
    )]
    Run(RunArgs),
    /// Cooperative polling, for programs that know nothing of it
    Coop(CoopArgs),
    /// Tell the scheduler in the kernel something about a program that does not say it itself
    #[command(
        after_help = "Example: attune hint 1234 urgent=1\n         attune hint 1234/1240 deadline=40ms urgent=\n\nNAME is a thread import of the scheduler; an empty VALUE takes it back. The process must be yours.\n\nExit status: 0, 1 when the scheduler refuses it, 2 when none is there."
    )]
    Hint(HintArgs),
    /// Change tunables and global imports of the scheduler that runs in the kernel, or list them
    #[command(
        after_help = "Example: attune set                     (lists them with their values)\n         attune set period=10ms\n         attune set command.quantum=2ms others.period=30ms\n\nA time has a unit, a number has none. With two schedulers POLICY is a scheduler's name, or command or others; if it is\nnot said, the command's scheduler comes first. All settings are made or none, between two decisions of the scheduler.\nFor root and for the user who started the run.\n\nExit status: 0, 1 when the scheduler refuses it, 2 when none is there or the command is wrong."
    )]
    Set(SetArgs),
    /// Show the scheduler that runs in the kernel, each thread in its container and why, and what is reserved for tuned programs
    #[command(
        after_help = "Example: attune top\n         attune top --once\n         attune top --json | jq '.policies[0].containers[] | {name, size: (.threads | length)}'\n\nThe threads of a container stand in its order. All was true at one moment, between two decisions of the scheduler; names,\nstates (R S D ..) and times come from /proc just behind it. RUN and WAIT: on a CPU, and able to run without one; an\nattribute marked < is supplied from outside; PUT THERE BY is the line of the scheduler that moved the thread last.\nThe scheduler is for root and for the user who started the run to see, reservations (attune tune, attuned) for all.\nq or Ctrl-C leaves, arrows move.\n\nExit status: 0, 1 when the run refuses it or has ended, 2 when none is there."
    )]
    Top(TopArgs),
    /// The least bandwidth that tasks need, against the period of their server
    #[command(
        after_help = "Example: attune bandwidth --task 20,100 --to 200 --step 5\n         attune bandwidth --task 3,15 --task 5,20 --task 5,30 --plot bandwidth.svg\n\nTimes are in any one unit. Exit status: 0, or 2 when a task cannot be."
    )]
    Bandwidth(BandwidthArgs),
    /// Run an experiment and see whether what is claimed holds
    #[command(
        after_help = "Example: attune lab run webserver --quick\n         attune lab list\n\nExit status: 0 when every claim holds, 1 when one does not."
    )]
    Lab(LabArgs),
    /// Record what a program does: system calls, blocking and waking, CPU time
    #[command(
        after_help = "Example: attune trace -o player.txt --seconds 10 -- mplayer film.avi\n         attune trace -p 4711 -o player.txt --no-exits --call poll --call futex\n\nThe file has one event a line, TIME THREAD KIND [NUMBER]; docs/rhythm.md describes it, attune period reads it.\nWithout --seconds it goes on until the program ends or Ctrl-C. A command that still runs then is ended (SIGTERM).\n\nExit status: the command's if it ended by itself, else 0; 126 or 127 when it cannot be run."
    )]
    Trace(TraceArgs),
    /// Reserve CPU time for programs that run to a beat, by listening to them
    #[command(
        after_help = "Example: attune tune -- mplayer film.avi\n         attune tune --display --json -p 4711 -p 4712\n\nListens to the program's system calls, reserves CPU time for its threads in its beat (SCHED_DEADLINE),\nand steers the budgets by what is used. However it ends, every thread is scheduled as before. What happens is told on\nstandard error; with --json on standard output, a line each, and how all stands each second. Needs root.\n\nExit status: the command's if it ended by itself, else 0; 126 or 127 when it cannot be run."
    )]
    Tune(TuneArgs),
    /// What a tuner starts for itself: gives threads back if it is killed
    #[command(name = attune_supervisor::guardian::WORD, hide = true)]
    TunerGuardian { journal: PathBuf },
    /// Run a command in a virtual machine whose kernel has sched_ext
    #[command(
        args_conflicts_with_subcommands = true,
        after_help = "Example: attune vm setup\n         attune vm --cpus 2 -- sh -c 'uname -r; cat /sys/kernel/sched_ext/state'\n         attune vm --deterministic --pack data.txt -- ./my-program data.txt\n\nExit status: the command's; 124 after --timeout, 125 when the machine failed, 126 or 127 when the command\ncannot be run, 128 and a signal's number when the signal killed it."
    )]
    Vm(VmArgs),
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
    /// Let this machine's kernel verify them too (needs sched_ext and root); SCHED may be an object of `attune build` then
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
pub struct BuildArgs {
    /// A scheduler file, or the name of a library scheduler
    #[arg(value_name = "SCHED")]
    pub scheduler: PathBuf,
    #[command(flatten)]
    pub source: SourceArgs,
    /// The engine to compile for
    #[arg(long, value_enum, default_value = "threads")]
    pub engine: EngineArg,
    /// Kernel engine: a second scheduler, which all threads but a command's will follow
    #[arg(long, value_name = "SCHED")]
    pub others: Option<PathBuf>,
    /// OUT.c is the C, OUT.so the compiled scheduler; for the kernel engine OUT.bpf.c and OUT.bpf.o
    #[arg(short, long, value_name = "OUT")]
    pub output: PathBuf,
    /// Keep source lines, check containers and invariants at run time
    #[arg(long)]
    pub debug: bool,
    /// Kernel engine: the most CPUs that the object can run on
    #[arg(long, value_name = "N", default_value = "64", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub cpus: u32,
    /// Kernel engine: how the program's parts are ordered; plain if the kernel's compiler gives up on the usual
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
    /// Run one or several, and say whether their claims hold
    #[command(
        after_help = "Example: attune lab run switch-cost --quick\n         attune lab run 'coop-*' tune-load\n\nBefore the first is run, all are asked what they lack on this machine; if anything, nothing is run, unless --keep-going.\n\nExit status 0: every claim holds. 1: one does not, or an experiment could not be run."
    )]
    Run(LabRunArgs),
    /// Other people's sched_ext schedulers, which experiments compare with: list them, or build them
    #[command(
        after_help = "Example: tools/setup.sh peers       (Debian: installs what they are built with)\n         attune lab peers build bpfland\n\nThey are kept in ~/.cache/attune/peers (ATTUNE_PEERS_DIR). A first build takes minutes."
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

#[derive(ClapArgs)]
pub struct VmArgs {
    #[command(subcommand)]
    pub command: Option<VmCommand>,
    #[command(flatten)]
    pub run: VmRunArgs,
}

#[derive(Subcommand)]
pub enum VmCommand {
    /// Fetch a kernel and an emulator from Debian's archive, check them and keep them
    #[command(
        after_help = "Example: attune vm setup\n         attune vm setup --kernel /srv/linux-binary-7.2.12.deb#sha256=.. --kernel /srv/linux-base-7.2.12.deb\n\nEnvironment: ATTUNE_VM_DIR, ATTUNE_VM_KERNEL (separated by spaces), ATTUNE_VM_QEMU, ATTUNE_VM_VIRTIOFSD and\nATTUNE_VM_MIRROR stand for the options. The machine's own package sources are neither used nor changed."
    )]
    Setup(VmSetupArgs),
}

#[derive(ClapArgs)]
pub struct VmSetupArgs {
    /// Where it is kept (default: ~/.cache/attune/vm)
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// A kernel instead of Debian's newest: a package or image, a file or an address (may be repeated)
    #[arg(long, value_name = "FILE[#sha256=HASH]")]
    pub kernel: Vec<String>,
    /// This QEMU (10 or newer) instead of Debian's
    #[arg(long, value_name = "PROGRAM")]
    pub qemu: Option<PathBuf>,
    /// This virtiofsd instead of Debian's
    #[arg(long, value_name = "PROGRAM")]
    pub virtiofsd: Option<PathBuf>,
    /// Debian's archive (default: http://deb.debian.org/debian)
    #[arg(long, value_name = "ADDRESS")]
    pub mirror: Option<String>,
    /// Fetch all again, the newest, even if a set-up is there
    #[arg(long)]
    pub force: bool,
}

#[derive(ClapArgs)]
pub struct VmRunArgs {
    /// Number of CPUs, 1 to 64
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub cpus: u32,
    /// Memory in MiB
    #[arg(long, value_name = "M", default_value_t = 1024, value_parser = clap::value_parser!(u64).range(128..))]
    pub memory: u64,
    /// Virtual time, the same in each run: one instruction takes one nanosecond; only what is packed is there
    #[arg(long)]
    pub deterministic: bool,
    /// A file or folder to take along (may be repeated)
    #[arg(long, value_name = "FILE", requires = "deterministic")]
    pub pack: Vec<PathBuf>,
    /// Seed of what is random in a deterministic machine
    #[arg(long, value_name = "S", default_value_t = 1, requires = "deterministic")]
    pub seed: u64,
    /// Set a variable of the command's environment (may be repeated)
    #[arg(long, value_name = "NAME=VALUE")]
    pub env: Vec<String>,
    /// End the machine after this many seconds
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub timeout: Option<Duration>,
    /// Where the set-up is kept (default: ~/.cache/attune/vm)
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// The command and its arguments
    #[arg(last = true, value_name = "CMD", required = true)]
    pub words: Vec<OsString>,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<f64>().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    seconds.filter(|time| !time.is_zero()).ok_or_else(|| "a number of seconds, such as 90 or 1.5".to_owned())
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

#[derive(ClapArgs)]
pub struct CoopArgs {
    #[command(subcommand)]
    pub command: CoopCommand,
}

#[derive(Subcommand)]
pub enum CoopCommand {
    /// Run an event-driven program whose poll-type calls cooperate
    #[command(
        after_help = "Example: attune coop run -- Xvfb :9\n         attune coop run --transport shared -- mplayer -vo x11 film.avi\n\nWhere the main thread waits in poll, ppoll, select, pselect, epoll_wait, epoll_pwait or epoll_pwait2, it says when it must\nrun next, and others may run until then. Programs that it starts cooperate too.\n\nExit status: the command's; 127 and 126 when it cannot be started."
    )]
    Run(CoopRunArgs),
}

#[derive(ClapArgs)]
pub struct CoopRunArgs {
    /// none, kernel, shared or shared:DIRECTORY; without it what ATTUNE_COOP says, else kernel where a scheduler listens, else shared
    #[arg(long)]
    pub transport: Option<String>,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    pub words: Vec<OsString>,
}
