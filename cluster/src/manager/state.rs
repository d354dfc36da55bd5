//! What a manager keeps of itself, as bytes: its run, its master, and the processes of its nodes.

use std::sync::Arc;

use attune_cluster_local::packets::reader::Reader;
use attune_cluster_local::packets::writer::Writer;
use attune_linux::procfs;
use attune_replica::Schema;
use attune_replica::messages::NodeId;

use super::absent::Identity;
use super::start::{Error, Texts};
use crate::Master;

/// The version of these bytes: a manager that finds another one begins anew.
const VERSION: u32 = 1;

/// A manager that another process was.
pub struct Former {
    pub run: u64,
    pub master: Master,
    pub nodes: Vec<(NodeId, Identity)>,
}

pub fn write(to: &mut Writer, run: u64, master: &Master, nodes: &[(NodeId, Identity)]) {
    write_head(to, master.schema());
    to.u64(run);
    to.list(nodes, |to, &(node, process)| {
        to.u64(node);
        to.u32(process.number);
        to.u64(process.start);
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
    write_head(&mut head, schema);
    let Some(rest) = bytes.strip_prefix(&head.bytes[..]) else { return Ok(None) };
    let mut from = Reader { bytes: rest };
    let Some((run, nodes)) = read_nodes(&mut from) else { return Ok(None) };
    let Texts { cluster, sources, seed } = texts;
    let master = Master::restored(cluster, schema.clone(), sources, *seed, &mut from)?;
    Ok(master.filter(|_| from.bytes.is_empty()).map(|master| Former { run, master, nodes }))
}

/// What must be equal for one manager to go on where another stopped.
fn write_head(to: &mut Writer, schema: &Schema) {
    to.u32(VERSION);
    // Where /proc cannot be read no process is found again, and nothing is taken up.
    to.text(&procfs::boot_id().unwrap_or_default());
    to.text(&schema.identity);
    to.list(&schema.shared, |to, shared| to.value(shared.initial));
}

fn read_nodes(from: &mut Reader<'_>) -> Option<(u64, Vec<(NodeId, Identity)>)> {
    let run = from.u64()?;
    let nodes = from
        .list(|from| Some((from.u64()?, Identity { number: from.u32()?, start: from.u64()? })))?;
    Some((run, nodes))
}
