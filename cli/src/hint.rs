//! `attune hint`: values for a program that knows nothing of Attune.

use std::process::ExitCode;

use attune_values::text;
use attune_values::wire::Request;

use crate::args::HintArgs;
use crate::engine::Engine;
use crate::failure::Failure;

pub fn run(args: &HintArgs) -> Result<ExitCode, Failure> {
    let (process, thread) = whom(&args.process)?;
    let values = args.values.iter().map(|value| one(value)).collect::<Result<Vec<_>, Failure>>()?;
    Engine::connect()?.tell(&Request::Hint { process, thread, values })?;
    Ok(ExitCode::SUCCESS)
}

/// `1234` or `1234/1240`.
fn whom(text: &str) -> Result<(i32, Option<i32>), Failure> {
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
