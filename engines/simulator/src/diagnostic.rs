//! Makes messages about a workload that cannot be read or a simulation that cannot go on: what
//! happened, where, and what to do about it.
//!
//! Lines and columns count from 1, columns in characters.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use crate::scheduler::Place;

/// A workload's text under the name by which the user knows it.
#[derive(Clone, Debug)]
pub struct Source {
    pub name: Arc<str>,
    pub text: Arc<str>,
}

impl Source {
    pub fn new(name: &str, text: &str) -> Source {
        Source { name: name.into(), text: text.into() }
    }

    /// The place of a byte range, with the line that it stands in.
    pub fn locate(&self, span: &Range<usize>) -> Location {
        let text = &*self.text;
        let mut start = span.start.min(text.len());
        while !text.is_char_boundary(start) {
            start -= 1;
        }
        let line_start = text[..start].rfind('\n').map_or(0, |newline| newline + 1);
        let line_end = text[start..].find('\n').map_or(text.len(), |newline| start + newline);
        let end = span.end.clamp(start, line_end);
        let width = text.get(start..end).map_or(1, |marked| marked.chars().count()).max(1);
        Location {
            place: Place {
                file: self.name.to_string(),
                line: text[..line_start].matches('\n').count() as u32 + 1,
                column: text[line_start..start].chars().count() as u32 + 1,
            },
            excerpt: text[line_start..line_end].trim_end().to_string(),
            width,
        }
    }
}

/// A place and the line of text there, ready to be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    pub place: Place,
    pub excerpt: String,
    /// Characters to underline.
    pub width: usize,
}

/// An error or a warning; the caller that shows it says which.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    pub message: String,
    pub location: Option<Location>,
    pub hint: Option<String>,
}

impl Diagnostic {
    pub fn new(message: impl Into<String>) -> Diagnostic {
        Diagnostic { message: message.into(), location: None, hint: None }
    }

    pub fn at(mut self, location: Location) -> Diagnostic {
        self.location = Some(location);
        self
    }

    pub fn hint(mut self, hint: impl Into<String>) -> Diagnostic {
        self.hint = Some(hint.into());
        self
    }

    pub fn place(&self) -> Option<&Place> {
        self.location.as_ref().map(|location| &location.place)
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        if let Some(Location { place, excerpt, width }) = &self.location {
            write!(f, "\n  --> {place}")?;
            if !excerpt.is_empty() {
                let number = place.line.to_string();
                let margin = " ".repeat(number.len());
                // A tab stays a tab, so that the mark stands under what it marks.
                let before: String = excerpt
                    .chars()
                    .take(place.column as usize - 1)
                    .map(|c| if c == '\t' { '\t' } else { ' ' })
                    .collect();
                let mark = "^".repeat(*width);
                write!(f, "\n{margin} |\n{number} | {excerpt}\n{margin} | {before}{mark}")?;
            }
        }
        if let Some(hint) = &self.hint {
            write!(f, "\n  hint: {hint}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Diagnostic {}

/// The known name closest to a misspelt one, if one is close enough to be meant.
pub(crate) fn closest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    known
        .into_iter()
        .map(|candidate| (edit_distance(name, candidate), candidate))
        .filter(|&(distance, candidate)| distance <= 1 + candidate.len() / 4)
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, candidate)| candidate)
}

fn edit_distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    // Names are short; a long one is no misspelling of a known word.
    for (i, ca) in a.chars().take(64).enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, cb) in b.iter().enumerate() {
            let substitute = diagonal + usize::from(ca != *cb);
            diagonal = row[j + 1];
            row[j + 1] = substitute.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diagnostic_marks_its_place() {
        let source = Source::new("w.toml", "a = 1\nb = \u{e9}x wrong\n");
        let start = source.text.find("wrong").unwrap();
        let error = Diagnostic::new("no such thing")
            .at(source.locate(&(start..start + 5)))
            .hint("leave it out");
        assert_eq!(
            error.to_string(),
            "no such thing\n  --> w.toml:2:8\n  |\n2 | b = \u{e9}x wrong\n  |        ^^^^^\n  \
                hint: leave it out"
        );
    }

    #[test]
    fn misspelt_words_find_their_neighbour() {
        assert_eq!(closest("compte", ["compute", "sleep"]), Some("compute"));
        assert_eq!(closest("zebra", ["compute", "sleep"]), None);
    }
}
