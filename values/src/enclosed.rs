//! Answers that are longer than a packet: a text in memory whose descriptor goes along.
//!
//! Invariant: the memory is sealed, so that the reader reads what the writer wrote, whatever either
//! does meanwhile.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;

use attune_linux::memory;

/// The longest text that is read, in bytes.
pub const LONGEST: u64 = 1 << 28;

/// Memory that holds the text and can be changed no more.
pub fn enclose(text: &[u8]) -> io::Result<OwnedFd> {
    memory::sealed("attune-answer", text)
}

/// The text of such memory, from its start.
pub fn read(memory: OwnedFd) -> io::Result<Vec<u8>> {
    let mut memory = File::from(memory);
    let length = memory.metadata()?.len();
    if length > LONGEST {
        let message = format!("the answer has {length} bytes, and at most {LONGEST} are read");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    // The writer shares the position.
    io::Seek::rewind(&mut memory)?;
    let mut text = Vec::with_capacity(length as usize);
    memory.take(LONGEST).read_to_end(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_enclosed_text_is_read_from_its_start_each_time() {
        let text: Vec<u8> = (0..100_000u32).map(|i| i as u8).collect();
        let memory = enclose(&text).unwrap();
        assert_eq!(read(memory.try_clone().unwrap()).unwrap(), text);
        assert_eq!(read(memory).unwrap(), text);
    }

    #[test]
    fn a_text_that_is_too_long_is_not_read() {
        let memory = memory::zeros("attune-answer", LONGEST as usize + 1).unwrap();
        assert_eq!(read(memory).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
    }
}
