//! Experiment `trust-policies`: what an unprivileged user takes from another under each policy.

use super::{Contestant, Description, Figure, Part, Place, Results, Workload};
use crate::report::Claim;

/// What is claimed under these.
const FIRM: [&str; 3] = ["fair", "coop", "desktop"];
const OTHERS: [&str; 12] = [
    "fair_periodic",
    "edf",
    "priority",
    "lottery",
    "reserve",
    "transactions",
    "round_robin",
    "human",
    "unix_decay",
    "linux_epochs",
    "solaris_ts",
    "nt_boosts",
];
/// A victim loses so much of its share at most, in per cent, and its wake-ups so many ms at p99.
const MOST_LOST: f64 = 2.0;
const MOST_ADDED: f64 = 0.5;

const ATTACKS: &str = "--attack theft --attack sleepers --attack sleepers-anew --attack extremes \
    --attack extremes-anew --attack breaks --attack always-due --attack always-ahead \
    --attack chain --attack workers --attack due-workers --attack flood --seconds {seconds}";

/// The figures' names of each attack: what is lost, and what is added.
type Names = [[&'static str; 2]; 12];

macro_rules! names {
    ($before:literal) => {
        [
            [concat!($before, "theft (%)"), concat!($before, "theft (ms)")],
            [concat!($before, "sleepers (%)"), concat!($before, "sleepers (ms)")],
            [concat!($before, "sleepers anew (%)"), concat!($before, "sleepers anew (ms)")],
            [concat!($before, "extremes (%)"), concat!($before, "extremes (ms)")],
            [concat!($before, "extremes anew (%)"), concat!($before, "extremes anew (ms)")],
            [concat!($before, "breaks (%)"), concat!($before, "breaks (ms)")],
            [concat!($before, "always due (%)"), concat!($before, "always due (ms)")],
            [concat!($before, "always ahead (%)"), concat!($before, "always ahead (ms)")],
            [concat!($before, "chain (%)"), concat!($before, "chain (ms)")],
            [concat!($before, "workers (%)"), concat!($before, "workers (ms)")],
            [concat!($before, "due workers (%)"), concat!($before, "due workers (ms)")],
            [concat!($before, "flood (%)"), concat!($before, "flood (ms)")],
        ]
    };
}

const ONE: Names = names!("");
const MANY: Names = names!("8: ");

const fn figures(names: &Names, workload: &'static str) -> [Figure; 24] {
    let [theft, sleepers, sleepers_anew, extremes, extremes_anew, breaks, rest @ ..] = names;
    let [due, ahead, chain, workers, due_workers, flood] = rest;
    [
        Figure::new(theft[0], workload, "/theft/lost_percent", 1.0),
        Figure::new(theft[1], workload, "/theft/added_p99_ns", 1e6),
        Figure::new(sleepers[0], workload, "/sleepers/lost_percent", 1.0),
        Figure::new(sleepers[1], workload, "/sleepers/added_p99_ns", 1e6),
        Figure::new(sleepers_anew[0], workload, "/sleepers-anew/lost_percent", 1.0),
        Figure::new(sleepers_anew[1], workload, "/sleepers-anew/added_p99_ns", 1e6),
        Figure::new(extremes[0], workload, "/extremes/lost_percent", 1.0),
        Figure::new(extremes[1], workload, "/extremes/added_p99_ns", 1e6),
        Figure::new(extremes_anew[0], workload, "/extremes-anew/lost_percent", 1.0),
        Figure::new(extremes_anew[1], workload, "/extremes-anew/added_p99_ns", 1e6),
        Figure::new(breaks[0], workload, "/breaks/lost_percent", 1.0),
        Figure::new(breaks[1], workload, "/breaks/added_p99_ns", 1e6),
        Figure::new(due[0], workload, "/always-due/lost_percent", 1.0),
        Figure::new(due[1], workload, "/always-due/added_p99_ns", 1e6),
        Figure::new(ahead[0], workload, "/always-ahead/lost_percent", 1.0),
        Figure::new(ahead[1], workload, "/always-ahead/added_p99_ns", 1e6),
        Figure::new(chain[0], workload, "/chain/lost_percent", 1.0),
        Figure::new(chain[1], workload, "/chain/added_p99_ns", 1e6),
        Figure::new(workers[0], workload, "/workers/lost_percent", 1.0),
        Figure::new(workers[1], workload, "/workers/added_p99_ns", 1e6),
        Figure::new(due_workers[0], workload, "/due-workers/lost_percent", 1.0),
        Figure::new(due_workers[1], workload, "/due-workers/added_p99_ns", 1e6),
        Figure::new(flood[0], workload, "/flood/lost_percent", 1.0),
        Figure::new(flood[1], workload, "/flood/added_p99_ns", 1e6),
    ]
}

const DRAWN: [&str; 2] = ["drawn (%)", "drawn (ms)"];
const OF_DRAWN: &[Figure] = &[
    Figure::new(DRAWN[0], "drawn", "/any/lost_percent", 1.0),
    Figure::new(DRAWN[1], "drawn", "/any/added_p99_ns", 1e6),
];
const OF_ONE: &[Figure] = &figures(&ONE, "one");
const OF_MANY: &[Figure] = &figures(&MANY, "many");

pub const EXPERIMENT: Description = Description {
    name: "trust-policies",
    about: "what one unprivileged program, and a user with eight, take from programs of another \
        user under each policy",
    title: "What one user takes from another",
    text: &[
        "Two programs of one user compute, and a third wakes every 10 ms. Beside them run one or \
            eight programs of another user, which only compute, and then as many that attack. \
            Per cent: the part of its share of the CPU that a victim loses, the worse of two. \
            Milliseconds: what the attack adds to the p99 of the third one's wake-up delay.",
        "Theft: it names the victims' group and matters most. Sleepers: 60 further threads of \
            it sleep in a group of its own. Sleepers anew: the same, in a process that is killed \
            and made anew each 0.2 s; compared with one that has as many threads, which compute \
            for as long and supply nothing. Extremes: each number that it may supply is the \
            greediest. Extremes anew: the same, in such a process. Breaks: it polls a thousand \
            times, and then not for 3 ms. Always due: its release has always come, and it sleeps \
            now and then. Always ahead: the same, with a release that comes 0.05 ms later. Chain: \
            its threads work for 2 ms each, start the next and end. Workers: a thread of it that \
            only waits starts one after the other that works for 3 ms and ends. Due workers: the \
            same, for 40 ms and always due. Flood: it connects to the values' socket all the \
            time. Drawn: each attacker makes one of these after the other, for up to 0.4 s each.",
    ],
    published: "nobody gives such figures of a sched_ext scheduler.",
    parts: &[
        Part {
            title: "One program attacks, under policies that promise something",
            place: Place::ONE_CPU,
            contestants: firm,
            workloads: &[Workload::new("one", "trust").with(ATTACKS).lasting(6, 1)],
            figures: OF_ONE,
        },
        Part {
            title: "Eight programs attack, under policies that promise something",
            place: Place::ONE_CPU,
            contestants: firm,
            workloads: &[Workload::new("many", "trust --attackers 8").with(ATTACKS).lasting(6, 1)],
            figures: OF_MANY,
        },
        Part {
            title: "One program attacks, under the others",
            place: Place::ONE_CPU,
            contestants: others,
            workloads: &[Workload::new("one", "trust").with(ATTACKS).lasting(2, 1)],
            figures: OF_ONE,
        },
        Part {
            title: "Eight programs attack, under the others",
            place: Place::ONE_CPU,
            contestants: others,
            workloads: &[Workload::new("many", "trust --attackers 8").with(ATTACKS).lasting(2, 1)],
            figures: OF_MANY,
        },
        Part {
            title: "Four programs attack as they draw",
            place: Place::ONE_CPU,
            contestants: firm,
            workloads: &[Workload::new("drawn", "trust --attackers 4 --attack any")
                .with("--seconds {seconds}")
                .lasting(600, 20)],
            figures: OF_DRAWN,
        },
    ],
    seeds: &[1],
    drawn: ONE[3][0],
    claims,
};

fn firm() -> Vec<Contestant> {
    FIRM.into_iter().map(ours).collect()
}

fn others() -> Vec<Contestant> {
    OTHERS.into_iter().map(ours).collect()
}

/// A number may starve everybody under some of them: the kernel is to look on.
fn ours(name: &'static str) -> Contestant {
    Contestant::ours_changed(name, name, "--timeout 30000")
}

fn claims(results: &Results) -> Vec<Claim> {
    let of = |policy: &str| {
        let worst = |kind: usize| {
            let figures = ONE.iter().chain(&MANY).chain([&DRAWN]).map(|names| names[kind]);
            let each: Option<Vec<f64>> =
                figures.map(|figure| results.worst(&format!("attune {policy}"), figure)).collect();
            each.map(|all| all.into_iter().fold(f64::NEG_INFINITY, f64::max))
        };
        [
            Claim::new(
                format!("no victim loses more than {MOST_LOST} % of its share under {policy}"),
                worst(0).map(|lost| (lost <= MOST_LOST, format!("{lost:.2} % at worst"))),
            ),
            Claim::new(
                format!("no attack adds more than {MOST_ADDED} ms at p99 under {policy}"),
                worst(1).map(|added| (added <= MOST_ADDED, format!("{added:.2} ms at worst"))),
            ),
        ]
    };
    FIRM.into_iter().flat_map(of).collect()
}
