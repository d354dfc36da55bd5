//! Experiment `desktop-all`: a film, sound, typing and dragging beside a compile, on two CPUs.

use super::{DESKTOP, FILM, HUMAN, PUBLISHED, everybody, player, typing, whole_desktop};
use crate::kernel::{Contestant, Description, Figure, Part, Place, Results, TWO_SEEDS, Workload};
use crate::report::Claim;

const LOST: &str = "film: lost (%)";
const KEY: [&str; 2] = ["alone: key to screen p99 (ms)", "key to screen p99 (ms)"];
const LATE: [&str; 2] = ["alone: buffers late (%)", "buffers late (%)"];
const BUSY: &str = "alone: busy (% CPU)";
const COMPILE: &str = "compile (% CPU)";
const EVERYTHING: &str = "attune desktop --implicit";
/// What is claimed.
const LATER: f64 = 5.0;
const MOST_OFF: f64 = 3.0;
const CPUS: f64 = 200.0;

pub const EXPERIMENT: Description = Description {
    name: "desktop-all",
    about: "a film, sound, typing into vim and dragging beside eight compilers at a time on two \
        CPUs",
    title: "A desktop beside a compile",
    text: &[
        "On two CPUs a person types into vim in xterm, drags its window, looks at a film of 60 % \
            of a CPU, and hears PipeWire, which fills a buffer every 5 ms without real-time \
            priority; then a compile of eight files at a time goes on beside. The person is a \
            process in SCHED_FIFO and sees the screen by DAMAGE. The share of the compile is what \
            the desktop leaves when it is alone.",
        "The CPUs of a deterministic machine take turns, so a program runs half as fast while the \
            other CPU is busy. Alone therefore means: beside one process of class SCHED_IDLE on \
            each CPU, which is gone when the compile comes.",
        "`desktop` with its parts: `coop --implicit` knows releases and no ratings, `human` \
            ratings and no releases.",
    ],
    published: PUBLISHED,
    parts: &[Part {
        title: "A desktop beside a compile, on two CPUs",
        place: Place::deterministic(2),
        contestants: || {
            let parts = [
                Contestant::ours_changed("coop --implicit", "coop", "--implicit").thorough(),
                Contestant::ours_changed("desktop --implicit", "desktop", "--implicit").with(
                    EVERYTHING,
                    "--favour ratings",
                    super::MONITOR,
                ),
            ];
            everybody().into_iter().chain(parts).collect()
        },
        workloads: &[Workload::new(
            "desktop",
            concat!(
                "desktop --server 'Xvfb :9 -screen 0 1280x800x24 -nolisten tcp -ac' --hogs 0,0 \
                 --filled --sound 5 --beside 'attune-load compile --count 100000 --at-once 8' \
                 --seconds {seconds}",
                player!("784:514", "20:100"),
                typing!()
            ),
        )
        .playing(FILM, whole_desktop)
        .with_memory(2048)
        .lasting(12, 8)],
        figures: &[
            Figure::new("alone: film: lost (%)", "desktop", "/phases/0/films/0/lost_percent", 1.0),
            Figure::new(LOST, "desktop", "/phases/1/films/0/lost_percent", 1.0),
            Figure::new(KEY[0], "desktop", "/phases/0/screen/keys/to_screen_ns/p99", 1e6),
            Figure::new(KEY[1], "desktop", "/phases/1/screen/keys/to_screen_ns/p99", 1e6),
            Figure::new(
                "move to screen p99 (ms)",
                "desktop",
                "/phases/1/screen/moves/to_screen_ns/p99",
                1e6,
            ),
            Figure::new(LATE[0], "desktop", "/phases/0/sound/late_percent", 1.0),
            Figure::new(LATE[1], "desktop", "/phases/1/sound/late_percent", 1.0),
            Figure::new(
                "alone: player and X (% CPU)",
                "desktop",
                "/phases/0/film_cpu_percent",
                1.0,
            ),
            Figure::new(BUSY, "desktop", "/phases/0/busy_percent", 1.0),
            Figure::new(COMPILE, "desktop", "/phases/1/compile_percent", 1.0),
        ],
    }],
    seeds: TWO_SEEDS,
    drawn: KEY[1],
    claims,
};

fn claims(results: &Results) -> Vec<Claim> {
    let of = |who: &'static str| {
        let lost = results.worst(who, LOST);
        let late = results.worst(who, LATE[1]);
        let key = results.worst(who, KEY[1]).zip(results.worst(who, KEY[0]));
        let compile = results.median(who, COMPILE).zip(results.median(who, BUSY));
        vec![
            Claim::new(
                format!("{who}: the film loses no frame"),
                lost.map(|lost| (lost == 0.0, format!("{lost:.2} % lost"))),
            ),
            Claim::new(
                format!("{who}: no buffer of 5 ms is late"),
                late.map(|late| (late == 0.0, format!("{late:.2} % late"))),
            ),
            Claim::new(
                format!(
                    "{who}: 99 of 100 keys are on the screen at most {LATER} ms later than alone"
                ),
                key.map(|(beside, alone)| {
                    (beside <= alone + LATER, format!("{beside:.2} ms, alone {alone:.2} ms"))
                }),
            ),
            Claim::new(
                format!("{who}: the compile is within {MOST_OFF} % of its share"),
                compile.map(|(compile, busy)| {
                    let share = CPUS - busy;
                    let off = 100.0 * (1.0 - compile / share);
                    (off <= MOST_OFF, format!("{compile:.1} % of {share:.1} %"))
                }),
            ),
        ]
    };
    [HUMAN, DESKTOP, EVERYTHING].into_iter().flat_map(of).collect()
}
