//! Experiment `coop-fairness`: the shares of players, each alone and all in one group.

use super::{COOP, SETTING, fair_and_coop, hogs_are_within, is_even, players};
use crate::kernel::{Description, FIVE_SEEDS, Figure, Part, Place, Results};
use crate::report::Claim;

const CPU: &str = "CPU: Jain";
const HOGS: &str = "hogs' CPU (%)";
const GROUP_FRAMES: &str = "group: frames: Jain";
const GROUP_HOGS: &str = "group: hogs' CPU (%)";
/// What is claimed, per cent.
const MOST_DEVIATION: f64 = 2.0;

pub const EXPERIMENT: Description = Description {
    name: "coop-fairness",
    about: "CPU shares and frame rates of unlike players that cooperate, each alone and in one \
        group",
    title: "Shares of unlike players",
    text: &[
        SETTING,
        "The frames of the players cost one, two, three or four callbacks. Each alone, players \
            should get equal CPU time; in one group, equal frame rates, and together what eight \
            threads get. The hogs' fair share is a third.",
    ],
    published: "several groups: Jain's index of CPU time 0.98, of frame rates 0.86; one group: of \
        frame rates 0.97.",
    parts: &[Part {
        title: "Unlike players",
        place: Place::ONE_CPU,
        contestants: fair_and_coop,
        workloads: &[players("alone", "--uneven"), players("group", "--uneven --group 1")],
        figures: &[
            Figure::new(CPU, "alone", "/jain", 1.0),
            Figure::new("frames: Jain", "alone", "/frames_jain", 1.0),
            Figure::new(HOGS, "alone", "/hogs_percent", 1.0),
            Figure::new("group: CPU: Jain", "group", "/jain", 1.0),
            Figure::new(GROUP_FRAMES, "group", "/frames_jain", 1.0),
            Figure::new(GROUP_HOGS, "group", "/hogs_percent", 1.0),
        ],
    }],
    seeds: FIVE_SEEDS,
    drawn: GROUP_FRAMES,
    claims,
};

fn claims(results: &Results) -> Vec<Claim> {
    let share = |beside, figure| hogs_are_within(results, MOST_DEVIATION, COOP, beside, &[figure]);
    vec![
        is_even(results, COOP, "CPU time, each alone,", CPU),
        is_even(results, COOP, "frame rates in one group", GROUP_FRAMES),
        share("beside players that are alone", HOGS),
        share("beside a group", GROUP_HOGS),
    ]
}
