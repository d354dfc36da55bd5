//! Experiment `tune-load`: frames of a real player beside real-time tasks, as it is and tuned.

use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::live::{
    Ear, Load, Stage, Tuning, frames, is_reserved, mean_and_deviation, player, require,
};
use crate::experiment::{Options, Procedure, Progress};
use crate::plot::{Line, lines};
use crate::report::{Claim, Picture, Report, Table};

pub const EXPERIMENT: Procedure = Procedure {
    name: "tune-load",
    about: "time between the frames of mplayer at 25 Hz beside real-time tasks, as it is and under \
        attune tune (needs root and players)",
    check: |_| require(&["mplayer", "ffmpeg", "Xvfb"]),
    run,
};

/// writev: how mplayer's frames reach the X server.
const FRAME_CALL: &str = "writev";
const PERIOD_MS: f64 = 40.0;
/// After its start a player loads and fills its buffers.
const LOADING: Duration = Duration::from_millis(2500);
/// How long frames are watched. Those of the first frames after the reservation show settling, the
/// rest is judged.
const WATCHED: Duration = Duration::from_secs(9);
const SETTLING_FRAMES: usize = 10;
/// A frame is off when it comes by so much of its period too early or too late.
const OFF: f64 = 0.25;

/// One run.
struct Run {
    load: Load,
    tuned: bool,
    mean_ms: f64,
    deviation_ms: f64,
    worst_ms: f64,
    frames: usize,
    reserved_ms: Option<f64>,
    settled_after: Option<usize>,
    given_by_used: Option<f64>,
}

fn run(options: &Options, progress: Progress) -> Result<Report> {
    let loads = match options.quick {
        true => vec![Load::Nothing, Load::Deadline(40), Load::Fifo(60)],
        false => {
            let shares = [20, 40, 60, 70];
            let both =
                shares.into_iter().flat_map(|share| [Load::Deadline(share), Load::Fifo(share)]);
            std::iter::once(Load::Nothing).chain(both).collect()
        }
    };
    let stage = Stage::set(options, false)?;
    let mut runs = Vec::new();
    for load in loads {
        for tuned in [false, true] {
            progress(&format!("beside {load}, {}", if tuned { "tuned" } else { "as it is" }));
            runs.push(watch(&stage, load, tuned)?);
        }
    }
    report(&runs)
}

fn watch(stage: &Stage, load: Load, tuned: bool) -> Result<Run> {
    let player = player("mplayer 25").context("no such player")?;
    let mut playing = stage.play(player, true)?;
    sleep(LOADING);
    let others = stage.load(load, 40.0)?;
    let call = attune_tracer::call_number(FRAME_CALL).context("this machine has no writev")?;
    let begun = Instant::now();
    let tuning = tuned.then(|| Tuning::start(stage, playing.id())).transpose()?;
    let mut reserved = None;
    while tuned && reserved.is_none() && begun.elapsed() < Duration::from_secs(12) {
        reserved = is_reserved(playing.id()).then(|| begun.elapsed());
        sleep(Duration::from_millis(2));
    }
    let mut ear = Ear::on(playing.id(), Some(vec![call]))?;
    let heard = ear.listen(WATCHED);
    drop(ear);
    if !playing.is_alive() {
        bail!("mplayer ended early beside {load}: run it by hand to see why");
    }
    let told = tuning.map(Tuning::end);
    drop(others);
    let shown = frames(&heard);
    let between: Vec<f64> = shown.windows(2).map(|pair| 1e3 * (pair[1] - pair[0])).collect();
    let judged = between.get(SETTLING_FRAMES..).unwrap_or_default();
    let (mean_ms, deviation_ms) = mean_and_deviation(judged);
    let is_off = |between: &f64| (between - PERIOD_MS).abs() > OFF * PERIOD_MS;
    // What happens within the first second belongs to settling, if there is no pause of it.
    let first = &between[..between.len().min(25)];
    Ok(Run {
        load,
        tuned,
        mean_ms,
        deviation_ms,
        worst_ms: judged.iter().map(|between| (between - PERIOD_MS).abs()).fold(0.0, f64::max),
        frames: judged.len(),
        reserved_ms: reserved.map(|time| 1e3 * time.as_secs_f64()),
        settled_after: tuned.then(|| first.iter().rposition(is_off).map_or(0, |last| last + 1)),
        given_by_used: told
            .filter(|told| told.used_ms > 0.0)
            .map(|told| told.given_ms / told.used_ms),
    })
}

fn report(runs: &[Run]) -> Result<Report> {
    let or_dash = |number: Option<f64>, digits: usize| {
        number.map_or("-".to_owned(), |number| format!("{number:.digits$}"))
    };
    let rows = runs.iter().map(|run| {
        vec![
            run.load.to_string(),
            if run.tuned { "tuned" } else { "as it is" }.to_owned(),
            run.frames.to_string(),
            format!("{:.3}", run.mean_ms),
            format!("{:.2}", run.deviation_ms),
            format!("{:.1}", run.worst_ms),
            or_dash(run.reserved_ms, 0),
            run.settled_after.map_or("-".to_owned(), |frames| frames.to_string()),
            or_dash(run.given_by_used, 3),
        ]
    });
    let data: Vec<Value> = runs
        .iter()
        .map(|run| {
            json!({ "load": run.load.to_string(), "tuned": run.tuned, "frames": run.frames,
                "mean_ms": run.mean_ms,
                    "deviation_ms": run.deviation_ms, "worst_ms": run.worst_ms,
                    "reserved_after_ms": run.reserved_ms,
                    "settled_after_frames": run.settled_after, "given_by_used": run.given_by_used })
        })
        .collect();
    let mut curves: Vec<Line> = Vec::new();
    for (kind, dashed) in [("DEADLINE", false), ("FIFO", true)] {
        for tuned in [false, true] {
            let points =
                runs.iter().filter(|run| run.tuned == tuned).filter_map(|run| match run.load {
                    Load::Nothing => Some((0.0, run.deviation_ms)),
                    Load::Deadline(share) if !dashed => Some((f64::from(share), run.deviation_ms)),
                    Load::Fifo(share) if dashed => Some((f64::from(share), run.deviation_ms)),
                    _ => None,
                });
            let name = format!("{}, beside {kind}", if tuned { "tuned" } else { "as it is" });
            curves.push(Line { name, points: points.collect(), dashed });
        }
    }
    Ok(Report {
        tables: vec![Table::new(
            "25 frames a second",
            &[
                "beside",
                "player",
                "frames",
                "mean (ms)",
                "deviation (ms)",
                "worst (ms)",
                "reserved (ms)",
                "settled after",
                "given by used",
            ],
            rows.collect(),
        )],
        claims: claims(runs),
        pictures: vec![Picture::new(
            "Deviation of the time between frames (ms)",
            lines("real-time load (% of every CPU)", "deviation (ms)", &curves)?,
        )],
        data: json!(data),
        ..Report::new(EXPERIMENT.name, "Frames beside real-time tasks").saying(&[
            "mplayer shows a film of 1280x720 at 25 frames a second in Xvfb. Beside it run \
                periodic tasks, two a CPU, of class SCHED_FIFO or under reservation \
                (SCHED_DEADLINE), which take so many per cent of every CPU. As it is, and under \
                attune tune --display, which is started after the player. A frame is the first \
                write to the X server after a pause, stamped in the kernel. Reserved: from the \
                start of attune tune. Settled after: of the 25 frames after the first reservation, \
                the last that is a quarter of its period off. Mean and deviation: over nine \
                seconds, without the first ten frames. Given by used: CPU time reserved by CPU \
                time used, player only, over the whole run.",
            "Published (EuroSys 2010, section 5), for an otherwise similar player under real-time \
                load of 20 to 70 %: deviation of the inter-frame time from 7.0 to 17.9 ms.",
        ])
    })
}

fn claims(runs: &[Run]) -> Vec<Claim> {
    let tuned = || runs.iter().filter(|run| run.tuned);
    let bar =
        |load: &Load| matches!(load, Load::Deadline(share) | Load::Fifo(share) if *share <= 60);
    let worst = |figure: fn(&Run) -> f64| {
        tuned().filter(|run| bar(&run.load)).map(figure).fold(0.0, f64::max)
    };
    // What was not reached is not small.
    let all = |figure: fn(&Run) -> Option<f64>| {
        tuned().map(|run| figure(run).unwrap_or(f64::MAX)).fold(0.0, f64::max)
    };
    vec![
        Claim::at_most(
            "deviation under 20 to 60 % real-time load, tuned",
            worst(|run| run.deviation_ms),
            2.0,
            " ms",
        ),
        Claim::at_most(
            "its mean is 40 ms",
            worst(|run| (run.mean_ms - PERIOD_MS).abs()),
            0.1,
            " ms off",
        ),
        Claim::at_most("first reservation", all(|run| run.reserved_ms), 2000.0, " ms"),
        Claim::at_most(
            "settled after the first reservation",
            all(|run| run.settled_after.map(|frames| frames as f64)),
            10.0,
            " frames",
        ),
        Claim::at_most(
            "CPU time given by used, over each run",
            all(|run| run.given_by_used),
            1.15,
            " times",
        ),
    ]
}
