//! Experiment `focus-two`: two films, one of which covers half of the other.

use super::{DESKTOP, FAIR, FILM, HUMAN, PUBLISHED, everybody, player, player_alone};
use crate::kernel::{Description, Figure, Part, Place, Results, TWO_SEEDS, Workload};
use crate::report::Claim;

const COVERED: &str = "half covered: pictures/s";
const WHOLE: &str = "wholly visible: pictures/s";
/// What is claimed: times as many pictures.
const TIMES: f64 = 1.3;
/// And without ratings they differ by at most so much.
const MOST_APART: f64 = 1.1;

pub const EXPERIMENT: Description = Description {
    name: "focus-two",
    about: "two films that need more than the CPU together, one half covered by the other",
    title: "Two films, one half covered",
    text: &[
        "Two players of 60 % of the CPU each, the second one's window over the right half of the \
            first one's, beside ten processes that compute. The half that nobody sees counts for \
            nothing: what a film changes on the screen decides its output rating.",
    ],
    published: PUBLISHED,
    parts: &[Part {
        title: "Two films, one half covered, and ten processes that compute",
        place: Place::ONE_CPU,
        contestants: everybody,
        workloads: &[Workload::new(
            "two",
            concat!(
                "desktop --server 'Xvfb :9 -screen 0 2016x800x24 -nolisten tcp -ac' --hogs 10 \
                 --seconds {seconds}",
                player!("1344:756", "0:0"),
                player!("1344:756", "672:0")
            ),
        )
        .playing(FILM, player_alone)
        .lasting(10, 4)],
        figures: &[
            Figure::new(COVERED, "two", "/phases/0/films/0/frames_per_second", 1.0),
            Figure::new(WHOLE, "two", "/phases/0/films/1/frames_per_second", 1.0),
            Figure::new("left to hogs (%)", "two", "/phases/0/hogs_percent", 1.0),
        ],
    }],
    seeds: TWO_SEEDS,
    drawn: WHOLE,
    claims,
};

fn claims(results: &Results) -> Vec<Claim> {
    let times = |who| Some(results.median(who, WHOLE)? / results.median(who, COVERED)?.max(0.01));
    let more = |who| {
        Claim::new(
            format!(
                "{who}: the film that is wholly visible shows at least {TIMES} times as many \
                 pictures as the half covered one"
            ),
            times(who).map(|times| (times >= TIMES, format!("{times:.2} times"))),
        )
    };
    vec![
        more(HUMAN),
        more(DESKTOP),
        Claim::new(
            format!("the fair class shows both alike, within {MOST_APART} times"),
            times(FAIR)
                .map(|times| (times.max(1.0 / times) <= MOST_APART, format!("{times:.2} times"))),
        ),
    ]
}
