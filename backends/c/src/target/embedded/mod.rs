//! One C file and one header for a firmware project: the runtime, the scheduler and the engine.
//!
//! - Freestanding C11; the engine reaches handlers by macros, so each is a direct call.
//! - Thread imports are members of the record, which the firmware reaches through
//!   `struct attune_imports`; a global import is a variable that the firmware's `attune_config.h`
//!   may name (`ATTUNE_IMPORT_name`); a tunable starts with the value of `ATTUNE_TUNE_name`.
//! - A failed check does not return: it tells the firmware its place and sentence.
//!
//! `header` writes what is the policy's own in the header, `node` what a cluster shares with it.
//! `sizes` knows how much memory the scheduler takes on a 32-bit machine; the compiler of the
//! firmware checks that sum.

mod header;
mod node;
mod sizes;

use attune_language::engine::limits;

use crate::policy::{Policy, Refusal};
use crate::runtime::{self, Needs};
use crate::writer::declarations::{opening, record, state};
use crate::writer::output::{Output, quoted};
use crate::writer::target::{Failures, Imports, State, Target};
use crate::writer::{Role, Writer};
pub use node::{Node, Own};
pub use sizes::Sizes;

/// A thread's last transfer is a line, with the number of its file above these bits.
const FILE_ABOVE: u32 = 20;

static TARGET: Target = Target {
    banner: " *
 * For firmware: compile it with the project, beside attune.h. The configuration in attune_config.h,
 * if the project has one, comes first; then the runtime that all schedulers share, the scheduler
 * and the engine.
 */
",
    runtime: runtime::FIRMWARE,
    // The firmware declares its functions in attune_config.h.
    verbatim_headers: "",
    handler: "static inline void",
    parameters: "struct attune_instance *attune_same, struct attune_thread *attune_thread",
    leave: "return;",
    returns: false,
    failures: Failures::EndTheHandler,
    state: State::Only,
    cpu: "ATTUNE_CPU",
    cpus: "ATTUNE_ALL_CPUS",
    slice: ["ATTUNE_SLICE(", ");"],
    // The sentence of a failed check names them.
    named_containers: false,
    imports: Imports::Plain,
    tells_ages: true,
    verifier: None,
    affinity: false,
    file_above: Some(FILE_ABOVE),
};

/// What the engine puts around the scheduler.
#[derive(Clone, Debug, Default)]
pub struct Engine {
    /// The header's text in front of what is the policy's own, and behind it.
    pub header: [String; 2],
    /// In front of the thread record: what the engine keeps of a thread (ATTUNE_MEMBERS).
    pub before: String,
    /// Behind everything: the engine.
    pub behind: String,
    /// Bytes of ATTUNE_MEMBERS on a 32-bit machine: what every policy pays, and what one with
    /// alarms pays in addition.
    pub members: u32,
    pub alarm_members: u32,
    /// Set where the scheduler is that of a cluster's node.
    pub node: Option<Node>,
    /// Writes the table of a shared object as well, so that a test can load the text.
    pub table: bool,
}

/// The two files, and what they take.
#[derive(Clone, Debug, Default)]
pub struct Files {
    /// The text of `attune.c`.
    pub c: String,
    /// The text of `attune.h`.
    pub h: String,
    pub sizes: Sizes,
}

/// The scheduler as one C file and its header. `policy.verdicts` are the embedded engine's.
pub fn generate(policy: Policy<'_>, debug: bool, engine: &Engine) -> Result<Files, Refusal> {
    policy.refuse()?;
    if engine.node.is_none() {
        policy.refuse_node()?;
    }
    let limit = limits::embedded(policy.program);
    limit.map_or(Ok(()), |it| Err(Refusal::Target(it.in_words(policy.sources))))?;
    let mut writer = Writer::new(policy, &TARGET, debug, Role::FIRST, None);
    let sizes = Sizes::of(&writer, engine);
    let bodies = writer.bodies();
    let mut out = Output::default();
    opening(std::slice::from_ref(&writer), &mut out);
    let h = header::text(&mut writer, engine);
    out.raw(if engine.table { &h } else { "#include \"attune.h\"\n" });
    out.blank();
    // A test starts the scheduler again and again, and reads slices. In a firmware nothing takes
    // the processor away from a thread.
    out.line(format!("#define ATTUNE_ONCE {}", u8::from(!engine.table)));
    let slice = if engine.table { "attune->slice = (time)" } else { "((void)(time))" };
    out.line(format!("#define ATTUNE_SLICE(time) {slice}"));
    let node = engine.node.is_some();
    let needs = writer.needs();
    let needs = Needs { shared: node, time: needs.time || node, ..needs };
    out.raw(&runtime::text(needs, &TARGET.runtime));
    out.line("/* What the engine calls. */");
    writer.handlers_by_macro();
    out.append(writer.written());
    out.line(format!("#define ATTUNE_FILE_ABOVE {FILE_ABOVE}"));
    out.line("static const char *const attune_files[] = {");
    for source in policy.sources.ids() {
        out.line(format!("    {},", quoted(policy.sources.name(source))));
    }
    out.line("};");
    out.blank();
    out.raw(&engine.before);
    let members = ["ATTUNE_MEMBERS                      /* the engine's */"];
    record(std::slice::from_ref(&writer), if engine.table { &[] } else { &members }, &mut out);
    if !engine.table {
        sizes.assert(&mut out);
    }
    writer.import_variables();
    out.append(writer.written());
    state(std::slice::from_mut(&mut writer), &mut out);
    for part in [writer.remaining_checks(), bodies, writer.starting()] {
        out.blank();
        out.append(part);
    }
    out.blank();
    if engine.table {
        out.append(writer.engine_table(None));
    }
    if let Some(node) = &engine.node {
        writer.node_numbers(node);
        out.append(writer.written());
    }
    out.raw(&engine.behind);
    Ok(Files { c: out.finish("attune.c"), h, sizes })
}
