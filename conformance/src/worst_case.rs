//! Steps that handlers take, beside their static worst cases.
//!
//! The interpreter notes how often each statement and expression is executed. After every call the
//! notes' growth, weighed with the costs of [`attune_language::analysis::steps`], must not exceed
//! what that analysis says of the handler.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use attune_language::analysis::steps::{Costs, worst_cases};
use attune_language::engine::event::Event;
use attune_language::ir::{ExprId, Handler, Program, Statement, visit};
use attune_language::source::SourceMap;
use attune_simulator::interpreter::Options;
use attune_simulator::scheduler::{Call, CpuSet, Decision, ThreadId, Value};

use crate::driver::{self, Ending, ProtocolDriver, Setting, Subject};
use crate::interpreted::Interpreted;
use crate::random::{Random, derive};

/// How much is tried of one scheduler.
#[derive(Clone, Copy, Debug)]
pub struct Trial {
    pub seed: u64,
    /// Event sequences, each with another number of threads.
    pub runs: u64,
    /// Steps a sequence.
    pub steps: usize,
}

/// What came.
#[derive(Clone, Debug, Default)]
pub struct Report {
    pub calls: u64,
    /// By handler with a bound: the largest share of its bound that a call has taken.
    pub largest: HashMap<Event, f64>,
    /// Calls that took more than their bound.
    pub wrong: Vec<String>,
}

/// Runs a scheduler as the embedded engine does: one CPU, nothing preempts. None: the interpreter
/// cannot run it.
pub fn examine(program: &Arc<Program>, sources: &SourceMap, trial: Trial) -> Option<Report> {
    let mut report = Report::default();
    let mut random = Random::new(trial.seed);
    for run in 0..trial.runs {
        let setting = Setting {
            instances: 1,
            cpus: 1,
            pinning: false,
            preemptive: false,
            killing: false,
            max_threads: 1 + random.below(13) as u32,
            imports: random.percent(60),
        };
        let seed = derive(trial.seed, run);
        let options = Options { cpus: 1, seed, debug: false, notes: true };
        let inner = Interpreted::new(program.clone(), sources, options, 1).ok()?;
        let mut counted = Counted::new(inner, program.clone(), setting.max_threads, &mut report);
        // How the run ends does not matter here.
        let _ = ProtocolDriver::new(setting).run(&driver::steps(seed, trial.steps), &mut counted);
    }
    Some(report)
}

/// The interpreter, with a look at its notes before and after each call.
struct Counted<'r> {
    inner: Interpreted,
    program: Arc<Program>,
    threads: u32,
    bounds: HashMap<Event, Option<u64>>,
    report: &'r mut Report,
}

impl<'r> Counted<'r> {
    fn new(
        inner: Interpreted,
        program: Arc<Program>,
        threads: u32,
        report: &'r mut Report,
    ) -> Counted<'r> {
        let worst = worst_cases(&program, threads);
        let bounds = worst.into_iter().map(|each| (each.event, each.steps)).collect();
        Counted { inner, program, threads, bounds, report }
    }

    /// Steps that were executed in a handler so far.
    fn steps(&self, handler: &Handler) -> u64 {
        let own = Own::of(&self.program, handler);
        let costs = Costs::new(&self.program, self.threads);
        let reached = self.inner.interpreter(0).reached();
        let statements = reached
            .statements
            .iter()
            .filter(|(statement, _)| own.statements.contains(&std::ptr::from_ref(*statement)))
            .map(|(statement, times)| costs.statement(&statement.kind) * times);
        let exprs = reached.exprs.iter().filter(|(expr, _)| own.exprs.contains(expr));
        statements.sum::<u64>() + exprs.map(|(_, times)| times).sum::<u64>()
    }
}

/// What stands in a handler.
#[derive(Default)]
struct Own {
    statements: HashSet<*const Statement>,
    exprs: HashSet<ExprId>,
}

impl Own {
    fn of(program: &Program, handler: &Handler) -> Own {
        let mut own = Own::default();
        visit::handler(program, handler, &mut own);
        own
    }
}

impl visit::Visitor for Own {
    fn statement(&mut self, _: &Program, statement: &Statement) {
        self.statements.insert(std::ptr::from_ref(statement));
    }

    fn expr(&mut self, _: &Program, expr: ExprId) {
        self.exprs.insert(expr);
    }
}

impl Subject for Counted<'_> {
    fn handles(&self, event: Event) -> bool {
        self.inner.handles(event)
    }

    fn imports(&self) -> (usize, usize) {
        self.inner.imports()
    }

    fn create(
        &mut self,
        instance: u32,
        thread: ThreadId,
        affinity: &CpuSet,
        now: i64,
    ) -> Result<(), Ending> {
        self.inner.create(instance, thread, affinity, now)
    }

    fn move_thread(&mut self, thread: ThreadId, to: u32, affinity: &CpuSet) {
        self.inner.move_thread(thread, to, affinity);
    }

    fn set_affinity(&mut self, thread: ThreadId, affinity: &CpuSet) {
        self.inner.set_affinity(thread, affinity);
    }

    fn remove(&mut self, thread: ThreadId) {
        self.inner.remove(thread);
    }

    fn write_thread_import(&mut self, thread: ThreadId, import: usize, value: Value) {
        self.inner.write_thread_import(thread, import, value);
    }

    fn write_global_import(&mut self, import: usize, value: Value) {
        self.inner.write_global_import(import, value);
    }

    fn call(&mut self, instance: u32, call: &Call, decision: &mut Decision) -> Result<(), Ending> {
        let program = self.program.clone();
        let Some(handler) = program.handler(call.event) else {
            return self.inner.call(instance, call, decision);
        };
        let before = self.steps(handler);
        let outcome = self.inner.call(instance, call, decision);
        let steps = self.steps(handler) - before;
        self.report.calls += 1;
        if let Some(Some(bound)) = self.bounds.get(&call.event) {
            let share = steps as f64 / (*bound).max(1) as f64;
            let largest = self.report.largest.entry(call.event).or_default();
            *largest = largest.max(share);
            if steps > *bound {
                self.report.wrong.push(format!(
                    "{} with {} threads at most: {steps} steps, its bound is {bound}",
                    call.event.name(),
                    self.threads
                ));
            }
        }
        outcome
    }

    fn is_stored(&self, thread: ThreadId) -> bool {
        self.inner.is_stored(thread)
    }

    fn settled(&mut self) -> Result<(), Ending> {
        self.inner.settled()
    }
}
