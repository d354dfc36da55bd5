//! Lets event loops that are not ours cooperate: they call this `poll` where they would call poll,
//! epoll_wait or the like.
//!
//! Such a loop says less than ours. A timeout is its next timer; descriptors that are ready, and a
//! timeout of 0, are best-effort work, all of one importance. Between two polls it runs all its
//! callbacks, so its turns are as long as they are.

use std::io;

use attune_linux::poll::pollfd;

use crate::offer::{NOTHING, Offer};
use crate::time::{Clock, Monotonic, NEVER, Time};
use crate::transport::{self, Transport, Wanted, wait};

/// The importance of all work of such a loop.
const WORK: i64 = 0;

/// See the module. Belongs to the thread that made it.
pub struct ForeignLoop {
    transport: Box<dyn Transport>,
    group: u32,
    turn: bool,
}

impl ForeignLoop {
    /// Fails when the transport that is wanted by name cannot be had.
    pub fn new(wanted: Wanted, group: u32) -> io::Result<ForeignLoop> {
        Ok(ForeignLoop { transport: transport::open(wanted)?, group, turn: false })
    }

    pub fn transport(&self) -> &dyn Transport {
        &*self.transport
    }

    /// Waits, as ppoll, until one of the descriptors is ready or `timeout` nanoseconds have passed
    /// ([`NEVER`]: without end), and until it is our turn; returns how many are ready.
    /// `Interrupted`: a signal came.
    pub fn poll(&mut self, descriptors: &mut [pollfd], timeout: Time) -> io::Result<usize> {
        let began = Monotonic.now();
        let timer = began.saturating_add(timeout);
        let mut ready = wait(descriptors, began, began)?;
        if self.turn && (ready > 0 || timeout == 0) && began < self.transport.until() {
            return Ok(ready);
        }
        loop {
            let working = ready > 0 || timeout == 0;
            let (timer, best_effort) = if working { (NEVER, WORK) } else { (timer, NOTHING) };
            let offer = Offer { group: self.group, timer, best_effort };
            // What is ready already must not end the wait for our turn.
            let waited_for: &mut [_] = if working { &mut [] } else { &mut *descriptors };
            self.turn = false;
            self.turn = transport::poll_and_serve(&mut *self.transport, &offer, waited_for)?.turn;
            let now = Monotonic.now();
            ready = wait(descriptors, now, now)?;
            if self.turn && (ready > 0 || timeout == 0 || now >= timer) {
                return Ok(ready);
            }
        }
    }
}
