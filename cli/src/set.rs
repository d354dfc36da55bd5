//! `attune set`: tunables and global imports of the scheduler that runs in the kernel.

use std::process::ExitCode;

use attune_lab::columns;
use attune_values::text;
use attune_values::wire::{Request, Storage, Tunable, Type};

use crate::args::SetArgs;
use crate::engine::Engine;
use crate::failure::Failure;
use crate::output;

pub fn run(args: &SetArgs) -> Result<ExitCode, Failure> {
    let settings =
        args.settings.iter().map(|text| setting(text)).collect::<Result<Vec<_>, Failure>>()?;
    let engine = Engine::connect()?;
    let names: Vec<String> = settings.iter().map(|(name, _)| name.clone()).collect();
    if !settings.is_empty() {
        engine.tell(&Request::Set { settings })?;
    }
    let mut tunables: Vec<Tunable> = engine.ask(&Request::Tunables)?;
    if !args.json && !names.is_empty() {
        tunables = names.iter().filter_map(|name| meant(&tunables, name)).cloned().collect();
    }
    output::print(&if args.json { json(&tunables)? } else { table(&tunables) })?;
    Ok(ExitCode::SUCCESS)
}

/// The tunable that a setting changes: a bare name is the first policy's that has it.
fn meant<'a>(tunables: &'a [Tunable], name: &str) -> Option<&'a Tunable> {
    let (policy, name) = name.split_once('.').map_or((None, name), |(of, name)| (Some(of), name));
    let of =
        |it: &Tunable| policy.is_none_or(|of| it.scheduler == of || it.role.as_deref() == Some(of));
    tunables.iter().find(|it| it.name == name && of(it))
}

/// `NAME=VALUE`.
pub fn setting(text: &str) -> Result<(String, String), Failure> {
    let (name, value) = text.split_once('=').ok_or_else(|| {
        Failure::usage(format!("`{text}`: a setting is NAME=VALUE, such as period=10ms"))
    })?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

fn json(tunables: &[Tunable]) -> Result<String, Failure> {
    let line =
        serde_json::to_string(tunables).map_err(|error| Failure::usage(error.to_string()))?;
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
    let row = |it: &Tunable| {
        let ty = match it.ty {
            Type::Time => "time",
            Type::Int => "int",
        };
        let storage = match it.storage {
            Storage::Tunable => "tunable",
            Storage::Import => "import",
        };
        vec![name(it), shown(it.ty, it.value), ty.to_owned(), storage.to_owned()]
    };
    let rows: Vec<_> = tunables.iter().map(row).collect();
    columns::lines(&rows, &[false, true, false]).join("\n") + "\n"
}

/// As `attune set` understands it, whatever else runs: `fair.period`, `others.period`.
fn name(tunable: &Tunable) -> String {
    format!("{}.{}", tunable.role.as_ref().unwrap_or(&tunable.scheduler), tunable.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_is_shown_under_the_policy_that_it_changes() {
        let tunable = |scheduler: &str, role: &str, name: &str| Tunable {
            scheduler: scheduler.to_owned(),
            role: Some(role.to_owned()),
            name: name.to_owned(),
            storage: Storage::Tunable,
            ty: Type::Time,
            value: 2_000_000,
        };
        let all = [
            tunable("mlfq", "command", "boost"),
            tunable("mlfq", "command", "quantum"),
            tunable("round_robin", "others", "quantum"),
        ];
        let shown = |name| meant(&all, name).map(self::name);
        assert_eq!(shown("quantum").as_deref(), Some("command.quantum"));
        assert_eq!(shown("round_robin.quantum").as_deref(), Some("others.quantum"));
        assert_eq!(shown("others.quantum").as_deref(), Some("others.quantum"));
        assert_eq!(shown("others.boost"), None);
        assert_eq!(table(&all[..1]), "command.boost  2ms  time  tunable\n");
    }
}
