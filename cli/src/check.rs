//! `attune check`: what the front end says of schedulers, for people or, with `--json`, a line each for programs.

use std::fmt::Write;
use std::path::Path;
use std::process::ExitCode;

use attune_language::diagnostic::{Diagnostic, has_errors, render};
use attune_language::event::Engine;
use attune_language::source::{SourceMap, Span};
use attune_language::{Checked, EngineReport};
use serde_json::{Map, Value, json};

use crate::args::CheckArgs;
use crate::failure::Failure;
use crate::source::{checked, refusal};
use crate::{output, run};

pub fn run(args: &CheckArgs) -> Result<ExitCode, Failure> {
    let mut wrong = false;
    let mut unreadable = None;
    for path in &args.schedulers {
        if args.load {
            let taken = run::try_load(path, &args.source);
            wrong |= taken.is_err();
            match taken {
                Ok(()) => output::print(&format!("{}: the kernel takes it\n", path.display()))?,
                Err(failure) => {
                    failure.report();
                }
            }
            if run::is_object(path) {
                continue;
            }
        }
        let checked = match checked(path, &args.source) {
            Ok(checked) => checked,
            Err(failure) => {
                if args.json {
                    output::print(&format!("{}\n", unreadable_json(path, &failure)))?;
                }
                // The others are checked all the same; every such file is named.
                if let Some(earlier) = unreadable.replace(failure) {
                    earlier.report();
                }
                continue;
            }
        };
        let required = args.engine.map(Engine::from).map(|engine| checked.engine(engine));
        let refused = required.filter(|report| !report.accepted);
        wrong |= has_errors(&checked.diagnostics) || refused.is_some();
        let text = match args.json {
            true => format!("{}\n", to_json(path, &checked)),
            false => to_text(path, &checked, args.verbose),
        };
        output::print(&text)?;
        if let Some(report) = refused.filter(|_| !args.json) {
            eprintln!("{}: {}", path.display(), refusal(report));
        }
    }
    match unreadable {
        Some(failure) => Err(failure),
        None => Ok(ExitCode::from(u8::from(wrong))),
    }
}

fn to_text(path: &Path, checked: &Checked, verbose: bool) -> String {
    let mut text: String = checked.diagnostics.iter().map(|it| render(it, &checked.sources)).collect();
    let (errors, warnings): (Vec<_>, Vec<_>) = checked.diagnostics.iter().partition(|it| it.is_error());
    let verdict = match (errors.len(), warnings.len()) {
        (0, 0) => "ok".to_string(),
        (0, warnings) => counted(warnings, "warning"),
        (errors, 0) => counted(errors, "error"),
        (errors, warnings) => format!("{}, {}", counted(errors, "error"), counted(warnings, "warning")),
    };
    let name = checked.scheduler_name.as_deref().unwrap_or("no scheduler");
    // Writing to a String cannot fail.
    let _ = writeln!(text, "{}: {name}: {verdict}", path.display());
    if errors.is_empty() {
        for report in &checked.engines {
            let _ = writeln!(text, "    {:9}  {}", report.engine.name(), in_words(report));
            if verbose && report.accepted {
                text += &doubts(checked, report);
            }
        }
    }
    text
}

/// Why each check that is left to run time could not be proved, a line each.
fn doubts(checked: &Checked, report: &EngineReport) -> String {
    let Some(program) = &checked.program else { return String::new() };
    let mut text = String::new();
    for (check, why) in &report.doubts {
        let place = place(checked, program.checks[*check].span);
        let _ = write!(text, "        {place}: {}", why.text);
        let _ = match why.place {
            Some(span) => writeln!(text, " (see {})", self::place(checked, span)),
            None => writeln!(text),
        };
    }
    text
}

fn place(checked: &Checked, span: Span) -> String {
    let at = checked.sources.location(span);
    format!("{}:{}:{}", checked.sources.name(span.source), at.line, at.column)
}

fn counted(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

fn in_words(report: &EngineReport) -> String {
    if !report.accepted {
        let missing = report.missing.iter().map(|handler| format!("lacks {handler}"));
        return format!("no: {}", missing.chain(report.reason.clone()).collect::<Vec<_>>().join("; "));
    }
    let t = &report.transfers;
    let others = match report.other_checks {
        0 => String::new(),
        others => format!("; {} left to run time", counted(others, "other check")),
    };
    let named = if t.trivial > 0 { format!(", {} of named threads", t.trivial) } else { String::new() };
    format!(
        "yes: {} of {} transfer checks proved, {} left to run time{named}{others}",
        t.proved,
        t.total - t.trivial,
        t.checked
    )
}

fn to_json(path: &Path, checked: &Checked) -> Value {
    let engines: Map<String, Value> = checked
        .engines
        .iter()
        .map(|report| (report.engine.name().to_string(), engine_json(report)))
        .collect();
    let diagnostics: Vec<Value> =
        checked.diagnostics.iter().map(|it| diagnostic_json(path, it, &checked.sources)).collect();
    json!({
        "file": path.display().to_string(),
        "scheduler": checked.scheduler_name,
        "diagnostics": diagnostics,
        "engines": engines,
    })
}

fn diagnostic_json(path: &Path, diagnostic: &Diagnostic, sources: &SourceMap) -> Value {
    let at = diagnostic.location(sources);
    let mut json = json!({
        "code": diagnostic.code.name(),
        "severity": diagnostic.severity.name(),
        "line": at.line,
        "column": at.column,
        "message": diagnostic.message,
        "hint": diagnostic.hint,
    });
    // In a base, an aspect or a node scheduler: elsewhere than in the line's own file.
    let file = sources.name(diagnostic.primary.span.source);
    if file != path.display().to_string() {
        json["file"] = file.into();
    }
    json
}

fn engine_json(report: &EngineReport) -> Value {
    let t = &report.transfers;
    json!({
        "accepted": report.accepted,
        "missing": report.missing,
        "reason": report.reason,
        "transfers": {
            "total": t.total,
            "proved": t.proved,
            "checked": t.checked,
            "refuted": t.refuted,
            "trivial": t.trivial,
        },
    })
}

/// A file that cannot be read gets its line too, so that a program can match lines to files.
fn unreadable_json(path: &Path, failure: &Failure) -> Value {
    let nothing = json!({ "total": 0, "proved": 0, "checked": 0, "refuted": 0, "trivial": 0 });
    let engine = json!({
        "accepted": false, "missing": [], "reason": "the file cannot be read", "transfers": nothing,
    });
    let engines: Map<String, Value> =
        Engine::ALL.iter().map(|it| (it.name().to_string(), engine.clone())).collect();
    json!({
        "file": path.display().to_string(),
        "scheduler": null,
        "diagnostics": [{
            "code": "E0200", "severity": "error", "line": 1, "column": 1,
            "message": failure.message(), "hint": "check the path and whether the file may be read",
        }],
        "engines": engines,
    })
}
