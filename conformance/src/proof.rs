//! What the analysis proved never fails: random schedulers are run with every check performed, on
//! one CPU as the threads engine does and on several as the simulator does, and no check that is
//! proved there may trip.
//!
//! The statistics say how good the analysis is: of the transfer checks that were reached and never
//! tripped in many events, the share that it proved.

use std::collections::HashSet;

use attune_language::engine::Engine;
use attune_language::ir::{CheckKind, Program, Verdict, Verdicts};
use attune_simulator::interpreter::Options;

use crate::budget::Budget;
use crate::driver::{self, Ending, ProtocolDriver, Setting};
use crate::generator::{self, Sources};
use crate::interpreted::{Interpreted, check_number};
use crate::random::{Random, derive};
use crate::scheduler::Scheduler;

/// Counts for one engine's verdicts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Transfer checks of the schedulers, named threads left out: they are proved trivially.
    pub checks: u64,
    pub proved: u64,
    pub refuted: u64,
    /// Never tripped, though their handler was called.
    pub never_tripped: u64,
}

#[derive(Clone, Debug, Default)]
pub struct Report {
    pub schedulers: u64,
    /// Refused by the front end because a transfer certainly fails.
    pub rejected: u64,
    pub calls: u64,
    /// How runs ended: with their steps, in a failed check, with a decision that no engine accepts.
    pub endings: [u64; 3],
    pub threads: Tally,
    pub simulator: Tally,
    /// Checks that were proved and failed: what went wrong, with the scheduler and the events.
    pub wrong: Vec<String>,
}

pub fn run(budget: &Budget) -> Report {
    let mut report = Report::default();
    for number in 0..budget.schedulers {
        let seed = derive(budget.seed, number);
        let sources = generator::scheduler(seed, budget.size);
        match Scheduler::new(&sources) {
            Ok(scheduler) => {
                report.schedulers += 1;
                examine(&sources, &scheduler, Engine::Threads, budget, seed, &mut report);
                examine(&sources, &scheduler, Engine::Simulator, budget, seed, &mut report);
            }
            Err(_) => report.rejected += 1,
        }
    }
    report
}

/// The events that the engine makes.
pub fn setting(engine: Engine, random: &mut Random) -> Setting {
    let simulator = engine == Engine::Simulator;
    Setting {
        instances: 1 + u32::from(random.percent(30)),
        cpus: if simulator { 1 + random.below(4) as u32 } else { 1 },
        pinning: random.percent(50),
        preemptive: true,
        killing: false,
        max_threads: 1 + random.below(13) as u32,
        imports: true,
    }
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
    let mut tripped = HashSet::new();
    let mut random = Random::new(derive(seed, engine as u64));
    for _ in 0..budget.runs {
        let setting = setting(engine, &mut random);
        let run_seed = random.draw();
        let options = Options { cpus: setting.cpus, seed: run_seed, debug: true, notes: false };
        // Cases that only other engines could run are never generated.
        let Ok(mut subject) = Interpreted::new(
            scheduler.program.clone(),
            &scheduler.sources,
            options,
            setting.instances,
        ) else {
            continue;
        };
        let mut driver = ProtocolDriver::new(setting);
        driver.history = Some(Vec::new());
        let ending = driver.run(&driver::steps(run_seed, budget.steps), &mut subject);
        report.calls += driver.calls;
        report.endings[match ending {
            Ok(()) => 0,
            Err(Ending::Trapped { .. }) => 1,
            Err(_) => 2,
        }] += 1;
        if let Err(Ending::Trapped { check: Some(check), message }) = ending
            && tripped.insert(check)
            && is_proved(&scheduler.program, &verdicts, check)
        {
            let history = driver.history.unwrap_or_default().join("\n");
            report.wrong.push(format!(
                "a check proved for the {engine} engine failed: {message}\n{}\n{history}",
                sources.listing()
            ));
        }
    }
    let tally = if engine == Engine::Threads { &mut report.threads } else { &mut report.simulator };
    count(&scheduler.program, &verdicts, &tripped, tally);
}

fn is_proved(program: &Program, verdicts: &Verdicts, number: u32) -> bool {
    let mut checks = program.checks.iter();
    checks.any(|(id, _)| check_number(id) == number && verdicts.of(id) == Verdict::Proved)
}

fn count(program: &Program, verdicts: &Verdicts, tripped: &HashSet<u32>, tally: &mut Tally) {
    for (id, check) in program.checks.iter() {
        let trivial = check.kind == CheckKind::NamedTransfer;
        if !check.kind.is_transfer() || trivial || verdicts.of(id) == Verdict::Uncalled {
            continue;
        }
        tally.checks += 1;
        tally.proved += u64::from(verdicts.of(id) == Verdict::Proved);
        tally.refuted += u64::from(verdicts.of(id) == Verdict::Refuted);
        tally.never_tripped += u64::from(!tripped.contains(&check_number(id)));
    }
}

impl Report {
    pub fn table(&self) -> String {
        let line = |name: &str, tally: &Tally| {
            let share = tally.proved as f64 / (tally.never_tripped.max(1)) as f64;
            format!(
                "{name:<10} {:>8} {:>8} {:>8} {:>14} {share:>22.3}\n",
                tally.checks, tally.proved, tally.refuted, tally.never_tripped
            )
        };
        format!(
            "{} schedulers ({} more refused by the front end), {} handler calls\n\
             runs that went through {}, ended in a failed check {}, in a decision no engine \
             accepts {}\n\n\
             engine       checks   proved  refuted  never tripped  proved / never tripped\n{}{}\n\
             proved checks that failed: {}\n",
            self.schedulers,
            self.rejected,
            self.calls,
            self.endings[0],
            self.endings[1],
            self.endings[2],
            line("threads", &self.threads),
            line("simulator", &self.simulator),
            self.wrong.len()
        )
    }
}
