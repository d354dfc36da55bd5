//! From IR to C.
//!
//! One [`Writer`] goes once over the program. Each file beside this one writes one kind of thing: `declarations` the
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
    if program.partial {
        return Err(Refusal::Partial(program.name.clone()));
    }
    if size_of_arrays(program) > LARGEST {
        return Err(Refusal::TooLarge);
    }
    if let (Target::Bpf(_), Some(reason)) = (&options.target, kernel::refuses(program, sources)) {
        return Err(Refusal::Kernel(reason));
    }
    let mut writer = Writer {
        program,
        verdicts,
        sources,
        options,
        names: Names::new(program),
        checks: Checks::default(),
        function: Function::default(),
        out: Output::default(),
    };
    // The bodies come first: they say which checks are left, which are declared above them.
    writer.functions();
    let bodies = std::mem::take(&mut writer.out);
    writer.preamble();
    writer.out.blank();
    writer.out.append(bodies);
    writer.starting();
    match &options.target {
        Target::Object => writer.engine_table(),
        Target::Bpf(around) => writer.engine(&around.behind),
    }
    Ok(writer.out.finish(&format!("{}.c", names::file_stem(&program.name))))
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
    program: &'a Program,
    verdicts: &'a Verdicts,
    sources: &'a SourceMap,
    options: &'a Options,
    names: Names,
    checks: Checks,
    function: Function,
    out: Output,
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
        let alarms = self.is_bpf() && self.program.handler(Event::Alarm).is_some();
        runtime::Needs { bpf: self.is_bpf(), sorted: needs.sorted || alarms, ..needs }
    }

    fn is_bpf(&self) -> bool {
        matches!(self.options.target, Target::Bpf(_))
    }
}
