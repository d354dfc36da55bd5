//! Child processes, memory that they share with their parent, and files in which they say
//! something. A child that is still there when its value is dropped is killed.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::atomic::AtomicU64;

use anyhow::{Result, bail};
use attune_linux::child::fork;
use attune_linux::{process, signal};
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};
use rustix::process::Uid;
use rustix::thread::set_thread_res_uid;

/// A running child.
pub struct Child {
    pid: u32,
    waited: bool,
}

impl Child {
    /// Forks a child that does `work` and exits with its answer. It dies with its parent.
    pub fn start(work: impl FnOnce() -> i32) -> io::Result<Child> {
        // SAFETY: this program has one thread.
        Ok(Child { pid: unsafe { fork(work)? }, waited: false })
    }

    /// The same as another user, which only root may ask for.
    pub fn of_user(user: u32, job: impl FnOnce()) -> io::Result<Child> {
        Child::start(|| {
            let user = Some(Uid::from_raw(user));
            if set_thread_res_uid(user, user, user).is_err() {
                return 1;
            }
            job();
            0
        })
    }

    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Waits for its end. Err: it did not exit with 0.
    pub fn wait(mut self) -> Result<()> {
        match self.collect()? {
            0 => Ok(()),
            status => bail!("a process of the workload failed (wait status {status:#x})"),
        }
    }

    fn collect(&mut self) -> io::Result<i32> {
        let mut status = 0;
        // SAFETY: our own child.
        while unsafe { libc::waitpid(self.pid as i32, &mut status, 0) } < 0 {
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
        self.waited = true;
        Ok(status)
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if !self.waited {
            let _ = process::signal(self.pid, signal::KILL);
            let _ = self.collect();
        }
    }
}

/// Numbers that a child's writing shows to its parent. Never unmapped: a workload is all that this
/// program does.
pub fn shared(count: usize) -> io::Result<&'static [AtomicU64]> {
    let length = count.max(1) * size_of::<AtomicU64>();
    let (readable, kind) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
    // SAFETY: a new mapping of zeroes, which are valid AtomicU64s, and it lasts.
    unsafe {
        let memory = mmap_anonymous(std::ptr::null_mut(), length, readable, kind)?;
        Ok(std::slice::from_raw_parts(memory.cast(), count))
    }
}

/// For what a program says. Without a name, so that nothing is left behind and two runs do not
/// meet.
pub fn memory_file() -> io::Result<File> {
    Ok(attune_linux::memory::file("said")?.into())
}

/// What it has said there so far. It may write on meanwhile: its own place in the file is not
/// touched.
pub fn said(file: &File) -> String {
    let mut bytes = vec![0; file.metadata().map_or(0, |about| about.len() as usize)];
    let length = file.read_at(&mut bytes, 0).unwrap_or(0);
    String::from_utf8_lossy(&bytes[..length]).into_owned()
}

/// Context switches of this process since it began: by its own blocking, and forced.
pub fn own_switches() -> io::Result<(u64, u64)> {
    // SAFETY: zeroes are a valid rusage, which the kernel fills.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: as above.
    match unsafe { libc::getrusage(libc::RUSAGE_SELF, &mut usage) } {
        0 => Ok((usage.ru_nvcsw as u64, usage.ru_nivcsw as u64)),
        _ => Err(io::Error::last_os_error()),
    }
}
