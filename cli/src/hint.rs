//! `attune hint`: values for programs that know nothing of Attune.

use std::io::Read;
use std::path::Path;
use std::process::ExitCode;

use attune_values::text;
use attune_values::wire::{self, Hint, Refused, Request};

use crate::args::HintArgs;
use crate::engine::{Engine, LONG_PATIENCE};
use crate::failure::Failure;

pub fn run(args: &HintArgs) -> Result<ExitCode, Failure> {
    match (&args.from, &args.process) {
        (Some(file), _) => many(file),
        (None, process) => {
            let values: Vec<&str> = args.values.iter().map(String::as_str).collect();
            let hint = hint(process.as_deref().unwrap_or_default(), &values)?;
            Engine::connect()?.tell(&Request::Hint(hint))?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Those of a file, in as few requests as they fit. A line with wrong words keeps them all from
/// being given.
fn many(file: &Path) -> Result<ExitCode, Failure> {
    let text = match file.to_str() {
        Some("-") => {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text).map(|_| text)
        }
        _ => std::fs::read_to_string(file),
    };
    let name = file.display();
    let text = text.map_err(|error| Failure::usage(format!("cannot read {name}: {error}")))?;
    let (lines, hints) = hints(&text, &name.to_string())?;
    let engine = Engine::connect_for(LONG_PATIENCE)?;
    let (mut refused, mut begin) = (0, 0);
    while begin < hints.len() {
        let end = begin + fitting(&hints[begin..]);
        let those: Vec<Refused> = engine.ask_about(&Request::Hints, &&hints[begin..end])?;
        for one in &those {
            let line = lines.get(begin + one.index).copied().unwrap_or(0);
            eprintln!("attune: {name}:{line}: {}", one.message);
        }
        (refused, begin) = (refused + those.len(), end);
    }
    match refused {
        0 => Ok(ExitCode::SUCCESS),
        some => {
            let given = hints.len().saturating_sub(some);
            Err(Failure::wrong(format!("{some} hints are refused, {given} are given")))
        }
    }
}

/// How many of the first hints one list takes; at least one.
fn fitting(hints: &[Hint]) -> usize {
    let lengths = hints.iter().map(|hint| serde_json::to_vec(hint).map_or(0, |it| it.len() + 1));
    let ends = lengths.scan(2, |sum, length| {
        *sum += length;
        Some(*sum as u64)
    });
    ends.take_while(|end| *end <= wire::HINTS).count().max(1)
}

/// The hints of a text, and the line of each.
fn hints(text: &str, name: &str) -> Result<(Vec<usize>, Vec<Hint>), Failure> {
    let mut found = (Vec::new(), Vec::new());
    for (line, words) in (1..).zip(text.lines()) {
        let words: Vec<&str> = words.split_whitespace().collect();
        let Some((whom, values)) = words.split_first().filter(|(it, _)| !it.starts_with('#'))
        else {
            continue;
        };
        let at = |failure: Failure| Failure::usage(format!("{name}:{line}: {}", failure.message()));
        if values.is_empty() {
            return Err(at(Failure::usage(format!("no NAME=VALUE follows `{whom}`"))));
        }
        found.0.push(line);
        found.1.push(hint(whom, values).map_err(at)?);
    }
    Ok(found)
}

fn hint(whom: &str, values: &[&str]) -> Result<Hint, Failure> {
    let (process, thread) = numbers(whom)?;
    let values = values.iter().map(|value| one(value)).collect::<Result<_, Failure>>()?;
    Ok(Hint { process, thread, values })
}

/// `1234` or `1234/1240`.
fn numbers(text: &str) -> Result<(i32, Option<i32>), Failure> {
    let number = |text: &str| text.parse::<i32>().ok().filter(|number| *number > 0);
    let (process, thread) = match text.split_once('/') {
        Some((process, thread)) => (number(process), Some(number(thread))),
        None => (number(text), None),
    };
    match (process, thread) {
        (Some(process), None) => Ok((process, None)),
        (Some(process), Some(Some(thread))) => Ok((process, Some(thread))),
        _ => Err(Failure::usage(format!("`{text}` is no process: a number, or PROCESS/THREAD"))),
    }
}

/// `NAME=VALUE`; `NAME=` takes it back.
fn one(text: &str) -> Result<(String, Option<i64>), Failure> {
    let wrong = || {
        Failure::usage(format!(
            "`{text}`: a value is NAME=VALUE, such as deadline=40ms; NAME= takes it back"
        ))
    };
    let (name, value) = text.split_once('=').ok_or_else(wrong)?;
    let value = match value.trim() {
        "" => None,
        value => Some(text::parse(value).ok_or_else(wrong)?),
    };
    Ok((name.trim().to_owned(), value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_as_long_as_an_engine_reads() {
        let hints: Vec<Hint> = (1..100_000)
            .filter_map(|process| hint(&process.to_string(), &["urgent=1"]).ok())
            .collect();
        let (mut begin, mut lists) = (0, 0);
        while begin < hints.len() {
            let end = begin + fitting(&hints[begin..]);
            let length = serde_json::to_vec(&hints[begin..end]).map_or(0, |it| it.len() as u64);
            assert!(length <= wire::HINTS && end > begin, "{length}");
            (begin, lists) = (end, lists + 1);
        }
        assert!((2..10).contains(&lists), "{lists}");
    }
}
