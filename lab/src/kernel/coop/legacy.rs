//! Experiment `coop-legacy`: unmodified players, at and beyond what the CPU can do.

use super::{FAIR, claim, real};
use crate::experiment::Experiment;
use crate::kernel::{
    Contestant, Description, FIVE_SEEDS, Figure, Films, Part, Place, Results, Workload, story,
};
use crate::report::Claim;

pub const EXPERIMENT: Experiment = Experiment {
    name: DESCRIPTION.name,
    about: "three and six unmodified players at and beyond what the CPU can do: frame rates and how even they are",
    run: |options, progress| story::run(&DESCRIPTION, options, progress),
};

const FILMS: Films = Films { count: 6, seconds: 30, size: "640x360" };
const SERVER: &str = "Xvfb :9 -screen 0 1920x1080x24 -nolisten tcp -ac";
const IMPLICIT: &str = "attune coop --implicit, per process";
const RATE: [&str; 2] = ["3: pictures/s", "6: pictures/s"];
const DEVIATION: [&str; 2] = ["3: deviation (ms)", "6: deviation (ms)"];
const JAIN: &str = "6: Jain";
/// What is claimed.
const LEAST_RATE: f64 = 0.98;
const LEAST_JAIN: f64 = 0.99;

/// `count` of mplayer: sound that nobody hears gives it its clock, and pictures that are late are left out.
macro_rules! mplayer {
    ($count:literal) => {
        &[
            "films",
            "--count",
            $count,
            "--server",
            SERVER,
            "--shown",
            "libXext.so.6:XShmPutImage",
            "--begin",
            "8",
            "--seconds",
            "12",
            "--",
            "mplayer",
            "-really-quiet",
            "-noconsolecontrols",
            "-vo",
            "x11",
            "-ao",
            "null",
            "-framedrop",
            "{films}/film-{}.mkv",
        ]
    };
}

const DESCRIPTION: Description = Description {
    name: "coop-legacy",
    title: "Unmodified players on one CPU",
    text: &[
        "Three and six instances of mplayer, as Debian has it, each with another film of 640x360 and 25 pictures a second, on one X server. The rates \
         tell how many can be played. A picture counts when the player hands it to the server (XShmPutImage), as the kernel's tracer \
         sees it. Deviation is that of the time between a player's pictures. With implicit cooperation the scheduler reads from what a thread \
         blocks in when it wants to run again.",
    ],
    published: "nobody has implicit cooperation in the kernel; of unmodified players under schedulers with cooperation there is no table.",
    parts: &[Part {
        title: "mplayer, three and six",
        place: Place::Deterministic,
        contestants: || {
            vec![
                Contestant::fair_class(),
                Contestant::ours("coop"),
                Contestant::ours_changed(
                    "coop --implicit, per process",
                    "coop",
                    &["--implicit", "--set", "per_process=1"],
                ),
            ]
        },
        workloads: &[
            Workload::new("three", mplayer!("3")).playing(FILMS, needs),
            Workload::new("six", mplayer!("6")).playing(FILMS, needs),
        ],
        figures: &[
            Figure::new(RATE[0], "three", "/frames_per_second_mean", 1.0),
            Figure::new(DEVIATION[0], "three", "/deviation_ns_mean", 1e6),
            Figure::new("3: longest (ms)", "three", "/interval_ns/max", 1e6),
            Figure::new(RATE[1], "six", "/frames_per_second_mean", 1.0),
            Figure::new(DEVIATION[1], "six", "/deviation_ns_mean", 1e6),
            Figure::new("6: longest (ms)", "six", "/interval_ns/max", 1e6),
            Figure::new(JAIN, "six", "/frames_jain", 1.0),
        ],
    }],
    seeds: FIVE_SEEDS,
    drawn: DEVIATION[0],
    claims,
};

fn needs(options: &crate::experiment::Options) -> anyhow::Result<Vec<std::path::PathBuf>> {
    Ok([real::x_server(options)?, real::installed(&["mplayer"])?].concat())
}

fn claims(results: &Results) -> Vec<Claim> {
    let both = |figure| results.median(IMPLICIT, figure).zip(results.median(FAIR, figure));
    let jain = results.median(IMPLICIT, JAIN);
    let mut claims: Vec<Claim> = ["three", "six"]
        .into_iter()
        .zip(RATE.into_iter().zip(DEVIATION))
        .flat_map(|(count, (rate, deviation))| {
            [
                claim(
                    format!("{count} players that cooperate implicitly show at least {LEAST_RATE} times the pictures of the fair class"),
                    both(rate).map(|(ours, fair)| (ours >= LEAST_RATE * fair, format!("{ours:.2} a second, fair class {fair:.2}"))),
                ),
                claim(
                    format!("and {count} show them more evenly"),
                    both(deviation).map(|(ours, fair)| (ours <= fair, format!("deviation {ours:.2} ms, fair class {fair:.2} ms"))),
                ),
            ]
        })
        .collect();
    claims.push(claim(
        format!("Jain's index of six players' frame rates is at least {LEAST_JAIN}"),
        jain.map(|jain| (jain >= LEAST_JAIN, format!("{jain:.4}"))),
    ));
    claims
}
