//! Experiment `coop-x11`: what reaches the screen, with the X server cooperating and not.

use super::{COOP, FAIR, fair_and_coop, real};
use crate::kernel::{Description, FIVE_SEEDS, Figure, Films, Part, Place, Results, Workload};
use crate::report::Claim;

const FILMS: Films = Films { count: 1, seconds: 40, size: "320x180" };
/// How late the server says that it has drawn: p99 and worst, of a server that does not cooperate
/// and one that does.
const PLAIN: [&str; 2] = ["p99 (ms)", "worst (ms)"];
const COOPERATING: [&str; 2] = ["server cooperating: p99 (ms)", "server cooperating: worst (ms)"];
/// What is claimed, ms.
const LIMIT: f64 = 1.0;

/// The player on that server.
macro_rules! on {
    ($server:literal) => {
        concat!(
            "films --hogs 4 --server '",
            $server,
            "' --shown server:writev --begin 4 --seconds {seconds} -- \
             player --json --sound null {films}/film-1.mkv"
        )
    };
}

pub const EXPERIMENT: Description = Description {
    name: "coop-x11",
    about: "how late a player's pictures are drawn, with the X server cooperating and not",
    title: "A player, an X server and four hogs on one CPU",
    text: &[
        "The example player shows a film of 25 pictures a second by shared memory (MIT-SHM), 20 ms \
            early behind a request that makes the server wait for its own clock (XSync). How late \
            a picture is drawn is seen from outside: the kernel's tracer sees the server's system \
            call that tells the player of it; the picture that came soonest in the film's own time \
            counts as on time. The server's clock counts milliseconds, and so the player has its \
            pictures due at whole ones. `attune coop run -- Xvfb` is the same unmodified server \
            with its waiting made cooperative.",
    ],
    published: "about 1 ms with the X server cooperating.",
    parts: &[Part {
        title: "A film on Xvfb, and four hogs",
        place: Place::ONE_CPU,
        contestants: fair_and_coop,
        workloads: &[
            Workload::new("plain", on!("Xvfb :9 -screen 0 640x480x24 -nolisten tcp -ac"))
                .playing(FILMS, needs)
                .lasting(10, 10),
            Workload::new(
                "cooperating",
                on!("attune coop run -- Xvfb :9 -screen 0 640x480x24 -nolisten tcp -ac"),
            )
            .playing(FILMS, needs)
            .lasting(30, 10),
        ],
        figures: &[
            Figure::new("pictures/s", "plain", "/frames_per_second_mean", 1.0),
            Figure::new("p50 (ms)", "plain", "/behind_ns/p50", 1e6),
            Figure::new(PLAIN[0], "plain", "/behind_ns/p99", 1e6),
            Figure::new(PLAIN[1], "plain", "/behind_ns/max", 1e6),
            Figure::new(
                "server cooperating: pictures/s",
                "cooperating",
                "/frames_per_second_mean",
                1.0,
            ),
            Figure::new("server cooperating: p50 (ms)", "cooperating", "/behind_ns/p50", 1e6),
            Figure::new(COOPERATING[0], "cooperating", "/behind_ns/p99", 1e6),
            Figure::new(COOPERATING[1], "cooperating", "/behind_ns/max", 1e6),
            Figure::new(
                "player's own: worst (ms)",
                "cooperating",
                "/said/0/films/0/display_tardiness_us/worst",
                1e3,
            ),
        ],
    }],
    seeds: FIVE_SEEDS,
    drawn: COOPERATING[0],
    claims,
};

fn needs(options: &crate::experiment::Options) -> anyhow::Result<Vec<std::path::PathBuf>> {
    Ok([real::player(options)?, real::x_server(&[])?, real::coop_run(options)].concat())
}

fn claims(results: &Results) -> Vec<Claim> {
    let late = results.worst(COOP, COOPERATING[1]);
    let fair = results.median(FAIR, PLAIN[1]);
    vec![
        Claim::new(
            format!("with the X server cooperating no picture is drawn later than {LIMIT} ms"),
            late.map(|late| (late <= LIMIT, format!("{late:.2} ms"))),
        ),
        Claim::new(
            "under the fair class the latest is later",
            fair.zip(late).map(|(fair, late)| (fair > late, format!("{fair:.2} ms"))),
        ),
    ]
}
