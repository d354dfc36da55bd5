//! A desktop with real programs on it, a person at it, and other work beside: for each program how
//! late it runs after a wake-up, how long it stays and what it uses; for films what is lost; for
//! keys and for the pointer when the screen shows them.
//!
//! | file | what it does |
//! |---|---|
//! | here | starts all, makes one phase after the other, and puts the figures together |
//! | [`display`] | waits for windows |
//! | [`hands`] | press keys and choose windows |
//! | [`person`] | types, drags, and sees the screen |
//! | [`sound`] | plays through PipeWire, and says which buffers were late |
//! | [`favour`] | gives the programs more of the CPU: by policy, by weights, or by hand |
//! | [`activity`] | what each program did, as the kernel's tracer sees it |
//! | [`first_key`] | another desktop: a person who presses one key after a long while |
//! | [`session`] | another desktop: a person who turns to one program after another |
//!
//! A phase has so many processes that compute; the first can be the one to compare with. Times are
//! CLOCK_MONOTONIC's, in ns.

mod activity;
mod display;
mod favour;
pub mod first_key;
mod hands;
mod person;
pub mod session;
mod sound;

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use attune_linux::affinity::Cpus;
use attune_linux::procfs;
use serde_json::{Value, json};

use crate::child::Child;
use crate::films::{Shown, pictures, without_huge_pages};
use crate::running::{Running, numbered, serve, words};
use crate::tracer::{Tracer, Watch};
use crate::{clock, hogs, numbers};
pub use favour::Favour;
use favour::{Favoured, with_descendants};
use sound::Sound;

/// From a change of what runs to the begin of a phase: ratings move half of their way each second.
const SETTLE: Duration = Duration::from_secs(2);
/// From the Return key to a look whether its command runs.
const PRESSED: Duration = Duration::from_millis(500);
/// The name of processes that compute when nothing else does.
const FILLER: &str = "filler";

#[derive(clap::Args)]
pub struct Options {
    /// The X server
    #[arg(long, value_name = "PROGRAM ..", default_value = "Xvfb :9 -screen 0 1280x800x24 -ac")]
    server: String,
    /// A window manager
    #[arg(long, value_name = "PROGRAM ..")]
    manager: Option<String>,
    /// A program that a person types into, 8 keys a second
    #[arg(long, value_name = "PROGRAM ..")]
    typed: Option<String>,
    /// Part of the class of its window
    #[arg(long, value_name = "CLASS", default_value = "xterm")]
    class: String,
    /// After so many keys, 16 unless told, the person drags its window for a second; 0: types
    /// nothing (needs a window manager with which Alt and the first button move a window)
    #[arg(long, value_name = "KEYS", num_args = 0..=1, require_equals = true,
        default_missing_value = "16")]
    drag: Option<usize>,
    /// Silence is played through PipeWire, without real-time priority, with buffers of so many ms
    #[arg(long, value_name = "MS", value_parser = milliseconds)]
    sound: Option<Duration>,
    /// A film player; may be given several times
    #[arg(long = "player", value_name = "PROGRAM ..")]
    players: Vec<String>,
    /// Start so many of the first player; {} in its words is the number, from 1 on
    #[arg(long, value_name = "N", default_value_t = 1)]
    copies: usize,
    /// Where a player shows a picture, as in `films`
    #[arg(long, value_name = "WHERE", default_value = "libXext.so.6:XShmPutImage")]
    shown: Shown,
    /// Pictures a second of the films
    #[arg(long, value_name = "HZ", default_value_t = 25.0)]
    rate: f64,
    /// Processes that compute, in each phase; never fewer than in the one before
    #[arg(long, value_delimiter = ',', value_name = "N,..", default_value = "0,10")]
    hogs: Vec<usize>,
    /// In the first phase a process of class SCHED_IDLE computes on each CPU, for machines whose
    /// CPUs are slower while all of them are busy
    #[arg(long)]
    filled: bool,
    /// A program that runs from the second phase on
    #[arg(long, value_name = "PROGRAM ..")]
    beside: Option<String>,
    /// A command that the person starts in a terminal, which has the focus, when the second phase
    /// begins, and whose end the person waits for (needs a window manager)
    #[arg(long, value_name = "COMMAND")]
    awaited: Option<String>,
    /// For the programs to begin
    #[arg(long, value_name = "S", default_value = "4", value_parser = crate::seconds)]
    begin: Duration,
    /// Length of a phase
    #[arg(long, value_name = "S", default_value = "5", value_parser = crate::seconds)]
    seconds: Duration,
}

fn milliseconds(text: &str) -> Result<Duration, String> {
    let number: f64 = text.parse().map_err(|_| "a number of milliseconds".to_owned())?;
    crate::seconds(&(number / 1e3).to_string())
}

/// What is on the desktop. The fields end from the first to the last.
struct Desktop {
    display: String,
    person: Option<person::Person>,
    sound: Option<Sound>,
    players: Vec<Running>,
    typed: Option<Running>,
    manager: Option<Running>,
    favoured: Favoured,
    server: Running,
}

pub fn run(options: &Options, favour: Favour) -> Result<Value> {
    ensure!(options.hogs.is_sorted() && options.rate > 0.0, "hogs never go, and a film has a rate");
    without_huge_pages()?;
    let mut desktop = Desktop::start(options, favour)?;
    let mut hogs: Vec<Child> = vec![];
    let mut fillers = if options.filled { fill()? } else { vec![] };
    let (mut beside, mut awaited) = (None, None);
    let mut phases = vec![];
    for (number, count) in options.hogs.iter().enumerate() {
        while hogs.len() < *count {
            hogs.push(hogs::start(0)?);
            desktop.favoured.other(hogs.last().map_or(0, Child::pid), hogs.len())?;
        }
        if let Some(program) = options.beside.as_ref().filter(|_| number == 1) {
            let program = Running::start(&words(program), None)?;
            desktop.favoured.other(program.child.id(), 0)?;
            beside = Some(program);
        }
        if let Some(command) = options.awaited.as_ref().filter(|_| number == 1) {
            awaited = Some(desktop.start_awaited(command)?);
        }
        desktop.favoured.known(&desktop.own_processes())?;
        let mut figures = desktop.phase(options, &hogs, &fillers)?;
        fillers.clear();
        figures["hogs"] = json!(count);
        desktop.all_live(options, beside.iter_mut().chain(&mut awaited))?;
        phases.push(figures);
    }
    Ok(json!({ "phases": phases }))
}

/// Keeps each CPU busy when nothing else does.
fn fill() -> Result<Vec<Child>> {
    let cpus = Cpus::of_this_thread()?;
    cpus.iter().map(hogs::start_idle).collect()
}

impl Desktop {
    fn start(options: &Options, favour: Favour) -> Result<Desktop> {
        let (server, display) = serve(&options.server)?;
        let mut sound = options.sound.map(Sound::serve).transpose()?;
        let mut environment = vec![("DISPLAY", display.clone())];
        environment.extend(sound.iter().flat_map(Sound::environment));
        let start = |text: &String| Running::start_in(&words(text), &environment);
        let favoured = Favoured::start(favour, &environment)?;
        let manager = options.manager.as_ref().map(start).transpose()?;
        if manager.is_some() {
            display::wait_for_manager(&display)?;
        }
        let first = options.players.first().into_iter();
        let all = first
            .flat_map(|player| (1..=options.copies).map(|number| numbered(player, number)))
            .chain(options.players.iter().skip(1).cloned());
        let mut players = vec![];
        for player in all {
            if !players.is_empty() && manager.is_none() {
                // Without a window manager the window that comes last lies on top.
                display::wait_for_windows(&display, players.len())?;
            }
            players.push(start(&player)?);
        }
        // Last, so that a window manager puts it on top and gives it the focus.
        let typed = options.typed.as_ref().map(start).transpose()?;
        let person = typed
            .as_ref()
            .map(|_| person::Person::sit_down(&display, &options.class, options.drag));
        let person = person.transpose()?;
        sound.as_mut().map(Sound::play).transpose()?;
        thread::sleep(options.begin);
        Ok(Desktop { display, person, sound, players, typed, manager, favoured, server })
    }

    /// A terminal with the focus, in which the person has started a command by the Return key.
    fn start_awaited(&self, command: &str) -> Result<Running> {
        const CLASS: &str = "awaited";
        let words = ["xterm", "-name", CLASS, "-e", "sh", "-c"].map(str::to_owned);
        let words = [&words[..], &[format!("read line && {command}")]].concat();
        let mut terminal = Running::start(&words, Some(&self.display))?;
        let hands = hands::Hands::at(&self.display)?;
        hands.turn_to(hands.wait_for_window_of(&mut terminal, CLASS)?)?;
        // The terminal, its shell, and the command, which may take the shell's place. A key that
        // comes before the shell may be lost.
        display::until("the command in the terminal never begins", || {
            hands.key(hands::RETURN)?;
            thread::sleep(PRESSED);
            let all = with_descendants(terminal.child.id());
            let is_command = |it: &u32| !["xterm", "sh"].contains(&procfs::name(*it).as_str());
            Ok(all.len() > 2 || all.get(1).is_some_and(is_command))
        })?;
        Ok(terminal)
    }

    /// The programs on the desktop, the one that a person types into first.
    fn own_processes(&self) -> Vec<u32> {
        let programs = self.typed.iter().chain(&self.players).chain(&self.manager);
        let sound = self.sound.iter().flat_map(Sound::processes);
        let server = [self.server.child.id()];
        programs.map(|program| program.child.id()).chain(sound).chain(server).collect()
    }

    fn phase(&self, options: &Options, hogs: &[Child], fillers: &[Child]) -> Result<Value> {
        thread::sleep(SETTLE);
        let mut watched = vec![
            Watch::Event("sched/sched_waking".to_owned()),
            Watch::Event("sched/sched_switch".to_owned()),
        ];
        if !self.players.is_empty() {
            watched.push(options.shown.watch()?);
        }
        // Before: beginning to look takes the kernel a while.
        let tracer = Tracer::start(&watched)?;
        self.favoured.forget_ratings();
        let begin = clock::now() + 100_000_000;
        let within = begin..begin + options.seconds.as_nanos() as u64;
        clock::sleep_until(within.end);
        let trace = tracer.stop()?;
        let names = self.names(hogs, fillers);
        let mut programs = activity::by_program(&trace, &names, &within);
        let ratings = self.favoured.ratings();
        for (name, figures) in &mut programs {
            if let Some(ratings) = ratings.get(name) {
                figures["ratings"] = ratings.clone();
            }
        }
        let sum = |names: &[&str]| -> f64 {
            let of = |name: &&str| programs.get(*name)?["cpu_percent"].as_f64();
            names.iter().filter_map(of).sum()
        };
        let all: f64 =
            programs.values().filter_map(|program| program["cpu_percent"].as_f64()).sum();
        let screen = self.person.as_ref().map(|person| person.figures(&within));
        let sound = self.sound.as_ref().map(|sound| sound.figures(&trace, &within)).transpose()?;
        Ok(json!({
            "films": self.films(options, &trace, &within),
            "film_cpu_percent": sum(&[&self.player_name(), &self.server_name()]),
            "busy_percent": all - sum(&[FILLER]),
            "hogs_percent": sum(&["hog"]),
            "compile_percent": sum(&["cc", "cc1", "as", "attune-load"]),
            "programs": programs,
            "screen": screen,
            "sound": sound,
        }))
    }

    fn player_name(&self) -> String {
        self.players.first().map_or(String::new(), |player| procfs::name(player.child.id()))
    }

    fn server_name(&self) -> String {
        procfs::name(self.server.child.id())
    }

    /// The program of each thread that is there. All of ours that compute are `hog`, those that
    /// fill idle time [`FILLER`].
    fn names(&self, hogs: &[Child], fillers: &[Child]) -> HashMap<u32, String> {
        let special = |process: u32| {
            let is = |of: Option<u32>| of == Some(process);
            let is_among = |all: &[Child]| all.iter().any(|child| child.pid() == process);
            if is_among(hogs) {
                Some("hog")
            } else if is_among(fillers) {
                Some(FILLER)
            } else if is(self.person.as_ref().map(person::Person::pid)) {
                Some("person")
            } else if is(self.favoured.monitor()) {
                Some("monitor")
            } else {
                (process == std::process::id()).then_some("observer")
            }
        };
        let threads = procfs::processes().into_iter().flat_map(|process| {
            let name = special(process).map_or_else(|| procfs::name(process), str::to_owned);
            procfs::threads(process).into_iter().map(move |thread| (thread, name.clone()))
        });
        threads.collect()
    }

    /// For each player.
    fn films(&self, options: &Options, trace: &str, within: &Range<u64>) -> Vec<Value> {
        let by_process = pictures(trace, &options.shown);
        let seconds = (within.end - within.start) as f64 / 1e9;
        let film = |player: &Running| {
            let times = by_process.get(&player.child.id()).map_or(&[][..], Vec::as_slice);
            let shown: Vec<u64> =
                times.iter().copied().filter(|time| within.contains(time)).collect();
            let mut between: Vec<u64> = shown.windows(2).map(|pair| pair[1] - pair[0]).collect();
            let rate = shown.len() as f64 / seconds;
            json!({
                "frames_per_second": rate,
                "lost_percent": (100.0 * (1.0 - rate / options.rate)).max(0.0),
                "interval_ns": numbers::quantiles(&mut between),
            })
        };
        self.players.iter().map(film).collect()
    }

    /// Err: a program has ended, or did not come to life.
    fn all_live<'a>(
        &mut self,
        options: &Options,
        mut beside: impl Iterator<Item = &'a mut Running>,
    ) -> Result<()> {
        let programs = self.typed.iter_mut().chain(&mut self.players).chain(&mut self.manager);
        programs.chain([&mut self.server]).try_for_each(Running::lives)?;
        beside.try_for_each(Running::lives)?;
        self.sound.as_mut().map(Sound::lives).transpose()?;
        self.favoured.lives()?;
        let person = self.person.as_ref().map(person::Person::lives).transpose();
        person.with_context(|| format!("nobody types into {}", options.class))?;
        Ok(())
    }
}

/// A display where nothing happens, for a monitor beside another workload. None: nobody watches.
pub fn quiet(favour: Favour) -> Result<Option<(Favoured, Running)>> {
    if favour == Favour::Nobody {
        return Ok(None);
    }
    let (server, display) = serve("Xvfb :9 -screen 0 640x480x24 -nolisten tcp -ac")?;
    Ok(Some((Favoured::start(favour, &vec![("DISPLAY", display)])?, server)))
}

/// Figures by name.
type Figures = BTreeMap<String, Value>;
