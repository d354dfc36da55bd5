//! One C file and its header from a checked scheduler and the engine's own C.

use attune_backend_c::embedded::{Engine, Files, Node, Own, generate};
use attune_backend_c::{Policy, Refusal};
use attune_replica::Schema;
use attune_replica::schema::{Export, Source};

/// The header in front of what is the policy's own, and behind it.
const HEADER: [&str; 2] =
    [include_str!("../runtime/config.h"), include_str!("../runtime/attune.h")];

/// What the engine keeps of a thread.
const BEFORE: &str = include_str!("../runtime/record.h");

/// Behind the scheduler, each using those above it.
const BEHIND: [&str; 6] = [
    include_str!("../runtime/port/cortex_m.h"),
    include_str!("../runtime/port/host.h"),
    include_str!("../runtime/core.h"),
    include_str!("../runtime/life.h"),
    include_str!("../runtime/time.h"),
    include_str!("../runtime/semaphore.h"),
];

/// What a node of a cluster has in addition: in the header, and behind everything.
const NODE_API: &str = include_str!("../runtime/node_api.h");
const NODE: &str = include_str!("../runtime/node.h");

/// Bytes of `struct attune_own` on a 32-bit machine, without and for alarms.
const MEMBERS: u32 = 48;
const ALARM_MEMBERS: u32 = 16;

/// The files that a firmware project copies. `policy.verdicts` are the embedded engine's.
pub fn source(policy: Policy<'_>, debug: bool) -> Result<Files, Refusal> {
    generate(policy, debug, &engine())
}

/// The same for the scheduler of a family of a cluster's nodes.
pub fn node_source(
    policy: Policy<'_>,
    debug: bool,
    schema: &Schema,
    family: usize,
) -> Result<Files, Refusal> {
    let described = &schema.families[family];
    let shared = described.imports.iter().filter(|(_, source)| *source != Source::Age);
    let own = described.exports.iter().map(|(_, export)| match export {
        Export::Global(global) => Own::Global(*global),
        Export::Size(container) => Own::Size(*container),
    });
    let node = Node {
        text: schema.text(family),
        shared: shared.map(|(global, _)| *global).collect(),
        own: own.collect(),
    };
    let plain = engine();
    let [header, api] = plain.header;
    let engine = Engine {
        header: [header, format!("{NODE_API}{api}")],
        behind: format!("{}\n{NODE}", plain.behind),
        node: Some(node),
        ..plain
    };
    generate(policy, debug, &engine)
}

fn engine() -> Engine {
    Engine {
        header: HEADER.map(str::to_string),
        before: BEFORE.to_string(),
        behind: BEHIND.join("\n"),
        members: MEMBERS,
        alarm_members: ALARM_MEMBERS,
        node: None,
        table: false,
    }
}

/// The scheduler as the embedded engine compiles it, with the table of a shared object in the
/// engine's place: one text, whose handlers a test can load and call. `node`: it is that of a
/// cluster's node, and the test takes the gateway's place.
pub fn loadable(policy: Policy<'_>, debug: bool, node: bool) -> Result<String, Refusal> {
    let engine = Engine {
        node: node.then(Node::default),
        header: [HEADER[0].to_string(), "#endif\n".to_string()],
        before: include_str!("../runtime/loadable.h").to_string(),
        table: true,
        ..Engine::default()
    };
    Ok(generate(policy, debug, &engine)?.c)
}
