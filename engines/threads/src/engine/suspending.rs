//! A thread that another one suspends does not run until it is resumed. Also here: which schedulers
//! know a thread that waits as one that is suspended.

use super::{Engine, Event, State, ThreadRef};
use crate::errno::{Errno, Result};

impl Engine {
    /// Another thread does not run until it is resumed. One that runs, since the caller is another
    /// worker or a cluster, is suspended when it yields next. EALREADY, ENOTSUP.
    pub fn suspend_other(&mut self, thread: ThreadRef) -> Result<()> {
        self.may_suspend(thread)?;
        if thread.state.get() == State::Running {
            let before = thread.suspend_next.replace(true);
            return if before { Err(Errno(libc::EALREADY)) } else { Ok(()) };
        }
        thread.suspended.set(true);
        let now = self.time();
        if thread.state.get() == State::Ready {
            if self.time.of_every_switch {
                thread.times.stops_being_ready(now);
            }
            self.note_unready(thread);
        }
        // A scheduler that knows blocking as suspending has been told already.
        if thread.state.get() != State::Waiting || !self.waits_by_suspending() {
            self.raise(Event::SuspendThread, Some(thread), now);
        }
        self.trace_state(thread, now);
        Ok(())
    }

    pub fn may_suspend(&self, thread: ThreadRef) -> Result<()> {
        if !self.scheduler.has(Event::SuspendThread) || !self.scheduler.has(Event::ResumeThread) {
            return Err(Errno(libc::ENOTSUP));
        }
        if thread.suspended.get() { Err(Errno(libc::EALREADY)) } else { Ok(()) }
    }

    /// EINVAL: it is not suspended.
    pub fn resume(&mut self, thread: ThreadRef) -> Result<()> {
        if thread.suspend_next.take() {
            return Ok(());
        }
        if !thread.suspended.replace(false) {
            return Err(Errno(libc::EINVAL));
        }
        let now = self.time();
        if self.time.of_every_switch {
            thread.times.begins(now);
        }
        if thread.state.get() != State::Waiting || !self.wakes_by_resuming() {
            self.raise(Event::ResumeThread, Some(thread), now);
        }
        if thread.state.get() == State::Ready {
            self.note_ready(thread);
        }
        self.trace_state(thread, now);
        Ok(())
    }

    /// The scheduler knows blocking as `suspend_thread`.
    pub(super) fn waits_by_suspending(&self) -> bool {
        !self.scheduler.has(Event::SetWaiting) && !self.scheduler.has(Event::EventRaised)
    }

    /// The scheduler knows waking as `resume_thread`.
    pub(super) fn wakes_by_resuming(&self) -> bool {
        !self.scheduler.has(Event::EventRaised)
    }
}
