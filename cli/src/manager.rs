//! `attune manager`: owns what the nodes of a cluster share, and runs its master.

mod machines;

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use attune_cluster::Master;
use attune_cluster::database::Database;
use attune_cluster::manager::{Error, Happening, Manager, Texts};
use attune_cluster_local::place;
use attune_cluster_machines::Etcd;
use attune_language::diagnostic::{has_errors, render};
use attune_language::ir::{Type, Value};
use attune_language::{Checked, Cluster};
use attune_linux::event::Event;
use attune_linux::time;
use attune_replica::Schema;
use attune_values::text;
use serde_json::json;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::args::ManagerArgs;
use crate::failure::Failure;
use crate::source::checked;

pub fn run(args: &ManagerArgs) -> Result<ExitCode, Failure> {
    let checked = checked(&args.scheduler, &args.source)?;
    let cluster = cluster(&checked, &args.scheduler)?;
    let mut schema = Schema::new(cluster, &checked.sources, &Default::default());
    for setting in &args.set {
        set(&mut schema, setting)?;
    }
    let schema = Arc::new(schema);
    let name = args.name.clone().unwrap_or_else(|| schema.name.clone());
    let texts = Texts { cluster, sources: &checked.sources, seed: time::now() };
    let path = place::socket(&name);
    let manager = if args.machines.at.is_empty() {
        Manager::new(&texts, schema.clone(), &path)
    } else {
        let access = machines::access(&args.machines)?;
        // Sockets have places of their own on each machine.
        let cluster = name.rsplit('/').next().unwrap_or(&name);
        Manager::sharing(&texts, schema.clone(), &path, &mut |own| {
            Etcd::join(access.clone(), cluster, own).map(|etcd| Box::new(etcd) as Box<dyn Database>)
        })
    };
    let mut manager = manager.map_err(|error| match error {
        Error::Taken => Failure::usage(format!(
            "a manager named {name} runs already, at {}: end it, or choose another --name",
            path.display()
        )),
        Error::Place(what, path, error) => Failure::file(what, &path, error),
        Error::Master(_) | Error::Version { .. } => Failure::wrong(error.to_string()),
        Error::Database(_) => Failure::usage(error.to_string()),
    })?;
    let awaited = manager.awaited();
    let stop = stop()?;
    let say = |line: String| {
        // Nobody reads any more: the manager goes on.
        let _ = writeln!(std::io::stdout(), "{line}");
    };
    let json = args.json;
    say(if json {
        let identity = &schema.identity;
        json!({"event": "listening", "cluster": name, "path": path, "identity": identity,
            "awaited": awaited, "managers": manager.managers()})
        .to_string()
    } else {
        format!("cluster {name}, version {}, at {}", schema.identity, path.display())
    });
    if awaited > 0 && !json {
        say(format!("goes on as a manager that was killed, and waits for its {awaited} nodes"));
    }
    let result = manager.serve(&stop, &mut |master, happening| {
        say(if json { as_json(master, &happening) } else { in_words(master, &happening) });
    });
    match result {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(failure) => {
            let place = failure.place.map_or(String::new(), |place| format!("{place}: "));
            Err(Failure::wrong(format!("the master failed: {place}{}", failure.message)))
        }
    }
}

/// Changes the first value of a shared variable.
fn set(schema: &mut Schema, setting: &str) -> Result<(), Failure> {
    let wrong = |why: String| Failure::usage(format!("--set {setting}: {why}"));
    let (name, value) = setting
        .split_once('=')
        .ok_or_else(|| wrong("wants NAME=VALUE, such as limit=3".to_owned()))?;
    let Some(number) = schema.shared(name.trim()) else {
        return Err(not_shared(schema, &format!("--set {setting}"), name));
    };
    let shared = &mut schema.shared[usize::from(number)];
    let parsed = match shared.ty {
        Type::Float => value.trim().parse().ok().map(Value::Float),
        Type::Int | Type::Time => text::parse(value).map(Value::Int),
    };
    shared.initial =
        parsed.ok_or_else(|| wrong(format!("{value} is no number, and no time such as 10ms")))?;
    Ok(())
}

/// An option names a shared variable that is not there.
pub fn not_shared(schema: &Schema, option: &str, name: &str) -> Failure {
    let names: Vec<&str> = schema.shared.iter().map(|shared| shared.name.as_str()).collect();
    let names = names.join(", ");
    Failure::usage(format!("{option}: no shared variable {name}; there are {names}"))
}

/// A distributed scheduler without errors; what the front end has to say goes to standard error.
pub fn cluster<'a>(checked: &'a Checked, file: &Path) -> Result<&'a Cluster, Failure> {
    for diagnostic in &checked.diagnostics {
        eprint!("{}", render(diagnostic, &checked.sources));
    }
    match &checked.cluster {
        Some(cluster) => Ok(cluster),
        None if has_errors(&checked.diagnostics) => Err(Failure::wrong("")),
        None => Err(Failure::wrong(format!(
            "{} is no master: it does not begin with `distributed scheduler`",
            file.display()
        ))),
    }
}

pub fn stop() -> Result<Event, Failure> {
    let unable = |error| Failure::usage(format!("cannot listen to signals: {error}"));
    let stop = Event::new().map_err(unable)?;
    let shared = stop.share().map_err(unable)?;
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).map_err(unable)?;
    std::thread::spawn(move || {
        if signals.forever().next().is_some() {
            shared.set();
        }
    });
    Ok(stop)
}

fn in_words(master: &Master, happening: &Happening) -> String {
    match happening {
        Happening::Arrived { node, family, process } => {
            format!("node {node} of family {family} arrived, process {process}{}", shared(master))
        }
        Happening::Returned { node, process } => {
            format!("node {node} returned, process {process}{}", shared(master))
        }
        Happening::Departed { node, process } => {
            format!("node {node} departed, process {process}{}", shared(master))
        }
        Happening::Refused { process, reason } => format!("process {process} refused: {reason}"),
        Happening::Dropped { process } => {
            format!("process {process} dropped: it does not speak as a node does")
        }
        Happening::NotKept(why) => {
            format!("the store cannot be kept: {why}; until it can, the nodes hear nothing new")
        }
        Happening::KeptAgain => "the store is kept again".to_owned(),
        Happening::Managers(1) => "no other machine shares the cluster".to_owned(),
        Happening::Managers(count) => format!("{count} machines share the cluster"),
    }
}

fn shared(master: &Master) -> String {
    let variables = master.schema().shared.iter().map(|variable| {
        let value = match master.shared(&variable.name) {
            Some(Value::Float(value)) => value.to_string(),
            Some(Value::Int(value)) => value.to_string(),
            None => "?".to_owned(),
        };
        format!("; {} = {value}", variable.name)
    });
    variables.collect()
}

fn as_json(master: &Master, happening: &Happening) -> String {
    let variables = master.schema().shared.iter().map(|variable| {
        let value = match master.shared(&variable.name) {
            Some(Value::Float(value)) => json!(value),
            Some(Value::Int(value)) => json!(value),
            None => json!(null),
        };
        (variable.name.clone(), value)
    });
    let shared: serde_json::Map<String, serde_json::Value> = variables.collect();
    let nodes = master.nodes().count();
    match happening {
        Happening::Arrived { node, family, process } => json!({
            "event": "arrived", "node": node, "family": family, "process": process,
            "nodes": nodes, "shared": shared,
        }),
        Happening::Returned { node, process } => json!({
            "event": "returned", "node": node, "process": process, "nodes": nodes,
            "shared": shared,
        }),
        Happening::Departed { node, process } => json!({
            "event": "departed", "node": node, "process": process, "nodes": nodes,
            "shared": shared,
        }),
        Happening::Refused { process, reason } => {
            json!({"event": "refused", "process": process, "reason": reason})
        }
        Happening::Dropped { process } => json!({"event": "dropped", "process": process}),
        Happening::NotKept(why) => json!({"event": "not kept", "reason": why}),
        Happening::KeptAgain => json!({"event": "kept again"}),
        Happening::Managers(count) => json!({"event": "managers", "managers": count}),
    }
    .to_string()
}
