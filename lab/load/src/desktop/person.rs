//! A person at the display, as a process of its own in SCHED_FIFO: types by XTEST, drags the window
//! it types into, and sees when the screen shows it.
//!
//! A key is on the screen when the server says that its window was drawn into (DAMAGE), a drag when
//! the window has moved. The person waits for each key to be shown before the next one, for at most
//! [`PATIENCE`], and types at [`PERIOD`] otherwise.

use std::fs::File;
use std::io::Write;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use attune_linux::poll;
use attune_linux::scheduling::Attributes;
use serde_json::{Value, json};
use x11rb::connection::Connection;
use x11rb::protocol::Event;
use x11rb::protocol::damage::{ConnectionExt as _, ReportLevel};
use x11rb::protocol::xproto::{
    ChangeWindowAttributesAux, ConfigureWindowAux, ConnectionExt as _, EventMask, InputFocus,
    StackMode, Window,
};

use super::display::{BEGIN, reply};
use super::hands::{ALT, BUTTON_PRESS, BUTTON_RELEASE, ESCAPE, Hands, KEY_PRESS, KEY_RELEASE};
use super::hands::{MOTION, RETURN};
use crate::child::{self, Child};
use crate::{clock, numbers};

/// 8 keys a second.
const PERIOD: u64 = 125_000_000;
/// Between two moves of the pointer.
const MOVE: u64 = 40_000_000;
const MOVES: usize = 24;
/// Pixels of a move: more than a window manager holds a window at an edge of the screen or of
/// another window, or the move would not be seen.
const STEP: i16 = 24;
/// From the end of a drag to the next key.
const AFTER_DRAG: Duration = Duration::from_millis(500);
/// A key or a move that is not shown by then is lost.
const PATIENCE: u64 = 2_000_000_000;
/// A person says it when the typing begins.
const READY: &str = "ready";

const TEXT: &[u8] = b"the quick brown fox jumps over the lazy dog while others compute ";

pub struct Person {
    child: Child,
    log: File,
}

impl Person {
    /// Someone who types into the window of that class, and drags it after each `drag` keys.
    /// Returns when the typing begins.
    pub fn sit_down(display: &str, class: &str, drag: Option<usize>) -> Result<Person> {
        let log = child::memory_file()?;
        let mut own = log.try_clone()?;
        let child = Child::start(|| match act(display, class, drag, &mut own) {
            Ok(()) => 0,
            Err(error) => {
                let _ = writeln!(own, "error: {error:#}");
                1
            }
        })?;
        let person = Person { child, log };
        let patience = Instant::now() + BEGIN;
        while !child::said(&person.log).lines().any(|line| line == READY) {
            person.lives()?;
            ensure!(Instant::now() < patience, "nobody begins to type");
            thread::sleep(Duration::from_millis(50));
        }
        Ok(person)
    }

    pub fn pid(&self) -> u32 {
        self.child.pid()
    }

    /// Err: why not.
    pub fn lives(&self) -> Result<()> {
        let said = child::said(&self.log);
        match said.lines().find_map(|line| line.strip_prefix("error: ")) {
            Some(error) => bail!("{error}"),
            None => Ok(()),
        }
    }

    /// How long keys and moves took to the screen that began within that time.
    pub fn figures(&self, within: &Range<u64>) -> Value {
        let said = child::said(&self.log);
        let of = |kind: &str| {
            let line = |line: &str| -> Option<(u64, Option<u64>)> {
                let mut words = line.strip_prefix(kind)?.split_whitespace();
                Some((words.next()?.parse().ok()?, words.next().and_then(|word| word.parse().ok())))
            };
            let all: Vec<_> =
                said.lines().filter_map(line).filter(|(at, _)| within.contains(at)).collect();
            let lost = all.iter().filter(|(_, took)| took.is_none()).count();
            let mut took: Vec<u64> = all.iter().filter_map(|(_, took)| *took).collect();
            // Without one there is nothing to say, which is not 0 ms.
            let to_screen = (!took.is_empty()).then(|| numbers::quantiles(&mut took));
            json!({ "lost": lost, "to_screen_ns": to_screen })
        };
        json!({ "keys": of("key "), "moves": of("move ") })
    }
}

/// The window that the person types into and drags.
struct Screen {
    hands: Hands,
    window: Window,
}

fn act(display: &str, class: &str, drag: Option<usize>, log: &mut File) -> Result<()> {
    let hands = Hands::at(display)?;
    let window = hands.wait_for(class)?;
    let screen = Screen { hands, window };
    let connection = &screen.hands.connection;
    // For the program behind it to begin; an editor drops what comes too early.
    thread::sleep(Duration::from_secs(3));
    // A window that came later may lie on it, and a covered one shows no key.
    let on_top = ConfigureWindowAux::new().stack_mode(StackMode::ABOVE);
    connection.configure_window(window, &on_top)?;
    connection.set_input_focus(InputFocus::POINTER_ROOT, window, 0u32)?;
    for key in [ESCAPE, u32::from(b'i')] {
        screen.hands.key(key)?;
        thread::sleep(Duration::from_secs(1));
    }
    Attributes::fifo(2).apply_to(0).context("the person needs SCHED_FIFO")?;
    clock::without_slack();
    connection.damage_query_version(1, 1)?.reply()?;
    let damage = connection.generate_id()?;
    connection.damage_create(damage, window, ReportLevel::NON_EMPTY)?;
    let structure = ChangeWindowAttributesAux::new().event_mask(EventMask::STRUCTURE_NOTIFY);
    connection.change_window_attributes(screen.top()?, &structure)?;
    let is_drawn = |event: &Event| matches!(event, Event::DamageNotify(_));
    let is_moved = |event: &Event| matches!(event, Event::ConfigureNotify(_));
    let clear = || -> Result<()> {
        connection.damage_subtract(damage, x11rb::NONE, x11rb::NONE)?;
        // Its answer comes behind all earlier events.
        reply!(connection.get_input_focus());
        while connection.poll_for_event()?.is_some() {}
        Ok(())
    };
    writeln!(log, "{READY}").context("cannot say that it begins")?;
    let mut keys = TEXT.iter().cycle().enumerate();
    loop {
        for (number, letter) in keys.by_ref().take(drag.unwrap_or(1)) {
            let begin = clock::now();
            clear()?;
            let key = if number % 60 == 59 { RETURN } else { u32::from(*letter) };
            let at = clock::now();
            screen.hands.key(key)?;
            note(log, "key", at, screen.sees(is_drawn, at + PATIENCE)?)?;
            clock::sleep_until(begin + PERIOD);
        }
        if drag.is_some() {
            screen.drag(log, is_moved)?;
        }
    }
}

fn note(log: &mut File, what: &str, at: u64, seen: Option<u64>) -> Result<()> {
    let took = seen.map_or("-".to_owned(), |seen| (seen - at).to_string());
    writeln!(log, "{what} {at} {took}").context("cannot note what was seen")
}

impl Screen {
    /// When such an event comes; None: not until then.
    fn sees(&self, wanted: impl Fn(&Event) -> bool, until: u64) -> Result<Option<u64>> {
        loop {
            while let Some(event) = self.hands.connection.poll_for_event()? {
                if wanted(&event) {
                    return Ok(Some(clock::now()));
                }
            }
            let left = until.saturating_sub(clock::now());
            if left == 0 {
                return Ok(None);
            }
            let descriptor = self.hands.connection.stream().as_raw_fd();
            poll::wait(&mut [poll::readable(descriptor)], left)?;
        }
    }

    /// The window on the root that holds the person's: a window manager's frame, or itself. A
    /// window manager may tell a program only at its end that a drag moved its window.
    fn top(&self) -> Result<Window> {
        let mut window = self.window;
        loop {
            let parent = reply!(self.hands.connection.query_tree(window)).parent;
            if parent == self.hands.root || parent == x11rb::NONE {
                return Ok(window);
            }
            window = parent;
        }
    }

    /// Drags the window away from its corner and back.
    fn drag(&self, log: &mut File, is_moved: impl Fn(&Event) -> bool) -> Result<()> {
        let place = reply!(self.hands.connection.translate_coordinates(
            self.window,
            self.hands.root,
            20,
            20
        ));
        let alt = self.hands.code(ALT)?;
        let (mut x, y) = (place.dst_x, place.dst_y);
        let step = if x > MOVES as i16 / 2 * STEP { -STEP } else { STEP };
        self.hands.fake(MOTION, 0, x, y)?;
        self.hands.fake(KEY_PRESS, alt, 0, 0)?;
        self.hands.fake(BUTTON_PRESS, 1, 0, 0)?;
        for number in 0..MOVES {
            let begin = clock::now();
            x += if number < MOVES / 2 { step } else { -step };
            self.hands.fake(MOTION, 0, x, y)?;
            let seen = self.sees(&is_moved, begin + PATIENCE)?;
            // The first ones tell the window manager that a drag begins.
            if number >= 4 {
                note(log, "move", begin, seen)?;
            }
            clock::sleep_until(begin + MOVE);
        }
        self.hands.fake(BUTTON_RELEASE, 1, 0, 0)?;
        self.hands.fake(KEY_RELEASE, alt, 0, 0)?;
        // A window manager has the keyboard during a drag, and would swallow what comes too soon.
        thread::sleep(AFTER_DRAG);
        Ok(())
    }
}
