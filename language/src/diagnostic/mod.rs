//! What the front end has to say to a person: a code, the place, what is wrong there, and what to
//! do.
//!
//! Invariant: every diagnostic carries a [`Code`], and every code has a long explanation with a
//! wrong and a right example (`attune explain`). A message says what is wrong in one line without a
//! full stop; a label says what stands at its place; a hint says what to do.

mod code;
pub mod codes;
mod render;
mod suggest;

pub use code::{Code, Example};
pub use render::render;
pub use suggest::suggest;

use crate::source::{Location, SourceMap, Span};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Severity {
    Warning,
    /// The scheduler is refused.
    Error,
}

impl Severity {
    /// `error` or `warning`, as printed.
    pub fn name(self) -> &'static str {
        match self {
            Severity::Warning => "warning",
            Severity::Error => "error",
        }
    }
}

/// A place and what stands there; the text may be empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    pub span: Span,
    pub text: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    pub code: Code,
    pub severity: Severity,
    pub message: String,
    pub primary: Label,
    pub secondary: Vec<Label>,
    pub hint: Option<String>,
}

impl Diagnostic {
    /// A diagnostic of the code's own severity, at `span`.
    pub fn new(code: Code, span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            code,
            severity: code.severity(),
            message: message.into(),
            primary: Label { span, text: String::new() },
            secondary: Vec::new(),
            hint: None,
        }
    }

    /// Says what stands at the place itself.
    pub fn label(mut self, text: impl Into<String>) -> Diagnostic {
        self.primary.text = text.into();
        self
    }

    /// Adds another place that matters.
    pub fn also(mut self, span: Span, text: impl Into<String>) -> Diagnostic {
        self.secondary.push(Label { span, text: text.into() });
        self
    }

    /// Says what to do.
    pub fn hint(mut self, hint: impl Into<String>) -> Diagnostic {
        self.hint = Some(hint.into());
        self
    }

    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }

    /// Line and column of the place, both from 1, the column in characters.
    pub fn location(&self, sources: &SourceMap) -> Location {
        sources.location(self.primary.span)
    }
}

/// Whether any of them is an error.
pub fn has_errors(diagnostics: &[Diagnostic]) -> bool {
    diagnostics.iter().any(Diagnostic::is_error)
}
