//! Experiment `focus-latency`: how late the programs run that a person deals with.

use super::{
    DESKTOP, HUMAN, LONG_FILM, MOST_CPU, PUBLISHED, at_most, everybody, player, punctual, sooner,
    typing, with_film,
};
use crate::kernel::{Description, Figure, Part, Place, Results, TWO_SEEDS, Workload};
use crate::report::Claim;

/// Beside ten hogs: 99 of 100 wake-ups of each program.
const LATE: [&str; 5] = [
    "vim: p99 (ms)",
    "xterm: p99 (ms)",
    "mplayer: p99 (ms)",
    "Xvfb: p99 (ms)",
    "openbox: p99 (ms)",
];
const KEY: &str = "key to screen: p99 (ms)";
const MONITORS: &str = "monitor (% CPU)";
/// What is claimed.
const LATEST: f64 = 1.0;
const TIMES: f64 = 5.0;

pub const EXPERIMENT: Description = Description {
    name: "focus-latency",
    about: "how late editor, terminal, player, X server and window manager run beside ten \
        processes that compute",
    title: "Programs that a person deals with, beside ten that compute",
    text: &[
        "On Xvfb with openbox a person types into vim in xterm, eight keys a second, and after \
            sixteen of them drags the window for a second; mplayer shows a film of 40 % of the \
            CPU. The film has 24 pictures a second and the pointer moves 25 times, so pictures are \
            due at every moment of a move.",
        "Late: from a thread's wake-up to its first instruction, as the kernel's tracer sees it. \
            Key to screen: from the key press (XTEST) to the server's word that the window was \
            drawn into (DAMAGE), for a person in SCHED_FIFO.",
    ],
    published: PUBLISHED,
    parts: &[Part {
        title: "Dispatch latency beside ten processes that compute",
        place: Place::ONE_CPU,
        contestants: everybody,
        workloads: &[Workload::new(
            "desktop",
            concat!(
                "desktop --server 'Xvfb :9 -screen 0 1280x800x24 -nolisten tcp -ac' --hogs 0,10 \
                 --rate 24 --seconds {seconds}",
                player!("992:558", "200:200", " -fps 24"),
                typing!()
            ),
        )
        .playing(LONG_FILM, with_film)
        .lasting(30, 4)],
        figures: &[
            Figure::new(LATE[0], "desktop", "/phases/1/programs/vim/wake_ns/p99", 1e6),
            Figure::new(LATE[1], "desktop", "/phases/1/programs/xterm/wake_ns/p99", 1e6),
            Figure::new(LATE[2], "desktop", "/phases/1/programs/mplayer/wake_ns/p99", 1e6),
            Figure::new(LATE[3], "desktop", "/phases/1/programs/Xvfb/wake_ns/p99", 1e6),
            Figure::new(LATE[4], "desktop", "/phases/1/programs/openbox/wake_ns/p99", 1e6),
            Figure::new(
                "alone: key to screen: p99 (ms)",
                "desktop",
                "/phases/0/screen/keys/to_screen_ns/p99",
                1e6,
            ),
            Figure::new(KEY, "desktop", "/phases/1/screen/keys/to_screen_ns/p99", 1e6),
            Figure::new(
                "move to screen: p99 (ms)",
                "desktop",
                "/phases/1/screen/moves/to_screen_ns/p99",
                1e6,
            ),
            Figure::new("film: lost (%)", "desktop", "/phases/1/films/0/lost_percent", 1.0),
            Figure::new(MONITORS, "desktop", "/phases/1/programs/monitor/cpu_percent", 1.0),
        ],
    }],
    seeds: TWO_SEEDS,
    drawn: KEY,
    claims,
};

fn claims(results: &Results) -> Vec<Claim> {
    let monitor = "the monitor takes, while a person types and drags,";
    let mut claims = vec![
        punctual(results, HUMAN, &LATE, LATEST),
        punctual(results, DESKTOP, &LATE, LATEST),
        at_most(results, HUMAN, monitor, MONITORS, MOST_CPU, "% of a CPU"),
        at_most(results, DESKTOP, monitor, MONITORS, MOST_CPU, "% of a CPU"),
    ];
    claims.extend(LATE.iter().map(|late| sooner(results, late, TIMES)));
    claims
}
