//! What a simulated cluster does: the machines of its nodes, the links between them and the master,
//! and what befalls them. docs/workloads.md describes the form.
//!
//! Invariant: every name of a node and of a shared channel that is used is declared; times are
//! nanoseconds from the start of the run.

use ::toml::de::DeTable;

use super::builder::{Builder, Settings};
use super::toml::{MACHINE_KEYS, machine, settings};
use super::toml_values::*;
use super::*;

/// A cluster's workload.
#[derive(Clone, Debug)]
pub struct ClusterWorkload {
    pub name: String,
    pub duration: Time,
    pub nodes: Vec<NodeGroup>,
    /// Clients of the world outside, if there are any.
    pub world: Option<Workload>,
    pub link: Link,
    /// Shared variables whose model is said, and whether it is the request model.
    pub models: Vec<(String, bool)>,
    pub channels: Vec<SharedChannel>,
    /// In the order of the text.
    pub incidents: Vec<Incident>,
}

/// Nodes that run the same threads.
#[derive(Clone, Debug)]
pub struct NodeGroup {
    pub name: String,
    pub family: String,
    pub count: u32,
    /// When the first of them starts, and how long after one the next does.
    pub start: Time,
    pub every: Time,
    pub workload: Workload,
}

/// How messages travel between a node and the master, and to nodes that wait at a shared channel.
#[derive(Clone, Copy, Debug)]
pub struct Link {
    /// One way.
    pub delay: Time,
    /// The most that is added to it, uniformly: messages may overtake each other.
    pub jitter: Time,
    /// The share of the cluster's own messages that is lost, 0 to 1.
    pub loss: f64,
    /// A node and the master say no more than one thing to each other in this time.
    pub pace: Time,
    /// After so long without an answer a message is sent again.
    pub resend: Time,
    /// After so long the master and a node tell each other that they are there.
    pub heartbeat: Time,
    /// How long after a crash the master knows of it.
    pub notice: Time,
    /// The master gives a node up after so long without a word; None: never.
    pub patience: Option<Time>,
}

/// A channel in which nodes meet.
#[derive(Clone, Debug)]
pub struct SharedChannel {
    pub name: String,
    /// Messages that find no room are lost and counted.
    pub capacity: Option<usize>,
    /// A message goes to any thread that waits, not to the one that has waited longest.
    pub to_any: bool,
}

/// What befalls a node of a group, or all of them.
#[derive(Clone, Copy, Debug)]
pub struct Incident {
    pub at: Time,
    pub group: usize,
    /// None: all nodes of the group.
    pub index: Option<u32>,
    pub kind: IncidentKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IncidentKind {
    /// Its threads are gone; after that time, a new node of the group starts in its place.
    Crash { back: Option<Time> },
    /// It says goodbye.
    Departure,
    /// Nothing passes between it and the others before that time.
    Partition { until: Time },
}

impl ClusterWorkload {
    /// Reads a cluster's workload. `name` is the file's name, for messages.
    pub fn from_toml(text: &str, name: &str) -> Result<ClusterWorkload, Diagnostic> {
        read(Source::new(name, text))
    }

    /// Whether the text has `[[node]]`s, so that it is meant for a cluster.
    pub fn is_meant(text: &str) -> bool {
        DeTable::parse(text).is_ok_and(|document| document.get_ref().contains_key("node"))
    }
}

const CLUSTER_KEYS: [&str; 10] = [
    "name",
    "duration",
    "link",
    "models",
    "channels",
    "node",
    "client",
    "crash",
    "departure",
    "partition",
];

fn read(source: Source) -> Result<ClusterWorkload, Diagnostic> {
    let text = source.text.clone();
    let document = DeTable::parse(&text).map_err(|error| {
        let location = source.locate(&error.span().unwrap_or(0..0));
        Diagnostic::new(format!("this is not TOML: {}", error.message())).at(location)
    })?;
    let mut builder = in_cluster(&source, &[]);
    let what = "a workload of a cluster";
    let top = Fields::new(&builder, document.get_ref(), document.span(), what, &CLUSTER_KEYS)?;
    let Settings { name, duration, .. } = settings(&mut builder, &top)?;
    let Some(duration) = duration else {
        return Err(Diagnostic::new(format!("{}: a cluster needs a duration", source.name))
            .hint("add duration = \"10s\" at the top of the file"));
    };
    let channels = channels(&builder, &top)?;
    let mut nodes: Vec<NodeGroup> = Vec::new();
    for table in tables(&builder, &top, "node")? {
        let group = node(&source, table, &channels, duration)?;
        if nodes.iter().any(|known| known.name == group.name) {
            let message = format!("there are already nodes called `{}`", group.name);
            return Err(builder.error(&table.span(), message).hint("give them a `name`"));
        }
        nodes.push(group);
    }
    if nodes.is_empty() {
        return Err(Diagnostic::new(format!("{}: the cluster has no nodes", source.name))
            .hint("begin one with [[node]]"));
    }
    let world = match top.get("client") {
        Some(_) => {
            let mut outside = in_cluster(&source, &channels);
            // The world outside has no copy of the store.
            outside.in_cluster = false;
            let settings = settings(&mut outside, &top)?;
            Some(machine(outside, &top, settings)?)
        }
        None => None,
    };
    Ok(ClusterWorkload {
        name,
        duration,
        world,
        link: link(&mut builder, &top)?,
        models: models(&builder, &top)?,
        incidents: incidents(&mut builder, &top, &nodes)?,
        channels,
        nodes,
    })
}

fn in_cluster(source: &Source, channels: &[SharedChannel]) -> Builder {
    let mut builder = Builder::new(source.clone());
    builder.in_cluster = true;
    builder.shared_channels = channels.iter().map(|channel| channel.name.clone()).collect();
    builder
}

fn channels(builder: &Builder, top: &Fields) -> Result<Vec<SharedChannel>, Diagnostic> {
    let mut channels = Vec::new();
    for (name, _, value) in entries(builder, top.get("channels"))? {
        let fields = Fields::of(builder, value, "a shared channel", &["capacity", "to"])?;
        let capacity = match fields.get("capacity") {
            Some(value) => Some(integer(builder, value, 1, u64::from(u32::MAX))? as usize),
            None => None,
        };
        let to_any = match fields.get("to") {
            None => false,
            Some(value) => match text(builder, value)? {
                "first" => false,
                "any" => true,
                other => {
                    let error = builder.error(&value.span(), format!("`{other}` is no receiver"));
                    return Err(error.hint("write \"first\" or \"any\""));
                }
            },
        };
        channels.push(SharedChannel { name, capacity, to_any });
    }
    Ok(channels)
}

fn node(
    source: &Source,
    table: &Value,
    channels: &[SharedChannel],
    duration: Time,
) -> Result<NodeGroup, Diagnostic> {
    let mut builder = in_cluster(source, channels);
    let keys: Vec<&str> =
        MACHINE_KEYS.into_iter().chain(["family", "count", "start", "every"]).collect();
    let fields = Fields::of(&builder, table, "[[node]]", &keys)?;
    let family = text(&builder, fields.need(&builder, "family")?)?.to_string();
    let name = match fields.get("name") {
        Some(name) => text(&builder, name)?.to_string(),
        None => family.clone(),
    };
    let count = match fields.get("count") {
        Some(count) => integer(&builder, count, 1, u64::from(MOST_NODES))? as u32,
        None => 1,
    };
    let start = time_or(&mut builder, &fields, "start", 0)?;
    let every = time_or(&mut builder, &fields, "every", 0)?;
    let settings = settings(&mut builder, &fields)?;
    let settings = Settings { name: name.clone(), duration: Some(duration), ..settings };
    let workload = machine(builder, &fields, settings)?;
    Ok(NodeGroup { name, family, count, start, every, workload })
}

/// The most nodes of a group.
const MOST_NODES: u32 = 100_000;

fn time_or(
    builder: &mut Builder,
    fields: &Fields,
    key: &str,
    otherwise: Time,
) -> Result<Time, Diagnostic> {
    match fields.get(key) {
        Some(value) => fixed_time(builder, value),
        None => Ok(otherwise),
    }
}

fn link(builder: &mut Builder, top: &Fields) -> Result<Link, Diagnostic> {
    const KEYS: [&str; 8] =
        ["delay", "jitter", "loss", "pace", "resend", "heartbeat", "notice", "patience"];
    let no_table = DeTable::default();
    let fields = match top.get("link") {
        Some(value) => Fields::of(builder, value, "[link]", &KEYS)?,
        None => Fields::new(builder, &no_table, 0..0, "[link]", &KEYS)?,
    };
    let delay = time_or(builder, &fields, "delay", 0)?;
    let jitter = time_or(builder, &fields, "jitter", 0)?;
    let loss = match fields.get("loss") {
        Some(value) => {
            let loss = amount(builder, value)?.constant();
            loss.filter(|loss| (0.0..=1.0).contains(loss)).ok_or_else(|| {
                builder.error(&value.span(), "the share of lost messages is from 0 to 1")
            })?
        }
        None => 0.0,
    };
    // There and back, and some more.
    let resend = time_or(builder, &fields, "resend", 4 * (delay + jitter) + 1_000_000)?;
    Ok(Link {
        delay,
        jitter,
        loss,
        resend: resend.max(1),
        pace: time_or(builder, &fields, "pace", 0)?,
        heartbeat: time_or(builder, &fields, "heartbeat", 100_000_000)?.max(1),
        notice: time_or(builder, &fields, "notice", delay)?,
        patience: match fields.get("patience") {
            Some(value) => Some(fixed_time(builder, value)?),
            None => None,
        },
    })
}

fn models(builder: &Builder, top: &Fields) -> Result<Vec<(String, bool)>, Diagnostic> {
    let mut models = Vec::new();
    for (name, _, value) in entries(builder, top.get("models"))? {
        let request = match text(builder, value)? {
            "request" => true,
            "cache" => false,
            other => {
                return Err(builder
                    .error(&value.span(), format!("`{other}` is no model"))
                    .hint("write \"cache\" or \"request\""));
            }
        };
        models.push((name, request));
    }
    Ok(models)
}

fn incidents(
    builder: &mut Builder,
    top: &Fields,
    nodes: &[NodeGroup],
) -> Result<Vec<Incident>, Diagnostic> {
    let mut incidents = Vec::new();
    for (kind, keys) in [
        ("crash", &["node", "index", "time", "back"][..]),
        ("departure", &["node", "index", "time"]),
        ("partition", &["node", "index", "from", "to"]),
    ] {
        let what = format!("[[{kind}]]");
        for table in tables(builder, top, kind)? {
            let fields = Fields::of(builder, table, &what, keys)?;
            let name = fields.need(builder, "node")?;
            let named = text(builder, name)?;
            let Some(group) = nodes.iter().position(|group| group.name == named) else {
                let message = format!("there are no nodes called `{named}`");
                return Err(builder.error(&name.span(), message));
            };
            let index = match fields.get("index") {
                Some(index) => {
                    let last = u64::from(nodes[group].count - 1);
                    Some(integer(builder, index, 0, last)? as u32)
                }
                None => None,
            };
            let when = if kind == "partition" { "from" } else { "time" };
            let at = fixed_time(builder, fields.need(builder, when)?)?;
            let kind = match kind {
                "crash" => IncidentKind::Crash {
                    back: match fields.get("back") {
                        Some(value) => Some(fixed_time(builder, value)?),
                        None => None,
                    },
                },
                "departure" => IncidentKind::Departure,
                _ => {
                    let to = fields.need(builder, "to")?;
                    let until = fixed_time(builder, to)?;
                    if until <= at {
                        return Err(builder.error(&to.span(), "a partition ends after it begins"));
                    }
                    IncidentKind::Partition { until }
                }
            };
            incidents.push(Incident { at, group, index, kind });
        }
    }
    Ok(incidents)
}
