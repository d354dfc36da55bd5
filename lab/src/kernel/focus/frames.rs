//! Experiment `focus-frames`: how much of a film is lost beside processes that compute.

use super::{
    DESKTOP, FAIR, FILM, HUMAN, LONG_FILM, PUBLISHED, WEIGHTS, at_most, everybody, player,
    player_alone,
};
use crate::kernel::{Description, Figure, Part, Place, Results, TWO_SEEDS, Workload};
use crate::report::Claim;

/// Film of 60 % of a CPU.
const LOST: [&str; 2] = ["alone: lost (%)", "10 hogs: lost (%)"];
const CPU: [&str; 2] = ["alone: player and X (% CPU)", "10 hogs: player and X (% CPU)"];
/// What is claimed.
const MOST_LOST: f64 = 1.0;
const FAIR_LOSES: [f64; 2] = [85.0, 95.0];
const MOST_OFF: f64 = 2.0;

/// The film in that size beside more and more processes. Scenes differ, so the same phases of two
/// runs compare, and two phases of one run do not.
macro_rules! beside {
    ($size:literal, $hogs:literal) => {
        concat!(
            "desktop --server 'Xvfb :9 -screen 0 1600x900x24 -nolisten tcp -ac' --seconds \
             {seconds} --hogs ",
            $hogs,
            player!($size)
        )
    };
}

pub const EXPERIMENT: Description = Description {
    name: "focus-frames",
    about: "frames that a film loses beside 2, 5 and 10 processes that compute, under whatever \
        favours it",
    title: "A film beside processes that compute",
    text: &[
        "mplayer shows a film of 25 pictures a second on Xvfb, scaled to sizes that take player \
            and server together 20, 40, 60 and 80 % of the CPU when alone. Lost: pictures that \
            were not handed to the server (XShmPutImage), in per cent of those that the film has. \
            Nobody types; the film's window is all that can be seen. Under ours a monitor \
            (`attune focus`) rates it by what it shows. Alone, player and server show the same \
            scenes in another run.",
        "By hand: player and server have nice -20. Focused cgroup: each program has a cgroup of \
            its own, and that of the film's five times the weight. attuned's weights: the ratings \
            under the fair class.",
    ],
    published: PUBLISHED,
    parts: &[Part {
        title: "A film beside processes that compute",
        place: Place::ONE_CPU,
        contestants: everybody,
        workloads: &[
            Workload::new("60 %", beside!("1344:756", "0,10"))
                .playing(FILM, player_alone)
                .lasting(16, 8),
            Workload::new("60 %, alone", beside!("1344:756", "0,0"))
                .playing(FILM, player_alone)
                .lasting(16, 8),
            Workload::new("20 %", beside!("688:386", "2,5,10"))
                .playing(FILM, player_alone)
                .lasting(8, 8)
                .thorough(),
            Workload::new("40 %", beside!("1072:604", "2,5,10"))
                .playing(FILM, player_alone)
                .lasting(8, 8)
                .thorough(),
            Workload::new("80 %", beside!("1568:882", "2,5,10"))
                .playing(LONG_FILM, player_alone)
                .lasting(8, 8)
                .thorough(),
        ],
        figures: &[
            Figure::new(LOST[0], "60 %", "/phases/0/films/0/lost_percent", 1.0),
            Figure::new(LOST[1], "60 %", "/phases/1/films/0/lost_percent", 1.0),
            Figure::new("longest (ms)", "60 %", "/phases/1/films/0/interval_ns/max", 1e6),
            Figure::new(CPU[0], "60 %, alone", "/phases/1/film_cpu_percent", 1.0),
            Figure::new(CPU[1], "60 %", "/phases/1/film_cpu_percent", 1.0),
            Figure::new("10 hogs: left to them (%)", "60 %", "/phases/1/hogs_percent", 1.0),
            Figure::new("20 %, 2 hogs", "20 %", "/phases/0/films/0/lost_percent", 1.0),
            Figure::new("20 %, 5 hogs", "20 %", "/phases/1/films/0/lost_percent", 1.0),
            Figure::new("20 %, 10 hogs", "20 %", "/phases/2/films/0/lost_percent", 1.0),
            Figure::new("40 %, 2 hogs", "40 %", "/phases/0/films/0/lost_percent", 1.0),
            Figure::new("40 %, 5 hogs", "40 %", "/phases/1/films/0/lost_percent", 1.0),
            Figure::new("40 %, 10 hogs", "40 %", "/phases/2/films/0/lost_percent", 1.0),
            Figure::new("80 %, 2 hogs", "80 %", "/phases/0/films/0/lost_percent", 1.0),
            Figure::new("80 %, 5 hogs", "80 %", "/phases/1/films/0/lost_percent", 1.0),
            Figure::new("80 %, 10 hogs", "80 %", "/phases/2/films/0/lost_percent", 1.0),
        ],
    }],
    seeds: TWO_SEEDS,
    drawn: LOST[1],
    claims,
};

fn claims(results: &Results) -> Vec<Claim> {
    let lost = |who| {
        at_most(
            results,
            who,
            "a film of 60 % of the CPU loses beside 10 hogs",
            LOST[1],
            MOST_LOST,
            "%",
        )
    };
    let keeps = |who| {
        let both = results.median(who, CPU[0]).zip(results.median(who, CPU[1]));
        Claim::new(
            format!(
                "{who}: player and X server keep the CPU that they have alone within {MOST_OFF} %"
            ),
            both.map(|(alone, beside)| {
                let off = (beside / alone - 1.0).abs() * 100.0;
                (off <= MOST_OFF, format!("{beside:.1} % of the CPU, alone {alone:.1} %"))
            }),
        )
    };
    let [least, most] = FAIR_LOSES;
    let fair = results.median(FAIR, LOST[1]);
    let weights = results.median(WEIGHTS, LOST[1]).zip(fair);
    vec![
        Claim::new(
            format!("the fair class loses {least} to {most} % beside 10 hogs"),
            fair.map(|lost| ((least..=most).contains(&lost), format!("{lost:.1} %"))),
        ),
        lost(HUMAN),
        lost(DESKTOP),
        keeps(HUMAN),
        keeps(DESKTOP),
        Claim::new(
            "attuned's weights lose less than half of that",
            weights.map(|(ours, fair)| {
                (ours < fair / 2.0, format!("{ours:.1} % against {fair:.1} %"))
            }),
        ),
    ]
}
