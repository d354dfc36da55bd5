//! How the kernel schedules the calling thread: its CPUs, its nice value, its class, its timers' slack.

use std::io;

/// The CPUs that a thread may run on.
#[derive(Clone, Copy)]
pub struct Affinity(libc::cpu_set_t);

impl Affinity {
    pub fn of_this_thread() -> io::Result<Affinity> {
        // SAFETY: the set is plain data, and its size is passed.
        unsafe {
            let mut set: libc::cpu_set_t = std::mem::zeroed();
            match libc::sched_getaffinity(0, size_of_val(&set), &mut set) {
                0 => Ok(Affinity(set)),
                _ => Err(io::Error::last_os_error()),
            }
        }
    }

    pub fn cpus(&self) -> impl Iterator<Item = u32> {
        // SAFETY: the index is inside the set.
        (0..libc::CPU_SETSIZE as u32).filter(|cpu| unsafe { libc::CPU_ISSET(*cpu as usize, &self.0) })
    }

    pub fn one(cpu: u32) -> Affinity {
        // SAFETY: the set is plain data; an index beyond its end is ignored.
        unsafe {
            let mut set: libc::cpu_set_t = std::mem::zeroed();
            libc::CPU_SET(cpu as usize, &mut set);
            Affinity(set)
        }
    }

    /// Where the calling thread may run from now on.
    pub fn apply(&self) -> io::Result<()> {
        // SAFETY: the set is plain data, and its size is passed.
        match unsafe { libc::sched_setaffinity(0, size_of_val(&self.0), &self.0) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// The calling thread's.
pub fn nice() -> i32 {
    // SAFETY: asks for a number; on Linux 0 means the calling thread.
    unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) }
}

/// Whether the thread preempts whoever runs when it wakes up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// SCHED_OTHER: may preempt.
    Normal,
    /// SCHED_BATCH: waits until the CPU is given up. Otherwise the same.
    Batch,
}

impl Class {
    /// None: the thread is in another class, which is to stay.
    pub fn of_this_thread() -> Option<Class> {
        // SAFETY: asks for a number.
        match unsafe { libc::sched_getscheduler(0) } {
            libc::SCHED_OTHER => Some(Class::Normal),
            libc::SCHED_BATCH => Some(Class::Batch),
            _ => None,
        }
    }

    pub fn apply(self) -> io::Result<()> {
        let class = if self == Class::Batch { libc::SCHED_BATCH } else { libc::SCHED_OTHER };
        // SAFETY: plain data; the priority must be 0 in both classes.
        let set = unsafe { libc::sched_setscheduler(0, class, &std::mem::zeroed()) };
        if set == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}
