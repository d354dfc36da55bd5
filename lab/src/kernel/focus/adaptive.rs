//! Experiment `focus-adaptive`: a program that takes all it can get, as games do.

use super::{DESKTOP, FILM, HUMAN, PUBLISHED, everybody, player_alone};
use crate::kernel::{Description, Figure, Part, Place, Results, TWO_SEEDS, Workload};
use crate::report::Claim;

const SHOWN: [&str; 2] = ["alone: pictures/s", "10 hogs: pictures/s"];
/// What is claimed: the part of its pictures that it keeps, in per cent, beside ten hogs.
const KEPT: f64 = 80.0;

/// The film without a clock: each picture follows the one before as soon as it can.
pub const GREEDY: Workload = Workload::new(
    "greedy",
    "desktop --server 'Xvfb :9 -screen 0 1280x800x24 -nolisten tcp -ac' --hogs 0,10 --seconds \
     {seconds} --player 'mplayer -really-quiet -noconsolecontrols -vo x11 -nosound -benchmark \
     -vf scale=992:558 -loop 0 {films}/film-1.mkv'",
)
.playing(FILM, player_alone)
.lasting(10, 4);

pub const EXPERIMENT: Description = Description {
    name: "focus-adaptive",
    about: "a player without a clock, which takes all it can get, beside ten that compute",
    title: "A program that takes all it can get",
    text: &[
        "mplayer plays a film as fast as it can (-benchmark), as a game draws as many pictures as \
            it can, in the only window of the screen; then ten processes compute beside it. With \
            so many equal processes it would have an eleventh.",
    ],
    published: PUBLISHED,
    parts: &[Part {
        title: "A player without a clock, alone and beside ten processes that compute",
        place: Place::ONE_CPU,
        contestants: everybody,
        workloads: &[GREEDY],
        figures: &[
            Figure::new(SHOWN[0], "greedy", "/phases/0/films/0/frames_per_second", 1.0),
            Figure::new(SHOWN[1], "greedy", "/phases/1/films/0/frames_per_second", 1.0),
            Figure::new("player and X (% CPU)", "greedy", "/phases/1/film_cpu_percent", 1.0),
            Figure::new("left to hogs (%)", "greedy", "/phases/1/hogs_percent", 1.0),
        ],
    }],
    seeds: TWO_SEEDS,
    drawn: SHOWN[1],
    claims,
};

fn claims(results: &Results) -> Vec<Claim> {
    let keeps = |who| {
        let both = results.median(who, SHOWN[0]).zip(results.median(who, SHOWN[1]));
        Claim::new(
            format!("{who}: it shows at least {KEPT} % of the pictures that it shows alone"),
            both.map(|(alone, beside)| {
                let kept = 100.0 * beside / alone;
                (kept >= KEPT, format!("{kept:.1} %"))
            }),
        )
    };
    vec![keeps(HUMAN), keeps(DESKTOP)]
}
