//! What makes one run differ from another, as one word: to know a run again that was made before.

use std::os::unix::fs::FileExt;

use anyhow::Context;
use sha2::{Digest, Sha256};

use crate::machine::first_files;
use crate::{Cache, Command, Error, Kind, Options};

/// SHA-256, as hexadecimal digits, of all that a machine and its command are made of: the kernel,
/// QEMU's version, the machine's size and seed, the command, its environment and every packed file.
/// Two deterministic runs with equal fingerprints are the same run. Where the
/// machine sees the host's files, those files are not in it.
pub fn fingerprint(cache: &Cache, options: &Options, command: &Command) -> Result<String, Error> {
    let mut hash = Sha256::new();
    for source in &cache.contents.sources {
        hash.update(format!("{}\n", source.sha256));
    }
    let seed = match &options.kind {
        Kind::HostFiles => None,
        Kind::Deterministic { seed, .. } => Some(seed),
    };
    let (qemu, cpus, memory) = (cache.qemu_version(), options.topology, options.memory);
    hash.update(format!("QEMU {qemu}\ncpus {cpus}\nmemory {memory}\nseed {seed:?}\n"));
    let files = first_files(cache, options, command)?;
    let (mut part, mut at) = (vec![0; 1 << 20], 0);
    loop {
        let length = files.read_at(&mut part, at).context("cannot read the guest's first files")?;
        if length == 0 {
            break;
        }
        hash.update(&part[..length]);
        at += length as u64;
    }
    Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}
