//! Makes one C text from a checked scheduler and the engine's own C.

use attune_backend_c as c;
use attune_language::ir::{Program, Verdicts};
use attune_language::source::SourceMap;

use crate::supplies::SUPPLIES;

pub use c::kernel::MOST_POLICIES;

/// In front of the scheduler: the kernel's types, and what the engine keeps of a thread.
const BEFORE: [&str; 4] = [
    include_str!("../bpf/kernel.h"),
    include_str!("../bpf/thread.h"),
    attune_bpf::INTERRUPT,
    include_str!("../bpf/know.h"),
];

/// Behind it, each using those above it.
const BEHIND: [&str; 28] = [
    include_str!("../bpf/state.h"),
    include_str!("../bpf/domain.h"),
    include_str!("../bpf/share.h"),
    include_str!("../bpf/lock.h"),
    include_str!("../bpf/ready.h"),
    include_str!("../bpf/cgroup.h"),
    include_str!("../bpf/quota.h"),
    include_str!("../bpf/lag.h"),
    include_str!("../bpf/record.h"),
    include_str!("../bpf/copy.h"),
    include_str!("../bpf/weight.h"),
    include_str!("../bpf/alarm.h"),
    include_str!("../bpf/table.h"),
    include_str!("../bpf/values.h"),
    include_str!("../bpf/implicit.h"),
    include_str!("../bpf/handlers.h"),
    include_str!("../bpf/away.h"),
    include_str!("../bpf/throttle.h"),
    include_str!("../bpf/preempt.h"),
    include_str!("../bpf/node.h"),
    include_str!("../bpf/move.h"),
    include_str!("../bpf/balance.h"),
    include_str!("../bpf/rescue.h"),
    include_str!("../bpf/hotplug.h"),
    include_str!("../bpf/idle.h"),
    include_str!("../bpf/engine.h"),
    include_str!("../bpf/hierarchy.h"),
    include_str!("../bpf/life.h"),
];

/// Stands in the engine's place.
const REPLAY: &str = include_str!("../bpf/replay.h");

/// The scheduler as a BPF program in C that compiles by itself. `verdicts` are the kernel engine's.
pub fn source(
    program: &Program,
    verdicts: &Verdicts,
    sources: &SourceMap,
) -> Result<String, c::Refusal> {
    shared_source(&[c::Policy { program, verdicts, sources }])
}

/// The same where the first one is the scheduler of a cluster's node, alone or with others.
pub fn node_source(policies: &[c::Policy<'_>], told: c::Node) -> Result<String, c::Refusal> {
    let engine = c::kernel::Engine { node: Some(told), ..engine(BEHIND.join("\n")) };
    c::kernel::generate(policies, &engine)
}

/// Schedulers that share the machine: each has the threads of a command, the last one all others.
/// At most [`MOST_POLICIES`].
pub fn shared_source(policies: &[c::Policy<'_>]) -> Result<String, c::Refusal> {
    c::kernel::generate(policies, &engine(BEHIND.join("\n")))
}

/// The scheduler with [`crate::Replay`] in the engine's place.
pub fn replay_source(
    program: &Program,
    verdicts: &Verdicts,
    sources: &SourceMap,
) -> Result<String, c::Refusal> {
    let policy = c::Policy { program, verdicts, sources };
    c::kernel::generate(&[policy], &engine(REPLAY.to_string()))
}

/// The same for the scheduler of a cluster's node.
pub fn replay_node_source(node: c::Policy<'_>, told: c::Node) -> Result<String, c::Refusal> {
    let engine = c::kernel::Engine { node: Some(told), ..engine(REPLAY.to_string()) };
    c::kernel::generate(&[node], &engine)
}

fn engine(behind: String) -> c::kernel::Engine {
    c::kernel::Engine { before: BEFORE.join("\n"), behind, supplies: &SUPPLIES, node: None }
}
