//! Compares the interpreter with an implementation, compiled C or BPF in the kernel: random
//! schedulers, each compiled once, each under many random event sequences.
//!
//! A difference is shrunk to a small scheduler and a short sequence, and shown with both sides'
//! answers.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use attune_backend_c::{Node, Policy, generate, generate_node};
use attune_kernel::Replay;
use attune_language::engine::Engine;
use attune_language::ir::Verdicts;
use attune_simulator::interpreter::Options;

use crate::compiled::crash::Limit;
use crate::compiled::{BuildError, Compiled, Library};
use crate::driver::{self, Ending, ProtocolDriver, Setting, Step};
use crate::generator::{self, Sources};
use crate::implementation::Implementation;
use crate::interpreted::Interpreted;
use crate::pair::Pair;
use crate::random::{Random, derive};
use crate::replayed::{self, Replayed};
use crate::scheduler::{Rejected, Scheduler};
use crate::shrink::{Candidate, shrink};

/// What the interpreter is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Against {
    /// C in this process, as the threads engine runs it.
    C,
    /// C in this process, as the embedded engine compiles it.
    Embedded,
    /// BPF in this machine's kernel, as the kernel engine runs it.
    Kernel,
}

#[derive(Clone, Copy, Debug)]
pub struct Budget {
    pub against: Against,
    /// The schedulers are those of a cluster's nodes, and what they write is compared, too.
    pub nodes: bool,
    pub schedulers: u64,
    /// Event sequences a scheduler: each is one case.
    pub runs: u64,
    /// Steps a sequence.
    pub steps: usize,
    pub seed: u64,
    /// Statements a handler.
    pub size: usize,
    /// Schedulers compiled and run at the same time.
    pub jobs: usize,
    /// Stop after so many differences.
    pub differences: usize,
    /// Candidates tried to make a difference small.
    pub shrinking: usize,
}

/// How a scheduler is compiled and which events it gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mode {
    pub against: Against,
    pub node: bool,
    /// Without the checks that are proved for the engine, under that engine's events.
    pub proved_left_out: bool,
    /// Invariants run.
    pub debug: bool,
    /// By the C compiler.
    pub optimised: bool,
    pub cpus: u32,
}

impl Mode {
    fn random(against: Against, node: bool, random: &mut Random) -> Mode {
        if against == Against::Kernel {
            let cpus = 1 + [0, 1, 1, 3][random.below(4)];
            return Mode {
                against,
                node,
                proved_left_out: random.percent(50),
                debug: false,
                optimised: true,
                cpus,
            };
        }
        let proved_left_out = random.percent(50);
        let several = !proved_left_out && random.percent(40) && against != Against::Embedded;
        Mode {
            against,
            node,
            proved_left_out,
            debug: random.percent(50),
            optimised: random.percent(10),
            cpus: if several { 2 + random.below(2) as u32 } else { 1 },
        }
    }

    fn setting(self, random: &mut Random) -> Setting {
        let kernel = self.against == Against::Kernel;
        // Firmware has one instance, and so has a node.
        let several = self.against != Against::Embedded && !self.node && random.percent(40);
        Setting {
            instances: 1 + u32::from(several),
            cpus: self.cpus,
            // Compiled C knows no affinity.
            pinning: kernel && random.percent(60),
            // What is proved of a policy for firmware holds where nothing preempts.
            preemptive: self.against != Against::Embedded || !self.proved_left_out,
            killing: kernel,
            max_threads: 1 + random.below(13) as u32,
            imports: self.node || random.percent(60),
        }
    }
}

/// Changes the generated C before it is compiled: how mutants come in. None if it cannot be
/// applied.
pub type Edit<'e> = &'e (dyn Fn(&str) -> Option<String> + Sync);

#[derive(Clone, Debug, Default)]
pub struct Report {
    pub schedulers: u64,
    /// Refused by the front end because a transfer certainly fails.
    pub rejected: u64,
    /// To which the edit does not apply.
    pub skipped: u64,
    pub cases: u64,
    /// In which a thread went to another instance, and how often one did in all of them.
    pub cases_with_moves: u64,
    pub moves: u64,
    pub calls: u64,
    /// How cases ended: with their steps, in a failed check, with a decision that no engine
    /// accepts.
    pub endings: [u64; 3],
    /// In words, with the scheduler and the events.
    pub differences: Vec<String>,
}

/// A scheduler compiled both ways.
struct Built {
    scheduler: Scheduler,
    code: Code,
}

enum Code {
    C(Library),
    Kernel(Box<Replay>),
}

enum Failed {
    Rejected(Rejected),
    Skipped,
    /// No C, or C that does not compile.
    Broken(String),
}

pub fn run(budget: &Budget, edit: Edit) -> Report {
    let next = AtomicU64::new(0);
    let report = Mutex::new(Report::default());
    std::thread::scope(|scope| {
        for _ in 0..budget.jobs.max(1) {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= budget.schedulers
                        || lock(&report).differences.len() >= budget.differences
                    {
                        return;
                    }
                    let found = one(budget, derive(budget.seed, number), edit);
                    lock(&report).add(found);
                }
            });
        }
    });
    report.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn lock(report: &Mutex<Report>) -> std::sync::MutexGuard<'_, Report> {
    // A panic elsewhere leaves counts that are still counts.
    report.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// One scheduler under all its sequences, up to the first difference.
fn one(budget: &Budget, seed: u64, edit: Edit) -> Report {
    let mut random = Random::new(derive(seed, 1));
    let mode = Mode::random(budget.against, budget.nodes, &mut random);
    let sources = match budget.against {
        against if budget.nodes => generator::node(seed, budget.size, against == Against::C),
        Against::C | Against::Embedded => generator::scheduler(seed, budget.size),
        Against::Kernel => generator::for_kernel(seed, budget.size),
    };
    let mut report = Report::default();
    let mut built = match build(&sources, mode, edit) {
        Ok(built) => built,
        Err(Failed::Rejected(rejected)) => {
            report.rejected = 1;
            if !rejected.refuted_only {
                let messages = rejected.messages.join("\n");
                report.differences.push(format!(
                    "seed {seed}: the front end refuses a well-typed scheduler\n{messages}\n{}",
                    sources.listing()
                ));
            }
            return report;
        }
        Err(Failed::Skipped) => {
            report.skipped = 1;
            return report;
        }
        Err(Failed::Broken(_)) => {
            let case = Candidate { sources, steps: Vec::new() };
            let small = shrink(case, budget.shrinking, |candidate| {
                matches!(build(&candidate.sources, mode, edit), Err(Failed::Broken(_)))
            });
            let why = match build(&small.sources, mode, edit) {
                Err(Failed::Broken(why)) => why,
                _ => String::new(),
            };
            report
                .differences
                .push(format!("seed {seed}: no compiled C\n{why}\n{}", small.sources.listing()));
            return report;
        }
    };
    report.schedulers = 1;
    for _ in 0..budget.runs {
        let setting = mode.setting(&mut random);
        let run_seed = random.draw();
        let steps = driver::steps(run_seed, budget.steps);
        let mut driver = ProtocolDriver::new(setting);
        let ending = run_case(&mut built, mode, setting, run_seed, &steps, &mut driver);
        report.cases += 1;
        report.cases_with_moves += u64::from(driver.moves > 0);
        report.moves += driver.moves;
        report.calls += driver.calls;
        match ending {
            Ok(()) => report.endings[0] += 1,
            Err(Ending::Trapped { .. }) => report.endings[1] += 1,
            Err(Ending::Refused(_)) => report.endings[2] += 1,
            Err(Ending::Differs(first)) => {
                let case = Candidate { sources, steps };
                let again = shown(budget, case, mode, setting, run_seed, seed, edit);
                report.differences.push(again.unwrap_or_else(|| {
                    format!(
                        "seed {seed}, {mode:?}, {setting:?}, run {run_seed}: once, and not when \
                         the run was repeated\n{first}\n"
                    )
                }));
                return report;
            }
        }
    }
    report
}

fn build(sources: &Sources, mode: Mode, edit: Edit) -> Result<Built, Failed> {
    let engine = match mode.against {
        Against::C => Engine::Threads,
        Against::Embedded => Engine::Embedded,
        Against::Kernel => Engine::Kernel,
    };
    let scheduler = match mode.node {
        true => Scheduler::of_node(sources, engine),
        false => Scheduler::new(sources),
    };
    let scheduler = scheduler.map_err(Failed::Rejected)?;
    let verdicts = match mode.proved_left_out {
        true => scheduler.verdicts(engine),
        false => Verdicts::default(),
    };
    let (program, sources) = (&scheduler.program, &scheduler.sources);
    let policy = Policy { program, verdicts: &verdicts, sources };
    let options = attune_backend_c::Options { debug: mode.debug };
    // Nothing here talks to a cluster.
    let node = Node { cluster: "cluster".into(), description: String::new() };
    let text = match (mode.against, mode.node) {
        (Against::C, false) => generate(program, &verdicts, sources, &options),
        (Against::C, true) => generate_node(program, &verdicts, sources, &options, &node),
        (Against::Embedded, node) => attune_embedded::loadable(policy, mode.debug, node),
        (Against::Kernel, false) => attune_kernel::replay_source(program, &verdicts, sources),
        (Against::Kernel, true) => attune_kernel::replay_node_source(policy, node),
    };
    let text = text.map_err(|refusal| Failed::Broken(refusal.to_string()))?;
    let text = edit(&text).ok_or(Failed::Skipped)?;
    let code = match mode.against {
        Against::C | Against::Embedded => Library::build(&text, mode.cpus, mode.optimised)
            .map(Code::C)
            .map_err(|(BuildError::Compiler(message) | BuildError::System(message))| {
                Failed::Broken(message)
            }),
        Against::Kernel => replayed::load(&text, mode.cpus)
            .map(|replay| Code::Kernel(Box::new(replay)))
            .map_err(Failed::Broken),
    };
    Ok(Built { code: code?, scheduler })
}

fn run_case(
    built: &mut Built,
    mode: Mode,
    setting: Setting,
    seed: u64,
    steps: &[Step],
    driver: &mut ProtocolDriver,
) -> Result<(), Ending> {
    let options = Options { cpus: setting.cpus, seed, debug: mode.debug, notes: false };
    let scheduler = &built.scheduler;
    let interpreted =
        Interpreted::new(scheduler.program.clone(), &scheduler.sources, options, setting.instances)
            .map_err(|refusal| Ending::Differs(format!("the interpreter refuses: {refusal}")))?;
    let _limit = Limit::new(20);
    let (implementation, trap): (Box<dyn Implementation>, _) = match &mut built.code {
        Code::C(library) => {
            let (compiled, trap) = Compiled::new(library, &scheduler.program, setting, seed);
            (Box::new(compiled), trap)
        }
        Code::Kernel(replay) => {
            let (replayed, trap) = Replayed::new(replay, scheduler.program.clone(), setting, seed);
            (Box::new(replayed), trap)
        }
    };
    if let Some(trap) = trap {
        let message = if trap.crashed { format!("signal {}", trap.check) } else { trap.message };
        return Err(Ending::Differs(format!("attaching failed: {message}")));
    }
    let mut pair = Pair::new(interpreted, implementation);
    driver.run(steps, &mut pair)
}

/// Shrinks a difference and puts it into words. None: it does not come again.
fn shown(
    budget: &Budget,
    case: Candidate,
    mode: Mode,
    setting: Setting,
    run_seed: u64,
    seed: u64,
    edit: Edit,
) -> Option<String> {
    let differs = |candidate: &Candidate, history: &mut Vec<String>| -> Option<String> {
        let mut built = build(&candidate.sources, mode, edit).ok()?;
        let mut driver = ProtocolDriver::new(setting);
        driver.history = Some(Vec::new());
        let ending = run_case(&mut built, mode, setting, run_seed, &candidate.steps, &mut driver);
        *history = driver.history.unwrap_or_default();
        match ending {
            Err(Ending::Differs(difference)) => Some(difference),
            _ => None,
        }
    };
    let small =
        shrink(case, budget.shrinking, |candidate| differs(candidate, &mut Vec::new()).is_some());
    let mut history = Vec::new();
    let difference = differs(&small, &mut history)?;
    Some(format!(
        "seed {seed}, {mode:?}, {setting:?}\n{}events:\n  {}\n{difference}\n",
        small.sources.listing(),
        history.join("\n  ")
    ))
}

impl Report {
    fn add(&mut self, other: Report) {
        self.schedulers += other.schedulers;
        self.rejected += other.rejected;
        self.skipped += other.skipped;
        self.cases += other.cases;
        self.cases_with_moves += other.cases_with_moves;
        self.moves += other.moves;
        self.calls += other.calls;
        for (sum, count) in self.endings.iter_mut().zip(other.endings) {
            *sum += count;
        }
        self.differences.extend(other.differences);
    }

    pub fn summary(&self) -> String {
        format!(
            "{} schedulers ({} more refused by the front end), {} cases, {} handler calls \
                compared\n\
             cases with moves between instances {}, moves {}\n\
             cases that went through {}, ended in a failed check {}, in a decision no engine \
             accepts {}\n\
             differences: {}",
            self.schedulers,
            self.rejected,
            self.cases,
            self.calls,
            self.cases_with_moves,
            self.moves,
            self.endings[0],
            self.endings[1],
            self.endings[2],
            self.differences.len()
        )
    }
}
