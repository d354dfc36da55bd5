//! Experiment `coop-hd`: one heavy video and an encoder.

use super::{FAIR, fair_and_coop, real};
use crate::kernel::{
    Contestant, Description, FIVE_SEEDS, Figure, Films, Part, Place, Results, Workload,
};
use crate::programs::installed;
use crate::report::Claim;

const FILMS: Films = Films { count: 1, seconds: 24, size: "1280x720" };
const P99: &str = "p99 (ms)";
const WORST: &str = "worst (ms)";
const SHARE: &str = "encoder's CPU (%)";
const LENIENT: &str = "attune coop, slack 6 ms";
/// The longest step of the decoder, ms: what is claimed.
const LIMIT: f64 = 5.0;
/// Per cent of the CPU; it has more when the film is easy.
const FAIR_SHARE: f64 = 50.0;
const MOST_DEVIATION: f64 = 2.0;

pub const EXPERIMENT: Description = Description {
    name: "coop-hd",
    about: "one video that needs half of the CPU beside an encoder: timers on time, even shares",
    title: "A heavy video and an encoder on one CPU",
    text: &[
        "The example player decodes a film of 25 pictures a second that takes about half of this \
            CPU and in its hard scenes more, without a display; beside it ffmpeg encodes another \
            picture source, which takes what it gets. The player leaves out what matters least. \
            Tardiness is that of the player's timers, seen from outside: from their release to the \
            call of the event loop's probe, by the kernel's clock.",
        "Steps of its decoder take up to 5 ms on this CPU, which counts instructions: the player's \
            own timers wait for them. With the default slack of 1 ms such a step breaks the \
            player's word, and it has no preference until its next poll, behind a whole slice of \
            the encoder's; so coop is there with a slack longer than the steps, too.",
    ],
    published: "Sinha's thesis (University of British Columbia, 2008), section 3.9, has a table \
        for this mix, on another machine and film. Worst tardiness in the paper: about 1 ms for \
        events of a millisecond.",
    parts: &[Part {
        title: "A film of 1280x720 and an encoder",
        place: Place::ONE_CPU,
        contestants: || {
            let lenient =
                Contestant::ours_changed("coop, slack 6 ms", "coop", "--set coop_slack=6ms");
            fair_and_coop().into_iter().map(Contestant::briefly).chain([lenient]).collect()
        },
        workloads: &[Workload::new(
            "video",
            "films --shown libattune_coop.so:attune_coop_timer --beside 'ffmpeg -v error -nostdin \
             -f lavfi -i testsrc2=s=640x360:r=25 -threads 1 -c:v libx264 -preset ultrafast -f \
             null -' --begin 3 --seconds {seconds} -- player --json --display null --sound null \
             {films}/film-1.mkv",
        )
        .playing(FILMS, needs)
        .lasting(10, 10)],
        figures: &[
            Figure::new("p50 (ms)", "video", "/late_ns/p50", 1e6),
            Figure::new(P99, "video", "/late_ns/p99", 1e6),
            Figure::new(WORST, "video", "/late_ns/max", 1e6),
            Figure::new("shown", "video", "/said/0/films/0/shown", 1.0),
            Figure::new("expired", "video", "/said/0/films/0/expired", 1.0),
            Figure::new("dropped", "video", "/said/0/films/0/dropped", 1.0),
            Figure::new(SHARE, "video", "/beside_percent", 1.0),
        ],
    }],
    seeds: FIVE_SEEDS,
    drawn: P99,
    claims,
};

fn needs(options: &crate::experiment::Options) -> anyhow::Result<Vec<std::path::PathBuf>> {
    Ok([real::player(options)?, installed(&["ffmpeg"])?].concat())
}

fn claims(results: &Results) -> Vec<Claim> {
    let (worst, share) = (results.worst(LENIENT, WORST), results.median(LENIENT, SHARE));
    let p99 = results.median(FAIR, P99).zip(results.worst(LENIENT, P99));
    vec![
        Claim::new(
            format!(
                "with a slack longer than its steps, the player's timers wait no longer than \
                    {LIMIT} ms, its longest step"
            ),
            worst.map(|worst| (worst <= LIMIT, format!("{worst:.2} ms"))),
        ),
        Claim::new(
            "and 99 of 100 are served sooner than under the fair class",
            p99.map(|(fair, coop)| (coop < fair, format!("{coop:.2} ms, fair class {fair:.2} ms"))),
        ),
        Claim::new(
            format!("the encoder has its half of the CPU, or less by at most {MOST_DEVIATION} %"),
            share.map(|share| {
                (share >= FAIR_SHARE * (1.0 - MOST_DEVIATION / 100.0), format!("{share:.2} %"))
            }),
        ),
    ]
}
