//! Experiment `trust-flood`: how soon programs register, and root is answered, beside users that
//! flood the values' socket.

use super::{Contestant, Description, Figure, Part, Place, Results, TWO_SEEDS, Workload};
use crate::report::Claim;

const OURS: &str = "attune coop";
/// In the deterministic machine, beside a crowd, and in real time.
const HOGS: [&str; 2] = ["beside hogs (ms)", "beside hogs, real time (ms)"];
const FLOOD: [&str; 2] = ["beside a flood (ms)", "beside a flood, real time (ms)"];
const LATER: [&str; 2] = ["later (ms)", "later, real time (ms)"];
const SET: [&str; 3] = ["set (ms)", "crowd: set (ms)", "set, real time (ms)"];
const TOP: [&str; 3] = ["top (ms)", "crowd: top (ms)", "top, real time (ms)"];
const HEARD: &str = "crowd: heard";
const REFUSED: [&str; 2] = ["refused", "crowd: refused"];
/// What is claimed, in ms.
const MOST_LATER: f64 = 10.0;
const LONGEST_ANSWER: f64 = 100.0;
/// Processes of users that are neither root nor the run's owner which may supply values.
const PLACES: f64 = 15_360.0;

pub const EXPERIMENT: Description = Description {
    name: "trust-flood",
    about: "how soon a program registers, and root is answered, beside four users that flood the \
        values' socket",
    title: "A flood of connections",
    text: &[
        "Four users have four processes each. They compute; or one of each user holds as \
            many idle connections as its user may, and the others connect and say hello all \
            the time, of which half do not wait for the answer. Beside either, twenty programs \
            of a fifth user register, one after the other: the median of the times until the \
            scheduler hears one. Later: by how much beside the flood. Set and top: the longest \
            of twenty answers to each of root's questions beside the flood, with the \
            connection. Refused: answers to top that say why there is nothing to see.",
        "Crowd: the four users also have 15 360 processes that supply values: those take every \
            place but the ones kept for root and the run's owner. Heard: so many of them are. A \
            program of the fifth user finds no place then.",
    ],
    published: "nothing.",
    parts: &[
        Part {
            title: "One CPU",
            place: Place::ONE_CPU,
            contestants: ours,
            workloads: &[
                Workload::new("flood", "flood --seed {seed}"),
                Workload::new("crowd", "flood --seed {seed} --clients 3840")
                    .with_memory(6144)
                    .thorough(),
            ],
            figures: &[
                Figure::new(HOGS[0], "flood", "/hogs/register_ns/p50", 1e6),
                Figure::new(FLOOD[0], "flood", "/flood/register_ns/p50", 1e6),
                Figure::new(LATER[0], "flood", "/later_ns", 1e6),
                Figure::new(SET[0], "flood", "/flood/set_ns/max", 1e6),
                Figure::new(TOP[0], "flood", "/flood/top_ns/max", 1e6),
                Figure::new(REFUSED[0], "flood", "/flood/top_refused", 1.0),
                Figure::new(HEARD, "crowd", "/flood/heard", 1.0),
                Figure::new(SET[1], "crowd", "/flood/set_ns/max", 1e6),
                Figure::new(TOP[1], "crowd", "/flood/top_ns/max", 1e6),
                Figure::new(REFUSED[1], "crowd", "/flood/top_refused", 1.0),
            ],
        },
        Part {
            title: "Two CPUs, in real time",
            place: Place::TwoCpus,
            contestants: ours,
            workloads: &[Workload::new("flood", "flood --seed {seed}")],
            figures: &[
                Figure::new(HOGS[1], "flood", "/hogs/register_ns/p50", 1e6),
                Figure::new(FLOOD[1], "flood", "/flood/register_ns/p50", 1e6),
                Figure::new(LATER[1], "flood", "/later_ns", 1e6),
                Figure::new(SET[2], "flood", "/flood/set_ns/max", 1e6),
                Figure::new(TOP[2], "flood", "/flood/top_ns/max", 1e6),
            ],
        },
    ],
    seeds: TWO_SEEDS,
    drawn: LATER[0],
    claims,
};

/// Its imports are every program's.
fn ours() -> Vec<Contestant> {
    vec![Contestant::ours("coop")]
}

fn claims(results: &Results) -> Vec<Claim> {
    let answered = |what: &str, place: usize| {
        let worst = [SET, TOP].map(|figures| results.worst(OURS, figures[place]));
        let refused = results.worst(OURS, REFUSED[place]);
        Claim::new(
            format!("{what}, root's set and top are answered within {LONGEST_ANSWER} ms"),
            worst[0].zip(worst[1]).zip(refused).map(|((set, top), refused)| {
                let said = format!("{set:.1} / {top:.1} ms at worst, top refused {refused} times");
                (set.max(top) <= LONGEST_ANSWER && refused == 0.0, said)
            }),
        )
    };
    let later = results.worst(OURS, LATER[0]);
    let in_real_time = results.interval(OURS, LATER[1]);
    vec![
        Claim::new(
            format!("beside the flood a program registers at most {MOST_LATER} ms later"),
            later.map(|later| (later <= MOST_LATER, format!("{later:.1} ms at worst"))),
        ),
        Claim::new(
            "the same in real time, by the interval of the median of pairs",
            in_real_time.map(|later| {
                (
                    later.high <= MOST_LATER,
                    format!("{:.1} [{:.1} {:.1}] ms", later.value, later.low, later.high),
                )
            }),
        ),
        answered("beside the flood", 0),
        Claim::new(
            "a crowd of processes takes every place",
            results.least(OURS, HEARD).map(|taken| {
                (taken == PLACES, format!("{taken:.0} of {PLACES:.0} processes are heard"))
            }),
        ),
        answered("then, beside the flood", 1),
    ]
}
