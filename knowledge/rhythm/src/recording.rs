//! Recordings: text, one event a line.
//!
//! ```text
//! TIME [THREAD [KIND [NUMBER]]]
//! ```
//!
//! TIME is in seconds, THREAD the number of a thread, KIND one of `enter` and `exit` (of the system
//! call NUMBER), `wake` and `block` (the thread became runnable; stopped being so, after NUMBER
//! nanoseconds of CPU time since it last did). A file with times alone is a recording: its events
//! are entries of one nameless thread. Empty lines and lines that begin with `#` are skipped, but
//! `# lost N` says that N events are missing. Times need not be sorted.

use thiserror::Error;

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Enter,
    Exit,
    Wake,
    Block,
}

/// One line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Event {
    /// Seconds.
    pub time: f64,
    /// None in recordings that do not tell.
    pub thread: Option<u32>,
    pub kind: Kind,
    /// The system call, or the CPU time of the job that ends here, in nanoseconds.
    pub number: Option<u64>,
}

/// A file's content.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recording {
    /// Sorted by time.
    pub events: Vec<Event>,
    /// Events that the tracer could not keep.
    pub lost: u64,
}

/// A line that is no event.
#[derive(Debug, Error, PartialEq)]
#[error(
    "line {line}: `{text}` is no {expected}; a line is `TIME [THREAD [KIND [NUMBER]]]`, TIME in \
        seconds"
)]
pub struct BadLine {
    /// Counted from one.
    pub line: usize,
    /// The word that is wrong, shortened.
    pub text: String,
    pub expected: &'static str,
}

/// Reads a recording. Bytes that are no text are a bad line like any other.
pub fn parse(bytes: &[u8]) -> Result<Recording, BadLine> {
    let mut recording = Recording::default();
    for (index, line) in bytes.split(|&byte| byte == b'\n').enumerate() {
        match parse_line(line, index + 1)? {
            Some(event) => recording.events.push(event),
            None => recording.lost = recording.lost.saturating_add(lost(line)),
        }
    }
    if !recording.events.is_sorted_by(|a, b| a.time <= b.time) {
        recording.events.sort_by(|a, b| a.time.total_cmp(&b.time));
    }
    Ok(recording)
}

/// What a comment says of missing events.
fn lost(line: &[u8]) -> u64 {
    let text = std::str::from_utf8(line).unwrap_or("");
    text.strip_prefix("# lost ").and_then(|count| count.trim().parse().ok()).unwrap_or(0)
}

/// One line; None for a line that says nothing.
pub fn parse_line(line: &[u8], number: usize) -> Result<Option<Event>, BadLine> {
    let bad = |word: &[u8], expected| {
        let text: String =
            String::from_utf8_lossy(word).chars().take(30).flat_map(char::escape_default).collect();
        BadLine { line: number, text, expected }
    };
    let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let text = |word: &[u8]| std::str::from_utf8(word).ok().map(str::to_owned);
    let Some(first) = words.next().filter(|word| word[0] != b'#') else { return Ok(None) };
    let time = text(first)
        .and_then(|text| text.parse().ok())
        .filter(|time: &f64| time.is_finite() && time.abs() < 1e12);
    let mut event = Event {
        time: time.ok_or_else(|| bad(first, "time"))?,
        thread: None,
        kind: Kind::Enter,
        number: None,
    };
    if let Some(word) = words.next() {
        event.thread = Some(
            text(word)
                .and_then(|text| text.parse().ok())
                .ok_or_else(|| bad(word, "thread number"))?,
        );
    }
    if let Some(word) = words.next() {
        event.kind = match word {
            b"enter" => Kind::Enter,
            b"exit" => Kind::Exit,
            b"wake" => Kind::Wake,
            b"block" => Kind::Block,
            _ => return Err(bad(word, "kind (enter, exit, wake or block)")),
        };
    }
    if let Some(word) = words.next() {
        event.number =
            Some(text(word).and_then(|text| text.parse().ok()).ok_or_else(|| bad(word, "number"))?);
    }
    match words.next() {
        Some(word) => Err(bad(word, "end of the line")),
        None => Ok(Some(event)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_both_forms_and_sorts() {
        let recording =
            parse(b"# a comment\n0.5\n\n# lost 3\n0.25 17 exit 202\r\n0.7 17 block 812345\n")
                .unwrap();
        let Recording { events, lost } = recording;
        assert_eq!((events.len(), lost), (3, 3));
        assert_eq!(
            events[0],
            Event { time: 0.25, thread: Some(17), kind: Kind::Exit, number: Some(202) }
        );
        assert_eq!(events[1], Event { time: 0.5, thread: None, kind: Kind::Enter, number: None });
    }

    #[test]
    fn names_the_line_and_the_word() {
        let message = |bytes: &[u8]| parse(bytes).unwrap_err().to_string();
        assert!(message(b"0.1\nNaN\n").starts_with("line 2: `NaN` is no time"));
        assert!(message(b"0.1 x").starts_with("line 1: `x` is no thread number"));
        assert!(message(b"0.1 1 leave").contains("kind (enter"));
        assert!(message(b"0.1 1 exit 3 4").contains("end of the line"));
        assert!(message(b"\xff\xfe\x00\n").starts_with("line 1"));
        assert!(message(b"inf").contains("no time"));
    }
}
