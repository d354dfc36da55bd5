//! A person who has left the keyboard for a while presses one key: how soon does the last process
//! of the chain, the editor behind the terminal, have a rating? Before, the terminal alone has one,
//! since it has the focus, and the display server with it.
//!
//! The monitor's recording says when the kernel handed a rating on: a wake-up does that before the
//! woken thread can run, so the first key finds the editor rated when it runs. Times are
//! CLOCK_MONOTONIC's, in ns.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use attune_linux::procfs;
use attune_linux::scheduling::Attributes;
use serde_json::{Value, json};

use super::display;
use super::favour::{Favour, Favoured, with_descendants};
use super::hands::Hands;
use crate::films::without_huge_pages;
use crate::running::{Folder, Running, serve, words};
use crate::{clock, hogs, numbers};

const SERVER: &str = "Xvfb :9 -screen 0 1280x800x24 -nolisten tcp -ac";
const TYPED: &str = "xterm -geometry 80x24 -e vim -u NONE +startinsert";
const CLASS: &str = "xterm";
const EDITOR: &str = "vim";
const KEY: u32 = b'x' as u32;
/// For the editor to begin.
const BEGIN: Duration = Duration::from_secs(3);
/// For ratings to fade: a key counts for ten seconds, and what is left halves each second.
const PATIENCE: Duration = Duration::from_secs(60);
/// The monitor writes what was handed on at the end of the second.
const WRITTEN: Duration = Duration::from_secs(3);

#[derive(clap::Args)]
pub struct Options {
    /// Keys, each pressed when the editor has no rating any more
    #[arg(long, value_name = "N", default_value_t = 10)]
    keys: usize,
    /// Processes that compute meanwhile
    #[arg(long, value_name = "N", default_value_t = 10)]
    hogs: usize,
}

pub fn run(options: &Options, favour: Favour) -> Result<Value> {
    ensure!(
        matches!(favour, Favour::Ratings | Favour::Weights),
        "only a monitor hands ratings on: --favour ratings or --favour weights"
    );
    without_huge_pages()?;
    let folder = Folder::make("first-key")?;
    let recording = folder.0.join("recording");
    let (_server, display) = serve(SERVER)?;
    let environment = vec![("DISPLAY", display.clone())];
    let mut favoured = Favoured::start_recorded(favour, &environment, &recording)?;
    let _manager = Running::start_in(&words("openbox"), &environment)?;
    display::wait_for_manager(&display)?;
    let hands = Hands::at(&display)?;
    let mut terminal = Running::start_in(&words(TYPED), &environment)?;
    hands.turn_to(hands.wait_for_window_of(&mut terminal, CLASS)?)?;
    thread::sleep(BEGIN);
    let chain = with_descendants(terminal.child.id());
    let editor = chain.into_iter().find(|process| procfs::name(*process) == EDITOR);
    let editor = editor.context("there is no editor in the terminal")?;
    let _hogs = (0..options.hogs).map(|_| hogs::start(0)).collect::<Result<Vec<_>>>()?;
    Attributes::fifo(2).apply_to(0).context("the person needs SCHED_FIFO")?;
    clock::without_slack();
    // After the first key of a keyboard programs ask the server for its map.
    hands.key(KEY)?;
    thread::sleep(WRITTEN);
    let mut pressed = vec![];
    for _ in 0..options.keys {
        wait_until_unrated(&mut favoured, editor)?;
        pressed.push(clock::now());
        hands.key(KEY)?;
        // Until then the monitor's lines are of the time before the key.
        thread::sleep(WRITTEN);
    }
    let recorded = fs::read_to_string(&recording).context("reading the monitor's recording")?;
    let mut took = raised_after(&pressed, &handed_to(editor, &recorded));
    Ok(json!({
        "keys": pressed.len(),
        "raised_by_wake_percent": 100.0 * took.len() as f64 / pressed.len().max(1) as f64,
        // Without one there is nothing to say, which is not 0 ms.
        "to_raised_ns": (!took.is_empty()).then(|| numbers::quantiles(&mut took)),
    }))
}

/// Waits until a line of the monitor rates that process no more.
fn wait_until_unrated(favoured: &mut Favoured, process: u32) -> Result<()> {
    let patience = Instant::now() + PATIENCE;
    let mut said = favoured.said_since(0).1;
    loop {
        let (lines, read) = favoured.said_since(said);
        said = read;
        let is_rated = |line: &Value| {
            let programs = line["programs"].as_array().map_or(&[][..], Vec::as_slice);
            programs.iter().any(|it| it["pid"] == process)
        };
        if lines.last().is_some_and(|line| !is_rated(line)) {
            return Ok(());
        }
        favoured.lives()?;
        ensure!(Instant::now() < patience, "the editor is still rated, though nobody types");
        thread::sleep(Duration::from_millis(50));
    }
}

/// When a wake-up handed the process a rating, as a recording of `attune focus` tells it.
fn handed_to(process: u32, recording: &str) -> Vec<u64> {
    let of_line = |line: &str| -> Vec<u64> {
        let Ok(line) = serde_json::from_str::<Value>(line) else { return vec![] };
        let all = line["second"]["handovers"].as_array().map_or(&[][..], Vec::as_slice);
        let is_it = |it: &&Value| it["to"]["pid"] == process && it["how"] == "wake";
        all.iter().filter(is_it).filter_map(|it| it["at"].as_u64()).collect()
    };
    recording.lines().flat_map(of_line).collect()
}

/// How long after each key the process was handed a rating; nothing for a key after which it was
/// not, before the next one.
fn raised_after(pressed: &[u64], handed: &[u64]) -> Vec<u64> {
    let after = |(number, key): (usize, &u64)| {
        let next = pressed.get(number + 1).copied().unwrap_or(u64::MAX);
        let at = handed.iter().copied().filter(|at| (*key..next).contains(at)).min()?;
        Some(at - key)
    };
    pressed.iter().enumerate().filter_map(after).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recording_tells_when_a_wake_up_raised_a_process() {
        let handover = |process: u32, how: &str, at: u64| {
            json!({ "from": { "pid": 1, "start": 1 }, "to": { "pid": process, "start": 2 },
                "how": how, "input": 9.0, "output": 0.0, "at": at })
        };
        let second = json!({ "second": { "handovers":
            [handover(7, "wake", 120), handover(7, "fork", 5), handover(8, "wake", 110)] } });
        let recording = format!("{{\"format\":\"x\"}}\n{second}\nhalf a li");
        assert_eq!(handed_to(7, &recording), [120]);
    }

    #[test]
    fn a_key_that_raises_nothing_is_not_counted_as_the_next_one() {
        assert_eq!(raised_after(&[100, 200, 300], &[90, 130, 310, 340]), [30, 10]);
        assert_eq!(raised_after(&[], &[90]), Vec::<u64>::new());
    }
}
