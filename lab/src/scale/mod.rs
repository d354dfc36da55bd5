//! Experiment `scale`: for how long policies hold their lock, and how many CPUs one lock serves,
//! one for each cache, and one for each CPU.

mod lock;
mod sweep;

use anyhow::Result;
use attune_simulator::Per;
use attune_vm::Cache;
use serde_json::json;

use self::lock::Cost;
use self::sweep::{CACHE, Case, Point};
use crate::experiment::{Options, Procedure, Progress};
use crate::kernel::load_program;
use crate::plot::{self, Line};
use crate::report::{Claim, Picture, Report, Table};
use crate::schedulers;

pub const EXPERIMENT: Procedure = Procedure {
    name: "scale",
    about: "instructions under the lock for each decision, per policy; and with them messages on 1 \
        to 512 simulated CPUs, with one instance for the machine, for each cache, for each CPU",
    check,
    run,
};

/// Whose lock is measured; the first is simulated.
const POLICIES: &[&str] = &["fair", "coop", "round_robin", "lottery", "fifo", "edf", "priority"];
const SIZES: &[u32] = &[1, 2, 4, 8, 16, 32, 64, 128, 256, 512];
const FEW: &[u32] = &[1, 16, 32];
/// Nothing is claimed of the last: it shows what longer work between messages changes.
const CASES: &[Case] = &[
    Case { hand_over: 1.0, work: 1.0 },
    Case { hand_over: 0.5, work: 1.0 },
    Case { hand_over: 2.0, work: 1.0 },
    Case { hand_over: 1.0, work: 10.0 },
];
const PERS: [Per; 3] = [Per::Machine, Per::Cache, Per::Cpu];
const TURNS: u32 = 5000;
/// What is claimed of linear growth.
const PER_CACHE: f64 = 0.95;
const PER_CPU: f64 = 0.98;

fn check(options: &Options) -> Result<()> {
    load_program(&options.programs)?;
    Ok(Cache::open(&Cache::default_folder()).map(drop)?)
}

fn run(options: &Options, progress: Progress) -> Result<Report> {
    let cache = Cache::open(&Cache::default_folder())?;
    let quick = options.quick;
    let (policies, sizes) = if quick { (&POLICIES[..1], FEW) } else { (POLICIES, SIZES) };
    let cases = if quick { &CASES[..1] } else { CASES };
    let mut costs = Vec::new();
    for policy in policies {
        progress(&format!("{policy}: instructions under the lock"));
        costs.push(lock::measure(policy, TURNS, options, &cache)?);
    }
    let policy = schedulers::interpret(POLICIES[0])?;
    let mut points = Vec::new();
    for &case in cases {
        for per in PERS {
            for &cpus in sizes {
                progress(&format!("{cpus} CPUs, per {}, {}", per.name(), name(case)));
                points.push(sweep::run(&policy, &costs[0], per, cpus, case)?);
            }
        }
    }
    tell(&costs, &Points(points), sizes, cases)
}

fn name(case: Case) -> String {
    format!("hand-over times {}, work times {}", case.hand_over, case.work)
}

/// All simulated machines.
struct Points(Vec<Point>);

impl Points {
    fn get(&self, per: Per, cpus: u32, case: Case) -> Option<&Point> {
        let is = |point: &&Point| (point.per, point.cpus, point.case) == (per.name(), cpus, case);
        self.0.iter().find(is)
    }

    fn rate(&self, per: Per, cpus: u32, case: Case) -> f64 {
        self.get(per, cpus, case).map_or(0.0, |point| point.rate)
    }

    /// The rate by what machines with `unit` CPUs have together that are as many CPUs.
    fn linear(&self, per: Per, cpus: u32, unit: u32, case: Case) -> f64 {
        self.rate(per, cpus, case) * f64::from(unit)
            / (self.rate(per, unit, case) * f64::from(cpus))
    }

    /// The same with the measured work, for the hand-over with which it is smallest.
    fn least(&self, per: Per, cpus: u32, unit: u32, cases: &[Case]) -> f64 {
        let claimed = cases.iter().filter(|case| case.work == 1.0);
        claimed.map(|&case| self.linear(per, cpus, unit, case)).fold(f64::MAX, f64::min)
    }
}

fn tell(costs: &[Cost], points: &Points, sizes: &[u32], cases: &[Case]) -> Result<Report> {
    let largest = sizes.last().copied().unwrap_or(1);
    let claims = vec![
        Claim::at_least(
            format!("--per cache: {largest} CPUs send 95 % of what as many caches of {CACHE} do"),
            points.least(Per::Cache, largest, CACHE, cases),
            PER_CACHE,
            "",
        ),
        Claim::at_least(
            format!("--per cache: {largest} CPUs send 95 % of what as many single CPUs do"),
            points.least(Per::Cache, largest, 1, cases),
            PER_CACHE,
            "",
        ),
        Claim::at_least(
            format!("--per cpu: {largest} CPUs send 98 % of what as many single CPUs do"),
            points.least(Per::Cpu, largest, 1, cases),
            PER_CPU,
            "",
        ),
    ];
    let mut tables = vec![locks(costs)];
    tables.extend(cases.iter().map(|&case| grown(points, sizes, case)));
    let picture = plot::lines("CPUs", "million messages a second", &drawn(points, sizes))?;
    Ok(Report {
        tables,
        claims,
        pictures: vec![Picture::new("Messages in pairs, simulated", picture)],
        data: json!({ "locks": costs, "machines": points.0 }),
        ..Report::new(EXPERIMENT.name, "How many CPUs a lock serves").saying(&[
            "Two processes send a byte to and fro on one CPU of a deterministic machine, in which \
                an instruction takes a nanosecond. The engine reads the clock as it takes its lock \
                and as it gives it back; the reading is in the figures.",
            "The simulated machines have two pairs of threads for each CPU. A message takes as \
                long as measured, half to three halves of that at random, and each handler call \
                holds the lock of its instance for its part of the measured time. A lock that \
                another CPU had last takes 60 ns inside a cache and 200 ns across, times the \
                hand-over of the table; work is so many times what was measured. What a CPU waits \
                for a lock is lost to it.",
        ])
    })
}

fn locks(costs: &[Cost]) -> Table {
    let row = |cost: &Cost| {
        let whole = |figure: f64| format!("{figure:.0}");
        let part = format!("{:.1} %", 100.0 * cost.held / cost.message);
        vec![
            cost.policy.clone(),
            whole(cost.message),
            whole(cost.held),
            part,
            whole(cost.each),
            whole(cost.decision),
            format!("{:.2}", cost.calls),
        ]
    };
    let columns =
        ["policy", "message", "under the lock", "part", "each time", "decision", "handler calls"];
    Table::new("Instructions for a message", &columns, costs.iter().map(row).collect())
}

/// What each way of dividing reaches of linear growth.
fn grown(points: &Points, sizes: &[u32], case: Case) -> Table {
    let row = |&cpus: &u32| {
        let mut row = vec![cpus.to_string()];
        for per in PERS {
            let point = points.get(per, cpus, case);
            row.push(format!("{:.2}", points.rate(per, cpus, case) / 1e6));
            row.push(format!("{:.1} %", 100.0 * points.linear(per, cpus, 1, case)));
            row.push(format!("{:.1} %", 100.0 * point.map_or(0.0, |point| point.waits)));
        }
        row
    };
    let columns = [
        "CPUs", "machine", "linear", "waits", "cache", "linear", "waits", "cpu", "linear", "waits",
    ];
    Table::new(
        format!("Million messages a second, {}", name(case)),
        &columns,
        sizes.iter().map(row).collect(),
    )
}

fn drawn(points: &Points, sizes: &[u32]) -> Vec<Line> {
    let line = |per: Per, hand_over: f64| {
        let case = Case { hand_over, work: 1.0 };
        let rate = |&cpus: &u32| (f64::from(cpus), points.rate(per, cpus, case) / 1e6);
        let name = format!("--per {}, hand-over times {hand_over}", per.name());
        Line { name, points: sizes.iter().map(rate).collect(), dashed: hand_over != 1.0 }
    };
    let mut lines: Vec<Line> = PERS.iter().map(|&per| line(per, 1.0)).collect();
    lines.extend([0.5, 2.0].map(|hand_over| line(Per::Machine, hand_over)));
    lines
}
