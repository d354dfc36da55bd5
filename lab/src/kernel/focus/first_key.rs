//! Experiment `focus-first-key`: how soon a first key raises the last process of its chain.

use super::{DESKTOP, HUMAN, editing, rated};
use crate::kernel::{Description, Figure, Part, Place, Results, TWO_SEEDS, Workload};
use crate::report::Claim;

const RAISED: &str = "raised by a wake-up (% of keys)";
const TOOK: &str = "key to rating: longest (ms)";
/// What is claimed, in ms.
const LATEST: f64 = 1.0;

pub const EXPERIMENT: Description = Description {
    name: "focus-first-key",
    about: "how soon the editor behind a terminal has a rating when a person presses a key after \
        a long while, beside ten processes that compute",
    title: "A first key raises the editor behind the terminal",
    text: &[
        "vim runs in xterm on Xvfb with openbox, and ten processes compute. Nobody types until the \
            monitor does not rate vim any more, which takes some 15 s; then a key comes (XTEST), \
            from a person in SCHED_FIFO; and so on. The very first key is not counted, since \
            programs ask for the map of a keyboard when they get its first key. Each other key \
            comes just after the second's end, when the monitor asks the server a lot. The \
            monitor's recording says when the kernel handed vim a rating, which a wake-up by a \
            rated process does before vim can run. Key to rating: from the key press until then; \
            Xvfb and xterm run in between.",
    ],
    published: "nobody states such figures.",
    parts: &[Part {
        title: "From a first key to the rating of the editor behind the terminal",
        place: Place::ONE_CPU,
        contestants: || vec![rated("human", HUMAN), rated("desktop", DESKTOP)],
        workloads: &[Workload::new("first-key", "first-key --hogs 10 --keys {count}")
            .needing(editing)
            .with_memory(1536)
            .counting(10, 3)],
        figures: &[
            Figure::new(RAISED, "first-key", "/raised_by_wake_percent", 1.0),
            Figure::new("key to rating: p50 (ms)", "first-key", "/to_raised_ns/p50", 1e6),
            Figure::new(TOOK, "first-key", "/to_raised_ns/max", 1e6).at_worst(),
        ],
    }],
    seeds: TWO_SEEDS,
    drawn: TOOK,
    claims,
};

fn claims(results: &Results) -> Vec<Claim> {
    let of = |who: &str| {
        let raised = results.least(who, RAISED);
        [
            Claim::new(
                format!("{who}: each first key raises the editor by one wake-up"),
                raised.map(|percent| (percent >= 100.0, format!("{percent:.1} % of the keys"))),
            ),
            super::at_most(results, who, "from a first key to the rating", TOOK, LATEST, "ms"),
        ]
    };
    [HUMAN, DESKTOP].into_iter().flat_map(of).collect()
}
