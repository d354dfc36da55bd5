//! The cost of a switch: two processes that take turns, with nothing else to do.

use std::io::{self, Read, Write};
use std::sync::atomic::Ordering::Relaxed;

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::cgroups::{self, Made};
use crate::child::{self, Child};
use crate::clock;

/// A byte goes to and fro through two pipes. Two switches a turn; each is a blocking read and a
/// wake-up. With a depth each process has a cgroup of its own, so many levels below the root.
pub fn ping_pong(turns: u32, depth: usize) -> Result<Value> {
    let ((mut here, mut to), (mut there, mut back)) = (io::pipe()?, io::pipe()?);
    let child = Child::start(|| {
        let mut byte = [0];
        while here.read(&mut byte).is_ok_and(|length| length == 1) && byte[0] != 0 {
            if back.write_all(&byte).is_err() {
                return 1;
            }
        }
        0
    })?;
    let mut made = Made::default();
    if depth > 0 {
        let below = "/x".repeat(depth - 1);
        cgroups::enter(&made.cgroup(&format!("here{below}"), "cpu")?, 0)?;
        cgroups::enter(&made.cgroup(&format!("there{below}"), "cpu")?, child.pid())?;
    }
    let figures = measured(turns, || {
        to.write_all(&[1])?;
        there.read_exact(&mut [0])
    })?;
    to.write_all(&[0])?;
    child.wait()?;
    Ok(figures)
}

/// Each yields to the other. A switch each time that the scheduler lets the other run.
pub fn yields(turns: u32) -> Result<Value> {
    let stop = child::shared(1)?;
    let child = Child::start(|| {
        while stop[0].load(Relaxed) == 0 {
            std::thread::yield_now();
        }
        0
    })?;
    let figures = measured(turns, || {
        std::thread::yield_now();
        Ok(())
    })?;
    stop[0].store(1, Relaxed);
    child.wait()?;
    Ok(figures)
}

/// Times `turns` turns, after a tenth as many. Each switch away from this process is followed by
/// one back to it.
fn measured(turns: u32, mut turn: impl FnMut() -> io::Result<()>) -> Result<Value> {
    let (first_blocked, first_forced) = child::own_switches()?;
    for _ in 0..turns / 10 {
        turn()?;
    }
    let ((blocked, forced), start) = (child::own_switches()?, clock::now());
    for _ in 0..turns {
        turn()?;
    }
    let time = clock::now() - start;
    let (blocked_then, forced_then) = child::own_switches()?;
    let switches = 2 * (blocked_then + forced_then - blocked - forced);
    ensure!(switches > 0, "the scheduler never switched between the two processes");
    Ok(json!({
        "turns": turns,
        "switches": switches,
        // With those before it counted.
        "all_switches": 2 * (blocked_then + forced_then - first_blocked - first_forced),
        "ns_per_turn": time as f64 / f64::from(turns),
        "ns_per_switch": time as f64 / switches as f64,
    }))
}
