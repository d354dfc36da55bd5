//! Which cores this process may use, and pinning to one of them.

use std::io::{Error, Result};

/// The cores that the calling thread may run on, ascending.
pub fn allowed() -> Result<Vec<usize>> {
    // SAFETY: the set is plain data, and its size is passed.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        if libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set) != 0 {
            return Err(Error::last_os_error());
        }
        Ok((0..libc::CPU_SETSIZE as usize).filter(|cpu| libc::CPU_ISSET(*cpu, &set)).collect())
    }
}

/// Pins the calling thread to one core. Makes one system call and allocates nothing, so that it may run after a fork.
pub fn pin_to(cpu: usize) -> Result<()> {
    // SAFETY: the set is plain data, and its size is passed.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        if libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set) != 0 {
            return Err(Error::last_os_error());
        }
    }
    Ok(())
}
