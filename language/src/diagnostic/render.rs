//! Draws a diagnostic under its source lines, as plain text.

use codespan_reporting::diagnostic as drawn;
use codespan_reporting::term;

use super::{Diagnostic, Label, Severity};
use crate::source::{SourceId, SourceMap};

/// The diagnostic with its code, the lines it is about, its labels and its hint. Ends with an empty line.
pub fn render(diagnostic: &Diagnostic, sources: &SourceMap) -> String {
    let config = term::Config::default();
    let drawing = draw(diagnostic, sources);
    term::emit_into_string(&config, sources, &drawing).unwrap_or_else(|_| without_source(diagnostic))
}

fn draw(diagnostic: &Diagnostic, sources: &SourceMap) -> drawn::Diagnostic<SourceId> {
    let severity = match diagnostic.severity {
        Severity::Error => drawn::Severity::Error,
        Severity::Warning => drawn::Severity::Warning,
    };
    let label = |style, label: &Label| {
        drawn::Label::new(style, label.span.source, sources.clamp(label.span)).with_message(&label.text)
    };
    let mut labels = vec![label(drawn::LabelStyle::Primary, &diagnostic.primary)];
    labels.extend(diagnostic.secondary.iter().map(|other| label(drawn::LabelStyle::Secondary, other)));
    drawn::Diagnostic::new(severity)
        .with_code(diagnostic.code.name())
        .with_message(&diagnostic.message)
        .with_labels(labels)
        .with_notes(diagnostic.hint.iter().map(|hint| format!("hint: {hint}")).collect())
}

/// For a diagnostic whose file is not in the map: everything but the place.
fn without_source(diagnostic: &Diagnostic) -> String {
    let Diagnostic { code, severity, message, hint, .. } = diagnostic;
    let hint = hint.as_ref().map(|hint| format!("  = hint: {hint}\n")).unwrap_or_default();
    format!("{}[{code}]: {message}\n{hint}\n", severity.name())
}
