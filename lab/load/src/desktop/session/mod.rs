//! A person who turns to one program after another, types into it or watches it, and
//! hears sound now and then: does the monitor rate the right processes?
//!
//! | file | what it does |
//! |---|---|
//! | here | starts the programs, and follows the script |
//! | [`programs`] | which programs there are |
//! | [`tally`] | counts what was rated when it should be, and when it should not |
//!
//! The monitor's lines are the clock: it says one each second, and the person turns to another
//! program just after one. So the next line tells what was rated within a second. The server,
//! the window manager and the sound server serve all, and are not judged. The program that the
//! person turned to may have processes that do nothing in that second, as a browser does: these
//! are not judged either.

mod programs;
mod tally;

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use attune_linux::scheduling::Attributes;
use serde_json::Value;

use super::display;
use super::favour::{Favour, Favoured, with_descendants};
use super::hands::Hands;
use super::sound::Sound;
use crate::account::turns_of;
use crate::child::Child;
use crate::films::without_huge_pages;
use crate::random::Random;
use crate::running::{Folder, Running, serve, words};
use crate::{clock, hogs};
use programs::{Attention, COMPILE, Program, WINDOWS};
use tally::{Second, Tally};

/// So large that a film or a game in it leaves something of a small CPU.
const SERVER: &str = "Xvfb :9 -screen 0 480x360x24 -nolisten tcp -ac";
/// 8 keys a second.
const PERIOD: u64 = 125_000_000;
/// The length of a buffer of sound.
const BUFFER: Duration = Duration::from_millis(20);
/// Seconds for which the person stays with a program, or sound is on or off.
const SHORTEST: u64 = 5;
const LONGEST: u64 = 15;
/// The monitor says a line each second.
const PATIENCE: Duration = Duration::from_secs(30);

#[derive(clap::Args)]
pub struct Options {
    /// A film of 480x270 or less
    #[arg(long, value_name = "FILE")]
    film: String,
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    #[arg(long, value_name = "S", default_value = "600", value_parser = crate::seconds)]
    seconds: Duration,
}

struct Shown {
    program: &'static Program,
    running: Running,
}

/// What is on the desktop, and beside it. The fields end from the first to the last.
struct Session {
    hands: Hands,
    windows: Vec<Shown>,
    compile: Running,
    hog: Child,
    manager: Running,
    favoured: Favoured,
    server: Running,
    tally: Tally,
    /// What each process of a window had had when it was judged last.
    turns: HashMap<u32, u64>,
}

pub fn run(options: &Options, favour: Favour) -> Result<Value> {
    ensure!(
        matches!(favour, Favour::Ratings | Favour::Weights),
        "a session judges a monitor's ratings: --favour ratings or --favour weights"
    );
    without_huge_pages()?;
    // Before there is a second thread.
    let hog = hogs::start(0)?;
    let home = Folder::make("session")?;
    programs::furnish(&home.0)?;
    let (server, display) = serve(SERVER)?;
    let mut sound = Sound::serve(BUFFER)?;
    let mut environment = vec![
        ("DISPLAY", display.clone()),
        ("HOME", home.0.display().to_string()),
        // The game draws by itself, not through an OpenGL that is made of software.
        ("SDL_RENDER_DRIVER", "software".to_owned()),
        ("SDL_FRAMEBUFFER_ACCELERATION", "0".to_owned()),
        // LibreOffice talks to the display itself, not through a toolkit that may not be there.
        ("SAL_USE_VCLPLUGIN", "gen".to_owned()),
    ];
    environment.extend(sound.environment());
    let favoured = Favoured::start(favour, &environment)?;
    let manager = Running::start_in(&words("openbox"), &environment)?;
    display::wait_for_manager(&display)?;
    let hands = Hands::at(&display)?;
    let show = |program: &'static Program| -> Result<Shown> {
        let text = program.words.replace("{film}", &options.film);
        let text = text.replace("{home}", &home.0.display().to_string());
        let mut running = Running::start_in(&words(&text), &environment)?;
        hands.wait_for_window_of(&mut running, program.name)?;
        Ok(Shown { program, running })
    };
    let windows = WINDOWS.iter().map(show).collect::<Result<_>>()?;
    let compile = Running::start(&words(COMPILE), None)?;
    let (tally, turns) = (Tally::default(), HashMap::new());
    let mut session =
        Session { hands, windows, compile, hog, manager, favoured, server, tally, turns };
    let (player, over) = (AtomicU32::new(0), AtomicBool::new(false));
    thread::scope(|scope| -> Result<()> {
        let heard = scope.spawn(|| hear(&mut sound, &player, &over, options.seed));
        let followed = session.follow(options, &player);
        over.store(true, Relaxed);
        followed.and(heard.join().unwrap_or_else(|_| anyhow::bail!("no sound is played")))
    })?;
    Ok(session.tally.figures())
}

/// Plays and is silent in turn; `player` is the process that plays, or 0.
fn hear(sound: &mut Sound, player: &AtomicU32, over: &AtomicBool, seed: u64) -> Result<()> {
    let mut random = Random(!seed);
    let mut wait = || {
        let end = Instant::now() + Duration::from_secs(stay(&mut random));
        while Instant::now() < end && !over.load(Relaxed) {
            thread::sleep(Duration::from_millis(100));
        }
    };
    while !over.load(Relaxed) {
        wait();
        player.store(sound.play()?, Relaxed);
        wait();
        sound.lives()?;
        player.store(0, Relaxed);
        sound.stop();
    }
    Ok(())
}

fn stay(random: &mut Random) -> u64 {
    SHORTEST + random.below(LONGEST - SHORTEST + 1)
}

impl Session {
    /// The person's script, from one line of the monitor to the next.
    fn follow(&mut self, options: &Options, player: &AtomicU32) -> Result<()> {
        Attributes::fifo(2).apply_to(0).context("the person needs SCHED_FIFO")?;
        clock::without_slack();
        let mut random = Random(options.seed);
        let mut said = self.favoured.said_since(0).1;
        // Each program was looked at when its window came; now the first one covers them.
        let mut turned_to = 0;
        self.turn_to(turned_to)?;
        for _ in 0..tally::FADES {
            self.next_line(&mut said, &[])?;
        }
        let begin = Instant::now();
        let (mut left, mut playing) = (0, 0);
        while begin.elapsed() < options.seconds {
            if left == 0 {
                self.all_live()?;
                let next = random.below(WINDOWS.len() as u64 - 1) as usize;
                turned_to = next + usize::from(next >= turned_to);
                left = stay(&mut random);
                self.turn_to(turned_to)?;
                let (now, name) = (begin.elapsed().as_secs(), self.windows[turned_to].program.name);
                let all = options.seconds.as_secs();
                eprintln!("attune-load: {now} of {all} s; the person turns to {name}");
            }
            let keys = match self.windows[turned_to].program.attention {
                Attention::Types(keys) => keys,
                Attention::Watches => &[],
            };
            let line = self.next_line(&mut said, keys)?;
            // A player that plays since before this second.
            let now = player.load(Relaxed);
            let player = std::mem::replace(&mut playing, now);
            self.judge(&line, turned_to, (player == now).then_some(player));
            left -= 1;
        }
        Ok(())
    }

    /// Lets a program's window cover the screen and have the focus.
    fn turn_to(&self, number: usize) -> Result<()> {
        let name = self.windows[number].program.name;
        // A player may have made another window for its first picture.
        let turn = self.hands.wait_for(name).and_then(|window| {
            self.hands.make_full(window)?;
            self.hands.turn_to(window)
        });
        turn.with_context(|| format!("the person cannot turn to {name}"))
    }

    /// The monitor's next line; until then these keys, again and again.
    fn next_line(&self, said: &mut usize, keys: &[u32]) -> Result<Value> {
        let patience = Instant::now() + PATIENCE;
        let mut keys = keys.iter().cycle();
        loop {
            let begin = clock::now();
            let (lines, read) = self.favoured.said_since(*said);
            *said = read;
            if let Some(line) = lines.into_iter().last() {
                return Ok(line);
            }
            ensure!(Instant::now() < patience, "the monitor has nothing to say any more");
            if let Some(key) = keys.next() {
                self.hands.key(*key)?;
            }
            clock::sleep_until(begin + PERIOD);
        }
    }

    /// `player`: Some(0) if none plays; None if that has just changed.
    fn judge(&mut self, line: &Value, turned_to: usize, player: Option<u32>) {
        let programs = line["programs"].as_array().map_or(&[][..], Vec::as_slice);
        let number = |program: &Value| u32::try_from(program["pid"].as_u64()?).ok();
        let rated: HashSet<u32> = programs.iter().filter_map(number).collect();
        let turns = &mut self.turns;
        let mut has_run = |process: u32| {
            let now = turns_of(process);
            turns.insert(process, now) != Some(now)
        };
        let window = |(number, shown): (usize, &Shown)| {
            let is_relevant = number == turned_to;
            let mut processes = with_descendants(shown.running.child.id());
            processes.retain(|process| has_run(*process) || !is_relevant);
            Second { name: shown.program.name, processes, is_relevant }
        };
        let behind = [("compile", self.compile.child.id()), ("hog", self.hog.pid())];
        let behind = behind.map(|(name, process)| Second {
            name,
            processes: with_descendants(process),
            is_relevant: false,
        });
        let player = player.filter(|process| *process != 0).map(|process| Second {
            name: "pw-cat",
            processes: vec![process],
            is_relevant: true,
        });
        let all: Vec<Second> =
            self.windows.iter().enumerate().map(window).chain(behind).chain(player).collect();
        self.tally.count(&all, &rated);
    }

    fn all_live(&mut self) -> Result<()> {
        let programs = self.windows.iter_mut().map(|shown| &mut shown.running);
        programs
            .chain([&mut self.compile, &mut self.manager, &mut self.server])
            .try_for_each(Running::lives)?;
        self.favoured.lives()
    }
}
