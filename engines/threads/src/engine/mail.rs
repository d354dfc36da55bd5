//! Messages of other workers to this engine, and the sleep of a worker that has nothing to do.
//!
//! A worker is *hopeless* while it sleeps without a timer and without a descriptor: only a message
//! can wake it. When all are, and no inbox holds anything, no thread of the process can ever run
//! again.

use std::sync::{Condvar, Mutex, PoisonError};

use super::{Engine, Pending};
use crate::diagnosis::{self, Described};
use crate::engine::modes;
use crate::engine::worker::{self, Call, Message};

/// By worker, whether it is hopeless.
static HOPELESS: Mutex<[bool; worker::MOST_WORKERS]> = Mutex::new([false; worker::MOST_WORKERS]);
/// What the threads of each worker are doing, when none can ever run again.
static DESCRIBED: Mutex<Vec<Vec<Described>>> = Mutex::new(Vec::new());
static ONE_MORE_DESCRIBED: Condvar = Condvar::new();

impl Engine {
    /// Follows all messages that have come, while a thread counts as running. Where threads may
    /// move, some are given away when the scheduler has heard of all that has come.
    #[cold]
    pub(super) fn read_mail(&mut self, now: i64) {
        while self.read_one_message().is_some() {}
        while self.raise_next(now) {}
        if modes::moves() {
            self.give_away(now);
        }
    }

    /// Follows one message. Some(true): handlers may have run.
    pub(super) fn read_one_message(&mut self) -> Option<bool> {
        if self.mail.is_empty() && self.worker.has_mail() {
            self.mail.extend(self.worker.take_mail());
        }
        match self.mail.pop_front()? {
            Message::Wake(thread, outcome) => {
                self.trace_woken(thread);
                self.end_wait(thread, outcome);
                self.pending.push_back(Pending::Ready(thread));
                Some(false)
            }
            Message::Call(run) => Some(self.serve(run)),
            Message::About(thread, run) => match self.whereabouts(thread) {
                None => Some(self.serve(run)),
                Some(other) => {
                    other.post(Message::About(thread, run));
                    Some(false)
                }
            },
            // While a thread runs, what follows the reading of the mail.
            Message::Asks => Some(false),
            Message::Arrives { thread, alarm, from } => {
                self.take_in(thread, alarm, from);
                Some(true)
            }
            Message::Ended(thread) => {
                self.threads.comes(thread);
                self.bury(thread);
                Some(false)
            }
            Message::Describe => self.describe_and_stay(),
        }
    }

    /// True: handlers may have run.
    fn serve(&mut self, run: Call) -> bool {
        self.serves = true;
        run(self);
        self.serves = false;
        true
    }

    /// Sleeps until a descriptor, the time or a message. False: the time ran out.
    pub(super) fn sleep(&mut self, timeout: i64, hopeless: bool) -> bool {
        if self.worker.bell().is_none() {
            return self.poll_descriptors(timeout);
        }
        let mut heard = true;
        if self.worker.falls_asleep() {
            if hopeless {
                self.give_up();
            }
            heard = self.poll_descriptors(timeout);
        }
        // Before the inbox is read: another worker must not believe that nothing can happen here.
        if hopeless {
            hopeless_workers()[self.worker.index] = false;
        }
        self.worker.wakes_up();
        heard
    }

    /// Notes that this worker is hopeless; ends the process if all are.
    fn give_up(&self) {
        let mut hopeless = hopeless_workers();
        hopeless[self.worker.index] = true;
        let all = worker::all();
        if !all.iter().all(|worker| hopeless[worker.index] && !worker.has_mail()) {
            return;
        }
        drop(hopeless);
        for other in all.iter().filter(|other| other.index != self.worker.index) {
            other.post(Message::Describe);
        }
        let mut described = DESCRIBED.lock().unwrap_or_else(PoisonError::into_inner);
        described.push(diagnosis::threads(&self.scheduler, &self.threads));
        while described.len() < all.len() {
            described = ONE_MORE_DESCRIBED.wait(described).unwrap_or_else(PoisonError::into_inner);
        }
        diagnosis::deadlock(&self.scheduler, described.concat())
    }

    /// The process is about to end with a message that all workers write together.
    fn describe_and_stay(&self) -> ! {
        let threads = diagnosis::threads(&self.scheduler, &self.threads);
        DESCRIBED.lock().unwrap_or_else(PoisonError::into_inner).push(threads);
        ONE_MORE_DESCRIBED.notify_one();
        loop {
            std::thread::park();
        }
    }
}

fn hopeless_workers() -> std::sync::MutexGuard<'static, [bool; worker::MOST_WORKERS]> {
    HOPELESS.lock().unwrap_or_else(PoisonError::into_inner)
}
