//! Experiments with cooperating players: [`attune-load players`](../../../load/src/players.rs)
//! under `coop` on the kernel engine, beside schedulers to which they say nothing.
//!
//! All have eight players unless they say otherwise, and four hogs, which compute all the time as
//! compilers do. Tardiness is from a timer's release to its handler's first instruction. The
//! published figures are of Krasic, Saubhasik, Sinha and Goel, *Fair and timely scheduling via
//! cooperative polling* (EuroSys 2009): one CPU, film players, kernel 2.6.

pub mod baseline;
pub mod cpus;
pub mod fairness;
pub mod groups;
pub mod hd;
pub mod implicit;
pub mod instances;
pub mod legacy;
pub mod many;
pub mod misbehave;
pub mod outside;
pub mod overhead;
pub mod periodic;
pub(super) mod real;
pub mod user_level;
pub mod x11;

use super::{Contestant, Results, Workload};
use crate::report::Claim;

const COOP: &str = "attune coop";
const FAIR: &str = "fair class";
const SHORT_TURNS: &str = "attune coop --implicit, per process, 8 ms";

/// What is claimed of tardiness with callbacks up to 0.2 ms, in ms: p99, p99.9, worst.
const SHORT: [f64; 3] = [0.25, 0.4, 0.5];
const LEAST_JAIN: f64 = 0.99;
/// The fair share of four hogs beside eight players, in per cent.
const FAIR_SHARE: f64 = 100.0 / 3.0;

const SETTING: &str = "Players have sound every 10 ms and a picture every 1/24 s, both timer \
    events, and decode as much as they can between, in callbacks of 50 to 200 us (230 to 920 us in \
    the second setting). Under coop they poll; under the others they run in the same event loop \
    and say nothing. Four hogs compute all the time. Useful CPU is the work done by all, by the \
    time that it takes undisturbed: what is missing from 100 % went into switches, the scheduler, \
    interrupts, the players' event loops and asking for the time. Tardiness is taken by the \
    players' handlers, at their first instruction.";

/// Eight players and four hogs, changed by words for `attune-load players`.
const fn players(name: &'static str, words: &'static str) -> Workload {
    Workload::new(name, "players --hogs 4 --seconds {seconds}").with(words).lasting(30, 10)
}

/// Cooperation, and to be compared with it the kernel's classes, the peers, fair shares in slices
/// of all lengths.
fn everybody() -> Vec<Contestant> {
    let kernel = [
        Contestant::fair_class(),
        Contestant::fair_class_short_slices(),
        Contestant::round_robin_class(),
        Contestant::deadline_class(),
    ];
    let ours = [Contestant::ours("fair"), Contestant::ours("fair_periodic")];
    let others = kernel.into_iter().chain(Contestant::peers()).chain(ours).map(Contestant::briefly);
    others.chain([Contestant::ours("coop")]).collect()
}

/// With `--implicit`, and one virtual time for the threads of a process.
fn implicit() -> Contestant {
    let words = "--implicit --set per_process=1";
    Contestant::ours_changed("coop --implicit, per process", "coop", words)
}

/// The same with turns as short as the fair class's: what we advise for programs that know nothing
/// of cooperation.
fn implicit_with_short_turns() -> Contestant {
    let words = "--implicit --set per_process=1 --set period=8ms";
    Contestant::ours_changed("coop --implicit, per process, 8 ms", "coop", words)
}

fn fair_and_coop() -> Vec<Contestant> {
    vec![Contestant::fair_class().briefly(), Contestant::ours("coop")]
}

/// Somebody's index of Jain's is at least [`LEAST_JAIN`], in all runs.
fn is_even(results: &Results, who: &str, what: &str, figure: &str) -> Claim {
    let measured = results.least(who, figure);
    Claim::new(
        format!("Jain's index of {what} is at least {LEAST_JAIN} in every run"),
        measured.map(|jain| (jain >= LEAST_JAIN, format!("{jain:.4}"))),
    )
}

/// Beside somebody the hogs have their fair share, within so many per cent of it, in all runs.
fn hogs_are_within(
    results: &Results,
    most: f64,
    who: &str,
    place: &str,
    figures: &[&str],
) -> Claim {
    let off = |share: f64| (share / FAIR_SHARE - 1.0).abs() * 100.0;
    let its = |figure: &&str| {
        Some(off(results.worst(who, figure)?).max(off(results.least(who, figure)?)))
    };
    let all: Option<Vec<f64>> = figures.iter().map(its).collect();
    let worst = all.map(|all| all.into_iter().fold(0.0, f64::max));
    Claim::new(
        format!("{place} the hogs are within {most} % of their fair share in every run"),
        worst.map(|worst| (worst <= most, format!("at worst {worst:.2} % off"))),
    )
}

/// Under coop the figures are at most so much, in all runs.
fn at_most(results: &Results, what: &str, unit: &str, limits: &[(&str, f64)]) -> Claim {
    let measured: Option<Vec<f64>> =
        limits.iter().map(|(figure, _)| results.worst(COOP, figure)).collect();
    let runs = limits.first().map_or(0, |(figure, _)| results.count(COOP, figure));
    let list = |values: &mut dyn Iterator<Item = f64>| {
        values.map(|value| format!("{value:.2}")).collect::<Vec<_>>().join(" / ")
    };
    let bound = list(&mut limits.iter().map(|(_, limit)| *limit));
    Claim::new(
        format!("{what}: at most {bound} {unit} in every run"),
        measured.map(|measured| {
            let holds = measured.iter().zip(limits).all(|(measured, (_, limit))| measured <= limit);
            (holds, format!("{} {unit} in {runs} runs", list(&mut measured.into_iter())))
        }),
    )
}
