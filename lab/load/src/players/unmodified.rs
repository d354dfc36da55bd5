//! A player that has never heard of cooperation, as players are written: by what it knows that a timer is due.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::{io, mem, ptr, thread};

use anyhow::{Context, Result};
use attune_coop::Statistics;

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
    while let Some(due) =
        timers.iter_mut().filter(|timer| timer.release <= clock::now()).min_by_key(|timer| timer.release)
    {
        player.serve(due);
    }
}

struct Timerfd(OwnedFd);

impl Timerfd {
    fn new() -> io::Result<Timerfd> {
        // SAFETY: numbers alone are passed.
        match unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, libc::TFD_NONBLOCK) } {
            -1 => Err(io::Error::last_os_error()),
            // SAFETY: new, and nobody else's.
            fd => Ok(Timerfd(unsafe { OwnedFd::from_raw_fd(fd) })),
        }
    }

    fn arm(&self, time: u64) -> io::Result<()> {
        // SAFETY: zeroes are a valid itimerspec: no period.
        let mut at: libc::itimerspec = unsafe { mem::zeroed() };
        at.it_value.tv_sec = (time / 1_000_000_000) as i64;
        at.it_value.tv_nsec = (time % 1_000_000_000) as i64;
        // SAFETY: our own descriptor, a valid itimerspec; the old one is not asked for.
        match unsafe {
            libc::timerfd_settime(self.0.as_raw_fd(), libc::TFD_TIMER_ABSTIME, &at, ptr::null_mut())
        } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Asked as event loops ask that have work to do: poll without waiting.
    fn has_expired(&self) -> bool {
        let mut asked = libc::pollfd { fd: self.0.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one valid pollfd.
        unsafe { libc::poll(&mut asked, 1, 0) > 0 }
    }
}
