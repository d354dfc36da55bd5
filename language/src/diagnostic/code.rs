//! A diagnostic's code: `E0107` for an error, `W0301` for a warning, with what `attune explain`
//! prints about it.
//!
//! Invariant: codes are unique, their first letter is their severity, and their first two digits
//! are their group, which is also the file in `codes/` that they stand in.

use std::fmt;
use std::hash::{Hash, Hasher};

use super::Severity;

/// One entry of the tables in `codes/`. Two codes are equal when they are the same entry's.
#[derive(Clone, Copy)]
pub struct Code {
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    pub(super) explanation: &'static str,
    pub(super) wrong: Example,
    pub(super) right: Example,
}

/// A scheduler that shows a diagnostic, or shows how to do without it.
#[derive(Clone, Copy, Debug)]
pub enum Example {
    /// The text of one scheduler file.
    File(&'static str),
    /// Several files, by name and text. The first is the one that is checked; the others are those
    /// it names, and one called `--aspect` is given as a file of aspects. None at all if the
    /// example would be too long to be shown.
    Files(&'static [(&'static str, &'static str)]),
}

impl Code {
    /// The code as printed: `E0107`.
    pub fn name(self) -> &'static str {
        self.name
    }

    /// What is wrong, in general, in one line.
    pub fn title(self) -> &'static str {
        self.title
    }

    /// Why it is wrong and what to do about it; paragraphs are separated by an empty line.
    pub fn explanation(self) -> &'static str {
        self.explanation
    }

    /// A scheduler that gets this diagnostic.
    pub fn wrong(self) -> Example {
        self.wrong
    }

    /// The same scheduler, put right.
    pub fn right(self) -> Example {
        self.right
    }

    pub fn severity(self) -> Severity {
        if self.name.starts_with('W') { Severity::Warning } else { Severity::Error }
    }

    /// The code of that name in either case (`e0107`), if there is one.
    pub fn from_name(name: &str) -> Option<Code> {
        super::codes::all().find(|code| code.name.eq_ignore_ascii_case(name))
    }
}

impl Example {
    /// The files, the one to check first; a lone file is called `example.sched`.
    pub fn files(self) -> Vec<(&'static str, &'static str)> {
        match self {
            Example::File(text) => vec![("example.sched", text)],
            Example::Files(files) => files.to_vec(),
        }
    }
}

impl PartialEq for Code {
    fn eq(&self, other: &Code) -> bool {
        self.name == other.name
    }
}

impl Eq for Code {}

impl Hash for Code {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl PartialOrd for Code {
    fn partial_cmp(&self, other: &Code) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Code {
    fn cmp(&self, other: &Code) -> std::cmp::Ordering {
        self.name.cmp(other.name)
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}
