//! A shared object that an engine loads by its table, `attune_scheduler`
//! (`runtime/attune_scheduler.h` describes it).
//!
//! Debug builds run the invariants, check the containers after each change, and map every
//! statement to its source line.

mod table;

use attune_language::ir::{Program, Verdicts};
use attune_language::source::SourceMap;

use crate::policy::{Node, Policy, Refusal};
use crate::runtime;
use crate::writer::declarations::{opening, record, state};
use crate::writer::names::file_stem;
use crate::writer::output::Output;
use crate::writer::target::{Failures, Imports, State, Target};
use crate::writer::{Role, Writer};

/// How to generate.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    pub debug: bool,
}

pub const TARGET: Target = Target {
    banner: " *
 * One file that needs nothing else: cc -shared -fPIC -O2 this.c -o this.so
 * First the runtime that all schedulers share, then the scheduler itself.
 */
",
    runtime: runtime::PROGRAM,
    verbatim_headers: "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n\
        #include <time.h>",
    handler: "static void",
    parameters: "struct attune_instance *attune, struct attune_thread *attune_thread",
    leave: "return;",
    returns: false,
    failures: Failures::EndTheHandler,
    state: State::Passed,
    cpu: "attune->cpu",
    cpus: "attune->cpus",
    slice: ["attune->slice = ", ";"],
    named_containers: true,
    imports: Imports::Linked,
    tells_ages: false,
    verifier: None,
    affinity: false,
    file_above: None,
};

/// The scheduler as one C file that compiles by itself.
///
/// `verdicts` are those of the engine that will run it: checks that they call proved are left out.
/// `sources` are the files that `program` was made from, the main one first.
pub fn generate(
    program: &Program,
    verdicts: &Verdicts,
    sources: &SourceMap,
    options: &Options,
) -> Result<String, Refusal> {
    object(program, verdicts, sources, options, None)
}

/// As [`generate`], for a cluster's node.
pub fn generate_node(
    program: &Program,
    verdicts: &Verdicts,
    sources: &SourceMap,
    options: &Options,
    node: &Node,
) -> Result<String, Refusal> {
    object(program, verdicts, sources, options, Some(node))
}

fn object(
    program: &Program,
    verdicts: &Verdicts,
    sources: &SourceMap,
    options: &Options,
    node: Option<&Node>,
) -> Result<String, Refusal> {
    let policy = Policy { program, verdicts, sources };
    policy.refuse()?;
    let mut writer = Writer::new(policy, &TARGET, options.debug, Role::FIRST, None);
    let bodies = writer.bodies();
    let mut out = Output::default();
    let writers = std::slice::from_ref(&writer);
    opening(writers, &mut out);
    out.raw(&runtime::text(writer.needs(), &TARGET.runtime));
    record(writers, &[], &mut out);
    state(std::slice::from_mut(&mut writer), &mut out);
    for part in [writer.remaining_checks(), bodies, writer.starting()] {
        out.blank();
        out.append(part);
    }
    out.blank();
    out.append(writer.engine_table(node));
    Ok(out.finish(&format!("{}.c", file_stem(&program.name))))
}
