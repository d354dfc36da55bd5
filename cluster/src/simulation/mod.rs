//! Runs a whole cluster in virtual time: the master, every node as a machine of the simulator, the
//! links between them, and what befalls them.
//!
//! One queue orders everything: the events of machines, messages on their way, incidents. A machine
//! acts only when its event is taken or something is delivered to it, so equal seeds give equal
//! runs.
//!
//! - [`state`] holds the cluster as it stands, [`event`] names what can happen, [`driver`] takes
//!   the events one by one;
//! - [`talk`] decides when nodes and the master speak;
//! - [`channels`] hold messages of workloads, [`delivery`] brings them from node to node, [`world`]
//!   has the clients outside;
//! - [`spread`] measures how far nodes differ; [`outcome`] and [`report`] tell what came.
//!
//! Times are nanoseconds from the start of the run; a node's machine and its handlers count from
//! the node's own start.

mod channels;
mod delivery;
mod driver;
mod event;
mod outcome;
mod queue;
mod report;
mod spread;
mod state;
mod talk;
mod world;

use std::collections::HashMap;
use std::sync::Arc;

use attune_language::Checked;
use attune_replica::Replica;
use attune_replica::schema::{Model, Schema};
use attune_simulator::cluster::{ClusterWorkload, IncidentKind};
use attune_simulator::interpreter::{self, Interpreter};
use attune_simulator::scheduler::{Time, Value};
use attune_simulator::{Diagnostic, Options, Part};

use crate::{Master, Node};

pub use outcome::{ClusterOutcome, MasterFigures, NodeOutcome};
pub use spread::Spread;
use state::{Cluster, Member};
use world::World;

/// How a cluster is run.
#[derive(Clone, Debug)]
pub struct Settings {
    pub seed: u64,
    /// None: as the workload says.
    pub duration: Option<Time>,
    /// Records the whole run for a trace.
    pub trace: bool,
    /// Run the schedulers' invariants.
    pub debug: bool,
    /// Initial values of shared variables, instead of those in the master's text.
    pub shared: Vec<(String, Value)>,
    /// The run ends with an error after so many events in all.
    pub max_events: u64,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            seed: 1,
            duration: None,
            trace: false,
            debug: false,
            shared: Vec::new(),
            max_events: 1_000_000_000,
        }
    }
}

/// One life of a node: from its start to its crash, its departure or the end.
struct Life {
    group: usize,
    index: u32,
    start: Time,
}

/// Runs the workload under a checked master. An error is the workload's or a scheduler's.
pub fn simulate(
    checked: &Checked,
    workload: &ClusterWorkload,
    settings: &Settings,
) -> Result<ClusterOutcome, Diagnostic> {
    let Some(cluster) = &checked.cluster else {
        return Err(Diagnostic::new("this is no distributed scheduler without errors"));
    };
    let schema = Arc::new(schema(checked, cluster, workload, settings)?);
    let master = Master::new(cluster, schema.clone(), &checked.sources, settings.seed, 0)
        .map_err(|error| Diagnostic::new(error.to_string()))?;
    let mut policies = Vec::new();
    for family in &cluster.families {
        let options =
            interpreter::Options { debug: settings.debug, ..interpreter::Options::default() };
        let program = Arc::new(family.program.clone());
        let policy = Interpreter::new(program, &checked.sources, options)
            .map_err(|refusal| Diagnostic::new(format!("`{}`: {refusal}", family.name)))?;
        policies.push(policy);
    }

    let mut families = Vec::new();
    for group in &workload.nodes {
        let family = schema.family_number(&group.family).ok_or_else(|| {
            let names: Vec<&str> = schema.families.iter().map(|it| it.name.as_str()).collect();
            Diagnostic::new(format!("the master has no family `{}`", group.family))
                .hint(format!("its `nodefamilies` are {}", names.join(", ")))
        })?;
        families.push(family);
        check_variables(&schema, &group.workload)?;
    }

    let end = settings.duration.unwrap_or(workload.duration);
    let lives = lives(workload, end);
    let mut nodes: Vec<Node> = lives
        .iter()
        .enumerate()
        .map(|(number, life)| {
            let family = families[life.group];
            let key = number as u64 + 1;
            let replica = Replica::new(schema.clone(), family, key);
            Node::new(policies[family].clone(), replica)
        })
        .collect();
    let options: Vec<Options> = lives
        .iter()
        .enumerate()
        .map(|(number, _)| machine_options(settings, number as u64 + 1))
        .collect();
    let world_options = machine_options(settings, 0);
    let mut nobody = World;
    let world = match &workload.world {
        Some(world) => Some(Part::new(&mut nobody, world, &world_options)?),
        None => None,
    };
    let members =
        lives.iter().zip(nodes.iter_mut().zip(&options)).map(|(life, (node, options))| {
            Member::new(life.group, life.index, life.start, node, options)
        });
    Cluster::new(master, members.collect(), world, workload, settings, end).run()
}

fn schema(
    checked: &Checked,
    cluster: &attune_language::Cluster,
    workload: &ClusterWorkload,
    settings: &Settings,
) -> Result<Schema, Diagnostic> {
    let mut models = HashMap::new();
    for (name, request) in &workload.models {
        let model = if *request { Model::Request } else { Model::Cache };
        models.insert(name.clone(), model);
    }
    let mut schema = Schema::new(cluster, &checked.sources, &models);
    let unknown = |name: &str, schema: &Schema| {
        let names: Vec<&str> = schema.shared.iter().map(|it| it.name.as_str()).collect();
        Diagnostic::new(format!("the nodes share no variable `{name}`"))
            .hint(format!("the master's `global` has {}", names.join(", ")))
    };
    if let Some((name, _)) = workload.models.iter().find(|(name, _)| schema.shared(name).is_none())
    {
        return Err(unknown(name, &schema));
    }
    for (name, value) in &settings.shared {
        let Some(number) = schema.shared(name) else { return Err(unknown(name, &schema)) };
        schema.shared[usize::from(number)].initial = *value;
    }
    Ok(schema)
}

fn check_variables(
    schema: &Schema,
    workload: &attune_simulator::Workload,
) -> Result<(), Diagnostic> {
    for name in workload.cluster_variables() {
        if schema.shared(name).is_none() {
            return Err(Diagnostic::new(format!(
                "the workload updates `{name}`, which the nodes do not share"
            ))
            .hint("declare it in the master's `global`"));
        }
    }
    Ok(())
}

/// All lives that the workload's text gives, in the order of groups and of starts.
fn lives(workload: &ClusterWorkload, end: Time) -> Vec<Life> {
    let mut lives = Vec::new();
    for (number, group) in workload.nodes.iter().enumerate() {
        for index in 0..group.count {
            let start = group.start.saturating_add(group.every.saturating_mul(index.into()));
            lives.push(Life { group: number, index, start });
        }
        for incident in workload.incidents.iter().filter(|incident| incident.group == number) {
            let IncidentKind::Crash { back: Some(back) } = incident.kind else { continue };
            let all = 0..group.count;
            for index in all.filter(|index| incident.index.is_none_or(|it| it == *index)) {
                let start = incident.at.saturating_add(back);
                lives.push(Life { group: number, index, start });
            }
        }
    }
    lives.retain(|life| life.start < end);
    lives
}

/// Machines that draw the same numbers would move in step.
fn machine_options(settings: &Settings, number: u64) -> Options {
    const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
    Options {
        seed: settings.seed.wrapping_add(number.wrapping_mul(STEP)),
        duration: Some(Time::MAX),
        trace: settings.trace,
        timeline: if settings.trace { Time::MAX } else { 0 },
        max_events: settings.max_events,
        ..Options::default()
    }
}
