//! Frames on a byte stream: COBS, so that a 0 stands between two frames and nowhere else, with a
//! CRC-32 at the end. Numbers are little-endian.

/// To the node: which text does it run?
pub const WHO: u8 = b'Q';
/// To the node: age, values, changes of its own numbers.
pub const ASK: u8 = b'R';
/// The identity of the texts, and the family.
pub const HELLO: u8 = b'H';
/// Changes of shared numbers, its own numbers.
pub const ANSWER: u8 = b'A';
/// It has something to tell.
pub const NEWS: u8 = b'W';

/// A longer frame is none.
const LONGEST: usize = 1 << 16;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    pub kind: u8,
    pub session: u32,
    pub number: u32,
    pub body: Vec<u8>,
}

impl Frame {
    /// With a 0 in front, which ends what was lost, and one behind.
    pub fn bytes(&self) -> Vec<u8> {
        let mut raw = vec![self.kind];
        raw.extend(self.session.to_le_bytes());
        raw.extend(self.number.to_le_bytes());
        raw.extend(&self.body);
        raw.extend(checksum(&raw).to_le_bytes());
        let mut bytes = vec![0, 1];
        let mut code = 1;
        for byte in raw {
            if byte != 0 {
                bytes.push(byte);
                bytes[code] += 1;
            }
            if byte == 0 || bytes[code] == 255 {
                code = bytes.len();
                bytes.push(1);
            }
        }
        bytes.push(0);
        bytes
    }

    /// From what stood between two zeros.
    fn read(stuffed: &[u8]) -> Option<Frame> {
        let mut raw = Vec::with_capacity(stuffed.len());
        let mut rest = stuffed;
        while let Some((&code, behind)) = rest.split_first() {
            let (some, behind) = behind.split_at_checked(usize::from(code).checked_sub(1)?)?;
            raw.extend(some);
            rest = behind;
            if code < 255 && !rest.is_empty() {
                raw.push(0);
            }
        }
        let (raw, sum) = raw.split_last_chunk::<4>()?;
        if checksum(raw) != u32::from_le_bytes(*sum) {
            return None;
        }
        let (&kind, raw) = raw.split_first()?;
        let (session, raw) = raw.split_first_chunk::<4>()?;
        let (number, body) = raw.split_first_chunk::<4>()?;
        let (session, number) = (u32::from_le_bytes(*session), u32::from_le_bytes(*number));
        Some(Frame { kind, session, number, body: body.to_vec() })
    }
}

/// Finds frames in bytes that come in pieces of any size.
#[derive(Debug, Default)]
pub struct Reader {
    /// The frame that has begun; more than fits is no frame.
    bytes: Vec<u8>,
}

impl Reader {
    pub fn read(&mut self, bytes: &[u8]) -> Vec<Frame> {
        let mut frames = Vec::new();
        for &byte in bytes {
            if byte == 0 {
                frames.extend(Frame::read(&self.bytes));
                self.bytes.clear();
            } else if self.bytes.len() <= LONGEST {
                self.bytes.push(byte);
            }
        }
        frames
    }
}

fn checksum(bytes: &[u8]) -> u32 {
    let bit = |sum: u32, _| (sum >> 1) ^ (0xedb8_8320 & 0u32.wrapping_sub(sum & 1));
    !bytes.iter().fold(!0, |sum, byte| (0..8).fold(sum ^ u32::from(*byte), bit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_through_in_pieces_and_garbage_ends_with_the_next_zero() {
        assert_eq!(checksum(b"123456789"), 0xcbf4_3926);
        for length in [0, 1, 240, 241, 242, 243, 244, 245, 246, 253, 254, 255, 600] {
            for fill in [0, 1, 255] {
                let body = vec![fill; length];
                let frame = Frame { kind: ASK, session: 7, number: 256, body };
                let bytes = frame.bytes();
                assert!(!bytes[1..bytes.len() - 1].contains(&0));
                let mut reader = Reader::default();
                assert_eq!(reader.read(&[3, 200, 9]), []);
                let pieces = bytes.chunks(5).flat_map(|piece| reader.read(piece));
                assert_eq!(pieces.collect::<Vec<_>>(), [frame]);
                let mut wrong = bytes.clone();
                wrong[bytes.len() / 2] ^= 4;
                assert_eq!(reader.read(&wrong), [], "{length} times {fill}");
            }
        }
    }
}
