//! Experiment `trust-clients`: values from very many processes, and hints for very many threads.

use super::{Contestant, Description, Figure, Part, Place, Results, Workload};
use crate::report::Claim;

const OURS: &str = "attune coop";
const PAGES: &str = "pages (MB)";
const ALL: &str = "with connections (MB)";
const REGISTER: &str = "registered (s)";
const CROWD: &str = "hint for a crowd (ms)";
const THREADS: &str = "for each thread (ms)";
const PROCESSES: &str = "for each process (ms)";

/// What ten thousand processes may take, in MB, and a hint for ten thousand threads, in ms.
const MOST_PAGES: f64 = 64.0;
const LONGEST_HINT: f64 = 50.0;

pub const EXPERIMENT: Description = Description {
    name: "trust-clients",
    about: "what the values of ten thousand processes take, and how long hints for ten thousand \
        threads do",
    title: "Values of ten thousand processes",
    text: &["Ten thousand processes are there, and then each supplies a value: pages are the \
        memory of the values; with connections, all memory that is used more then, of which most \
        is the processes' own (a second thread in each). Then one process has ten thousand \
        threads: a hint for them all, a list of hints with one for each of them, and a list with \
        one for each of the processes. A hint takes the whole time of `attune hint`."],
    published: "nothing.",
    parts: &[Part {
        title: "One CPU",
        place: Place::ONE_CPU,
        contestants: ours,
        workloads: &[Workload::new("clients", "clients --count {count}")
            .counting(10_000, 1_000)
            .with_memory(6144)],
        figures: &[
            Figure::new(PAGES, "clients", "/clients/pages_bytes", 1e6),
            Figure::new(ALL, "clients", "/clients/all_bytes", 1e6),
            Figure::new(REGISTER, "clients", "/clients/register_ns", 1e9),
            Figure::new(CROWD, "clients", "/hint_ns/crowd", 1e6),
            Figure::new(THREADS, "clients", "/hint_ns/each_thread", 1e6),
            Figure::new(PROCESSES, "clients", "/hint_ns/each_process", 1e6),
        ],
    }],
    seeds: &[1],
    drawn: THREADS,
    claims,
};

/// Its imports are every program's.
fn ours() -> Vec<Contestant> {
    vec![Contestant::ours("coop")]
}

fn claims(results: &Results) -> Vec<Claim> {
    let claim = |what: &str, figure: &str, most: f64, unit: &str| {
        let worst = results.worst(OURS, figure);
        Claim::new(
            format!("{what}, at most {most} {unit}"),
            worst.map(|worst| (worst <= most, format!("{worst:.1} {unit} at worst"))),
        )
    };
    vec![
        claim("the values of all processes", PAGES, MOST_PAGES, "MB"),
        claim("a hint for a process of so many threads", CROWD, LONGEST_HINT, "ms"),
        claim("a hint for each of so many threads", THREADS, LONGEST_HINT, "ms"),
    ]
}
