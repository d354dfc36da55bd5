//! Experiment `focus-adaptive`: a program that takes all it can get, as games do.

use std::path::PathBuf;

use anyhow::Result;

use super::{DESKTOP, FILM, HUMAN, PUBLISHED, editing_beside, everybody, player_alone};
use crate::experiment::Options;
use crate::kernel::{Description, Figure, Part, Place, Results, TWO_SEEDS, Workload, compiler};
use crate::report::Claim;

const SHOWN: [&str; 2] = ["alone: pictures/s", "10 hogs: pictures/s"];
/// What is claimed: the part of its pictures that it keeps, in per cent, beside ten hogs.
const KEPT: f64 = 80.0;
const AWAITED: [&str; 2] = ["game: pictures/s", "awaited compile (% CPU)"];
/// What is claimed: that the game goes on, and that what the person waits for has what a policy
/// leaves to programs without a rating, in per cent of the CPU.
const SMOOTH: f64 = 25.0;
const LEFT: [(&str, f64); 2] = [(HUMAN, 15.0), (DESKTOP, 13.6)];

/// The film without a clock: each picture follows the one before as soon as it can.
pub const GREEDY: Workload = Workload::new(
    "greedy",
    "desktop --server 'Xvfb :9 -screen 0 1280x800x24 -nolisten tcp -ac' --hogs 0,10 --seconds \
     {seconds} --player 'mplayer -really-quiet -noconsolecontrols -vo x11 -nosound -benchmark \
     -vf scale=992:558 -loop 0 {films}/film-1.mkv'",
)
.playing(FILM, player_alone)
.lasting(10, 4);

/// The same beside a compile that the person has started in a terminal, which has the focus. Like
/// make it says a line for each file. The player keeps one window (-fixed-vo), or it would take the
/// focus again whenever the film begins anew.
const AWAITED_COMPILE: Workload = Workload::new(
    "awaited",
    "desktop --server 'Xvfb :9 -screen 0 1280x800x24 -nolisten tcp -ac' --manager openbox --hogs \
     0,0 --seconds {seconds} --player 'mplayer -really-quiet -noconsolecontrols -vo x11 -nosound \
     -benchmark -fixed-vo -vf scale=640:360 -geometry 0:0 -loop 0 {films}/film-1.mkv' --awaited \
     'while :; do {programs}/attune-load compile --count 1 --at-once 1; done'",
)
.playing(FILM, with_compiler)
.lasting(10, 4);

fn with_compiler(options: &Options) -> Result<Vec<PathBuf>> {
    Ok([editing_beside(&["mplayer", "sh"])?, compiler(options)?].concat())
}

pub const EXPERIMENT: Description = Description {
    name: "focus-adaptive",
    about: "a player without a clock, which takes all it can get, beside ten that compute",
    title: "A program that takes all it can get",
    text: &[
        "mplayer plays a film as fast as it can (-benchmark), as a game draws as many pictures as \
            it can, in the only window of the screen; then ten processes compute beside it. With \
            so many equal processes it would have an eleventh.",
        "Then the same player, in a smaller window, beside a compile that the person has started \
            in a terminal by the Return key and waits for: it has the focus, computes one file \
            after the other, and says a line for each. Both want the whole CPU, and the person \
            wants both.",
    ],
    published: PUBLISHED,
    parts: &[
        Part {
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
        },
        Part {
            title: "A player without a clock beside a compile that the person waits for",
            place: Place::ONE_CPU,
            contestants: everybody,
            workloads: &[AWAITED_COMPILE],
            figures: &[
                Figure::new(
                    "alone: game: pictures/s",
                    "awaited",
                    "/phases/0/films/0/frames_per_second",
                    1.0,
                ),
                Figure::new(AWAITED[0], "awaited", "/phases/1/films/0/frames_per_second", 1.0),
                Figure::new(AWAITED[1], "awaited", "/phases/1/compile_percent", 1.0),
            ],
        },
    ],
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
    let mut claims = vec![keeps(HUMAN), keeps(DESKTOP)];
    for (who, left) in LEFT {
        let game = results.least(who, AWAITED[0]);
        let compile = results.least(who, AWAITED[1]);
        claims.push(Claim::new(
            format!(
                "{who}: beside a compile that the person waits for the game shows at least \
                 {SMOOTH} pictures/s, and the compile has at least {left} % of the CPU"
            ),
            game.zip(compile).map(|(game, compile)| {
                let holds = game >= SMOOTH && compile >= left;
                (holds, format!("{game:.1} pictures/s, {compile:.1} %"))
            }),
        ));
    }
    claims
}
