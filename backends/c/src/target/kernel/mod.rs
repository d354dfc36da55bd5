//! One BPF program from a scheduler, or from several that share a machine, and the engine's own C.
//!
//! - State lives in an arena, also what is local and large: handlers are atomic.
//! - Every loop asks the kernel whether it may go on.
//! - A failed check is noted, and the handler goes on with something harmless
//!   (`runtime/failure.h`): nothing can be thrown through a held lock.
//! - In `schedule` shared containers hold only the threads that may run on this CPU
//!   (`runtime/affinity.h`).
//! - The engine reaches handlers by macros, `ATTUNE_ON_SWITCH_OUT(instance, thread)`; a handler
//!   that the policy lacks does nothing. `ATTUNE_EACH_DOMAIN` names the policies.
//!
//! What the engine knows of a thread, and under which import's name a policy sees it, the engine
//! says: [`Supply`]. `description` writes what a loader must know, `supply` the functions that copy
//! those values.

pub mod description;
mod supply;

use attune_language::engine::limits;

use crate::policy::{Node, Policy, Refusal};
use crate::runtime::{self, Needs};
use crate::writer::declarations::{opening, record, state};
use crate::writer::names::file_stem;
use crate::writer::output::Output;
use crate::writer::target::{Failures, Imports, State, Target, Verifier};
use crate::writer::{Role, Writer};
pub use supply::{Import, Request, Supplies, Supply};

/// A thread's last transfer is a line, with the number of its file above these bits.
const LINE_BITS: u32 = 20;

static TARGET: Target = Target {
    banner: " *
 * A BPF program that needs nothing else: clang --target=bpf -mcpu=v4 -O2 -g -ffreestanding \
             -fno-builtin -c this.bpf.c
 * First the runtime that all schedulers share, then the scheduler, then the engine.
 */
",
    runtime: runtime::BPF,
    verbatim_headers: "",
    handler: "ATTUNE_OUTLINE",
    parameters: "struct attune_instance ATTUNE_ARENA *attune ATTUNE_IN_ARENA, struct \
                 attune_thread ATTUNE_ARENA *attune_thread ATTUNE_IN_ARENA",
    leave: "ATTUNE_RETURN;",
    returns: true,
    failures: Failures::AreNoted,
    state: State::Passed,
    cpu: "ATTUNE_CPU",
    cpus: "ATTUNE_ALL_CPUS",
    slice: ["attune->slice = ", ";"],
    named_containers: false,
    imports: Imports::Linked,
    tells_ages: true,
    verifier: Some(Verifier { scalars_on_stack: 12 }),
    affinity: true,
    file_above: Some(LINE_BITS),
};

/// What the engine puts around the schedulers that become one program with it.
#[derive(Clone, Debug)]
pub struct Engine {
    /// In front of the thread record: what the engine keeps of a thread (ATTUNE_MEMBERS), and of
    /// affinities.
    pub before: String,
    /// Behind everything: the engine.
    pub behind: String,
    /// Where thread imports come from.
    pub supplies: &'static Supplies,
    /// Set where the scheduler, or the first of several, is that of a cluster's node.
    pub node: Option<Node>,
}

/// The most policies that one program holds.
pub const MOST_POLICIES: usize = 8;

/// Schedulers that share the machine as one program: each schedules the threads of one command, the
/// last one all other threads; a single one schedules all. A thread has the variables of one of
/// them. What the engine calls of the second begins with `ATTUNE_POLICY1_`, or ends in `_policy1`,
/// and so on.
pub fn generate(policies: &[Policy<'_>], engine: &Engine) -> Result<String, Refusal> {
    if !(1..=MOST_POLICIES).contains(&policies.len()) {
        let count = policies.len();
        let why =
            format!("a program for the kernel holds 1 to {MOST_POLICIES} policies, not {count}");
        return Err(Refusal::Target(why));
    }
    for (number, policy) in policies.iter().enumerate() {
        refuse(policy, engine.node.as_ref().filter(|_| number == 0))?;
    }
    let (mut writers, mut bodies) = (Vec::<Writer<'_>>::new(), Vec::new());
    for (number, policy) in policies.iter().enumerate() {
        let mut writer = Writer::new(*policy, &TARGET, false, Role(number), writers.last());
        bodies.push(writer.bodies());
        writers.push(writer);
    }
    Ok(program(writers, bodies, engine))
}

fn refuse(policy: &Policy<'_>, node: Option<&Node>) -> Result<(), Refusal> {
    policy.refuse()?;
    if node.is_none() {
        policy.refuse_node()?;
    }
    let limit = limits::kernel(policy.program);
    limit.map_or(Ok(()), |limit| Err(Refusal::Target(limit.in_words(policy.sources))))
}

fn program(mut writers: Vec<Writer<'_>>, bodies: Vec<Output>, engine: &Engine) -> String {
    let mut out = Output::default();
    opening(&writers, &mut out);
    // The engine keeps alarms in a sorted container.
    let needs = |writer: &Writer<'_>| {
        let needs = writer.needs();
        Needs { sorted: needs.sorted || writer.has_alarms(), ..needs }
    };
    let needs = writers.iter().map(needs).reduce(Needs::and).unwrap_or_default();
    let needs = Needs { shared: engine.node.is_some(), ..needs };
    out.raw(&runtime::text(needs, &TARGET.runtime));
    domains(&writers, &mut out);
    let requests = engine.supplies.kernel.iter().filter_map(|supply| supply.request.as_ref());
    let made = |request: &&Request| writers.iter().any(|writer| request.is_made_by(writer));
    let made: Vec<&Request> = requests.filter(made).collect();
    made.iter().for_each(|request| out.raw(request.before));
    out.raw(&engine.before);
    out.raw(&runtime::affinity());
    let mut members = vec!["ATTUNE_MEMBERS                      /* the engine's */"];
    if writers.iter().any(Writer::has_alarms) {
        members.push("struct attune_thread attune_alarm_node;");
    }
    record(&writers, &members, &mut out);
    out.raw(NOBODY);
    state(&mut writers, &mut out);
    for (writer, bodies) in writers.iter_mut().zip(bodies) {
        for part in [writer.remaining_checks(), bodies, writer.starting()] {
            out.blank();
            out.append(part);
        }
    }
    out.blank();
    out.line("/* What the engine calls. */");
    for writer in &mut writers {
        writer.handlers_by_macro();
        writer.supply(engine.supplies, &made);
        out.append(writer.written());
    }
    out.blank();
    supply::by_others(&mut writers, engine.supplies, &mut out);
    out.blank();
    out.raw(&engine.behind);
    out.blank();
    description::write(&writers, engine, &mut out);
    let name = writers.first().map_or("", |writer| &writer.program.name);
    out.finish(&format!("{}.c", file_stem(name)))
}

/// For the engine's macros: what it calls of each policy has a number, stands in macros, and ends.
fn domains(writers: &[Writer<'_>], out: &mut Output) {
    let visit = |role: Role| {
        format!("visit({}, {}, {}, __VA_ARGS__)", role.0, role.in_macros(), role.ending())
    };
    let all: Vec<String> = writers.iter().map(|writer| visit(writer.role)).collect();
    out.line("/* Policies that share the CPUs. */");
    out.line(format!("#define ATTUNE_DOMAINS {}", writers.len()));
    out.line(format!("#define ATTUNE_EACH_DOMAIN(visit, ...) {}", all.join(" ")));
}

const NOBODY: &str = "
static struct thread ATTUNE_ARENA attune_no_thread;

static struct attune_thread ATTUNE_ARENA *attune_nobody(void)
{
    return &attune_no_thread.attune;
}
";
