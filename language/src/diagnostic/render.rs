//! Draws a diagnostic under its source lines, as plain text.

use std::iter;

use codespan_reporting::diagnostic as drawn;
use codespan_reporting::term;

use super::{Diagnostic, Label, Severity};
use crate::source::{Location, SourceId, SourceMap};

/// A longer line than this, in bytes, is not drawn: a person cannot read it, and there may be many
/// messages about it.
const LONGEST_LINE: usize = 1000;

/// The diagnostic with its code, the lines it is about, its labels and its hint. Ends with an empty
/// line.
pub fn render(diagnostic: &Diagnostic, sources: &SourceMap) -> String {
    if !labels(diagnostic).all(|label| sources.line_length(label.span) <= LONGEST_LINE) {
        return without_lines(diagnostic, sources);
    }
    let config = term::Config::default();
    let drawing = draw(diagnostic, sources);
    term::emit_into_string(&config, sources, &drawing)
        .unwrap_or_else(|_| without_lines(diagnostic, sources))
}

fn labels(diagnostic: &Diagnostic) -> impl Iterator<Item = &Label> {
    iter::once(&diagnostic.primary).chain(&diagnostic.secondary)
}

fn draw(diagnostic: &Diagnostic, sources: &SourceMap) -> drawn::Diagnostic<SourceId> {
    let severity = match diagnostic.severity {
        Severity::Error => drawn::Severity::Error,
        Severity::Warning => drawn::Severity::Warning,
    };
    let label = |style, label: &Label| {
        drawn::Label::new(style, label.span.source, sources.clamp(label.span))
            .with_message(&label.text)
    };
    let mut labels = vec![label(drawn::LabelStyle::Primary, &diagnostic.primary)];
    labels.extend(
        diagnostic.secondary.iter().map(|other| label(drawn::LabelStyle::Secondary, other)),
    );
    drawn::Diagnostic::new(severity)
        .with_code(diagnostic.code.name())
        .with_message(&diagnostic.message)
        .with_labels(labels)
        .with_notes(diagnostic.hint.iter().map(|hint| format!("hint: {hint}")).collect())
}

/// Everything but the source lines.
fn without_lines(diagnostic: &Diagnostic, sources: &SourceMap) -> String {
    let Diagnostic { code, severity, message, hint, .. } = diagnostic;
    let mut text = format!("{}[{code}]: {message}\n", severity.name());
    for label in labels(diagnostic) {
        let Location { line, column } = sources.location(label.span);
        let colon = if label.text.is_empty() { "" } else { ": " };
        text += &format!(
            "  ┌─ {}:{line}:{column}{colon}{}\n",
            sources.name(label.span.source),
            label.text
        );
    }
    if let Some(hint) = hint {
        text += &format!("  = hint: {hint}\n");
    }
    text + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostic::codes::syntax::UNEXPECTED;
    use crate::source::Span;

    fn message(text: &str) -> String {
        let mut sources = SourceMap::new();
        let source = sources.add("a.sched", text);
        let at = |start| Span { source, start, end: start + 1 };
        let diagnostic = Diagnostic::new(UNEXPECTED, at(2), "it is wrong")
            .label("here")
            .also(at(0), "because of this");
        render(&diagnostic.hint("mend it"), &sources)
    }

    #[test]
    fn a_line_is_drawn_with_its_labels() {
        let expected = [
            "error[E0109]: it is wrong",
            "  ┌─ a.sched:1:2",
            "  │",
            "1 │ é;x",
            "  │ -^ here",
            "  │ │ ",
            "  │ because of this",
            "  │",
            "  = hint: mend it",
            "",
            "",
        ];
        assert_eq!(message("é;x"), expected.join("\n"));
    }

    #[test]
    fn a_line_that_nobody_can_read_is_only_named() {
        let expected = [
            "error[E0109]: it is wrong",
            "  ┌─ a.sched:1:3: here",
            "  ┌─ a.sched:1:1: because of this",
            "  = hint: mend it",
            "",
            "",
        ];
        assert_eq!(message(&"a".repeat(2000)), expected.join("\n"));
    }
}
