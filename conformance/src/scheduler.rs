//! A generated scheduler after the front end: its program, its files, what was said of it.

use std::sync::Arc;

use attune_language::diagnostic::{Diagnostic, render};
use attune_language::engine::Engine;
use attune_language::ir::{Program, Verdicts};
use attune_language::source::SourceMap;
use attune_language::{EngineReport, Family};

use crate::generator::Sources;

pub struct Scheduler {
    pub program: Arc<Program>,
    pub sources: SourceMap,
    engines: [EngineReport; Engine::ALL.len()],
}

/// The front end refused a generated scheduler.
#[derive(Debug)]
pub struct Rejected {
    /// The findings as a person reads them.
    pub messages: Vec<String>,
    /// Only because a transfer fails whenever it is reached: the generator may write such a thing,
    /// but nothing ill typed.
    pub refuted_only: bool,
}

impl Scheduler {
    pub fn new(sources: &Sources) -> Result<Scheduler, Rejected> {
        let mut checked = sources.checked();
        let Some(program) = checked.program.take() else {
            return Err(Rejected::of(&checked.diagnostics, &checked.sources));
        };
        let (sources, engines) = (checked.sources, checked.engines);
        Ok(Scheduler { program: Arc::new(program), sources, engines })
    }

    /// That of the nodes of a cluster with one family, for an engine.
    pub fn of_node(sources: &Sources, engine: Engine) -> Result<Scheduler, Rejected> {
        let checked = sources.checked();
        let family = checked.cluster.and_then(|mut it| it.families.pop());
        let Some(Family { program, engines, .. }) = family else {
            return Err(Rejected::of(&checked.diagnostics, &checked.sources));
        };
        // It may divide what the engine cannot.
        match &engines[engine as usize].reason {
            Some(reason) => Err(Rejected { messages: vec![reason.clone()], refuted_only: true }),
            None => {
                let (program, sources) = (Arc::new(program), checked.sources);
                Ok(Scheduler { program, sources, engines })
            }
        }
    }

    /// One that the front end refuses for nothing but checks that always fail.
    pub fn refuted(sources: &Sources) -> Option<Scheduler> {
        let mut checked = sources.checked();
        let only_refuted = |each: &Diagnostic| !each.is_error() || is_refutation(each.code.name());
        let program =
            checked.refuted.take().filter(|_| checked.diagnostics.iter().all(only_refuted))?;
        let (sources, engines) = (checked.sources, checked.engines);
        Some(Scheduler { program: Arc::new(program), sources, engines })
    }

    /// What the analysis says for an engine.
    pub fn verdicts(&self, engine: Engine) -> Verdicts {
        self.engines[engine as usize].verdicts.clone()
    }
}

impl Rejected {
    fn of(diagnostics: &[Diagnostic], sources: &SourceMap) -> Rejected {
        let errors: Vec<_> = diagnostics.iter().filter(|each| each.is_error()).collect();
        Rejected {
            messages: errors.iter().map(|each| render(each, sources)).collect(),
            refuted_only: errors.iter().all(|each| is_flow_finding(each.code.name())),
        }
    }
}

/// E0610 and on: a check that fails whenever it is reached.
fn is_refutation(code: &str) -> bool {
    code.strip_prefix('E')
        .and_then(|number| number.parse().ok())
        .is_some_and(|number: u32| (610..700).contains(&number))
}

/// Findings of the analyses about what happens when the scheduler runs.
fn is_flow_finding(code: &str) -> bool {
    code.starts_with("E06") || code.starts_with("E05")
}
