//! Memory that the programs of a session share, and the file by which they find it.
//!
//! It is a System V segment, not a mapped file: its size cannot be changed, so no program can take
//! the page away from under the others (reading a truncated file kills with SIGBUS). The file
//! `page` of the session's directory holds its number and is locked while a program joins or
//! leaves. The segment is marked for removal as soon as it is mapped: on Linux it can be attached
//! by its number until the last has left or died, and then it is gone.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::time::Duration;

use attune_linux::process;

/// How often a program tries to lock the file, 10 ms apart.
const TRIES: u32 = 100;

/// A mapped segment of zeros, or of what the others have written.
pub struct Segment {
    id: i32,
    address: NonNull<u8>,
    file: PathBuf,
}

/// The session's file, locked.
pub struct Locked(File);

impl Locked {
    pub fn open(path: &Path) -> io::Result<Locked> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        options.custom_flags(libc::O_NOFOLLOW | libc::O_CLOEXEC);
        let mut file = options.open(path)?;
        // A program that holds it for longer than a moment hangs, and must not make us hang too.
        for _ in 0..TRIES {
            match file.try_lock() {
                Ok(()) => {
                    let locked = Locked(file);
                    if locked.is_at(path)? {
                        return Ok(locked);
                    }
                    // The last member removed it before we had the lock.
                    file = options.open(path)?;
                }
                Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(10)),
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
        Err(io::Error::new(
            io::ErrorKind::TimedOut,
            "another program has its file locked for a second and more: end the program that hangs",
        ))
    }

    fn is_at(&self, path: &Path) -> io::Result<bool> {
        let own = self.0.metadata()?;
        let there = std::fs::symlink_metadata(path);
        Ok(there.is_ok_and(|there| (there.dev(), there.ino()) == (own.dev(), own.ino())))
    }

    /// The segment that it names, if its text is a number.
    fn named(&mut self) -> Option<i32> {
        let mut text = String::new();
        let _ = (&mut self.0).take(32).read_to_string(&mut text);
        text.trim().parse().ok()
    }
}

impl Segment {
    /// The segment that the file names, if it is ours and of this size; else a new one.
    pub fn open(file: &Path, size: usize) -> io::Result<(Segment, Locked)> {
        let mut locked = Locked::open(file)?;
        let recorded = locked.named().filter(|id| is_ours(*id, size));
        if let Some((id, address)) = recorded.and_then(|id| Some((id, attach(id).ok()?))) {
            return Ok((Segment { id, address, file: file.to_owned() }, locked));
        }
        // SAFETY: makes a segment, or fails with -1.
        let id = unsafe { libc::shmget(libc::IPC_PRIVATE, size, libc::IPC_CREAT | 0o600) };
        if id < 0 {
            return Err(io::Error::last_os_error());
        }
        let attached = attach(id);
        remove(id);
        let address = attached?;
        let segment = Segment { id, address, file: file.to_owned() };
        let write = |file: &mut File| -> io::Result<()> {
            file.set_len(0)?;
            file.rewind()?;
            file.write_all(id.to_string().as_bytes())
        };
        match write(&mut locked.0) {
            Ok(()) => Ok((segment, locked)),
            Err(error) => {
                // The segment's end takes the lock itself.
                drop(locked);
                Err(error)
            }
        }
    }

    /// `size` bytes as given to `open`, zero at first; aligned to a page.
    pub fn address(&self) -> NonNull<u8> {
        self.address
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        // Without the lock the file stays, and names no segment.
        let locked = Locked::open(&self.file);
        // SAFETY: attached in `open`, and nothing refers to it any more.
        unsafe { libc::shmdt(self.address.as_ptr().cast()) };
        // It may have been removed, and name another segment since.
        if let Ok(mut locked) = locked
            && status(self.id).is_none()
            && locked.named().is_none_or(|named| named == self.id)
        {
            let _ = std::fs::remove_file(&self.file);
        }
    }
}

fn attach(id: i32) -> io::Result<NonNull<u8>> {
    // SAFETY: the kernel chooses a free address.
    let address = unsafe { libc::shmat(id, std::ptr::null(), 0) };
    match NonNull::new(address.cast::<u8>()) {
        Some(address) if address.as_ptr() as isize != -1 => Ok(address),
        _ => Err(io::Error::last_os_error()),
    }
}

fn status(id: i32) -> Option<libc::shmid_ds> {
    // SAFETY: plain data, written by the kernel.
    unsafe {
        let mut status: libc::shmid_ds = std::mem::zeroed();
        (libc::shmctl(id, libc::IPC_STAT, &mut status) == 0).then_some(status)
    }
}

fn is_ours(id: i32, size: usize) -> bool {
    let user = process::effective_user();
    status(id).is_some_and(|status| status.shm_perm.cuid == user && status.shm_segsz == size)
}

fn remove(id: i32) {
    // SAFETY: marks it for removal; mappings stay valid.
    unsafe { libc::shmctl(id, libc::IPC_RMID, std::ptr::null_mut()) };
}
