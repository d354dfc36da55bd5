//! Recordings: the observations of a desktop as text, one JSON object a line, and the ratings again
//! from them. The first line says the format and the settings. No key, text or window title is in
//! a recording; names of programs are.

use std::io::{self, BufRead, Write};

use serde::{Deserialize, Serialize};

use crate::attention::Attention;
use crate::observation::{Observation, Second};
use crate::settings::Settings;

const FORMAT: &str = "attune focus 1";
/// Bytes of a line.
const LONGEST: u64 = 64 << 20;

#[derive(Serialize, Deserialize)]
struct Header {
    format: String,
    settings: Settings,
}

/// Writes observations as they come.
pub struct Recorder<W: Write> {
    out: W,
}

impl<W: Write> Recorder<W> {
    pub fn start(mut out: W, settings: &Settings) -> io::Result<Recorder<W>> {
        let header = Header { format: FORMAT.to_owned(), settings: settings.clone() };
        writeln!(out, "{}", serde_json::to_string(&header)?)?;
        Ok(Recorder { out })
    }

    pub fn record(&mut self, observation: &Observation) -> io::Result<()> {
        writeln!(self.out, "{}", serde_json::to_string(observation)?)?;
        self.out.flush()
    }
}

#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    #[error("line {line}: {error}")]
    Read { line: usize, error: io::Error },
    #[error("line 1 is not the head of a recording of `attune focus --record`")]
    NoRecording,
    #[error("line {line} is no observation: {what}")]
    Line { line: usize, what: String },
}

/// Feeds a recording to ratings that begin anew, and shows them with each second. `adjust` may
/// change the settings that it was recorded with.
pub fn replay(
    mut input: impl BufRead,
    adjust: impl FnOnce(Settings) -> Settings,
    mut show: impl FnMut(&Attention, &Second),
) -> Result<Attention, ReplayError> {
    let mut text = String::new();
    let mut next = |line: usize, text: &mut String| {
        text.clear();
        let read = io::Read::take(&mut input, LONGEST).read_line(text);
        read.map_err(|error| ReplayError::Read { line, error })
    };
    next(1, &mut text)?;
    let header: Header = serde_json::from_str(&text).map_err(|_| ReplayError::NoRecording)?;
    if header.format != FORMAT {
        return Err(ReplayError::NoRecording);
    }
    let mut attention = Attention::new(adjust(header.settings));
    for line in 2.. {
        if next(line, &mut text)? == 0 {
            break;
        }
        let observation: Observation = serde_json::from_str(&text)
            .map_err(|error| ReplayError::Line { line, what: error.to_string() })?;
        attention.observe(&observation);
        if let Observation::Second(second) = &observation {
            show(&attention, second);
        }
    }
    Ok(attention)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observation::{Client, Input, Interaction, SECOND, Wakes};
    use crate::process::Process;

    fn observations() -> Vec<Observation> {
        let process = |pid| Process { pid, start: 1 };
        let mut all = Vec::new();
        for number in 1..6u64 {
            let key = Interaction::Key;
            let at = number * SECOND - 77_777;
            all.push(Observation::Input(Input { process: process(3), interaction: key, at }));
            let client = Client {
                changed: 0.1 / number as f64,
                visible: 0.3,
                focused: true,
                ..Client::unseen(process(3))
            };
            all.push(Observation::Second(Second {
                at: number * SECOND,
                clients: vec![client],
                wakes: vec![Wakes { from: process(3), to: process(4), count: number }],
                ..Second::default()
            }));
        }
        all
    }

    fn recorded() -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut recorder = Recorder::start(&mut bytes, &Settings::default()).unwrap();
        observations().iter().for_each(|one| recorder.record(one).unwrap());
        bytes
    }

    #[test]
    fn a_replay_gives_the_ratings_of_the_recording() {
        let mut live = Attention::new(Settings::default());
        let mut seen = Vec::new();
        for observation in observations() {
            live.observe(&observation);
            if matches!(observation, Observation::Second(_)) {
                seen.push(live.rated().clone());
            }
        }
        let mut again = Vec::new();
        let show = |attention: &Attention, _: &Second| again.push(attention.rated().clone());
        replay(recorded().as_slice(), |settings| settings, show).unwrap();
        assert_eq!(again, seen);
        assert!(!seen[4].is_empty());
    }

    #[test]
    fn a_replay_with_other_settings_gives_other_ratings() {
        let adjust = |settings| Settings { ceiling: 5.0, ..settings };
        let attention = replay(recorded().as_slice(), adjust, |_, _| ()).unwrap();
        assert!(attention.rated().values().all(|rated| rated.input.value <= 5.0));
    }

    #[test]
    fn a_file_that_is_no_recording_is_refused_with_its_line() {
        let errors = ["", "{}", "nonsense\n", "{\"format\":\"attune focus 9\",\"settings\":{}}\n"];
        for text in errors {
            let error = replay(text.as_bytes(), |settings| settings, |_, _| ()).err().unwrap();
            assert!(matches!(error, ReplayError::NoRecording), "{text}: {error}");
        }
        let mut bytes = recorded();
        bytes.extend(b"{\"second\":{}}\n");
        let error = replay(bytes.as_slice(), |settings| settings, |_, _| ()).err().unwrap();
        assert!(error.to_string().starts_with("line 12 is no observation"), "{error}");
    }
}
