//! `attune sim` on a distributed scheduler: a whole cluster in virtual time.

use std::process::ExitCode;

use attune_cluster::simulation::{Settings, simulate};
use attune_language::Checked;
use attune_language::diagnostic::render;
use attune_language::engine::Engine;
use attune_simulator::cluster::ClusterWorkload;

use super::{literal, tell, workload_text};
use crate::args::SimArgs;
use crate::failure::Failure;
use crate::source::refusal;

pub fn run(checked: &Checked, args: &SimArgs) -> Result<ExitCode, Failure> {
    for diagnostic in &checked.diagnostics {
        eprint!("{}", render(diagnostic, &checked.sources));
    }
    let Some(cluster) = &checked.cluster else { return Err(Failure::wrong("")) };
    for family in &cluster.families {
        let report = &family.engines[Engine::Simulator as usize];
        if !report.accepted {
            return Err(Failure::wrong(format!("`{}`: {}", family.name, refusal(report))));
        }
    }
    for (given, option) in [(args.cpus.is_some(), "--cpus"), (args.per.is_some(), "--per")] {
        if given {
            return Err(Failure::usage(format!(
                "{option} says nothing of a cluster: write `cpus` into each [[node]] of the \
                 workload; each runs as one instance"
            )));
        }
    }
    let (text, name) = workload_text(&args.workload)?;
    if !ClusterWorkload::is_meant(&text) {
        return Err(Failure::usage(format!(
            "{name} is the workload of one machine; that of a distributed scheduler has a [[node]] \
             for each kind of node, see docs/distributed.md"
        )));
    }
    let workload = ClusterWorkload::from_toml(&text, &name)
        .map_err(|diagnostic| Failure::wrong(diagnostic.to_string()))?;
    let mut settings =
        Settings { trace: args.trace.is_some(), debug: args.debug, ..Settings::default() };
    settings.seed = args.seed.unwrap_or(settings.seed);
    for setting in &args.set {
        let Some((name, text)) = setting.split_once('=') else {
            return Err(Failure::usage(format!(
                "--set {setting}: wants NAME=VALUE, such as limit=5"
            )));
        };
        let globals = cluster.master.membership.remotes.iter();
        let globals = globals.map(|remote| &cluster.master.globals[remote.global]);
        let Some(global) = globals.clone().find(|global| global.name == name) else {
            let names: Vec<&str> = globals.map(|global| global.name.as_str()).collect();
            return Err(Failure::usage(format!(
                "--set {setting}: the nodes share no {name}; they share {}",
                names.join(", ")
            )));
        };
        settings.shared.push((name.to_string(), literal(setting, name, text, global.ty)?));
    }
    let outcome = simulate(checked, &workload, &settings)
        .map_err(|diagnostic| Failure::wrong(diagnostic.to_string()))?;
    tell(
        args,
        &outcome.warnings(),
        || outcome.html(),
        || outcome.perfetto(),
        &if args.json { outcome.json() } else { outcome.table() },
    )
}
