//! The text under way: indentation, and line directives that need the final line numbers.
//!
//! Invariant: a line that equals [`HERE`] stands where the compiler should count in the C file
//! again; `finish` knows the line.

use std::fmt::Write;

/// Stands for a `#line` directive with the C file's own line.
const HERE: &str = "#line here";

#[derive(Default)]
pub struct Output {
    text: String,
    depth: usize,
}

impl Output {
    /// One line at the current depth; an empty one has no indentation.
    pub fn line(&mut self, line: impl AsRef<str>) {
        let line = line.as_ref();
        if !line.is_empty() {
            for _ in 0..self.depth {
                self.text.push_str("    ");
            }
            self.text.push_str(line);
        }
        self.text.push('\n');
    }

    /// Lines as they are, without indentation: directives, labels, text of others.
    pub fn raw(&mut self, lines: &str) {
        self.text.push_str(lines);
        if !lines.ends_with('\n') {
            self.text.push('\n');
        }
    }

    pub fn blank(&mut self) {
        if !self.text.ends_with("\n\n") && !self.text.ends_with("{\n") && !self.text.is_empty() {
            self.text.push('\n');
        }
    }

    pub fn open(&mut self, line: impl AsRef<str>) {
        self.line(line);
        self.depth += 1;
    }

    pub fn close(&mut self, line: impl AsRef<str>) {
        self.depth = self.depth.saturating_sub(1);
        self.line(line);
    }

    /// Ends what `open` began without a line of its own: a statement without braces.
    pub fn dedent(&mut self) {
        self.depth = self.depth.saturating_sub(1);
    }

    /// Leaves one block and enters the next: `} else {`.
    pub fn turn(&mut self, line: impl AsRef<str>) {
        self.close(line);
        self.depth += 1;
    }

    /// From the next line on, the compiler counts in that file of the scheduler.
    pub fn at_source(&mut self, file: &str, line: u32) {
        // Writing into a string cannot fail.
        let _ = writeln!(self.text, "#line {line} {}", quoted(file));
    }

    /// From the next line on, the compiler counts in the C file.
    pub fn at_own(&mut self) {
        self.raw(HERE);
    }

    pub fn append(&mut self, other: Output) {
        self.text.push_str(&other.text);
    }

    /// The text, called `file` in its own line directives.
    pub fn finish(self, file: &str) -> String {
        let mut text = String::with_capacity(self.text.len() + 1024);
        let file = quoted(file);
        for (number, line) in self.text.lines().enumerate() {
            if line == HERE {
                let _ = writeln!(text, "#line {} {file}", number + 2);
            } else {
                text.push_str(line);
                text.push('\n');
            }
        }
        text
    }
}

/// A C string literal with that text.
pub fn quoted(text: &str) -> String {
    let mut literal = String::from("\"");
    for byte in text.bytes() {
        match byte {
            b'"' => literal.push_str("\\\""),
            b'\\' => literal.push_str("\\\\"),
            // No trigraph may arise.
            b'?' => literal.push_str("\\?"),
            b' '..=b'~' => literal.push(byte.into()),
            // Three octal digits end by themselves, whatever follows.
            _ => {
                let _ = write!(literal, "\\{byte:03o}");
            }
        }
    }
    literal.push('"');
    literal
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_literal_holds_any_text() {
        assert_eq!(quoted("a\"b\\c\n1?é"), "\"a\\\"b\\\\c\\0121\\?\\303\\251\"");
    }

    #[test]
    fn directives_name_the_line_that_follows() {
        let mut out = Output::default();
        out.line("a");
        out.at_source("x.sched", 7);
        out.line("b");
        out.at_own();
        out.line("c");
        assert_eq!(out.finish("x.c"), "a\n#line 7 \"x.sched\"\nb\n#line 5 \"x.c\"\nc\n");
    }
}
