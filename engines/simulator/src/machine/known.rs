//! What the machine itself knows of a thread, for imports of that name, as the kernel engine
//! supplies them: `process`, `parent`, `waker`, `io_wait`.
//!
//! Threads are numbered from 1 in the order in which they are made; 0 is no thread. Each is a
//! process of its own. A workload that gives a name itself is believed until the machine knows
//! better: `process` and `parent` for good, `waker` and `io_wait` until the thread next waits. Only
//! the workload can know of users and kernel threads.

use super::*;

/// The imports that the policy has of these.
#[derive(Clone, Copy)]
pub struct Known {
    process: Option<ImportId>,
    parent: Option<ImportId>,
    waker: Option<ImportId>,
    io_wait: Option<ImportId>,
}

impl Known {
    pub fn of<P: Scheduler + ?Sized>(policy: &P) -> Known {
        let [process, parent, waker, io_wait] =
            ["process", "parent", "waker", "io_wait"].map(|name| policy.thread_import(name));
        Known { process, parent, waker, io_wait }
    }
}

/// A thread's number to the policy.
fn number(serial: u32) -> i64 {
    i64::from(serial) + 1
}

impl<P: Scheduler + ?Sized> Machine<'_, P> {
    fn tell(&mut self, slot: u32, import: Option<ImportId>, value: i64) {
        if let Some(import) = import {
            self.policy_of(slot).set_thread_import(ThreadId(slot), import, Value::Int(value));
        }
    }

    /// The policy is about to hear of a new thread.
    pub(super) fn tell_birth(&mut self, slot: u32) {
        let (serial, parent) = {
            let thread = &self.threads[slot as usize];
            (thread.serial, thread.parent)
        };
        self.tell(slot, self.known.process, number(serial));
        self.tell(slot, self.known.parent, parent.map_or(0, |parent| number(parent.serial)));
        self.tell(slot, self.known.waker, 0);
        self.tell(slot, self.known.io_wait, 0);
    }

    /// It is about to wait.
    pub(super) fn tell_wait(&mut self, slot: u32, wait: Wait) {
        self.tell(slot, self.known.io_wait, i64::from(wait == Wait::Io));
    }

    /// It wakes; the thread whose program runs now does it, or else time or the world outside.
    pub(super) fn tell_waker(&mut self, slot: u32) {
        self.tell(slot, self.known.waker, self.acting.map_or(0, number));
    }
}
