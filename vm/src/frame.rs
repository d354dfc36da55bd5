//! The messages between host and guest: a byte that says what it is, the length as 4 bytes (little
//! endian), the payload. guest/init.c has the other end.

/// From the guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    Output(Vec<u8>),
    ErrorOutput(Vec<u8>),
    /// There is room for standard input.
    InputWanted,
    /// wait's status of the command.
    Exit(i32),
    /// The command could not be run.
    NotRun {
        errno: i32,
        doing: String,
    },
}

/// No message is longer.
pub const LONGEST: usize = 1 << 16;
const HEADER: usize = 5;

/// Cuts a stream of bytes, arriving in any portions, into frames.
#[derive(Default)]
pub struct Decoder(Vec<u8>);

impl Decoder {
    pub fn push(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// The next whole frame. Err: it is none; what was heard instead.
    pub fn next(&mut self) -> Option<Result<Frame, String>> {
        let (kind, length) = (*self.0.first()?, self.0.get(1..HEADER)?);
        let length = u32::from_le_bytes(length.try_into().ok()?) as usize;
        if length > LONGEST || !b"OEWXF".contains(&kind) {
            return Some(Err(String::from_utf8_lossy(&self.0).into_owned()));
        }
        let payload = self.0.get(HEADER..HEADER + length)?.to_vec();
        self.0.drain(..HEADER + length);
        let number =
            |bytes: &[u8]| bytes.first_chunk().map_or(0, |bytes| i32::from_le_bytes(*bytes));
        Some(Ok(match kind {
            b'O' => Frame::Output(payload),
            b'E' => Frame::ErrorOutput(payload),
            b'W' => Frame::InputWanted,
            b'X' => Frame::Exit(number(&payload)),
            _ => Frame::NotRun {
                errno: number(&payload),
                doing: String::from_utf8_lossy(payload.get(4..).unwrap_or_default()).into_owned(),
            },
        }))
    }
}

/// To the guest: a part of standard input, at most [`LONGEST`] bytes; empty: its end.
pub fn input(bytes: &[u8]) -> Vec<u8> {
    encode(b'I', bytes)
}

/// To the guest: a signal for the command's processes.
pub fn signal(number: u8) -> Vec<u8> {
    encode(b'K', &[number])
}

fn encode(kind: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![kind];
    bytes.extend((payload.len() as u32).to_le_bytes());
    bytes.extend(payload);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_arrive_whole_however_the_bytes_are_cut() {
        let stream = b"O\x03\0\0\0abcX\x04\0\0\0\x00\x07\0\0W\0\0\0\0F\x05\0\0\0\x02\0\0\0x";
        for portion in 1..stream.len() {
            let (mut decoder, mut frames) = (Decoder::default(), vec![]);
            for bytes in stream.chunks(portion) {
                decoder.push(bytes);
                frames.extend(
                    std::iter::from_fn(|| decoder.next()).map(|frame| frame.expect("a frame")),
                );
            }
            let not_run = Frame::NotRun { errno: 2, doing: "x".to_owned() };
            assert_eq!(
                frames,
                [Frame::Output(b"abc".to_vec()), Frame::Exit(0x700), Frame::InputWanted, not_run]
            );
        }
    }

    #[test]
    fn what_is_no_frame_is_told() {
        for nonsense in [&b"Kernel panic"[..], b"O\xff\xff\xff\x7f"] {
            let mut decoder = Decoder::default();
            decoder.push(nonsense);
            assert!(decoder.next().expect("an answer").is_err());
        }
    }
}
