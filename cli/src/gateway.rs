//! `attune gateway`: a node of a cluster on behalf of a device at the end of a link.

use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use attune_cluster_device::{Gateway, Told};
use attune_cluster_local::place;
use attune_language::engine::Engine;
use attune_linux::{line, poll, time};
use attune_replica::Time;

use crate::args::GatewayArgs;
use crate::failure::Failure;
use crate::manager;
use crate::node::Node;
use crate::output::tell;
use crate::source::checked;

/// A link without an end is looked at so often. Nanoseconds.
const OFTEN: Time = 100_000_000;

pub fn run(args: &GatewayArgs) -> Result<ExitCode, Failure> {
    let checked = checked(&args.scheduler, &args.source)?;
    let family = Some(args.node.as_str());
    let Node { schema, family, .. } =
        Node::of(&checked, &args.scheduler, family, Engine::Embedded, &[])?;
    let cluster = args.cluster.clone().unwrap_or_else(|| schema.name.clone());
    let opened =
        line::open(&args.link).map_err(|error| Failure::file("open", &args.link, error))?;
    let stop = manager::stop()?;
    let path = place::socket(&cluster);
    let session = time::now() as u32;
    let mut gateway = Gateway::new(Arc::new(schema), family, path, session);
    let mut told = |told| match told {
        Told::Heard => tell!("attune: the device is there"),
        Told::Silent => tell!("attune: the device says nothing any more: its node has departed"),
        Told::Joined => tell!("attune: the device takes part in cluster {cluster}"),
        Told::Refused(why) => tell!("attune: the cluster's manager refuses the device: {why}"),
        Told::Foreign(text) => tell!(
            "attune: the device's firmware was built from another text, or for another family \
             ({text}): build it anew with --node {}",
            args.node
        ),
    };
    let (mut from, mut to) = opened;
    let mut came = [0; 4096];
    while !poll::is_readable(&stop).unwrap_or(true) {
        let count = match from.read(&mut came) {
            Ok(0) if args.link == Path::new("-") => return Ok(ExitCode::SUCCESS),
            Ok(0) => return Err(Failure::file("read", &args.link, "the line has ended")),
            Ok(count) => count,
            Err(error) if is_late(&error) => 0,
            Err(error) => return Err(Failure::file("read", &args.link, error)),
        };
        let says = gateway.turn(&came[..count], time::now() as Time, &mut told);
        // What the link has no room for is said again.
        match to.write(&says) {
            Err(error) if !is_late(&error) => {
                return Err(Failure::file("write", &args.link, error));
            }
            _ => {}
        }
        let now = time::now() as Time;
        let descriptors = [Some(stop.as_fd().as_raw_fd()), Some(from.as_raw_fd())];
        let descriptors = descriptors.into_iter().chain([gateway.descriptor()]);
        let mut descriptors: Vec<_> = descriptors.flatten().map(poll::readable).collect();
        let wait = (gateway.next() - now).clamp(0, OFTEN);
        // Interrupted, it looks sooner.
        let _ = poll::wait(&mut descriptors, wait as _);
    }
    Ok(ExitCode::SUCCESS)
}

fn is_late(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}
