//! Experiment `focus-latency`: how late the programs run that a person deals with.

use super::{
    DESKTOP, FAIR, FILM, HUMAN, PUBLISHED, WEIGHTS, everybody, player, typing, whole_desktop,
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
            CPU. Late: from a thread's wake-up to its first instruction, as the kernel's tracer \
            sees it. Key to screen: from the key press (XTEST) to the server's word that the \
            window was drawn into (DAMAGE), for a person in SCHED_FIFO.",
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
                 --seconds {seconds}",
                player!("992:558", "200:200"),
                typing!()
            ),
        )
        .playing(FILM, whole_desktop)
        .lasting(12, 6)],
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
            Figure::new(
                "monitor (% CPU)",
                "desktop",
                "/phases/1/programs/monitor/cpu_percent",
                1.0,
            ),
        ],
    }],
    seeds: TWO_SEEDS,
    drawn: KEY,
    claims,
};

fn claims(results: &Results) -> Vec<Claim> {
    let latest = |who: &str| {
        let each: Option<Vec<f64>> = LATE.iter().map(|late| results.worst(who, late)).collect();
        Claim::new(
            format!("{who}: 99 of 100 wake-ups of each program are at most {LATEST} ms late"),
            each.map(|each| {
                let list: Vec<String> = each.iter().map(|late| format!("{late:.2}")).collect();
                (each.iter().all(|late| *late <= LATEST), format!("{} ms", list.join(" / ")))
            }),
        )
    };
    let sooner = |figure: &'static str| {
        let both = results.median(FAIR, figure).zip(results.median(WEIGHTS, figure));
        Claim::new(
            format!("attuned's weights alone: {figure} at least {TIMES} times better than without"),
            both.map(|(fair, ours)| {
                let times = fair / ours.max(1e-6);
                (times >= TIMES, format!("{times:.1} times: {ours:.2} against {fair:.2}"))
            }),
        )
    };
    let mut claims = vec![latest(HUMAN), latest(DESKTOP)];
    claims.extend(LATE.into_iter().map(sooner));
    claims
}
