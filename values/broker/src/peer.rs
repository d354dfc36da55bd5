//! The process at the other end of a connection, by the kernel's word, and what that process means
//! by the numbers that it says.

use attune_linux::namespace;
use attune_values::wire::{Hint, Refusal};

use crate::refused::{Answer, Refused};

#[derive(Clone, Copy)]
pub struct Peer {
    pub process: i32,
    pub user: u32,
    /// Root, or the user who runs the scheduler: it always finds a place and is never kept waiting.
    pub preferred: bool,
    /// It lives in a PID namespace of its own, as in a container: numbers differ from those here.
    pub foreign: bool,
}

impl Peer {
    /// The hint with the numbers that the process and the thread have here.
    pub fn means(self, hint: Hint) -> Answer<Hint> {
        if !self.foreign {
            return Ok(hint);
        }
        let (speaker, said) = (self.process as u32, hint.process);
        let none = || Refused::new(Refusal::NoSuchThread, format!("there is no process {said}"));
        let process = namespace::process(speaker, said as u32).ok_or_else(none)? as i32;
        let thread = hint.thread.map(|thread| self.thread(process, thread)).transpose()?;
        Ok(Hint { process, thread, values: hint.values })
    }

    /// The thread of `process` that it calls `thread`.
    pub fn thread(self, process: i32, thread: i32) -> Answer<i32> {
        if !self.foreign {
            return Ok(thread);
        }
        let here = namespace::thread(self.process as u32, process as u32, thread as u32);
        let none = || Refused::new(Refusal::NoSuchThread, format!("there is no thread {thread}"));
        Ok(here.ok_or_else(none)? as i32)
    }
}
