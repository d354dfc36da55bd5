//! From IR to C.
//!
//! One [`Writer`] goes once over a program; two policies that share a machine get one each, and stand in one text. Each file beside this one writes one kind of thing: `declarations` the
//! record, variables, containers and the engine's table; `handlers` the functions; `statements`, `loops`, `expressions`
//! and `verbatim` what stands in them; `checks` the run-time checks that remain. `names` and `keywords` say what things
//! are called in C.
//!
//! Invariant: every C name comes from `names`, so that no two things of one scope share one; everything the writer itself
//! invents begins with `attune` or `check_` and a digit, which no name of a scheduler does.

mod bpf;
mod checks;
mod declarations;
mod expressions;
mod handlers;
mod keywords;
mod loops;
mod names;
mod output;
mod statements;
mod usage;
mod verbatim;

use attune_language::event::Event;
use attune_language::ir::{CheckId, Extent, Program, Verdict, Verdicts};
use attune_language::kernel;
use attune_language::source::{SourceId, SourceMap, Span};

use crate::runtime;
use checks::Checks;
use names::Names;
use output::Output;
use statements::Function;

/// How to generate.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Runs the invariants, checks the containers after each change, and maps every statement to its source line.
    pub debug: bool,
    pub target: Target,
}

/// What the text is made for.
#[derive(Clone, Debug, Default)]
pub enum Target {
    /// A shared object that an engine loads by its table, `attune_scheduler`.
    #[default]
    Object,
    /// A BPF program that the kernel verifies.
    Bpf(Surroundings),
}

/// What an engine puts around a scheduler that becomes one program with it.
#[derive(Clone, Debug, Default)]
pub struct Surroundings {
    /// In front of the thread record: what the engine keeps of a thread (ATTUNE_MEMBERS), and of affinities.
    pub before: String,
    /// Behind everything: the engine.
    pub behind: String,
}

/// A checked scheduler, the verdicts of the engine that will run it (checks that they call proved are left out), and the files
/// that it was made from, the main one first.
#[derive(Clone, Copy, Debug)]
pub struct Policy<'a> {
    pub program: &'a Program,
    pub verdicts: &'a Verdicts,
    pub sources: &'a SourceMap,
}

/// Which of the policies in a text: where there are two, they schedule a command and everything else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Command,
    Others,
}

impl Role {
    /// Of the scheduler's own names.
    fn prefix(self) -> &'static str {
        match self {
            Role::Command => "",
            Role::Others => "others_",
        }
    }

    /// Of the names that the writer invents.
    fn ending(self) -> &'static str {
        match self {
            Role::Command => "",
            Role::Others => "_others",
        }
    }

    /// Of macros: `ATTUNE_OTHERS_HAS_ALARM`.
    fn in_macros(self) -> &'static str {
        match self {
            Role::Command => "",
            Role::Others => "OTHERS_",
        }
    }
}

/// Why there is no C for a scheduler.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("{0} is partial: it is only a base for other schedulers")]
    Partial(String),
    #[error("the scheduler's arrays take more than a gigabyte")]
    TooLarge,
    #[error("{0}")]
    Kernel(String),
}

/// The scheduler as one C file that compiles by itself.
///
/// `verdicts` are those of the engine that will run it: checks that they call proved are left out. `sources` are the files
/// that `program` was made from, the main one first.
pub fn generate(
    program: &Program,
    verdicts: &Verdicts,
    sources: &SourceMap,
    options: &Options,
) -> Result<String, Refusal> {
    let policy = Policy { program, verdicts, sources };
    let target = &options.target;
    refuse(&policy, target)?;
    let mut writer = Writer::new(policy, options, Role::Command, None);
    let bodies = writer.bodies();
    let mut out = Output::default();
    declarations::head(std::slice::from_ref(&writer), options, &mut out);
    for part in [writer.state(), bodies, writer.starting()] {
        out.blank();
        out.append(part);
    }
    out.blank();
    match target {
        Target::Object => out.append(writer.engine_table()),
        Target::Bpf(around) => bpf::engine(&mut [writer], &around.behind, &mut out),
    }
    Ok(out.finish(&format!("{}.c", names::file_stem(&program.name))))
}

/// Two schedulers as one BPF program: the first for the threads of a command, the second for all others. A thread has the
/// variables of one of them. What the engine calls of the second begins with `ATTUNE_OTHERS_`, or ends in `_others`.
pub fn generate_both(
    command: Policy<'_>,
    others: Policy<'_>,
    around: &Surroundings,
) -> Result<String, Refusal> {
    let options = Options { debug: false, target: Target::Bpf(around.clone()) };
    refuse(&command, &options.target)?;
    refuse(&others, &options.target)?;
    let mut first = Writer::new(command, &options, Role::Command, None);
    let first_bodies = first.bodies();
    let mut second = Writer::new(others, &options, Role::Others, Some(&first));
    let bodies = [first_bodies, second.bodies()];
    let mut writers = [first, second];
    let mut out = Output::default();
    declarations::head(&writers, &options, &mut out);
    for (writer, bodies) in writers.iter_mut().zip(bodies) {
        for part in [writer.state(), bodies, writer.starting()] {
            out.blank();
            out.append(part);
        }
    }
    bpf::engine(&mut writers, &around.behind, &mut out);
    Ok(out.finish(&format!("{}.c", names::file_stem(&command.program.name))))
}

/// What no C can be made of.
fn refuse(policy: &Policy<'_>, target: &Target) -> Result<(), Refusal> {
    let program = policy.program;
    if program.partial {
        return Err(Refusal::Partial(program.name.clone()));
    }
    if size_of_arrays(program) > LARGEST {
        return Err(Refusal::TooLarge);
    }
    match (target, kernel::refuses(program, policy.sources)) {
        (Target::Bpf(_), Some(reason)) => Err(Refusal::Kernel(reason)),
        _ => Ok(()),
    }
}

/// Bytes that a scheduler's arrays may take.
const LARGEST: u64 = 1 << 30;

fn size_of_arrays(program: &Program) -> u64 {
    let elements = |extent: Extent| match extent {
        Extent::Array(length) => u64::from(length),
        Extent::One | Extent::PerCpu => 1,
    };
    let globals: u64 = program.globals.values().map(|global| elements(global.extent) * 8).sum();
    let containers: u64 = program.containers.values().map(|container| elements(container.extent) * 64).sum();
    let locals: u64 = program.locals.values().map(|local| u64::from(local.length.unwrap_or(1)) * 8).sum();
    globals + containers + locals
}

struct Writer<'a> {
    role: Role,
    /// The number of the program's first check: all are different.
    first_check: u32,
    program: &'a Program,
    verdicts: &'a Verdicts,
    sources: &'a SourceMap,
    options: &'a Options,
    names: Names,
    checks: Checks,
    function: Function,
    out: Output,
}

impl<'a> Writer<'a> {
    /// `before`: that of the policy that stands in the same file already, its bodies written.
    fn new(policy: Policy<'a>, options: &'a Options, role: Role, before: Option<&Writer<'_>>) -> Writer<'a> {
        let Policy { program, verdicts, sources } = policy;
        Writer {
            role,
            first_check: before.map_or(0, Writer::next_check),
            program,
            verdicts,
            sources,
            options,
            names: Names::new(program, role, before.map(|writer| &writer.names)),
            checks: Checks::default(),
            function: Function::default(),
            out: Output::default(),
        }
    }

    /// The functions. They come first: they say which checks are left, which are declared above them.
    fn bodies(&mut self) -> Output {
        self.functions();
        self.written()
    }

    fn written(&mut self) -> Output {
        std::mem::take(&mut self.out)
    }
}

impl Writer<'_> {
    /// Whether a check is left to the running scheduler.
    fn performed(&self, check: CheckId) -> bool {
        self.verdicts.of(check) != Verdict::Proved
    }

    fn line(&self, span: Span) -> u32 {
        self.sources.location(span).line
    }

    /// The line that a thread remembers of its last transfer; for the kernel engine, whose loader tells it, with the number of its
    /// file above [`bpf::LINE_BITS`].
    fn line_of_transfer(&self, span: Span) -> u32 {
        let file = if self.is_bpf() { span.source.0 << bpf::LINE_BITS } else { 0 };
        self.line(span) | file
    }

    /// `41`, or `lifecycle.sched:41` outside the main file.
    fn place(&self, span: Span) -> String {
        let line = self.line(span);
        if span.source == SourceId(0) {
            line.to_string()
        } else {
            format!("{}:{line}", self.sources.name(span.source))
        }
    }

    fn needs(&self) -> runtime::Needs {
        let needs = usage::needs(self.program);
        // Its engine keeps alarms in a sorted container.
        runtime::Needs {
            bpf: self.is_bpf(),
            sorted: needs.sorted || self.is_bpf() && self.has_alarms(),
            ..needs
        }
    }

    fn has_alarms(&self) -> bool {
        self.program.handler(Event::Alarm).is_some()
    }

    fn is_bpf(&self) -> bool {
        matches!(self.options.target, Target::Bpf(_))
    }
}
