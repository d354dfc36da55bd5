//! What a manager keeps of itself, as bytes: its run, its master, and the processes of its nodes.
//! Managers that share their master's state keep whose the nodes are and the master's time, too.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use attune_cluster_local::packets::reader::Reader;
use attune_cluster_local::packets::writer::Writer;
use attune_linux::procfs;
use attune_replica::Schema;
use attune_replica::messages::NodeId;
use attune_simulator::scheduler::Time;

use super::absent::Identity;
use super::start::{Error, Texts};
use crate::Master;
use crate::database::ManagerId;

/// The version of these bytes: a manager that finds another one begins anew.
const VERSION: u32 = 1;

/// A manager that another process was.
pub struct Former {
    pub run: u64,
    pub master: Master,
    pub nodes: Vec<(NodeId, Identity)>,
}

pub fn write(to: &mut Writer, run: u64, master: &Master, nodes: &[(NodeId, Identity)]) {
    write_head(to, master.schema(), boot());
    to.u64(run);
    to.list(nodes, |to, &(node, process)| {
        to.u64(node);
        write_identity(to, process);
    });
    master.save(to);
}

/// None: the bytes are of another version of the texts, of other first values, or of a time before
/// the machine was started.
pub fn read(
    bytes: &[u8],
    texts: &Texts<'_>,
    schema: &Arc<Schema>,
) -> Result<Option<Former>, Error> {
    let mut head = Writer::default();
    write_head(&mut head, schema, boot());
    let Some(rest) = bytes.strip_prefix(&head.bytes[..]) else { return Ok(None) };
    let mut from = Reader { bytes: rest };
    let Some((run, nodes)) = read_nodes(&mut from) else { return Ok(None) };
    let Texts { cluster, sources, seed } = texts;
    let master = Master::restored(cluster, schema.clone(), sources, *seed, &mut from)?;
    Ok(master.filter(|_| from.bytes.is_empty()).map(|master| Former { run, master, nodes }))
}

/// What must be equal for one manager to go on where another stopped.
fn write_head(to: &mut Writer, schema: &Schema, boot: &str) {
    to.u32(VERSION);
    to.text(boot);
    to.text(&schema.identity);
    to.list(&schema.shared, |to, shared| to.value(shared.initial));
}

/// Where /proc cannot be read no process is found again, and nothing is taken up. Asked once: a
/// state is written with each request.
fn boot() -> &'static str {
    static BOOT: OnceLock<String> = OnceLock::new();
    BOOT.get_or_init(|| procfs::boot_id().unwrap_or_default())
}

fn read_nodes(from: &mut Reader<'_>) -> Option<(u64, Vec<(NodeId, Identity)>)> {
    let run = from.u64()?;
    let nodes = from.list(|from| Some((from.u64()?, read_identity(from)?)))?;
    Some((run, nodes))
}

fn write_identity(to: &mut Writer, process: Identity) {
    to.u32(process.number);
    to.u64(process.start);
}

fn read_identity(from: &mut Reader<'_>) -> Option<Identity> {
    Some(Identity { number: from.u32()?, start: from.u64()? })
}

/// Whose a node is, and which of its processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    pub manager: ManagerId,
    pub identity: Identity,
}

/// What managers of several machines share; the master itself is in `rest`.
pub struct Shared<'a> {
    pub run: u64,
    pub clock: Time,
    pub owners: Vec<(NodeId, Owner)>,
    pub rest: Reader<'a>,
}

pub fn write_shared(
    to: &mut Writer,
    run: u64,
    clock: Time,
    master: &Master,
    owners: &BTreeMap<NodeId, Owner>,
) {
    // Machines start at different times.
    write_head(to, master.schema(), "");
    to.u64(run);
    to.u64(clock as u64);
    to.u32(owners.len() as u32);
    for (&node, owner) in owners {
        to.u64(node);
        to.u64(owner.manager);
        write_identity(to, owner.identity);
    }
    master.save(to);
}

/// None: the bytes are something else, or of another version.
pub fn read_shared<'a>(bytes: &'a [u8], schema: &Schema) -> Option<Shared<'a>> {
    let mut head = Writer::default();
    write_head(&mut head, schema, "");
    let mut from = Reader { bytes: bytes.strip_prefix(&head.bytes[..])? };
    let (run, clock) = (from.u64()?, from.u64()? as Time);
    let owners = from.list(|from| {
        let (node, manager) = (from.u64()?, from.u64()?);
        Some((node, Owner { manager, identity: read_identity(from)? }))
    })?;
    Some(Shared { run, clock, owners, rest: from })
}

/// The version of the texts of a state that managers of this version cannot share.
pub fn other_version(bytes: &[u8], schema: &Schema) -> Option<String> {
    if bytes.is_empty() || read_shared(bytes, schema).is_some() {
        return None;
    }
    let mut from = Reader { bytes };
    let version = from.u32().and_then(|version| {
        from.text()?;
        let identity = from.text()?;
        Some(if version == VERSION { identity } else { format!("{identity}, format {version}") })
    });
    Some(version.unwrap_or_else(|| "unknown".to_owned()))
}

/// A manager's own number, for the one that follows it on the same machine.
pub fn own(number: ManagerId) -> Vec<u8> {
    let mut to = Writer::default();
    to.u32(VERSION);
    to.text(boot());
    to.u64(number);
    to.bytes
}

/// None: there is none, or the machine has been started since.
pub fn read_own(bytes: &[u8]) -> Option<ManagerId> {
    let mut from = Reader { bytes };
    let same = from.u32()? == VERSION && from.text()? == boot();
    let number = from.u64()?;
    (same && from.bytes.is_empty()).then_some(number)
}
