//! `attune-load`: what runs while a scheduler is measured. Each workload is a few processes that do
//! nothing random, and ends with one line of JSON. It needs no privilege, except for changing
//! policies and for loading a scheduler (`--scx`).
//!
//! Time is taken from CLOCK_MONOTONIC; in a deterministic machine (docs/vm.md) a nanosecond is an
//! instruction, so that times are counts of instructions.

mod account;
mod attributes;
mod cgroups;
mod child;
mod clients;
mod clock;
mod commands;
mod crowd;
mod desktop;
mod ext;
mod films;
mod flood;
mod forks;
mod hogs;
mod hotplug;
mod joins;
mod messages;
mod numbers;
mod periodic;
mod players;
mod random;
mod real_time;
mod relay;
mod requests;
mod reservation;
mod restless;
mod running;
mod served;
mod sleep;
mod slices;
mod switches;
mod tracer;
mod trust;
mod turns;
mod wakeups;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{self, ExitCode};
use std::time::Duration;

use anyhow::{Result, ensure};
use attune_coop::Wanted;
use clap::{Parser, Subcommand};
use serde_json::{Value, json};

use ext::Scheduler;
use tracer::lateness::Lateness;

/// Workloads for measuring CPU schedulers: each ends with a line of JSON
#[derive(Parser)]
#[command(
    version,
    after_help = "Example: attune-load hogs --count 4 --seconds 5\n         attune-load --scx \
        ./scx_bpfland wakeups --hogs 4"
)]
struct Args {
    /// Run it under this sched_ext scheduler: the program that loads it (needs root), with its
    /// arguments, in one word
    #[arg(long, value_name = "PROGRAM ..", default_value = "", hide_default_value = true)]
    scx: String,
    /// Class of the workload's processes
    #[arg(long, value_enum, default_value = "other")]
    class: attributes::SchedulingClass,
    /// Ask the fair class for slices of this many microseconds (100 to 100000)
    #[arg(long, value_name = "US")]
    slice: Option<u64>,
    /// How players cooperate: auto, none, kernel, shared, shared:DIRECTORY
    #[arg(long, value_name = "TRANSPORT", default_value = "auto")]
    coop: Wanted,
    /// Say lateness also as the kernel's tracer sees it, in `seen` (needs root; its work is in the
    /// other figures)
    #[arg(long)]
    traced: bool,
    /// What gives a person's programs more of the CPU; `desktop` has such a person
    #[arg(long, value_enum, default_value = "nobody")]
    favour: desktop::Favour,
    #[command(subcommand)]
    workload: Workload,
}

#[derive(Subcommand)]
enum Workload {
    /// Two processes take turns: cost of a switch through a pipe
    PingPong {
        /// Turns that count, after a tenth as many that do not
        #[arg(long, default_value_t = 20_000)]
        turns: u32,
        /// Each in a cgroup of its own, so many levels deep (needs root)
        #[arg(long, default_value_t = 0)]
        depth: usize,
    },
    /// Programs of two users: what those of one take from those of the other (needs root)
    Trust {
        /// Each in a scene of its own
        #[arg(long = "attack", value_enum, required = true)]
        attacks: Vec<trust::Attack>,
        #[arg(long, default_value_t = 1)]
        attackers: usize,
        #[arg(long, value_name = "S", default_value = "2", value_parser = seconds)]
        seconds: Duration,
    },
    /// Two processes yield to each other: cost of a switch through sched_yield
    Yields {
        #[arg(long, default_value_t = 20_000)]
        turns: u32,
    },
    /// Processes that compute: how evenly the CPU is shared
    Hogs {
        #[arg(long, default_value_t = 4)]
        count: usize,
        #[arg(long, value_name = "S", default_value = "5", value_parser = seconds)]
        seconds: Duration,
        /// Nice values in turn, such as 0,5
        #[arg(long, value_delimiter = ',', allow_hyphen_values = true, default_value = "0")]
        nice: Vec<i32>,
    },
    /// Processes that compute in cgroups: whether weights and quotas count (needs root)
    Cgroups {
        /// PATH=WEIGHT:PROCESSES[:PERCENT], such as a/x=100:3, or b=100:3:20 for a fifth of a CPU
        /// at most
        #[arg(required = true)]
        groups: Vec<cgroups::Group>,
        #[arg(long, value_name = "S", default_value = "5", value_parser = seconds)]
        seconds: Duration,
    },
    /// Crowds of threads with random affinities, nice values and classes: how long one waits (needs
    /// root)
    Crowd {
        #[arg(long, default_value_t = 1)]
        mixes: u64,
        /// The most threads of a mix
        #[arg(long, default_value_t = 5000)]
        most: usize,
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// A thread beside n others is to wait no longer than this ..
        #[arg(long, value_name = "US")]
        fixed_us: u64,
        /// .. and n times this
        #[arg(long, value_name = "US")]
        per_thread_us: u64,
    },
    /// The last CPU goes and comes under threads that compute or sleep: how soon all go on (needs
    /// root)
    Hotplug {
        /// It goes, then comes, and so on
        #[arg(long, default_value_t = 10)]
        changes: u32,
        #[arg(long, default_value_t = 200)]
        threads: usize,
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
    /// The machine goes to sleep, as far as the kernel's tests of sleep take it, under threads that
    /// compute or sleep: how soon all go on (needs root and /sys/power/pm_test)
    Sleep {
        /// Each way of sleeping in turn; there are eight
        #[arg(long, default_value_t = 8)]
        sleeps: usize,
        #[arg(long, default_value_t = 200)]
        threads: usize,
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
    /// Runs of other policies that join one that has the machine, at random: the parts of three,
    /// and whether each run ends with its command's status (needs root, two CPUs, and `attune`
    /// beside this program)
    Joins {
        #[arg(long, default_value_t = 10)]
        joins: usize,
        /// How long parts are measured
        #[arg(long, value_name = "S", default_value = "10", value_parser = seconds)]
        seconds: Duration,
        /// [default: another one each time]
        #[arg(long)]
        seed: Option<u64>,
    },
    /// Threads that wake each other, end and start others, while their affinity, class and cpuset
    /// change at random: whether each goes on, where it may (needs root)
    Restless {
        #[arg(long, default_value_t = 10_000)]
        changes: u64,
        #[arg(long, default_value_t = 24)]
        threads: usize,
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
    /// Processes that supply values to the scheduler, and hints for as many threads and processes
    Clients {
        #[arg(long, default_value_t = 1000)]
        count: u64,
    },
    /// A program that registers beside programs of other users, which first compute and then flood
    /// the scheduler's socket: how soon it is heard, and root answered (needs root)
    Flood {
        #[arg(long, default_value_t = 4)]
        users: u32,
        /// Processes of each user
        #[arg(long, default_value_t = 4)]
        processes: usize,
        /// Further ones of each user, which have values as long as there is a place
        #[arg(long, default_value_t = 0)]
        clients: u64,
        /// The flood comes first if it is odd
        #[arg(long, default_value_t = 0)]
        seed: u64,
    },
    /// A process that wakes up periodically beside some that compute: how late it is
    Wakeups {
        #[arg(long, default_value_t = 4)]
        hogs: usize,
        #[arg(long, value_name = "US", default_value_t = 10_000)]
        period: u64,
        /// Computing after each wake-up, in microseconds
        #[arg(long, value_name = "US", default_value_t = 100)]
        work: u64,
        #[arg(long, value_name = "S", default_value = "5", value_parser = seconds)]
        seconds: Duration,
    },
    /// Processes that compute: how long each stays on the CPU before another runs
    Slices {
        #[arg(long, default_value_t = 3)]
        count: usize,
        #[arg(long, value_name = "S", default_value = "5", value_parser = seconds)]
        seconds: Duration,
    },
    /// Periodic processes beside some that compute: lateness, responses, deadlines missed
    Periodic {
        /// Period, work, and what is reserved for it in each period, in microseconds (may be
        /// repeated). Reserved by SCHED_DEADLINE with --class deadline (needs root), else by the
        /// scheduler that is there, if it has such values; otherwise by nobody
        #[arg(long = "task", value_name = "PERIOD,WORK[,BUDGET]", default_value = "10000,1000")]
        tasks: Vec<periodic::Task>,
        #[arg(long, default_value_t = 2)]
        hogs: usize,
        #[arg(long, value_name = "S", default_value = "5", value_parser = seconds)]
        seconds: Duration,
    },
    /// A messenger and workers, as in schbench: how late a worker runs that was woken for a request
    Requests {
        #[arg(long, default_value_t = 4)]
        workers: usize,
        #[arg(long, default_value_t = 0)]
        hogs: usize,
        /// Computing for a request, in microseconds
        #[arg(long, value_name = "US", default_value_t = 200)]
        work: u64,
        #[arg(long, value_name = "S", default_value = "5", value_parser = seconds)]
        seconds: Duration,
    },
    /// Periodic real-time tasks that take a share of every CPU (needs root)
    RealTime {
        #[arg(long, value_enum, default_value = "fifo")]
        class: real_time::Class,
        /// Per cent of every CPU, 0 to 90
        #[arg(long, value_name = "PERCENT", default_value_t = 40.0)]
        share: f64,
        #[arg(long, value_name = "S", default_value = "5", value_parser = seconds)]
        seconds: Duration,
    },
    /// Adaptive players with timers and best-effort work, cooperating or not: how late, work done,
    /// switches
    Players {
        #[arg(long, default_value_t = 8)]
        count: usize,
        #[arg(long, default_value_t = 0)]
        hogs: usize,
        /// Group of all players; 0: each is alone
        #[arg(long, default_value_t = 0)]
        group: u32,
        /// Each player in a group of its own, counted from --group on
        #[arg(long)]
        apart: bool,
        /// The longest callback, in microseconds
        #[arg(long, value_name = "US", default_value_t = 200)]
        unit: u64,
        /// Frames of one to four callbacks, in turn by player
        #[arg(long)]
        uneven: bool,
        /// The last player goes on for up to 10 ms after one callback in a hundred
        #[arg(long)]
        misbehave: bool,
        /// By what players know that a timer is due; all but the first say nothing to anybody
        #[arg(long, value_enum, default_value = "events")]
        timers: players::Timers,
        /// All else keeps the CPUs so busy that each is N times slower: periods are N times longer,
        /// and how late timers are is divided by N
        #[arg(long, value_name = "N", default_value_t = 1)]
        slower: u64,
        #[arg(long, value_name = "S", default_value = "5", value_parser = seconds)]
        seconds: Duration,
    },
    /// Film players, programs of yours: how often and how evenly they show pictures (needs root)
    Films {
        #[arg(long, default_value_t = 1)]
        count: usize,
        #[arg(long, default_value_t = 0)]
        hogs: usize,
        /// An X server to start for them, such as 'Xvfb :9'; 'Xvfb :9{}' is one for each, {} being
        /// the player's number
        #[arg(long, value_name = "PROGRAM ..", default_value = "", hide_default_value = true)]
        server: String,
        /// Another program to run beside them
        #[arg(long, value_name = "PROGRAM ..", default_value = "", hide_default_value = true)]
        beside: String,
        /// Where a picture is shown: LIBRARY:FUNCTION, called by players, or server:CALL, a system
        /// call of the X server
        #[arg(long, value_name = "WHERE")]
        shown: films::Shown,
        /// Pictures a second of the films
        #[arg(long, value_name = "HZ", default_value_t = 25.0)]
        rate: f64,
        /// For the players to begin
        #[arg(long, value_name = "S", default_value = "5", value_parser = seconds)]
        begin: Duration,
        #[arg(long, value_name = "S", default_value = "5", value_parser = seconds)]
        seconds: Duration,
        /// The player; {} in its words is its number, from 1 on
        #[arg(last = true, required = true)]
        player: Vec<String>,
    },
    /// A desktop: an X server, programs on it, and a person at it, beside processes that compute:
    /// how late each program runs, pictures lost, how soon a key is on the screen (needs root)
    Desktop(desktop::Options),
    /// A person who turns to one program on a desktop after another: which of them the monitor
    /// rates when the person deals with them, and when not (needs root and --favour ratings)
    Session(desktop::session::Options),
    /// A person who presses one key after a long while: how soon the editor behind the terminal
    /// has a rating (needs root and --favour ratings)
    FirstKey(desktop::first_key::Options),
    /// Processes that are made and end at once: cost of each
    Forks {
        #[arg(long, default_value_t = 2_000)]
        count: u32,
        /// So many live at a time
        #[arg(long, default_value_t = 8)]
        at_once: u32,
    },
    /// Compilations of a C text with the machine's cc: cost of each
    Compile {
        #[arg(long, default_value_t = 6)]
        count: u32,
        /// So many at a time
        #[arg(long, default_value_t = 3)]
        at_once: u32,
    },
    /// A program of yours, such as hackbench: time of each run
    Command {
        #[arg(long, default_value_t = 1)]
        count: u32,
        /// So many at a time
        #[arg(long, default_value_t = 1)]
        at_once: u32,
        #[arg(last = true, required = true)]
        words: Vec<OsString>,
    },
    /// A server and its clients, programs of yours: the figures that the clients print
    Served {
        /// The server
        #[arg(long, value_name = "PROGRAM ..")]
        server: String,
        /// The Unix socket at which it listens
        #[arg(long, value_name = "PATH")]
        socket: PathBuf,
        /// The clients; they end with a line of JSON as this program does
        #[arg(last = true, required = true)]
        clients: Vec<String>,
    },
    /// Groups of senders and receivers on sockets, as in hackbench: cost of a message
    Messages {
        #[arg(long, default_value_t = 2)]
        groups: usize,
        /// Senders in a group, and as many receivers
        #[arg(long, default_value_t = 8)]
        size: usize,
        /// That each sender sends to each receiver
        #[arg(long, default_value_t = 50)]
        messages: u32,
    },
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds =
        text.parse::<f64>().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    seconds
        .filter(|time| !time.is_zero())
        .ok_or_else(|| "a number of seconds, such as 5 or 0.5".to_owned())
}

fn main() -> ExitCode {
    let args = Args::parse();
    match measure(&args) {
        Ok(result) => {
            println!("{result}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("attune-load: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// The workload's result, with the scheduler that was there from its beginning to its end. Err: it
/// could not be run, or the scheduler went away: then the figures would be another's.
fn measure(args: &Args) -> Result<Value> {
    let deadline = args.class == attributes::SchedulingClass::Deadline;
    let reserves = matches!(args.workload, Workload::Players { .. } | Workload::Periodic { .. });
    ensure!(reserves || !deadline, "--class deadline is for players and periodic processes alone");
    let scheduler = Scheduler::start(&args.scx)?;
    let before = ext::current();
    attributes::apply(args.class, args.slice.map(Duration::from_micros))?;
    let watching = match &args.workload {
        Workload::Desktop(_) | Workload::Session(_) | Workload::FirstKey(_) => None,
        _ => desktop::quiet(args.favour)?,
    };
    let tracer = args.traced.then(Lateness::watch).transpose()?;
    let mut figures = match &args.workload {
        Workload::PingPong { turns, depth } => switches::ping_pong(*turns, *depth),
        Workload::Yields { turns } => switches::yields(*turns),
        Workload::Hogs { count, seconds, nice } => hogs::run(*count, *seconds, nice),
        Workload::Cgroups { groups, seconds } => cgroups::run(groups, *seconds),
        Workload::Crowd { mixes, most, seed, fixed_us, per_thread_us } => {
            let (fixed, per_thread) =
                (Duration::from_micros(*fixed_us), Duration::from_micros(*per_thread_us));
            crowd::run(*mixes, *most, *seed, crowd::Bound { fixed, per_thread })
        }
        Workload::Hotplug { changes, threads, seed } => hotplug::run(*changes, *threads, *seed),
        Workload::Sleep { sleeps, threads, seed } => sleep::run(*sleeps, *threads, *seed),
        Workload::Restless { changes, threads, seed } => restless::run(*changes, *threads, *seed),
        Workload::Joins { joins, seconds, seed } => joins::run(*joins, *seconds, *seed),
        Workload::Clients { count } => clients::run(*count),
        Workload::Flood { users, processes, clients, seed } => {
            flood::run(*users, *processes, *clients, seed % 2 == 1)
        }
        Workload::Wakeups { hogs, period, work, seconds } => wakeups::run(
            *hogs,
            Duration::from_micros(*period),
            Duration::from_micros(*work),
            *seconds,
        ),
        Workload::RealTime { class, share, seconds } => {
            real_time::run(*class, share / 100.0, *seconds)
        }
        Workload::Players {
            count,
            hogs,
            group,
            apart,
            unit,
            uneven,
            misbehave,
            timers,
            slower,
            seconds,
        } => players::run(&players::Options {
            count: *count,
            hogs: *hogs,
            transport: args.coop.clone(),
            group: *group,
            apart: *apart,
            unit: *unit,
            uneven: *uneven,
            misbehave: *misbehave,
            timers: *timers,
            slower: *slower,
            reserved: deadline,
            time: *seconds,
        }),
        Workload::Films { count, hogs, server, beside, shown, rate, begin, seconds, player } => {
            films::run(&films::Options {
                count: *count,
                hogs: *hogs,
                server: server.clone(),
                beside: beside.clone(),
                shown: shown.clone(),
                rate: *rate,
                begin: *begin,
                time: *seconds,
                player: player.clone(),
            })
        }
        Workload::Desktop(options) => desktop::run(options, args.favour),
        Workload::Session(options) => desktop::session::run(options, args.favour),
        Workload::FirstKey(options) => desktop::first_key::run(options, args.favour),
        Workload::Slices { count, seconds } => slices::run(*count, *seconds),
        Workload::Periodic { tasks, hogs, seconds } => {
            periodic::run(tasks, *hogs, deadline, *seconds)
        }
        Workload::Requests { workers, hogs, work, seconds } => {
            requests::run(*workers, *hogs, Duration::from_micros(*work), *seconds)
        }
        Workload::Compile { count, at_once } => commands::compile(*count, *at_once),
        Workload::Command { count, at_once, words } => commands::run(*count, *at_once, |_| {
            let mut command = process::Command::new(&words[0]);
            command.args(&words[1..]);
            command
        }),
        Workload::Served { server, socket, clients } => served::run(server, socket, clients),
        Workload::Forks { count, at_once } => forks::run(*count, *at_once),
        Workload::Trust { attacks, attackers, seconds } => {
            trust::run(attacks, *attackers, *seconds)
        }
        Workload::Messages { groups, size, messages } => messages::run(*groups, *size, *messages),
    }?;
    drop(watching);
    if let Some(tracer) = tracer {
        let time = |name: &str, default| figures[name].as_u64().unwrap_or(default);
        figures["seen"] = tracer.seen(time("from_ns", 0)..time("to_ns", u64::MAX))?;
    }
    scheduler.still_there(&before)?;
    Ok(json!({ "scheduler": before, "figures": figures }))
}
