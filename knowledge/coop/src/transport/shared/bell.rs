//! Doorbells: how the member that is chosen learns it.
//!
//! Each slot has a Unix datagram socket in the domain's directory, bound by the slot's owner. A socket rather than a futex for three
//! reasons: it can be waited for together with descriptors, so that event loops that are not ours can cooperate; ringing the bell of a
//! program that has died fails at once (ECONNREFUSED), however it died; and nothing in shared memory decides whether a wake-up
//! arrives. What a datagram holds is of no meaning: a bell says "look at the page".

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// One's own bell, with which one rings others' too.
pub struct Bell {
    socket: OwnedFd,
    path: PathBuf,
    /// Of the file by which others find it: device and number.
    file: Option<(u64, u64)>,
}

/// What came of ringing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rung {
    Yes,
    /// There is nobody behind that bell (any more).
    Nobody,
}

impl Bell {
    /// The bell of a slot that nobody else owns.
    pub fn hang(directory: &Path, slot: u32) -> io::Result<Bell> {
        let path = path(directory, slot);
        let address = address(&path)?;
        let kind = libc::SOCK_DGRAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        // SAFETY: makes a descriptor, or fails with -1.
        let socket = unsafe { libc::socket(libc::AF_UNIX, kind, 0) };
        if socket < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: it is new and nobody else's.
        let socket = unsafe { OwnedFd::from_raw_fd(socket) };
        let _ = std::fs::remove_file(&path);
        // SAFETY: the address is valid for its size.
        let bound = unsafe {
            libc::bind(socket.as_raw_fd(), (&raw const address).cast(), size_of_val(&address) as u32)
        };
        if bound < 0 {
            return Err(io::Error::last_os_error());
        }
        let file = file_at(&path);
        Ok(Bell { socket, path, file })
    }

    /// Whether others find it still; else the directory was cleared, or somebody with another page has hung their own there.
    pub fn hangs(&self) -> bool {
        file_at(&self.path) == self.file
    }

    /// Readable when it was rung.
    pub fn fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    /// Takes in all that was rung.
    pub fn quiet(&self) {
        let mut byte = 0u8;
        // A bounded number: who rings without end only keeps us awake.
        for _ in 0..64 {
            // SAFETY: writes at most one byte there.
            let got = unsafe { libc::recv(self.fd(), (&raw mut byte).cast(), 1, libc::MSG_DONTWAIT) };
            if got < 0 {
                break;
            }
        }
    }

    /// Nobody finds it any more.
    pub fn take_down(&self) {
        if self.hangs() {
            let _ = std::fs::remove_file(&self.path);
        }
    }

    pub fn ring(&self, directory: &Path, slot: u32) -> Rung {
        let Ok(address) = address(&path(directory, slot)) else { return Rung::Nobody };
        let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
        // SAFETY: one byte is read from there, and the address is valid for its size.
        let sent = unsafe {
            let (byte, to) = (c"!".as_ptr().cast(), (&raw const address).cast());
            libc::sendto(self.fd(), byte, 1, flags, to, size_of_val(&address) as u32)
        };
        match sent {
            1 => Rung::Yes,
            // Full: it has not looked yet at what was rung before.
            _ if io::Error::last_os_error().kind() == io::ErrorKind::WouldBlock => Rung::Yes,
            _ => Rung::Nobody,
        }
    }
}

/// Whether somebody hangs behind the slot's bell; does not ring it.
pub fn answers(directory: &Path, slot: u32) -> bool {
    let Ok(address) = address(&path(directory, slot)) else { return false };
    // SAFETY: makes a descriptor, which is closed below.
    let socket = unsafe { libc::socket(libc::AF_UNIX, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
    if socket < 0 {
        return true;
    }
    // SAFETY: the address is valid for its size; the descriptor is ours.
    unsafe {
        let connected = libc::connect(socket, (&raw const address).cast(), size_of_val(&address) as u32);
        libc::close(socket);
        connected == 0
    }
}

fn file_at(path: &Path) -> Option<(u64, u64)> {
    let file = std::fs::symlink_metadata(path).ok()?;
    Some((file.dev(), file.ino()))
}

fn path(directory: &Path, slot: u32) -> PathBuf {
    directory.join(format!("bell-{slot}"))
}

fn address(path: &Path) -> io::Result<libc::sockaddr_un> {
    // SAFETY: plain data.
    let mut address: libc::sockaddr_un = unsafe { std::mem::zeroed() };
    address.sun_family = libc::AF_UNIX as _;
    let bytes = path.as_os_str().as_bytes();
    if bytes.len() >= address.sun_path.len() {
        let message = format!(
            "{} is too long for a socket's address ({} bytes at most)",
            path.display(),
            address.sun_path.len() - 1
        );
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    for (to, from) in address.sun_path.iter_mut().zip(bytes) {
        *to = *from as _;
    }
    Ok(address)
}
