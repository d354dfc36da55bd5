//! Experiment `focus-window`: how late a window follows the pointer that drags it.

use super::{DESKTOP, HUMAN, PUBLISHED, at_most, editing, everybody, punctual, sooner, typing};
use crate::kernel::{Description, Figure, Part, Place, Results, TWO_SEEDS, Workload};
use crate::report::Claim;

/// Beside ten processes that compute: 99 of 100 wake-ups of each program.
const LATE: [&str; 2] = ["openbox: p99 (ms)", "Xvfb: p99 (ms)"];
const MOVE: [&str; 2] = ["alone: move to screen: p99 (ms)", "move to screen: p99 (ms)"];
const MONITORS: &str = "monitor (% CPU)";
/// What is claimed.
const LATEST: f64 = 1.0;
const TIMES: f64 = 5.0;
/// The server wakes for a move, the window manager for the server, the server again for the window
/// manager: a move may wait so many times.
const LATER: f64 = 3.0 * LATEST;
/// The monitor, in a flood of moves.
const MOST_CPU: f64 = 1.0;

pub const EXPERIMENT: Description = Description {
    name: "focus-window",
    about: "how late a window follows the pointer that drags it beside ten processes that compute",
    title: "A window that is dragged beside processes that compute",
    text: &[
        "On Xvfb with openbox a person drags the window of an editor, 25 moves of the pointer \
            a second (XTEST), to the right for a second and, after a pause of up to three, back; \
            nothing else happens. Then ten processes compute beside. Move to screen: from the \
            motion to the server's word that it has moved the window, with what is in it \
            (ConfigureNotify), for a person in SCHED_FIFO. Late: from a thread's wake-up to its \
            first instruction.",
    ],
    published: PUBLISHED,
    parts: &[Part {
        title: "A window that is dragged beside ten processes that compute",
        place: Place::ONE_CPU,
        contestants: everybody,
        workloads: &[Workload::new(
            "drag",
            concat!(
                "desktop --server 'Xvfb :9 -screen 0 1280x800x24 -nolisten tcp -ac' --hogs 0,10 \
                 --seconds {seconds}",
                typing!("=0")
            ),
        )
        .needing(editing)
        .with_memory(1536)
        .lasting(12, 5)],
        figures: &[
            Figure::new(LATE[0], "drag", "/phases/1/programs/openbox/wake_ns/p99", 1e6),
            Figure::new(LATE[1], "drag", "/phases/1/programs/Xvfb/wake_ns/p99", 1e6),
            Figure::new(MOVE[0], "drag", "/phases/0/screen/moves/to_screen_ns/p99", 1e6),
            Figure::new(MOVE[1], "drag", "/phases/1/screen/moves/to_screen_ns/p99", 1e6),
            Figure::new("latest move (ms)", "drag", "/phases/1/screen/moves/to_screen_ns/max", 1e6),
            Figure::new("moves", "drag", "/phases/1/screen/moves/to_screen_ns/count", 1.0),
            Figure::new(MONITORS, "drag", "/phases/1/programs/monitor/cpu_percent", 1.0),
            Figure::new("left to hogs (%)", "drag", "/phases/1/hogs_percent", 1.0),
        ],
    }],
    seeds: TWO_SEEDS,
    drawn: MOVE[1],
    claims,
};

fn claims(results: &Results) -> Vec<Claim> {
    let follows = |who: &str| {
        let both = results.worst(who, MOVE[0]).zip(results.worst(who, MOVE[1]));
        Claim::new(
            format!("{who}: 99 of 100 moves are on the screen at most {LATER} ms later than alone"),
            both.map(|(alone, beside)| {
                (beside <= alone + LATER, format!("{beside:.2} ms, alone {alone:.2} ms"))
            }),
        )
    };
    let monitor = "the monitor takes, in a flood of moves,";
    let of = |who| {
        [
            punctual(results, who, &LATE, LATEST),
            follows(who),
            at_most(results, who, monitor, MONITORS, MOST_CPU, "% of a CPU"),
        ]
    };
    let mut claims: Vec<Claim> = [HUMAN, DESKTOP].into_iter().flat_map(of).collect();
    claims.extend(LATE.iter().map(|late| sooner(results, late, TIMES)));
    claims
}
