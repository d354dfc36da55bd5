//! Answers that are longer than a packet: a text in memory whose descriptor goes along.
//!
//! Invariant: the memory is sealed, so that what one side reads is what the other has written, whatever either does meanwhile.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// The longest text that is read, in bytes.
pub const LONGEST: u64 = 1 << 28;

/// Memory that holds the text and can be changed no more.
pub fn enclose(text: &[u8]) -> io::Result<OwnedFd> {
    let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
    // SAFETY: a string and flags; the descriptor is new and ours.
    let mut memory = unsafe {
        let fd = libc::memfd_create(c"attune-answer".as_ptr(), flags);
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        File::from_raw_fd(fd)
    };
    memory.write_all(text)?;
    let seals = libc::F_SEAL_SEAL | libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_WRITE;
    // SAFETY: plain numbers.
    match unsafe { libc::fcntl(memory.as_raw_fd(), libc::F_ADD_SEALS, seals) } {
        0 => Ok(memory.into()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The text of such memory, from its start.
pub fn read(memory: OwnedFd) -> io::Result<Vec<u8>> {
    let mut memory = File::from(memory);
    let length = memory.metadata()?.len();
    if length > LONGEST {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "the answer is too long"));
    }
    // The position is shared with whoever wrote it.
    io::Seek::rewind(&mut memory)?;
    let mut text = Vec::with_capacity(length as usize);
    memory.take(LONGEST).read_to_end(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_enclosed_is_read_and_cannot_be_changed() {
        let text: Vec<u8> = (0..100_000u32).map(|i| i as u8).collect();
        let memory = enclose(&text).unwrap();
        let mut writer = File::from(memory.try_clone().unwrap());
        assert_eq!(writer.write_all(b"other").unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        assert!(writer.set_len(3).is_err());
        assert_eq!(read(memory).unwrap(), text);
    }
}
