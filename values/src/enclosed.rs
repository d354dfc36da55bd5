//! What is longer than a packet: a text in memory whose descriptor goes along.
//!
//! Invariant: the memory is sealed, so that the reader reads what the writer wrote, whatever either
//! does meanwhile.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;

use attune_linux::memory;

use crate::wire::{self, Hint};

/// The longest text that is read from a peer which is trusted, in bytes.
const LONGEST: u64 = 1 << 28;

/// Memory that holds the text and can be changed no more.
pub fn enclose(text: &[u8]) -> io::Result<OwnedFd> {
    memory::sealed("attune-answer", text)
}

/// The text of such memory, from its start.
pub fn read(memory: OwnedFd) -> io::Result<Vec<u8>> {
    read_up_to(memory, LONGEST)
}

/// The same of a peer that is not trusted: `most` bytes at most, and nothing that could keep the
/// reader waiting, such as a pipe.
pub fn read_up_to(memory: OwnedFd, most: u64) -> io::Result<Vec<u8>> {
    let mut memory = File::from(memory);
    let length = memory.metadata()?.len();
    if length > most {
        let message = format!("the text has {length} bytes, and at most {most} are read");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    if !memory::is_sealed(&memory) {
        let message = "the text is not in memory that is sealed";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    // The writer shares the position.
    io::Seek::rewind(&mut memory)?;
    let mut text = Vec::with_capacity(length as usize);
    memory.take(most).read_to_end(&mut text)?;
    Ok(text)
}

/// The list that comes with `wire::Request::Hints`. Err: what is wrong with it, for its giver.
pub fn read_hints(memory: Option<OwnedFd>) -> Result<Vec<Hint>, String> {
    let memory = memory.ok_or("the list's descriptor is missing")?;
    let text = read_up_to(memory, wire::HINTS).map_err(|error| error.to_string())?;
    serde_json::from_slice(&text).map_err(|error| format!("this is no list of hints: {error}"))
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
        let memory = enclose(&[0; 100]).unwrap();
        assert_eq!(read_up_to(memory, 99).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
    }

    #[test]
    fn what_could_keep_the_reader_waiting_is_not_read() {
        let (pipe, _open) = std::io::pipe().unwrap();
        for other in [pipe.into(), memory::zeros("attune-answer", 3).unwrap()] {
            assert_eq!(read_up_to(other, 99).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        }
    }
}
