//! Wake-up sockets: how a member that is chosen learns it.
//!
//! Each slot has a Unix datagram socket in the session's directory, bound by the slot's owner. It
//! is a socket rather than a futex for three reasons. It can be waited for together with
//! descriptors, so that event loops that are not ours can cooperate. Sending to a program that has
//! died fails at once (ECONNREFUSED), however it died. And nothing in shared memory decides whether
//! a wake-up arrives. The bytes of a datagram have no meaning: it says "look at the page".

use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};

/// A member's own socket, from which it also wakes others.
pub struct WakeUpSocket {
    socket: UnixDatagram,
    path: PathBuf,
    /// The file by which others find it: device and number.
    file: Option<(u64, u64)>,
}

/// The result of waking a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Woken {
    Yes,
    /// The slot has no owner that listens (any more).
    NoOwner,
}

/// The longest path of a socket.
const LONGEST: usize = 107;

impl WakeUpSocket {
    /// The socket of a slot that no other member owns.
    pub fn bind(directory: &Path, slot: u32) -> io::Result<WakeUpSocket> {
        let path = path(directory, slot);
        if path.as_os_str().len() > LONGEST {
            let message = format!(
                "{} is too long for a socket's address ({LONGEST} bytes at most): choose a \
                 directory with a shorter path",
                path.display()
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        let _ = std::fs::remove_file(&path);
        let socket = UnixDatagram::bind(&path)?;
        socket.set_nonblocking(true)?;
        let file = file_at(&path);
        Ok(WakeUpSocket { socket, path, file })
    }

    /// Whether others still find it. They do not where the directory was cleared, or where a member
    /// with another page has bound its own socket there.
    pub fn is_found(&self) -> bool {
        file_at(&self.path) == self.file
    }

    /// Readable when another member has sent a wake-up.
    pub fn fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    /// Takes in all wake-ups that were sent.
    pub fn drain(&self) {
        let mut byte = [0];
        // A bounded number: a member that sends without end only keeps us awake.
        for _ in 0..64 {
            if self.socket.recv(&mut byte).is_err() {
                break;
            }
        }
    }

    /// Removes its name, so that no other member finds it any more.
    pub fn unlink(&self) {
        if self.is_found() {
            let _ = std::fs::remove_file(&self.path);
        }
    }

    pub fn wake(&self, directory: &Path, slot: u32) -> Woken {
        match self.socket.send_to(b"!", path(directory, slot)) {
            Ok(_) => Woken::Yes,
            // Full: it has not looked yet at the wake-ups that were sent before.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Woken::Yes,
            Err(_) => Woken::NoOwner,
        }
    }
}

/// Whether a member listens at the slot's socket; does not wake it.
pub fn is_listening(directory: &Path, slot: u32) -> bool {
    let Ok(socket) = UnixDatagram::unbound() else { return true };
    socket.connect(path(directory, slot)).is_ok()
}

fn file_at(path: &Path) -> Option<(u64, u64)> {
    let file = std::fs::symlink_metadata(path).ok()?;
    Some((file.dev(), file.ino()))
}

fn path(directory: &Path, slot: u32) -> PathBuf {
    directory.join(format!("wakeup-{slot}"))
}
