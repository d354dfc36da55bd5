//! Transport `none`: there is no other program to cooperate with. Polling sleeps when there is
//! nothing to do, and otherwise returns at once.

use std::io;

use attune_linux::poll::pollfd;

use super::{Statistics, Transport, wait};
use crate::offer::{Answer, NOTHING, Offer};
use crate::time::{Clock, Monotonic, NEVER, Time};

/// See the module.
#[derive(Debug, Default)]
pub struct Alone {
    statistics: Statistics,
}

impl Transport for Alone {
    fn name(&self) -> &'static str {
        "none"
    }

    fn poll(&mut self, offer: &Offer, descriptors: &mut [pollfd]) -> io::Result<Answer> {
        self.statistics.polls += 1;
        let now = Monotonic.now();
        if !offer.wants_cpu(now) {
            self.statistics.sleeps += 1;
            wait(descriptors, now, offer.timer)?;
        }
        Ok(Answer { turn: true, until: NEVER, others: NOTHING })
    }

    fn until(&self) -> Time {
        NEVER
    }

    fn statistics(&self) -> Statistics {
        self.statistics
    }
}
