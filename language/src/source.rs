//! Source files and places in them.
//!
//! Units: a [`Span`] counts bytes from the start of its file; lines and columns, as people are
//! shown them, count from 1, and columns count characters. Invariant: a [`SourceId`] is the index
//! of its file in the [`SourceMap`] that made it.

use std::ops::Range;

use codespan_reporting::files;

/// Names one file of a [`SourceMap`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SourceId(pub u32);

impl SourceId {
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A stretch of text in one file: the bytes `start..end`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Span {
    pub source: SourceId,
    pub start: u32,
    pub end: u32,
}

impl Span {
    pub fn new(source: SourceId, range: rowan::TextRange) -> Span {
        Span { source, start: range.start().into(), end: range.end().into() }
    }

    /// The empty span just behind this one: where something is missing.
    pub fn after(self) -> Span {
        Span { start: self.end, ..self }
    }

    /// From the start of this span to the end of `other`; this span alone if they stand in
    /// different files.
    pub fn to(self, other: Span) -> Span {
        if self.source != other.source {
            return self;
        }
        Span {
            source: self.source,
            start: self.start.min(other.start),
            end: self.end.max(other.end),
        }
    }

    pub fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

/// A place as people read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Location {
    /// From 1.
    pub line: u32,
    /// From 1, in characters.
    pub column: u32,
}

/// One file: its name as shown to people, and its text.
#[derive(Clone, Debug)]
pub struct Source {
    name: String,
    text: String,
    /// The byte at which each line starts; the first is 0.
    line_starts: Vec<usize>,
}

impl Source {
    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn text(&self) -> &str {
        &self.text
    }
}

/// Every file that took part in a compilation.
#[derive(Clone, Debug, Default)]
pub struct SourceMap {
    sources: Vec<Source>,
}

impl SourceMap {
    pub fn new() -> SourceMap {
        SourceMap::default()
    }

    /// Adds a file. `name` is what messages call it: its path, as the user wrote or would write it.
    pub fn add(&mut self, name: impl Into<String>, text: impl Into<String>) -> SourceId {
        let text = text.into();
        let line_starts = files::line_starts(&text).collect();
        self.sources.push(Source { name: name.into(), text, line_starts });
        SourceId((self.sources.len() - 1) as u32)
    }

    /// The file, or none if `id` came from another map.
    pub fn get(&self, id: SourceId) -> Option<&Source> {
        self.sources.get(id.index())
    }

    /// The file's name; empty if `id` came from another map.
    pub fn name(&self, id: SourceId) -> &str {
        self.get(id).map_or("", Source::name)
    }

    /// The file's text; empty if `id` came from another map.
    pub fn text(&self, id: SourceId) -> &str {
        self.get(id).map_or("", Source::text)
    }

    /// The text under a span, cut to what the file holds.
    pub fn slice(&self, span: Span) -> &str {
        &self.text(span.source)[self.clamp(span)]
    }

    /// Line and column of a span's start.
    pub fn location(&self, span: Span) -> Location {
        let Some(source) = self.get(span.source) else { return Location { line: 1, column: 1 } };
        let byte = self.clamp(span).start;
        let line = source.line_starts.partition_point(|&start| start <= byte).max(1);
        let before = &source.text[source.line_starts[line - 1]..byte];
        Location { line: line as u32, column: before.chars().count() as u32 + 1 }
    }

    /// A span's start as messages name it: `file:line:column`.
    pub fn place(&self, span: Span) -> String {
        let at = self.location(span);
        format!("{}:{}:{}", self.name(span.source), at.line, at.column)
    }

    /// The bytes of the longest line that a span's start and end stand on.
    pub(crate) fn line_length(&self, span: Span) -> usize {
        let Some(source) = self.get(span.source) else { return 0 };
        let range = self.clamp(span);
        let length = |byte: usize| {
            let next = source.line_starts.partition_point(|&start| start <= byte);
            let end = source.line_starts.get(next).copied().unwrap_or(source.text.len());
            end - source.line_starts[next - 1]
        };
        length(range.start).max(length(range.end))
    }

    pub fn ids(&self) -> impl Iterator<Item = SourceId> + use<> {
        (0..self.sources.len() as u32).map(SourceId)
    }

    /// The bytes of a span that exist in its file, moved to character boundaries.
    pub(crate) fn clamp(&self, span: Span) -> Range<usize> {
        let text = self.text(span.source);
        let start = text.floor_char_boundary(span.start as usize);
        let end = text.ceil_char_boundary(span.end as usize);
        start..end.max(start)
    }
}

impl<'a> files::Files<'a> for SourceMap {
    type FileId = SourceId;
    type Name = &'a str;
    type Source = &'a str;

    fn name(&'a self, id: SourceId) -> Result<&'a str, files::Error> {
        self.get(id).map(Source::name).ok_or(files::Error::FileMissing)
    }

    fn source(&'a self, id: SourceId) -> Result<&'a str, files::Error> {
        self.get(id).map(Source::text).ok_or(files::Error::FileMissing)
    }

    fn line_index(&'a self, id: SourceId, byte: usize) -> Result<usize, files::Error> {
        let source = self.get(id).ok_or(files::Error::FileMissing)?;
        Ok(source.line_starts.partition_point(|&start| start <= byte).saturating_sub(1))
    }

    fn line_range(&'a self, id: SourceId, line: usize) -> Result<Range<usize>, files::Error> {
        let source = self.get(id).ok_or(files::Error::FileMissing)?;
        let missing =
            || files::Error::LineTooLarge { given: line, max: source.line_starts.len() - 1 };
        let start = *source.line_starts.get(line).ok_or_else(missing)?;
        let end = source.line_starts.get(line + 1).copied().unwrap_or(source.text.len());
        Ok(start..end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_characters_from_one() {
        let mut sources = SourceMap::new();
        let id = sources.add("a.sched", "ab\nçé x\n");
        let at = |start: u32| sources.location(Span { source: id, start, end: start });
        assert_eq!(at(0), Location { line: 1, column: 1 });
        assert_eq!(at(2), Location { line: 1, column: 3 });
        assert_eq!(at(3), Location { line: 2, column: 1 });
        assert_eq!(at(8), Location { line: 2, column: 4 });
        assert_eq!(at(9), Location { line: 2, column: 5 });
        assert_eq!(at(10), Location { line: 3, column: 1 });
    }

    #[test]
    fn a_span_outside_the_text_is_cut_to_it() {
        let mut sources = SourceMap::new();
        let id = sources.add("a.sched", "é");
        assert_eq!(sources.slice(Span { source: id, start: 1, end: 90 }), "é");
        assert_eq!(
            sources.location(Span { source: id, start: 90, end: 95 }),
            Location { line: 1, column: 2 }
        );
    }
}
