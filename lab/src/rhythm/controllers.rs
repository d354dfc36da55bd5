//! Experiment `controllers`: LFS, LFS++ and ours on a film, in virtual time.

use anyhow::Result;
use attune_rhythm::controller::simulation::{Run, run as simulate};
use attune_rhythm::controller::{Law, controller};
use fastrand::Rng;
use serde_json::{Value, json};

use crate::experiment::{Options, Procedure, Progress, nothing_needed};
use crate::plot::{Line, lines};
use crate::report::{Claim, Picture, Report, Table};

pub const EXPERIMENT: Procedure = Procedure {
    name: "controllers",
    about: "25 frames a second under LFS, LFS++ and ours, in virtual time: settling, evenness of \
        frames, budget given",
    check: nothing_needed,
    run,
};

const PERIOD: u64 = 40_000_000;
const FRAMES: usize = 1500;
/// The first budget: a twentieth of the CPU, far from enough.
const FIRST: u64 = PERIOD / 20;
/// Frames after which a run is judged for evenness.
const SETTLED: usize = 200;

const EVEN: &str = "even frames";
const GROUPS: &str = "groups of 12 pictures";
const SCENES: &str = "a new scene every 10 s";

/// CPU time per frame.
fn films() -> [(&'static str, Vec<u64>); 3] {
    let mut random = Rng::with_seed(7);
    let mut frame = |mean: f64| (mean * 1e6 * (0.9 + 0.2 * random.f64())) as u64;
    let even: Vec<u64> = (0..FRAMES).map(|_| frame(12.0)).collect();
    let groups: Vec<u64> =
        (0..FRAMES).map(|number| frame(if number % 12 == 0 { 18.0 } else { 7.0 })).collect();
    let scenes: Vec<u64> =
        (0..FRAMES).map(|number| frame(if number / 250 % 2 == 0 { 8.0 } else { 20.0 })).collect();
    [(EVEN, even), (GROUPS, groups), (SCENES, scenes)]
}

/// Given by used of one that knew each job before, delayed none, and kept to what all do: a budget
/// is not below the use just seen.
fn least(demands: &[u64]) -> f64 {
    let before = std::iter::once(&0).chain(demands);
    let given: u64 = demands.iter().zip(before).map(|(job, before)| *job.max(before)).sum();
    given as f64 / demands.iter().sum::<u64>() as f64
}

fn settling(run: &Run) -> usize {
    // Settled: from here to the next change of scene no frame's work waits for longer than a frame.
    let first = &run.steps[..SETTLED];
    first.iter().rposition(|step| step.backlog_ns > step.demand_ns).map_or(0, |last| last + 1)
}

fn run(_options: &Options, progress: Progress) -> Result<Report> {
    let (mut rows, mut data, mut curves) = (Vec::new(), Vec::<Value>::new(), Vec::new());
    let mut runs: Vec<(&str, Law, Run)> = Vec::new();
    let mut notes = Vec::new();
    for (film, demands) in films() {
        notes.push(format!(
            "{film}: one that knew each job before would give {:.3} times what is used.",
            least(&demands)
        ));
        for law in Law::ALL {
            progress(&format!("{film} under {law}"));
            let run = simulate(controller(law, PERIOD).as_mut(), PERIOD, FIRST, &demands);
            let (deviation, given) = (run.deviation_ns(SETTLED) / 1e6, run.given_by_used(0));
            rows.push(vec![
                film.to_owned(),
                law.to_string(),
                settling(&run).to_string(),
                format!("{deviation:.2}"),
                format!("{given:.3}"),
            ]);
            data.push(json!({ "film": film, "law": law.to_string(),
                "settled_after_frames": settling(&run),
                              "inter_frame_deviation_ms": deviation, "given_by_used": given }));
            if film == EVEN {
                let points = run.steps.iter().take(150).enumerate();
                curves.push(Line {
                    name: law.to_string(),
                    points: points
                        .map(|(frame, step)| (frame as f64, step.budget_ns as f64 / 1e6))
                        .collect(),
                    dashed: law != Law::Ours,
                });
            }
            runs.push((film, law, run));
        }
    }
    Ok(Report {
        tables: vec![Table {
            notes,
            ..Table::new(
                "Controllers",
                &["film", "controller", "settled after", "deviation (ms)", "given by used"],
                rows,
            )
        }],
        claims: claims(&runs),
        pictures: vec![Picture::new(
            "Budget (ms), even frames",
            lines("frame", "budget (ms)", &curves)?,
        )],
        data: json!(data),
        ..Report::new(EXPERIMENT.name, "Budgets by feedback").saying(&[
            "A player of 25 frames a second in a hard reservation of its own period, in virtual \
                time: nothing but its budget delays it. It begins with a twentieth of the CPU. \
                Settled: the first frame from which no work waits for longer than a frame. \
                Deviation: of the time from the end of one frame to the end of the next, from \
                frame 200 on; the frames' own lengths vary by a tenth, which alone makes some of \
                it. Given by used: budgets by CPU time, over the whole run. No budget is below the \
                use just seen: so after a big picture a small one is given too much, by any \
                controller.",
            "Published (EuroSys 2010, section 5), on a real machine: deviation of the inter-frame \
                time 11.3 ms under LFS and 4.6 ms under LFS++; LFS needs about 100 frames to \
                settle.",
        ])
    })
}

fn claims(runs: &[(&str, Law, Run)]) -> Vec<Claim> {
    let of =
        |law: Law| runs.iter().filter(move |(_, known, _)| *known == law).map(|(_, _, run)| run);
    let worst = |law: Law, figure: fn(&Run) -> f64| of(law).map(figure).fold(0.0, f64::max);
    let one = |film: &str, law: Law, figure: fn(&Run) -> f64| {
        runs.iter()
            .find(|(known, its, _)| *its == law && *known == film)
            .map_or(f64::INFINITY, |run| figure(&run.2))
    };
    let given: fn(&Run) -> f64 = |run| run.given_by_used(0);
    let mut claims = vec![
        Claim::at_most(
            "ours settles within 10 frames",
            worst(Law::Ours, |run| settling(run) as f64),
            10.0,
            " frames",
        ),
        Claim::at_least(
            "LFS needs tens of frames",
            worst(Law::Lfs, |run| settling(run) as f64),
            30.0,
            " frames",
        ),
        Claim::at_most(
            "even frames deviate by at most 2 ms under ours",
            one(EVEN, Law::Ours, |run| run.deviation_ns(SETTLED) / 1e6),
            2.0,
            " ms",
        ),
        Claim::at_most(
            "on groups of pictures ours gives less than LFS++",
            one(GROUPS, Law::Ours, given) / one(GROUPS, Law::LfsPlusPlus, given),
            1.0,
            " of it",
        ),
    ];
    claims.extend([EVEN, GROUPS, SCENES].map(|film| {
        Claim::at_most(
            format!("{film}: ours gives at most 1.15 times what is used"),
            one(film, Law::Ours, given),
            1.15,
            " times",
        )
    }));
    claims
}
