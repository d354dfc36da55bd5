//! Experiment `switch-cost`: what a scheduler adds to each switch from one process to another, how
//! exact its slices are, and what is left of that in whole programs.

use super::{Contestant, Description, Figure, Part, Place, Results, TWO_SEEDS, Workload};
use crate::report::Claim;

const PIPE: &str = "pipe switch";
const YIELD: &str = "yield switch";
const SWITCHES: &str = "switches";
const MESSAGE: &str = "message";
const COMPILE: &str = "compilation (ms)";
const SHORTEST: &str = "shortest stay (us)";
const LONGEST: &str = "longest stay (us)";
const MESSAGES_2: &str = "messages, 2 CPUs (ms)";
const COMPILE_2: &str = "compilation, 2 CPUs (ms)";
const OURS: [&str; 2] = ["fifo", "fair"];
/// Their slices in microseconds.
const SLICES: [(&str, f64); 2] =
    [("attune round_robin, 0.3 ms", 300.0), ("attune round_robin, 1 ms", 1000.0)];

/// What is claimed: so far off may a slice be, in microseconds; so much more than the fair class
/// may a program take; so long is a policy.
const EXACT: f64 = 50.0;
const PROGRAMS: f64 = 1.03;
const LINES: usize = 60;

pub const EXPERIMENT: Description = Description {
    name: "switch-cost",
    about: "what a switch between processes costs, how exact slices are, what programs feel of it: \
        ours, the fair class, other sched_ext schedulers",
    title: "What a switch costs",
    text: &[
        "Pipe: two processes send a byte to and fro; a switch is a blocking read, a wake-up and \
            the choice of the other. Yield: two processes yield to each other. What the kernel \
            does in any case is in all figures. The calls of `schedule` beside the switches show \
            that each of them, warming up included, was the policy's choice.",
        "Slices: three processes compute and watch the clock; a stay is the time from the first \
            instruction that one executes to its last before another runs. round_robin is asked \
            for slices of 0.3 and 1 ms; the peers and the kernel's classes have their own idea of \
            a slice.",
        "Programs: 2 groups of 8 senders and 8 receivers on sockets, as in hackbench; four \
            compilations (`cc -O1 -pipe`), three at a time. On two CPUs time is real: medians, and \
            where the true ones lie; nothing is claimed of them.",
    ],
    published: "none of the peers' authors gives a cost of a switch; the fair class in the same \
        machine is the measure.",
    parts: &[
        Part {
            title: "Instructions for a switch",
            place: Place::ONE_CPU,
            contestants: everybody,
            workloads: &[
                Workload::new("pipe", "ping-pong --turns 20000"),
                Workload::new("yield", "yields --turns 20000"),
            ],
            figures: &[
                Figure::new(PIPE, "pipe", "/ns_per_switch", 1.0).with_ratio(),
                Figure::new(YIELD, "yield", "/ns_per_switch", 1.0).with_ratio(),
                Figure::new(SWITCHES, "pipe", "/all_switches", 1.0),
            ],
        },
        Part {
            title: "How long a process stays that computes beside two others",
            place: Place::ONE_CPU,
            contestants: || {
                let kernel = [Contestant::fair_class(), Contestant::fair_class_slices()];
                let ours = [
                    Contestant::ours_changed(
                        "round_robin, 0.3 ms",
                        "round_robin",
                        "--set quantum=300us",
                    ),
                    Contestant::ours_changed(
                        "round_robin, 1 ms",
                        "round_robin",
                        "--set quantum=1ms",
                    ),
                ];
                kernel.into_iter().chain(Contestant::peers()).chain(ours).collect()
            },
            workloads: &[Workload::new("slices", "slices --count 3 --seconds 1")],
            figures: &[
                Figure::new(SHORTEST, "slices", "/stay_ns/min", 1000.0),
                Figure::new("median stay (us)", "slices", "/stay_ns/p50", 1000.0),
                Figure::new("p99 stay (us)", "slices", "/stay_ns/p99", 1000.0),
                Figure::new(LONGEST, "slices", "/stay_ns/max", 1000.0),
                Figure::new("stays", "slices", "/stay_ns/count", 1.0),
            ],
        },
        Part {
            title: "Whole programs on one CPU, in instructions",
            place: Place::ONE_CPU,
            contestants: everybody,
            workloads: &[
                Workload::new("messages", MESSAGES),
                Workload::new("compile", COMPILING).with_compiler(),
            ],
            figures: &[
                Figure::new(MESSAGE, "messages", "/ns_per_message", 1.0).with_ratio(),
                Figure::new(COMPILE, "compile", "/ns_per_command", 1e6).with_ratio(),
            ],
        },
        Part {
            title: "Whole programs on two CPUs, in real time",
            place: Place::TwoCpus,
            contestants: || {
                let ours = OURS.map(Contestant::ours);
                [Contestant::fair_class()].into_iter().chain(ours).collect()
            },
            workloads: &[Workload::new("messages", MESSAGES), Workload::new("compile", COMPILING)],
            figures: &[
                Figure::new(MESSAGES_2, "messages", "/time_ns", 1e6).with_ratio(),
                Figure::new(COMPILE_2, "compile", "/time_ns", 1e6).with_ratio(),
            ],
        },
    ],
    seeds: TWO_SEEDS,
    drawn: PIPE,
    claims,
};

const MESSAGES: &str = "messages --groups 2 --size 8 --messages 50";
const COMPILING: &str = "compile --count 4 --at-once 3";

fn everybody() -> Vec<Contestant> {
    let ours = OURS.map(Contestant::ours);
    [Contestant::fair_class()].into_iter().chain(Contestant::peers()).chain(ours).collect()
}

fn claims(results: &Results) -> Vec<Claim> {
    let mut claims = vec![];
    for scheduler in OURS {
        let name = &format!("attune {scheduler}");
        claims.push(cheaper(results, scheduler, name, PIPE, "a switch"));
        claims.push(cheaper(results, scheduler, name, YIELD, "a yield"));
        claims.push(chosen(results, scheduler, name));
        claims.push(as_good(results, scheduler, name, MESSAGE, "messages"));
        claims.push(as_good(results, scheduler, name, COMPILE, "compiling"));
        claims.push(short(results, scheduler, name));
    }
    claims.extend(SLICES.map(|(name, slice)| exact(results, name, slice)));
    claims
}

fn cheaper(results: &Results, scheduler: &str, name: &str, figure: &str, what: &str) -> Claim {
    let of = |name| results.median(name, figure);
    let measured = of(name).zip(of("fair class")).zip(results.best_peer(figure));
    Claim::new(
        format!("{what} under {scheduler} takes fewer instructions than under every peer"),
        measured.map(|((cost, fair_class), (least, peer))| {
            let ratio = cost / fair_class;
            (
                cost < least,
                format!(
                    "{cost:.0} instructions, {peer} {least:.0}, the fair class {fair_class:.0} \
                        (ratio {ratio:.2})"
                ),
            )
        }),
    )
}

fn chosen(results: &Results, scheduler: &str, name: &str) -> Claim {
    let row = results.rows(PIPE).iter().find(|row| row.name == name);
    let choices = row.and_then(|row| row.choices("pipe")).map(|choices| choices as f64);
    Claim::new(
        format!("under {scheduler} every switch is the policy's choice"),
        choices.zip(results.median(name, SWITCHES)).map(|(choices, switches)| {
            (choices >= switches, format!("{choices:.0} calls of schedule, {switches:.0} switches"))
        }),
    )
}

fn as_good(results: &Results, scheduler: &str, name: &str, figure: &str, what: &str) -> Claim {
    Claim::new(
        format!(
            "{what} under {scheduler} takes at most {:.0} % more instructions than under the fair \
                class",
            percent(PROGRAMS)
        ),
        results
            .ratio(name, figure)
            .map(|ratio| (ratio.value <= PROGRAMS, format!("{:+.2} %", percent(ratio.value)))),
    )
}

fn short(results: &Results, scheduler: &str, name: &str) -> Claim {
    let row = results.rows(PIPE).iter().find(|row| row.name == name);
    let peers = results.rows(PIPE).iter().filter(|row| row.is_peer);
    let shortest = peers.filter_map(|row| Some(row.lines?.own)).min();
    Claim::new(
        format!("{scheduler} has at most {LINES} lines"),
        row.and_then(|row| row.lines).zip(shortest).map(|(lines, shortest)| {
            let bases = lines.bases;
            (
                lines.own <= LINES,
                format!("{} and {bases} in its base; the shortest peer {shortest}", lines.own),
            )
        }),
    )
}

fn exact(results: &Results, name: &str, slice: f64) -> Claim {
    let both = results.median(name, SHORTEST).zip(results.median(name, LONGEST));
    Claim::new(
        format!("slices of {slice} us are exact to {EXACT} us, the longest and the shortest too"),
        both.map(|(shortest, longest)| {
            let holds = slice - shortest <= EXACT && longest - slice <= EXACT;
            (holds, format!("{shortest:.1} to {longest:.1} us"))
        }),
    )
}

/// How much more than 1, in per cent.
fn percent(ratio: f64) -> f64 {
    (ratio - 1.0) * 100.0
}
