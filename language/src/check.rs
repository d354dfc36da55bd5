//! The front end from end to end: texts in; a checked program, findings and what each engine says
//! of it out.

use crate::analysis::analyse;
use crate::diagnostic::{Diagnostic, has_errors};
use crate::engine::report::EngineReport;
use crate::engine::{Engine, limits};
use crate::ir::Program;
use crate::lower;
use crate::resolve::{FlatDistributed, Loader, Resolved, SourceText, resolve};
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
    /// A distributed scheduler without errors.
    pub cluster: Option<Cluster>,
    /// Instead, when all is well but for what the analyses found, such as a check that always
    /// fails. Nobody should run it, except to see that they are right.
    pub refuted: Option<Program>,
    /// In the order of the files and of the places in them.
    pub diagnostics: Vec<Diagnostic>,
    /// One for each of [`Engine::ALL`], in that order.
    pub engines: [EngineReport; Engine::ALL.len()],
}

/// The programs of a distributed scheduler.
#[derive(Clone, Debug)]
pub struct Cluster {
    pub master: Program,
    /// What is proved of the master wherever it runs.
    pub report: EngineReport,
    pub families: Vec<Family>,
}

/// The nodes of a cluster that run the same program.
#[derive(Clone, Debug)]
pub struct Family {
    pub name: String,
    /// How many of them must have come before any node's `schedule` is called.
    pub expects: u32,
    pub program: Program,
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

/// Checks a scheduler with everything that it extends.
pub fn check(main: &SourceText, loader: &mut dyn Loader, options: &Options) -> Checked {
    let mut sources = SourceMap::new();
    let mut diagnostics = Vec::new();
    let resolved = resolve(main, &options.aspects, loader, &mut sources, &mut diagnostics);
    let mut cluster = None;
    let (name, mut program, refusal) = match &resolved {
        None => (None, None, Some(UNREADABLE.to_string())),
        Some(Resolved::Scheduler(flat)) => {
            let (program, findings) = lower::scheduler(flat);
            add_findings(&mut diagnostics, findings);
            (Some(flat.name.clone()), program, None)
        }
        Some(Resolved::Distributed(distributed)) => {
            let (programs, findings) = lower::distributed_scheduler(distributed);
            add_findings(&mut diagnostics, findings);
            cluster = programs.filter(|_| !has_errors(&diagnostics)).and_then(|programs| {
                self::cluster(programs, distributed, &sources, &mut diagnostics)
            });
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
        match program.as_ref().zip(found) {
            Some((program, found)) => EngineReport::new(found, program, &sources),
            None => {
                let reason = refusal.clone().unwrap_or_else(|| ERRORS.to_string());
                EngineReport::refused(engine, reason)
            }
        }
    });
    let refuted = program.take_if(|_| has_errors(&diagnostics));
    diagnostics
        .sort_by_key(|it| (it.primary.span.source, it.primary.span.start, it.primary.span.end));
    let scheduler_name = name.filter(|name| !name.is_empty());
    Checked { sources, scheduler_name, program, cluster, refuted, diagnostics, engines }
}

/// Analyses the programs of a distributed scheduler; none if one of them has an error.
fn cluster(
    programs: lower::Programs,
    of: &FlatDistributed,
    sources: &SourceMap,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<Cluster> {
    let mut reports = |program: &Program| -> Vec<EngineReport> {
        let found = analyse(program);
        for diagnostic in found.diagnostics {
            // The master's default handlers are the same in all families.
            if !diagnostics.contains(&diagnostic) {
                diagnostics.push(diagnostic);
            }
        }
        let reports = found.engines.into_iter();
        reports.map(|found| EngineReport::new(found, program, sources)).collect()
    };
    let master = reports(&programs.master).pop();
    let families = of.families.iter().zip(programs.nodes).filter_map(|(family, program)| {
        let engines = reports(&program).try_into().ok()?;
        Some(Family { name: family.name.clone(), expects: family.expects, program, engines })
    });
    let mut families: Vec<Family> = families.collect();
    refuse_what_others_do(&mut families, &programs.master, sources);
    let report = EngineReport { accepted: true, missing: Vec::new(), reason: None, ..master? };
    (!has_errors(diagnostics)).then_some(Cluster { master: programs.master, report, families })
}

/// What the kernel and the embedded engine cannot do for a node because of what others do to it.
fn refuse_what_others_do(families: &mut [Family], master: &Program, sources: &SourceMap) {
    let nodes = families.iter().map(|family| &family.program);
    let all: Vec<&Program> = std::iter::once(master).chain(nodes).collect();
    let limits = families.iter().map(|family| limits::node(&family.program, &all));
    let limits: Vec<_> = limits.collect();
    for (family, limit) in families.iter_mut().zip(limits) {
        let Some(limit) = limit else { continue };
        for engine in [Engine::Kernel, Engine::Embedded] {
            let report = &mut family.engines[engine as usize];
            if report.accepted {
                (report.accepted, report.reason) = (false, Some(limit.in_words(sources)));
            }
        }
    }
}

const UNREADABLE: &str = "the file holds no scheduler";
const DISTRIBUTED: &str =
    "this is a distributed scheduler, which runs as a cluster and not on one engine";
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
