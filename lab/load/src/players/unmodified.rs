//! A player that has never heard of cooperation, as players are written: by what it knows that a
//! timer is due.

use std::os::fd::OwnedFd;
use std::{io, thread};

use anyhow::{Context, Result};
use attune_coop::Statistics;
use attune_linux::poll::is_readable;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};

use super::player::{Player, Timer};
use crate::clock;

/// Looks at the clock after each unit, and never blocks.
pub fn by_clock(player: &Player) {
    let mut timers = player.timers();
    decode(player, || serve_due(player, &mut timers));
}

/// Polls a timerfd after each unit, armed for the next timer while it computes.
pub fn by_timerfd(player: &Player) -> Result<()> {
    let mut timers = player.timers();
    let descriptor = Timerfd::new().context("making a timerfd")?;
    descriptor.arm(next(&timers))?;
    decode(player, || {
        if descriptor.has_expired() {
            serve_due(player, &mut timers);
            // Cannot fail where it did not before.
            let _ = descriptor.arm(next(&timers));
        }
    });
    Ok(())
}

/// A thread of its own sleeps until the next timer.
pub fn by_thread(player: &Player) -> Result<()> {
    let mut timers = player.timers();
    let (server, end) = (player.twin(), player.end);
    let server = thread::Builder::new().name("timers".to_owned()).spawn(move || {
        while next(&timers) < end {
            clock::sleep_until(next(&timers));
            serve_due(&server, &mut timers);
        }
    });
    let server = server.context("starting a thread for the timers")?;
    decode(player, || ());
    // It ends with its last timer, and does not panic.
    let _ = server.join();
    Ok(())
}

/// Decodes until the end, and looks after each unit whether a timer is due.
fn decode(player: &Player, mut look: impl FnMut()) {
    let mut begun = false;
    loop {
        look();
        let now = clock::now();
        if !begun && now >= player.begin {
            begun = true;
            player.count(Statistics::default(), false);
        }
        if now >= player.end {
            break player.count(Statistics::default(), true);
        }
        player.decode();
    }
}

fn next(timers: &[Timer]) -> u64 {
    timers.iter().map(|timer| timer.release).min().unwrap_or(u64::MAX)
}

fn serve_due(player: &Player, timers: &mut [Timer]) {
    while let Some(due) = timers
        .iter_mut()
        .filter(|timer| timer.release <= clock::now())
        .min_by_key(|timer| timer.release)
    {
        player.serve(due);
    }
}

struct Timerfd(OwnedFd);

impl Timerfd {
    fn new() -> io::Result<Timerfd> {
        Ok(Timerfd(timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK)?))
    }

    fn arm(&self, time: u64) -> io::Result<()> {
        let it_value = Timespec {
            tv_sec: (time / 1_000_000_000) as i64,
            tv_nsec: (time % 1_000_000_000) as i64,
        };
        let once = Itimerspec { it_interval: Timespec::default(), it_value };
        Ok(timerfd_settime(&self.0, TimerfdTimerFlags::ABSTIME, &once).map(drop)?)
    }

    /// Asked as event loops ask that have work to do: poll without waiting.
    fn has_expired(&self) -> bool {
        is_readable(&self.0).unwrap_or(false)
    }
}
