//! One C file and its header from a checked scheduler and the engine's own C.

use attune_backend_c::embedded::{Engine, Files, generate};
use attune_backend_c::{Policy, Refusal};

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

/// Bytes of `struct attune_own` on a 32-bit machine, without and for alarms.
const MEMBERS: u32 = 48;
const ALARM_MEMBERS: u32 = 16;

/// The files that a firmware project copies. `policy.verdicts` are the embedded engine's.
pub fn source(policy: Policy<'_>, debug: bool) -> Result<Files, Refusal> {
    let engine = Engine {
        header: HEADER.map(str::to_string),
        before: BEFORE.to_string(),
        behind: BEHIND.join("\n"),
        members: MEMBERS,
        alarm_members: ALARM_MEMBERS,
        table: false,
    };
    generate(policy, debug, &engine)
}

/// The scheduler as the embedded engine compiles it, with the table of a shared object in the
/// engine's place: one text, whose handlers a test can load and call.
pub fn loadable(policy: Policy<'_>, debug: bool) -> Result<String, Refusal> {
    let engine = Engine {
        header: [HEADER[0].to_string(), "#endif\n".to_string()],
        before: include_str!("../runtime/loadable.h").to_string(),
        table: true,
        ..Engine::default()
    };
    Ok(generate(policy, debug, &engine)?.c)
}
