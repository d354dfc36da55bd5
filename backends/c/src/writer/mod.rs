//! From IR to C.
//!
//! One [`Writer`] goes once over a program; policies that share a machine get one each, and stand
//! in one text. Each file beside this one writes one kind of thing: `declarations` the
//! record, variables and containers; `handlers` the functions; `statements`, `shared`,
//! `loops`, `expressions` and `verbatim` what stands in them; `checks` the run-time checks that
//! remain. `names` and `keywords` say what things are called in C.
//!
//! Invariant: every C name comes from `names`, so that no two things of one scope share one;
//! everything the writer itself invents begins with `attune` or `check_` and a digit, which no name
//! of a scheduler does.

mod checks;
pub mod declarations;
pub mod expressions;
mod handlers;
mod keywords;
mod loops;
pub mod names;
pub mod output;
mod shared;
pub mod statements;
pub mod target;
mod usage;
mod verbatim;
mod verifier;
mod words;

use attune_language::engine::event::Event;
use attune_language::ir::{CheckId, Program, Verdict, Verdicts};
use attune_language::source::{SourceId, SourceMap, Span};

use crate::policy::Policy;
use crate::runtime;
use checks::Checks;
use names::Names;
use output::Output;
use statements::Function;
use target::Target;

/// Which of the policies in a text, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Role(pub usize);

impl Role {
    /// The only policy, or the first of several: its names are as the scheduler has them.
    pub const FIRST: Role = Role(0);

    /// The scheduler's own names begin with it: `policy1_period`.
    pub fn prefix(self) -> String {
        self.named(|number| format!("policy{number}_"))
    }

    /// The names that the writer invents end with it: `attune_start_policy1`.
    pub fn ending(self) -> String {
        self.named(|number| format!("_policy{number}"))
    }

    /// Macros hold it in their middle: `ATTUNE_POLICY1_HAS_ALARM`.
    pub fn in_macros(self) -> String {
        self.named(|number| format!("POLICY{number}_"))
    }

    fn named(self, name: impl Fn(usize) -> String) -> String {
        if self == Role::FIRST { String::new() } else { name(self.0) }
    }
}

pub struct Writer<'a> {
    pub target: &'a Target,
    pub debug: bool,
    pub role: Role,
    /// The number of the program's first check: all are different.
    first_check: u32,
    pub program: &'a Program,
    verdicts: &'a Verdicts,
    pub sources: &'a SourceMap,
    pub names: Names,
    checks: Checks,
    function: Function,
    /// Members of the state that functions keep there, as C declares them.
    kept: Vec<String>,
    pub out: Output,
}

impl<'a> Writer<'a> {
    /// `before`: that of the policy that stands in the same file already, its bodies written.
    pub fn new(
        policy: Policy<'a>,
        target: &'a Target,
        debug: bool,
        role: Role,
        before: Option<&Writer<'_>>,
    ) -> Writer<'a> {
        let Policy { program, verdicts, sources } = policy;
        Writer {
            target,
            debug,
            role,
            first_check: before.map_or(0, Writer::next_check),
            program,
            verdicts,
            sources,
            names: Names::new(program, target.imports, role, before.map(|writer| &writer.names)),
            checks: Checks::default(),
            function: Function::default(),
            kept: Vec::new(),
            out: Output::default(),
        }
    }

    /// The functions. They come first: they say which checks are left, which are declared above
    /// them.
    pub fn bodies(&mut self) -> Output {
        self.functions();
        self.written()
    }

    pub fn written(&mut self) -> Output {
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

    /// The line that a thread remembers of its last transfer.
    fn line_of_transfer(&self, span: Span) -> u32 {
        let file = self.target.file_above.map_or(0, |bits| span.source.0 << bits);
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

    pub fn needs(&self) -> runtime::Needs {
        usage::needs(self.program)
    }

    pub fn has_alarms(&self) -> bool {
        self.program.handler(Event::Alarm).is_some()
    }
}
