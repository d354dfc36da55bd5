//! Reads JSON as rt-app and its workgen do: with comments, trailing commas, repeated keys and keys
//! without a value, all in the order of the text. Every value knows its place.

use std::ops::Range;

use crate::diagnostic::{Diagnostic, Source};

#[derive(Debug)]
pub(super) struct Value {
    pub kind: Kind,
    pub span: Range<usize>,
}

#[derive(Debug)]
pub(super) enum Kind {
    /// `null`, or a key without a value.
    Nothing,
    Truth(bool),
    Number(f64),
    Text(String),
    List(Vec<Value>),
    Object(Vec<Entry>),
}

#[derive(Debug)]
pub(super) struct Entry {
    pub key: String,
    pub key_span: Range<usize>,
    pub value: Value,
}

/// Values deeper than this are nonsense.
const MAX_DEPTH: usize = 64;

pub(super) fn parse(source: &Source) -> Result<Value, Diagnostic> {
    let mut parser = Parser { source, text: &source.text, position: 0, depth: 0 };
    let value = parser.value()?;
    parser.skip()?;
    match parser.peek() {
        None => Ok(value),
        Some(_) => Err(parser.error("nothing may follow the closing brace")),
    }
}

struct Parser<'a> {
    source: &'a Source,
    text: &'a str,
    position: usize,
    depth: usize,
}

impl Parser<'_> {
    fn value(&mut self) -> Result<Value, Diagnostic> {
        self.skip()?;
        let start = self.position;
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.error("nested too deeply"));
        }
        let kind = match self.peek() {
            Some('{') => self.object()?,
            Some('[') => self.list()?,
            Some('"') => Kind::Text(self.string()?),
            Some(c) if c == '-' || c.is_ascii_digit() => self.number()?,
            Some(c) if c.is_ascii_alphabetic() => self.word()?,
            Some(c) => return Err(self.error(&format!("`{c}` begins no value"))),
            None => return Err(self.error("the file ends where a value should stand")),
        };
        self.depth -= 1;
        Ok(Value { kind, span: start..self.position })
    }

    fn object(&mut self) -> Result<Kind, Diagnostic> {
        self.position += 1;
        let mut entries = Vec::new();
        loop {
            self.skip()?;
            match self.peek() {
                Some('}') => {
                    self.position += 1;
                    return Ok(Kind::Object(entries));
                }
                Some('"') => {
                    let start = self.position;
                    let key = self.string()?;
                    let key_span = start..self.position;
                    self.skip()?;
                    let value = if self.peek() == Some(':') {
                        self.position += 1;
                        self.value()?
                    } else {
                        Value { kind: Kind::Nothing, span: key_span.clone() }
                    };
                    entries.push(Entry { key, key_span, value });
                    self.comma('}')?;
                }
                _ => return Err(self.error("here a key in quotes or `}` should stand")),
            }
        }
    }

    fn list(&mut self) -> Result<Kind, Diagnostic> {
        self.position += 1;
        let mut values = Vec::new();
        loop {
            self.skip()?;
            if self.peek() == Some(']') {
                self.position += 1;
                return Ok(Kind::List(values));
            }
            values.push(self.value()?);
            self.comma(']')?;
        }
    }

    /// A comma, or the closing bracket that makes it unnecessary.
    fn comma(&mut self, closing: char) -> Result<(), Diagnostic> {
        self.skip()?;
        match self.peek() {
            Some(',') => {
                self.position += 1;
                Ok(())
            }
            Some(c) if c == closing => Ok(()),
            _ => Err(self.error(&format!("here `,` or `{closing}` is missing"))),
        }
    }

    fn string(&mut self) -> Result<String, Diagnostic> {
        let start = self.position;
        self.position += 1;
        let mut text = String::new();
        while let Some(c) = self.peek() {
            self.position += c.len_utf8();
            match c {
                '"' => return Ok(text),
                '\n' => break,
                '\\' => {
                    let escaped = self.peek();
                    self.position += escaped.map_or(0, char::len_utf8);
                    text.push(match escaped {
                        Some('n') => '\n',
                        Some('t') => '\t',
                        Some(other @ ('"' | '\\' | '/')) => other,
                        _ => return Err(self.error("this escape is not understood in names")),
                    });
                }
                c => text.push(c),
            }
        }
        self.position = start;
        Err(self.error("this text is not closed on its line"))
    }

    fn number(&mut self) -> Result<Kind, Diagnostic> {
        let start = self.position;
        while self.peek().is_some_and(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '+' | '.'))
        {
            self.position += 1;
        }
        match self.text[start..self.position].parse::<f64>() {
            Ok(number) if number.is_finite() => Ok(Kind::Number(number)),
            _ => {
                self.position = start;
                Err(self.error("this is no number"))
            }
        }
    }

    fn word(&mut self) -> Result<Kind, Diagnostic> {
        let start = self.position;
        while self.peek().is_some_and(|c| c.is_ascii_alphanumeric()) {
            self.position += 1;
        }
        match &self.text[start..self.position] {
            "true" | "True" => Ok(Kind::Truth(true)),
            "false" | "False" => Ok(Kind::Truth(false)),
            "null" => Ok(Kind::Nothing),
            _ => {
                self.position = start;
                Err(self.error("a text must stand in quotes"))
            }
        }
    }

    /// White space and comments.
    fn skip(&mut self) -> Result<(), Diagnostic> {
        loop {
            let rest = &self.text[self.position..];
            let trimmed = rest.trim_start();
            self.position += rest.len() - trimmed.len();
            if trimmed.starts_with("//") {
                self.position += trimmed.find('\n').unwrap_or(trimmed.len());
            } else if trimmed.starts_with("/*") {
                match trimmed.find("*/") {
                    Some(end) => self.position += end + 2,
                    None => return Err(self.error("this comment is never closed")),
                }
            } else {
                return Ok(());
            }
        }
    }

    fn peek(&self) -> Option<char> {
        self.text[self.position..].chars().next()
    }

    fn error(&self, message: &str) -> Diagnostic {
        let location = self.source.locate(&(self.position..self.position + 1));
        Diagnostic::new(format!("this is not JSON: {message}")).at(location)
    }
}
