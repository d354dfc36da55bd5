//! `attune set`: tunables and global imports of the scheduler that runs in the kernel.

use std::process::ExitCode;

use attune_values::text;
use attune_values::wire::{Request, Storage, Tunable, Type};

use crate::args::SetArgs;
use crate::engine::Engine;
use crate::failure::Failure;
use crate::output;

pub fn run(args: &SetArgs) -> Result<ExitCode, Failure> {
    let settings = args.settings.iter().map(|text| setting(text)).collect::<Result<Vec<_>, Failure>>()?;
    let engine = Engine::connect()?;
    if !settings.is_empty() {
        engine.tell(&Request::Set { settings })?;
    }
    if settings_are_asked_for(args) {
        let tunables: Vec<Tunable> = engine.ask(&Request::Tunables)?;
        output::print(&if args.json { json(&tunables)? } else { table(&tunables) })?;
    }
    Ok(ExitCode::SUCCESS)
}

fn settings_are_asked_for(args: &SetArgs) -> bool {
    args.settings.is_empty() || args.json
}

/// `NAME=VALUE`.
pub fn setting(text: &str) -> Result<(String, String), Failure> {
    let (name, value) = text
        .split_once('=')
        .ok_or_else(|| Failure::usage(format!("`{text}`: a setting is NAME=VALUE, such as period=10ms")))?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

fn json(tunables: &[Tunable]) -> Result<String, Failure> {
    let line = serde_json::to_string(tunables).map_err(|error| Failure::usage(error.to_string()))?;
    Ok(line + "\n")
}

/// The value as it may be given back.
pub fn shown(ty: Type, value: i64) -> String {
    match ty {
        Type::Time => text::time(value),
        Type::Int => value.to_string(),
    }
}

/// One a line: `fair.period  20ms  time`.
fn table(tunables: &[Tunable]) -> String {
    if tunables.is_empty() {
        return "the scheduler has no tunables and no global imports\n".to_owned();
    }
    let names: Vec<String> = tunables.iter().map(name).collect();
    let values: Vec<String> = tunables.iter().map(|it| shown(it.ty, it.value)).collect();
    let width = |texts: &[String]| texts.iter().map(|text| text.chars().count()).max().unwrap_or(0);
    let (names_width, values_width) = (width(&names), width(&values));
    let line = |((it, name), value): ((&Tunable, &String), &String)| {
        let ty = match it.ty {
            Type::Time => "time",
            Type::Int => "int",
        };
        let storage = match it.storage {
            Storage::Tunable => "tunable",
            Storage::Import => "import",
        };
        format!("{name:names_width$}  {value:>values_width$}  {ty:4}  {storage}\n")
    };
    tunables.iter().zip(&names).zip(&values).map(line).collect()
}

/// As `attune set` understands it, whatever else runs: `fair.period`, `others.period`.
fn name(tunable: &Tunable) -> String {
    format!("{}.{}", tunable.role.as_ref().unwrap_or(&tunable.scheduler), tunable.name)
}
