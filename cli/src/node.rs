//! A family of a cluster's nodes: its scheduler for the engines, and one at work in the kernel.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use attune_backend_c as c;
use attune_cluster_local::{packets, place};
use attune_kernel::{Member, Running, Told};
use attune_language::engine::Engine;
use attune_language::ir::Program;
use attune_language::{Checked, Cluster, EngineReport};
use attune_replica::Schema;
use attune_replica::schema::Model;

use crate::failure::Failure;
use crate::manager;
use crate::output::tell;
use crate::source::refusal;

/// So often the command's start is looked at while the others come.
const OFTEN: Duration = Duration::from_millis(50);

/// The scheduler of a family that an engine takes.
pub struct Node<'a> {
    pub program: &'a Program,
    pub report: &'a EngineReport,
    /// What the engine must know of the cluster.
    pub told: c::Node,
    pub schema: Schema,
    pub family: usize,
}

impl<'a> Node<'a> {
    /// `master` is the file of `checked`; `requested` are the shared variables that the node's
    /// program uses at the owner.
    pub fn of(
        checked: &'a Checked,
        master: &Path,
        family: Option<&str>,
        engine: Engine,
        requested: &[String],
    ) -> Result<Node<'a>, Failure> {
        let cluster = manager::cluster(checked, master)?;
        let number = number(cluster, master, family)?;
        let family = &cluster.families[number];
        let report = &family.engines[engine as usize];
        if !report.accepted {
            return Err(Failure::wrong(refusal(report)));
        }
        let models = requested.iter().map(|name| (name.clone(), Model::Request)).collect();
        let schema = Schema::new(cluster, &checked.sources, &models);
        for name in requested {
            schema.shared(name).ok_or_else(|| manager::not_shared(&schema, "--request", name))?;
        }
        let description = packets::describe(&schema, number);
        let told = c::Node { cluster: schema.name.clone(), description };
        Ok(Node { program: &family.program, report, told, schema, family: number })
    }
}

fn number(cluster: &Cluster, master: &Path, family: Option<&str>) -> Result<usize, Failure> {
    let names: Vec<&str> = cluster.families.iter().map(|each| each.name.as_str()).collect();
    let known = names.join(", ");
    let Some(family) = family else {
        return Err(Failure::usage(format!(
            "{} is a master: `attune manager` runs it, and --node FAMILY takes the scheduler of a \
             family of its nodes ({known})",
            master.display()
        )));
    };
    let number = names.iter().position(|name| *name == family);
    number
        .ok_or_else(|| Failure::usage(format!("the master has no family {family}: it has {known}")))
}

/// Makes a scheduler in the kernel the node that it was built as; None: it is none.
pub fn join(running: &Running, cluster: Option<&str>) -> Result<Option<Member>, Failure> {
    let Some(name) = running.cluster() else {
        let unused = |_| Failure::usage("--cluster is for the node of a cluster: --node FAMILY");
        return cluster.map_or(Ok(None), |name| Err(unused(name)));
    };
    let name = cluster.unwrap_or(name).to_owned();
    let path = place::socket(&name);
    let at = path.display().to_string();
    let member = running.join(path, move |told| match told {
        Told::Joined => tell!("attune: this node takes part in cluster {name}"),
        Told::Absent => tell!(
            "attune: no manager of cluster {name} is there, at {at}: this node goes on with the \
             values that it has, and takes part as soon as there is one"
        ),
        Told::Refused(why) => {
            tell!("attune: the cluster's manager refuses this node, which runs alone: {why}");
        }
        Told::Lost(why) => tell!("attune: this node has left its cluster: {why}"),
    });
    member.map(Some).map_err(|error| Failure::usage(format!("the cluster: {error}")))
}

/// The start barrier: until as many nodes have come as the families expect, or `stop`.
pub fn wait_for_others(running: &Running, member: &Member, stop: &AtomicBool) {
    if !member.has_started() {
        tell!("attune: the command waits until all nodes that the master expects have come");
    }
    while !member.has_started() && running.exit().is_none() && !stop.load(Ordering::Relaxed) {
        running.wait(OFTEN);
    }
}
