//! Experiment `coop-legacy`: unmodified players, at and beyond what the CPU can do.

use std::path::PathBuf;

use super::{FAIR, SHORT_TURNS, implicit, implicit_with_short_turns, is_even, real};
use crate::experiment::Options;
use crate::kernel::{
    Contestant, Description, Figure, Films, Part, Place, Results, TWO_SEEDS, Workload,
};
use crate::report::Claim;

/// Three take about what this CPU can do, which counts instructions, six about twice as much. All
/// must fit into the machine's memory.
const FILMS: Films = Films { count: 6, seconds: 24, size: "848x480" };
/// What is claimed.
const LEAST_RATE: f64 = 0.98;

/// A player's figures, and what three and six of it are called in sentences.
struct Player {
    name: &'static str,
    rate: [&'static str; 2],
    deviation: [&'static str; 2],
    jain: &'static str,
}

const MPLAYER: Player = Player {
    name: "mplayer",
    rate: ["3 mplayer: pictures/s", "6 mplayer: pictures/s"],
    deviation: ["3 mplayer: deviation (ms)", "6 mplayer: deviation (ms)"],
    jain: "6 mplayer: Jain",
};
const VLC: Player = Player {
    name: "VLC",
    rate: ["3 VLC: pictures/s", "6 VLC: pictures/s"],
    deviation: ["3 VLC: deviation (ms)", "6 VLC: deviation (ms)"],
    jain: "6 VLC: Jain",
};

/// `count` players, each on a server of its own, which show pictures by a function. One server for
/// each, because VLC hands over nothing for a window that others hide. Below display 10: mplayer
/// takes a higher one for another machine's, and does not share memory with it.
macro_rules! players {
    ($count:literal, $shown:literal, $player:literal) => {
        concat!(
            "films --count ",
            $count,
            " --server 'Xvfb :{} -screen 0 848x480x24 -nolisten tcp -ac' --shown ",
            $shown,
            " --begin 8 --seconds {seconds} -- ",
            $player,
            " {films}/film-{}.mkv"
        )
    };
}

/// Sound that nobody hears is its clock, and it leaves out late pictures.
macro_rules! mplayer {
    ($count:literal) => {
        players!(
            $count,
            "libXext.so.6:XShmPutImage",
            "mplayer -really-quiet -noconsolecontrols -vo x11 -ao null -framedrop"
        )
    };
}

/// It refuses to run as root.
macro_rules! vlc {
    ($count:literal) => {
        players!(
            $count,
            "libxcb-shm.so.0:xcb_shm_put_image_checked",
            "setpriv --reuid=65534 --regid=65534 --clear-groups vlc -I dummy -q --no-audio \
              --no-osd \
             --no-spu --avcodec-hw=none --vout=xcb_x11"
        )
    };
}

pub const EXPERIMENT: Description = Description {
    name: "coop-legacy",
    about: "three and six unmodified players at and beyond what the CPU can do: frame rates and \
        how even they are",
    title: "Unmodified players on one CPU",
    text: &[
        "Three and six instances of mplayer and of VLC, as Debian has them, each with another film \
            of 848x480 and 25 pictures a second and an X server of its own. The rates tell how \
            many can be played. A picture counts when the player hands it to the server \
            (XShmPutImage, xcb_shm_put_image_checked), as the kernel's tracer sees it. Deviation \
            is that of the time between a player's pictures. With implicit cooperation the \
            scheduler reads from what a thread blocks in when it wants to run again; 8 ms: with \
            that `period` turns are as short as in the fair class. A late player leaves \
            pictures out; mplayer as many in a row as it is behind: it stands still for seconds.",
    ],
    published: "Sinha's thesis (University of British Columbia, 2008), section 3.1, measures three \
        and six instances of mplayer and VLC. No published kernel cooperates implicitly.",
    parts: &[
        Part {
            title: "mplayer, three and six",
            place: Place::ONE_CPU,
            contestants,
            workloads: &[
                Workload::new("three", mplayer!("3")).playing(FILMS, needs_mplayer).lasting(12, 12),
                Workload::new("six", mplayer!("6")).playing(FILMS, needs_mplayer).lasting(12, 12),
            ],
            figures: &[
                Figure::new(MPLAYER.rate[0], "three", "/frames_per_second_mean", 1.0),
                Figure::new(MPLAYER.deviation[0], "three", "/deviation_ns_mean", 1e6),
                Figure::new("3 mplayer: longest (ms)", "three", "/interval_ns/max", 1e6),
                Figure::new(MPLAYER.rate[1], "six", "/frames_per_second_mean", 1.0),
                Figure::new(MPLAYER.deviation[1], "six", "/deviation_ns_mean", 1e6),
                Figure::new("6 mplayer: longest (ms)", "six", "/interval_ns/max", 1e6),
                Figure::new(MPLAYER.jain, "six", "/frames_jain", 1.0),
            ],
        },
        Part {
            title: "VLC, three and six",
            place: Place::ONE_CPU,
            contestants,
            workloads: &[
                Workload::new("three", vlc!("3")).playing(FILMS, needs_vlc).lasting(12, 12),
                Workload::new("six", vlc!("6")).playing(FILMS, needs_vlc).lasting(12, 12),
            ],
            figures: &[
                Figure::new(VLC.rate[0], "three", "/frames_per_second_mean", 1.0),
                Figure::new(VLC.deviation[0], "three", "/deviation_ns_mean", 1e6),
                Figure::new("3 VLC: longest (ms)", "three", "/interval_ns/max", 1e6),
                Figure::new(VLC.rate[1], "six", "/frames_per_second_mean", 1.0),
                Figure::new(VLC.deviation[1], "six", "/deviation_ns_mean", 1e6),
                Figure::new("6 VLC: longest (ms)", "six", "/interval_ns/max", 1e6),
                Figure::new(VLC.jain, "six", "/frames_jain", 1.0),
            ],
        },
    ],
    seeds: TWO_SEEDS,
    drawn: MPLAYER.deviation[0],
    claims,
};

fn contestants() -> Vec<Contestant> {
    vec![
        Contestant::fair_class(),
        Contestant::ours("coop").briefly(),
        implicit().briefly(),
        implicit_with_short_turns(),
    ]
}

fn needs_mplayer(_: &Options) -> anyhow::Result<Vec<PathBuf>> {
    real::x_server(&["mplayer"])
}

fn needs_vlc(_: &Options) -> anyhow::Result<Vec<PathBuf>> {
    Ok([real::x_server(&["vlc", "setpriv"])?, real::vlc_plugins()?].concat())
}

fn claims(results: &Results) -> Vec<Claim> {
    [MPLAYER, VLC].iter().flat_map(|player| claims_of(player, results)).collect()
}

fn claims_of(player: &Player, results: &Results) -> Vec<Claim> {
    let both = |figure| results.median(SHORT_TURNS, figure).zip(results.median(FAIR, figure));
    let name = player.name;
    let mut claims: Vec<Claim> = ["three", "six"]
        .into_iter()
        .zip(player.rate.into_iter().zip(player.deviation))
        .flat_map(|(count, (rate, deviation))| {
            [
                Claim::new(
                    format!(
                        "{count} of {name} that cooperate implicitly show at least {LEAST_RATE} \
                            times the pictures of the fair class"
                    ),
                    both(rate).map(|(ours, fair)| {
                        (
                            ours >= LEAST_RATE * fair,
                            format!("{ours:.2} a second, fair class {fair:.2}"),
                        )
                    }),
                ),
                Claim::new(
                    format!("and {count} show them more evenly"),
                    both(deviation).map(|(ours, fair)| {
                        (ours <= fair, format!("deviation {ours:.2} ms, fair class {fair:.2} ms"))
                    }),
                ),
            ]
        })
        .collect();
    let rates = format!("the frame rates of six of {name}");
    claims.push(is_even(results, SHORT_TURNS, &rates, player.jain));
    claims
}
