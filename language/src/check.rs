//! The front end from end to end: texts in; a checked program, findings and what each engine says of it out.

use crate::analysis::{EngineFindings, Explanation, analyse};
use crate::diagnostic::{Diagnostic, has_errors};
use crate::event::{Engine, Event};
use crate::ir::{CheckId, CheckKind, Program, Role, Verdict, Verdicts};
use crate::kernel;
use crate::lower;
use crate::resolve::{Loader, Resolved, SourceText, resolve};
use crate::source::SourceMap;

/// What is checked besides the scheduler itself.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Files of aspects, in the order in which they are added.
    pub aspects: Vec<SourceText>,
}

/// All that is known about a scheduler.
#[derive(Clone, Debug)]
pub struct Checked {
    /// The files that took part, the main one first.
    pub sources: SourceMap,
    /// None if the file could not be read as a scheduler.
    pub scheduler_name: Option<String>,
    /// None if there was an error, and for distributed schedulers.
    pub program: Option<Program>,
    /// Instead, when all is well but for what the analyses found, such as a check that always fails. Nobody should run it,
    /// except to see that they are right.
    pub refuted: Option<Program>,
    /// In the order of the files and of the places in them.
    pub diagnostics: Vec<Diagnostic>,
    /// One for each of [`Engine::ALL`], in that order.
    pub engines: [EngineReport; Engine::ALL.len()],
}

impl Checked {
    pub fn has_errors(&self) -> bool {
        has_errors(&self.diagnostics)
    }

    /// What an engine says of the scheduler.
    pub fn engine(&self, engine: Engine) -> &EngineReport {
        &self.engines[engine as usize]
    }
}

/// Whether an engine can run the scheduler, and what of it is proved there.
#[derive(Clone, Debug)]
pub struct EngineReport {
    pub engine: Engine,
    pub accepted: bool,
    /// The handlers that the engine requires and the scheduler lacks; alternatives are joined by `or`.
    pub missing: Vec<String>,
    /// Why it is not accepted, in one sentence; none if it is.
    pub reason: Option<String>,
    pub verdicts: Verdicts,
    pub transfers: Transfers,
    /// Checks of other things (indices, attributes of a first thread, new threads stored, local containers empty at the end)
    /// that are left to run time. Loop bounds and invariants are not among them.
    pub other_checks: usize,
    /// Why each of both kinds that is merely checked could not be proved.
    pub doubts: Vec<(CheckId, Explanation)>,
}

/// How many transfer checks there are, and what is known of them. `total` is the sum of the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Transfers {
    pub total: usize,
    pub proved: usize,
    pub checked: usize,
    pub refuted: usize,
    /// Proved because a parameter or a `foreach` variable names a thread that is there.
    pub trivial: usize,
}

/// Checks a scheduler with everything that it extends.
pub fn check(main: &SourceText, loader: &mut dyn Loader, options: &Options) -> Checked {
    let mut sources = SourceMap::new();
    let mut diagnostics = Vec::new();
    let resolved = resolve(main, &options.aspects, loader, &mut sources, &mut diagnostics);
    let (name, mut program, refusal) = match &resolved {
        None => (None, None, Some(UNREADABLE.to_string())),
        Some(Resolved::Scheduler(flat)) => {
            let (program, findings) = lower::scheduler(flat);
            add_findings(&mut diagnostics, findings);
            (Some(flat.name.clone()), program, None)
        }
        Some(Resolved::Distributed(distributed)) => {
            add_findings(&mut diagnostics, lower::distributed_scheduler(distributed));
            (Some(distributed.name.clone()), None, Some(DISTRIBUTED.to_string()))
        }
    };
    if has_errors(&diagnostics) {
        program = None;
    }
    let mut findings = program.as_ref().map(analyse);
    if let Some(findings) = &mut findings {
        diagnostics.append(&mut findings.diagnostics);
    }
    let engines = Engine::ALL.map(|engine| {
        let found = findings.as_mut().and_then(|findings| findings.take(engine));
        report(engine, program.as_ref().zip(found), &refusal, &sources)
    });
    let refuted = program.take_if(|_| has_errors(&diagnostics));
    diagnostics.sort_by_key(|it| (it.primary.span.source, it.primary.span.start, it.primary.span.end));
    let scheduler_name = name.filter(|name| !name.is_empty());
    Checked { sources, scheduler_name, program, refuted, diagnostics, engines }
}

const UNREADABLE: &str = "the file holds no scheduler";
const DISTRIBUTED: &str = "a distributed scheduler is checked, and cannot run yet";
const ERRORS: &str = "the scheduler has errors";

/// What the syntax was refused for is not refused again for its meaning.
fn add_findings(diagnostics: &mut Vec<Diagnostic>, findings: Vec<Diagnostic>) {
    let known = diagnostics.len();
    for finding in findings {
        let overlaps = |earlier: &Diagnostic| {
            let (a, b) = (earlier.primary.span, finding.primary.span);
            earlier.is_error()
                && a.source == b.source
                && a.start < b.end.max(b.start + 1)
                && b.start < a.end.max(a.start + 1)
        };
        if !diagnostics[..known].iter().any(overlaps) {
            diagnostics.push(finding);
        }
    }
}

fn report(
    engine: Engine,
    analysed: Option<(&Program, EngineFindings)>,
    refusal: &Option<String>,
    sources: &SourceMap,
) -> EngineReport {
    let mut report = EngineReport {
        engine,
        accepted: false,
        missing: Vec::new(),
        reason: None,
        transfers: Transfers::default(),
        verdicts: Verdicts::default(),
        other_checks: 0,
        doubts: Vec::new(),
    };
    let Some((program, found)) = analysed else {
        report.reason = Some(refusal.clone().unwrap_or_else(|| ERRORS.to_string()));
        return report;
    };
    report.verdicts = found.verdicts;
    report.doubts = found.doubts;
    report.transfers = count(program, &report.verdicts);
    report.other_checks = other_checks(program, &report.verdicts);
    report.missing = missing(engine, program);
    report.reason = reason(engine, program, &report.missing, sources);
    report.accepted = report.reason.is_none();
    report
}

fn missing(engine: Engine, program: &Program) -> Vec<String> {
    // Aspects alone are no handler.
    let handles = |event: &Event| {
        program.handler(*event).is_some_and(|handler| handler.parts.iter().any(|part| part.role == Role::Own))
    };
    let lacks = |events: &&&[Event]| !events.iter().any(handles);
    let names = |events: &&[Event]| events.iter().map(|event| event.name()).collect::<Vec<_>>().join(" or ");
    engine.required().iter().filter(lacks).map(names).collect()
}

/// The first reason why the engine refuses the scheduler.
fn reason(engine: Engine, program: &Program, missing: &[String], sources: &SourceMap) -> Option<String> {
    if engine == Engine::Embedded {
        return Some(format!("the {engine} engine is not built yet"));
    }
    if program.partial {
        return Some("the scheduler is partial: a base for others".to_string());
    }
    if !missing.is_empty() {
        return Some(format!("the {engine} engine needs a handler for {}", missing.join(", ")));
    }
    if let (Engine::Simulator, Some(&verbatim)) = (engine, program.verbatim.first()) {
        let (file, place) = (sources.name(verbatim.source), sources.location(verbatim));
        return Some(format!(
            "verbatim text at {file}:{}:{} ties the scheduler to engines that compile C",
            place.line, place.column
        ));
    }
    if engine == Engine::Kernel {
        return kernel::refuses(program, sources);
    }
    None
}

fn count(program: &Program, verdicts: &Verdicts) -> Transfers {
    let mut transfers = Transfers::default();
    for (id, check) in program.checks.iter().filter(|(_, check)| check.kind.is_transfer()) {
        let counter = match (verdicts.of(id), check.kind) {
            (Verdict::Uncalled, _) => continue,
            (Verdict::Proved, CheckKind::NamedTransfer) => &mut transfers.trivial,
            (Verdict::Proved, _) => &mut transfers.proved,
            (Verdict::Checked, _) => &mut transfers.checked,
            (Verdict::Refuted, _) => &mut transfers.refuted,
        };
        *counter += 1;
        transfers.total += 1;
    }
    transfers
}

fn other_checks(program: &Program, verdicts: &Verdicts) -> usize {
    let counts = |kind: CheckKind| {
        !kind.is_transfer() && !matches!(kind, CheckKind::LoopBound | CheckKind::InvariantHolds)
    };
    let left = |id: CheckId| matches!(verdicts.of(id), Verdict::Checked | Verdict::Refuted);
    // In an invariant, which is the debug build's, a check belongs to no event.
    program
        .checks
        .iter()
        .filter(|(id, check)| check.event.is_some() && counts(check.kind) && left(*id))
        .count()
}
