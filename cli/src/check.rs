//! `attune check`: what the front end says of schedulers, for people or, with `--json`, a line each
//! for programs.

use std::fmt::Write;
use std::path::Path;
use std::process::ExitCode;

use attune_language::diagnostic::{Diagnostic, has_errors, render};
use attune_language::engine::Engine;
use attune_language::ir::{CheckId, CheckKind, Program};
use attune_language::source::SourceMap;
use attune_language::{Checked, EngineReport, Explanation, Waiting};
use serde_json::{Map, Value, json};

use crate::args::CheckArgs;
use crate::failure::Failure;
use crate::source::{checked, refusal};
use crate::terms;
use crate::worst_case::Table;
use crate::{load, output};

pub fn run(args: &CheckArgs) -> Result<ExitCode, Failure> {
    let mut wrong = false;
    let mut unreadable = None;
    for path in &args.schedulers {
        if args.load && load::is_object(path) {
            wrong |= !loads(path, None)?;
            continue;
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
        wrong |= has_errors(&checked.diagnostics) || refused.is_some() || runs_nowhere(&checked);
        let table = required
            .filter(|report| report.engine == Engine::Embedded)
            .and_then(|_| Table::of(&checked, args.threads));
        let text = match args.json {
            true => {
                let mut json = to_json(path, &checked);
                if let Some(table) = &table {
                    json["worst_case"] = table.json(&checked);
                }
                format!("{json}\n")
            }
            false => {
                to_text(path, &checked, args.verbose)
                    + &table.map(|table| table.text(&checked)).unwrap_or_default()
            }
        };
        output::print(&text)?;
        if let Some(report) = refused.filter(|_| !args.json) {
            eprintln!("{}: {}", path.display(), refusal(report));
        }
        if args.load {
            wrong |= !loads(path, Some(&checked))?;
        }
    }
    match unreadable {
        Some(failure) => Err(failure),
        None => Ok(ExitCode::from(u8::from(wrong))),
    }
}

/// Whether this machine's kernel takes the scheduler; says so. What the front end found about it
/// has been said.
fn loads(path: &Path, checked: Option<&Checked>) -> Result<bool, Failure> {
    let taken = match checked {
        None => load::try_load(path, None),
        Some(checked) => match &checked.program {
            Some(program) if !checked.has_errors() => {
                let report = checked.engine(Engine::Kernel);
                match report.accepted {
                    true => load::try_load(path, Some((program, report, &checked.sources))),
                    false => Err(Failure::wrong(refusal(report))),
                }
            }
            _ => Err(Failure::wrong("")),
        },
    };
    match taken {
        Ok(()) => output::print(&format!("{}: the kernel takes it\n", path.display()))?,
        Err(failure) => {
            failure.report();
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether no engine runs a scheduler that is meant to run. A partial one is a base for others.
fn runs_nowhere(checked: &Checked) -> bool {
    let partial = checked.program.as_ref().is_some_and(|program| program.partial);
    let runs = |engines: &[EngineReport]| engines.iter().any(|report| report.accepted);
    match &checked.cluster {
        Some(cluster) => !cluster.families.iter().all(|family| runs(&family.engines)),
        None => !partial && !runs(&checked.engines),
    }
}

fn to_text(path: &Path, checked: &Checked, verbose: bool) -> String {
    let mut text: String =
        checked.diagnostics.iter().map(|it| render(it, &checked.sources)).collect();
    let (errors, warnings): (Vec<_>, Vec<_>) =
        checked.diagnostics.iter().partition(|it| it.is_error());
    let verdict = match (errors.len(), warnings.len()) {
        (0, 0) if runs_nowhere(checked) => "no engine runs it".to_string(),
        (0, warnings) if runs_nowhere(checked) => {
            format!("no engine runs it, {}", counted(warnings, "warning"))
        }
        (0, 0) => "ok".to_string(),
        (0, warnings) => counted(warnings, "warning"),
        (errors, 0) => counted(errors, "error"),
        (errors, warnings) => {
            format!("{}, {}", counted(errors, "error"), counted(warnings, "warning"))
        }
    };
    let name = checked.scheduler_name.as_deref().unwrap_or("no scheduler");
    // Writing to a String cannot fail.
    let _ = writeln!(text, "{}: {name}: {verdict}", path.display());
    if !errors.is_empty() {
        return text;
    }
    match (&checked.program, &checked.cluster) {
        (_, Some(cluster)) => {
            let _ = writeln!(text, "  {}, the master:", cluster.master.name);
            text += &proofs(checked, &cluster.master, &[("cluster", &cluster.report)], verbose);
            for family in &cluster.families {
                let _ = writeln!(text, "  nodes of family {}:", family.name);
                text += &proofs(checked, &family.program, &by_name(&family.engines), verbose);
            }
        }
        (Some(program), None) => {
            text += &proofs(checked, program, &by_name(&checked.engines), verbose)
        }
        (None, None) => {}
    }
    text
}

fn by_name(engines: &[EngineReport]) -> Vec<(&'static str, &EngineReport)> {
    engines.iter().map(|report| (report.engine.name(), report)).collect()
}

/// What each engine, by its name, says of a program.
fn proofs(
    checked: &Checked,
    program: &Program,
    engines: &[(&str, &EngineReport)],
    verbose: bool,
) -> String {
    let mut text = String::new();
    for (name, report) in engines {
        let _ = writeln!(text, "    {name:9}  {}", in_words(program, report));
        if verbose && report.accepted {
            for (check, why) in &report.doubts {
                text += &doubt(checked, program, *check, why);
            }
        }
    }
    if !program.is_master() {
        text += &terms::in_words(program);
        text += &waits(engines);
    }
    if !verbose {
        text += &lines_that_may_fail(checked, program, engines);
    }
    text
}

/// Whether a ready thread can wait for ever: a line for each answer, with the engines that it holds
/// on where they differ.
fn waits(engines: &[(&str, &EngineReport)]) -> String {
    let mut answers: Vec<(String, Vec<&str>)> = Vec::new();
    for (name, report) in engines.iter().filter(|(_, report)| report.accepted) {
        let said = waiting(&report.waiting);
        match answers.iter_mut().find(|(answer, _)| *answer == said) {
            Some((_, names)) => names.push(name),
            None => answers.push((said, vec![name])),
        }
    }
    let differ = answers.len() > 1;
    let line = |(answer, names): &(String, Vec<&str>)| {
        let on = if differ { format!(" ({})", names.join(", ")) } else { String::new() };
        format!("    waiting    {answer}{on}\n")
    };
    answers.iter().map(line).collect()
}

/// Whether a ready thread can wait for ever, and why.
fn waiting(waiting: &Waiting) -> String {
    match waiting {
        Waiting::Bounded(why) => format!("bounded: a ready thread waits at most {why}"),
        Waiting::Starves(why) => format!("a ready thread can starve: {why}"),
        Waiting::NotProved(why) => format!("no bound is proved: {why}"),
    }
}

fn waiting_json(waiting: &Waiting) -> Value {
    let (verdict, why) = match waiting {
        Waiting::Bounded(why) => ("bounded", why),
        Waiting::Starves(why) => ("starves", why),
        Waiting::NotProved(why) => ("not_proved", why),
    };
    json!({ "verdict": verdict, "why": why })
}

/// Each check that some engine leaves to run time, once, with the first engine's reason.
fn lines_that_may_fail(
    checked: &Checked,
    program: &Program,
    engines: &[(&str, &EngineReport)],
) -> String {
    let mut said: Vec<CheckId> = Vec::new();
    let mut text = String::new();
    for (_, report) in engines.iter().filter(|(_, report)| report.accepted) {
        for (check, why) in &report.doubts {
            if !said.contains(check) {
                said.push(*check);
                text += &doubt(checked, program, *check, why);
            }
        }
    }
    text
}

/// A line that may fail at run time, and why that could not be excluded.
fn doubt(checked: &Checked, program: &Program, check: CheckId, why: &Explanation) -> String {
    let place = checked.sources.place(program.checks[check].span);
    let see = why.place.map(|span| format!(" (see {})", checked.sources.place(span)));
    format!("        {place}: {}{}\n", why.text, see.unwrap_or_default())
}

fn counted(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

fn in_words(program: &Program, report: &EngineReport) -> String {
    if !report.accepted {
        let missing = report.missing.iter().map(|handler| format!("lacks {handler}"));
        return format!(
            "no: {}",
            missing.chain(report.reason.clone()).collect::<Vec<_>>().join("; ")
        );
    }
    let t = &report.transfers;
    let others = other_checks(program, report).concat();
    let named =
        if t.trivial > 0 { format!(", {} of named threads", t.trivial) } else { String::new() };
    format!(
        "yes: {} of {} transfer checks proved, {} left to run time{named}{others}",
        t.proved,
        t.total - t.trivial,
        t.checked
    )
}

/// What else is left to run time, kind by kind.
fn other_checks(program: &Program, report: &EngineReport) -> Vec<String> {
    let kinds = [
        (CheckKind::Stored, "new thread may be lost", "new threads may be lost"),
        (
            CheckKind::LocalEmptied,
            "local container may keep a thread",
            "local containers may keep threads",
        ),
        (CheckKind::FirstFilled, "first thread may be missing", "first threads may be missing"),
        (
            CheckKind::NamedUse,
            "thread may be destroyed already",
            "threads may be destroyed already",
        ),
        (CheckKind::IndexInRange, "index may be out of range", "indices may be out of range"),
    ];
    let named = kinds.into_iter().filter_map(|(kind, one, more)| {
        let is_kind = |(check, _): &&(CheckId, Explanation)| program.checks[*check].kind == kind;
        match report.doubts.iter().filter(is_kind).count() {
            0 => None,
            1 => Some(format!("; 1 {one}")),
            count => Some(format!("; {count} {more}")),
        }
    });
    named.collect()
}

fn to_json(path: &Path, checked: &Checked) -> Value {
    let engines: Map<String, Value> = checked
        .engines
        .iter()
        .map(|report| (report.engine.name().to_string(), engine_json(report)))
        .collect();
    let diagnostics: Vec<Value> =
        checked.diagnostics.iter().map(|it| diagnostic_json(path, it, &checked.sources)).collect();
    let mut json = json!({
        "file": path.display().to_string(),
        "scheduler": checked.scheduler_name,
        "diagnostics": diagnostics,
        "engines": engines,
    });
    if let Some(program) = &checked.program {
        json["imports"] = terms::in_json(program);
    }
    if let Some(cluster) = &checked.cluster {
        let families = cluster.families.iter().map(|family| {
            let engines = family.engines.iter();
            let engines: Map<String, Value> =
                engines.map(|it| (it.engine.name().to_string(), engine_json(it))).collect();
            (family.name.clone(), Value::Object(engines))
        });
        json["master"] = engine_json(&cluster.report);
        json["families"] = Value::Object(families.collect());
    }
    json
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
        "waiting": waiting_json(&report.waiting),
    })
}

/// A file that cannot be read gets its line too, so that a program can match lines to files.
fn unreadable_json(path: &Path, failure: &Failure) -> Value {
    let nothing = json!({ "total": 0, "proved": 0, "checked": 0, "refuted": 0, "trivial": 0 });
    let engine = json!({
        "accepted": false, "missing": [], "reason": "the file cannot be read", "transfers": nothing,
        "waiting": { "verdict": "not_proved", "why": "the file cannot be read" },
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
