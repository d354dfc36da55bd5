//! Child processes: that end with their parent, that run on one CPU, that keep descriptors.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::io::{Errno, FdFlags, fcntl_setfd};
use rustix::process::{Pid, Signal, getpid, getppid, set_parent_process_death_signal};

use crate::affinity::Cpus;

/// The command's process is killed when the **thread** that starts it ends, however that happens. A
/// set-uid program is not: the kernel forgets the wish when it starts.
pub fn end_with_parent(command: &mut Command) -> &mut Command {
    let parent = getpid();
    // SAFETY: between fork and exec the closure makes system calls only.
    unsafe { command.pre_exec(move || Ok(wish_to_end_with(parent)?)) }
}

/// The command's process runs on that CPU only.
pub fn pin(command: &mut Command, cpu: u32) -> &mut Command {
    let cpu = Cpus::one(cpu);
    // SAFETY: between fork and exec the closure makes one system call.
    unsafe { command.pre_exec(move || cpu.apply()) }
}

/// The command's process keeps these descriptors, under the numbers that they have here.
pub fn keep_open(command: &mut Command, descriptors: Vec<OwnedFd>) -> &mut Command {
    // SAFETY: between fork and exec the closure makes system calls only.
    unsafe {
        command.pre_exec(move || {
            for descriptor in &descriptors {
                fcntl_setfd(descriptor, FdFlags::empty())?;
            }
            Ok(())
        })
    }
}

/// Forks a child that does `work` and exits with its answer; the child is killed when the calling
/// thread ends. Returns the child's number.
///
/// # Safety
///
/// The calling process has one thread: after a fork the child has no other, and a lock that another
/// thread held stays locked.
pub unsafe fn fork(work: impl FnOnce() -> i32) -> io::Result<u32> {
    let parent = getpid();
    // SAFETY: the caller has one thread, so the child may do anything.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            let status = match wish_to_end_with(parent) {
                Ok(()) => work(),
                Err(_) => 1,
            };
            // SAFETY: ends the child without its parent's destructors.
            unsafe { libc::_exit(status) }
        }
        child => Ok(child as u32),
    }
}

fn wish_to_end_with(parent: Pid) -> Result<(), Errno> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    // The parent may have ended before the wish was heard.
    if getppid() == Some(parent) { Ok(()) } else { Err(Errno::SRCH) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory;
    use crate::process::Process;
    use std::io::{Read, Write};
    use std::os::fd::AsRawFd;
    use std::process::Stdio;

    #[test]
    fn a_child_ends_with_the_thread_that_started_it() {
        let (sender, receiver) = std::sync::mpsc::channel();
        let starter = std::thread::spawn(move || {
            let mut command = Command::new("sleep");
            let child = end_with_parent(command.arg("1000")).spawn().unwrap();
            sender.send(Process::open(child.id()).unwrap()).unwrap();
            child
        });
        let process = receiver.recv().unwrap();
        let mut child = starter.join().unwrap();
        use std::os::unix::process::ExitStatusExt;
        assert_eq!(child.wait().unwrap().signal(), Some(Signal::KILL.as_raw()));
        assert!(!process.lives());
    }

    #[test]
    fn a_child_reads_a_descriptor_that_was_kept_open() {
        let mut file = std::fs::File::from(memory::file("kept").unwrap());
        file.write_all(b"kept open").unwrap();
        let mut command = Command::new("cat");
        command.arg(format!("/dev/fd/{}", file.as_raw_fd())).stdout(Stdio::piped());
        let mut child = keep_open(&mut command, vec![file.into()]).spawn().unwrap();
        let mut text = String::new();
        child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
        assert!(child.wait().unwrap().success());
        assert_eq!(text, "kept open");
    }
}
