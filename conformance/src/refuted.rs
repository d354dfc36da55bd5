//! What the analysis refuted always fails: random schedulers that leave guards out are run although
//! the front end refuses them, and whenever a statement with a refuted check is reached, the run
//! ends in that statement.

use attune_language::engine::Engine;
use attune_language::ir::{CheckId, Statement, StatementKind, Verdict};
use attune_simulator::interpreter::Options;

use crate::budget::Budget;
use crate::driver::{self, Ending, ProtocolDriver, Setting};
use crate::generator::{self, Sources};
use crate::interpreted::{Interpreted, check_number};
use crate::proof::setting;
use crate::random::{Random, derive};
use crate::scheduler::Scheduler;

#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Those that were refused for refuted checks, and nothing else.
    pub schedulers: u64,
    pub runs: u64,
    /// Runs that reached a statement with a refuted check.
    pub reached: u64,
    /// Refuted checks that held: what went wrong, with the scheduler and the events.
    pub wrong: Vec<String>,
}

pub fn run(budget: &Budget) -> Report {
    let mut report = Report::default();
    for number in 0..budget.schedulers {
        let seed = derive(budget.seed, number);
        let sources = generator::reckless(seed, budget.size);
        if let Some(scheduler) = Scheduler::refuted(&sources) {
            report.schedulers += 1;
            for engine in [Engine::Threads, Engine::Simulator] {
                examine(&sources, &scheduler, engine, budget, seed, &mut report);
            }
        }
    }
    report
}

fn examine(
    sources: &Sources,
    scheduler: &Scheduler,
    engine: Engine,
    budget: &Budget,
    seed: u64,
    report: &mut Report,
) {
    let verdicts = scheduler.verdicts(engine);
    let program = &scheduler.program;
    let mut random = Random::new(derive(seed, engine as u64));
    for _ in 0..budget.runs {
        let setting = Setting { instances: 1, ..setting(engine, &mut random) };
        let run_seed = random.draw();
        let options = Options { cpus: setting.cpus, seed: run_seed, debug: false, notes: true };
        let Ok(mut subject) = Interpreted::new(program.clone(), &scheduler.sources, options, 1)
        else {
            continue;
        };
        let mut driver = ProtocolDriver::new(setting);
        driver.history = Some(Vec::new());
        let ending = driver.run(&driver::steps(run_seed, budget.steps), &mut subject);
        report.runs += 1;

        let reached = subject.interpreter(0).reached();
        let refuted = |statement: &&Statement| {
            checks(statement)
                .into_iter()
                .flatten()
                .any(|check| verdicts.of(check) == Verdict::Refuted)
        };
        let mut statements = reached.statements.iter().map(|(statement, _)| *statement);
        let Some(statement) = statements.find(refuted) else { continue };
        report.reached += 1;
        // An earlier check of the same statement may have failed first.
        let within = |number: u32| {
            program.checks.iter().any(|(id, check)| {
                check_number(id) == number
                    && check.span.source == statement.span.source
                    && (statement.span.start..=statement.span.end).contains(&check.span.start)
            })
        };
        if !matches!(ending, Err(Ending::Trapped { check: Some(check), .. }) if within(check)) {
            let place = scheduler.sources.location(statement.span);
            let history = driver.history.unwrap_or_default().join("\n");
            report.wrong.push(format!(
                "refuted for the {engine} engine and done: line {}, column {}\n{}\n{history}",
                place.line,
                place.column,
                sources.listing()
            ));
        }
    }
}

/// The checks of a statement itself, which are performed whenever it is.
fn checks(statement: &Statement) -> [Option<CheckId>; 2] {
    match &statement.kind {
        StatementKind::Transfer { source, destination_check, .. } => {
            [source.check, *destination_check]
        }
        StatementKind::Dispatch { thread, .. }
        | StatementKind::Destroy { thread }
        | StatementKind::Alarm { thread, .. } => [thread.check, None],
        _ => [None, None],
    }
}

impl Report {
    pub fn table(&self) -> String {
        format!(
            "{} schedulers with refuted checks, {} runs, of which {} reached one\nrefuted checks \
                that held: {}\n",
            self.schedulers,
            self.runs,
            self.reached,
            self.wrong.len()
        )
    }
}
