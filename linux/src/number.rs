//! Numbers of processes and threads, as rustix wants them.

use std::io;

use rustix::io::Errno;
use rustix::process::Pid;

/// ESRCH for 0, which would mean the caller, and for numbers that the kernel never gives.
pub(crate) fn pid(number: u32) -> io::Result<Pid> {
    let positive = i32::try_from(number).ok().filter(|number| *number > 0);
    positive.and_then(Pid::from_raw).ok_or_else(|| Errno::SRCH.into())
}
