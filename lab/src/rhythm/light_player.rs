//! Experiment `light-player`: how late a light periodic program wakes up beside many that compute,
//! as it is and tuned, in the same run.

use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::json;

use super::live::{Load, Running, Stage, Tuning, is_reserved, require};
use crate::experiment::{Options, Procedure, Progress};
use crate::plot::bars;
use crate::report::{Claim, Picture, Report, Table};

pub const EXPERIMENT: Procedure = Procedure {
    name: "light-player",
    about: "how late a light player wakes up beside 8 processes that compute on 2 CPUs, tuned and \
        not in one run (needs root)",
    check: |_| require(&["Xvfb"]),
    run,
};

/// Processes that compute, for each CPU.
const HOGS: usize = 4;
/// Period and work of the player, in ms.
const BEAT: [&str; 2] = ["20", "0.5"];

fn run(options: &Options, progress: Progress) -> Result<Report> {
    let seconds = if options.quick { 15 } else { 40 };
    let stage = Stage::set(options, false)?;
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let mut players = [start(&stage, seconds + 15)?, start(&stage, seconds + 15)?];
    progress(&format!("two players beside {} hogs", HOGS * cpus));
    let hogs = stage.load(Load::Hogs(HOGS * cpus), f64::from(seconds + 15))?;
    let tuning = Tuning::start(&stage, players[0].id())?;
    let begun = Instant::now();
    while !is_reserved(players[0].id()) {
        if begun.elapsed() > Duration::from_secs(12) {
            bail!("the player got no reservation within 12 s; see what `attune tune -p PID` says");
        }
        sleep(Duration::from_millis(5));
    }
    let outputs = players.each_mut().map(|player| player.child().stdout.take());
    // What they printed until now waits in the pipes, and is of the time before the reservation.
    let reserved = begun.elapsed().as_secs_f64();
    let skip = ((reserved + 1.0) * 1e3 / 20.0) as usize;
    progress(&format!("{seconds} s"));
    sleep(Duration::from_secs(u64::from(seconds)));
    let told = tuning.end();
    players.iter_mut().for_each(Running::end);
    drop(hogs);
    let mut rows = Vec::new();
    let mut p99s = Vec::new();
    for (name, output) in ["tuned", "fair class"].iter().zip(outputs) {
        let lines = BufReader::new(output.context("its output")?).lines().map_while(Result::ok);
        let mut late: Vec<f64> =
            lines.skip(skip).filter_map(|line| line.trim().parse().ok()).collect();
        // The last second may be after the reservation.
        late.truncate(late.len().saturating_sub(50));
        late.sort_by(f64::total_cmp);
        let at = |share: f64| {
            late.get((share * late.len() as f64) as usize).copied().unwrap_or(f64::MAX)
        };
        rows.push(
            [(*name).to_owned(), late.len().to_string()]
                .into_iter()
                .chain([0.5, 0.99].map(|share| format!("{:.0}", at(share))))
                .chain([format!("{:.0}", late.last().copied().unwrap_or(0.0))])
                .collect::<Vec<_>>(),
        );
        p99s.push(at(0.99));
    }
    let heights = [("tuned".to_owned(), p99s[0]), ("fair class".to_owned(), p99s[1])];
    Ok(Report {
        tables: vec![Table {
            notes: vec![format!(
                "found: {:?} Hz; reserved {:.2} s after attune tune was started",
                told.frequency_hz, reserved
            )],
            ..Table::new(
                "Lateness",
                &["player", "wake-ups", "p50 (us)", "p99 (us)", "longest (us)"],
                rows,
            )
        }],
        claims: vec![
            Claim::at_most(
                "99 of 100 wake-ups of the tuned one are no later than 100 us",
                p99s[0],
                100.0,
                " us",
            ),
            Claim::at_most(
                "and ten times sooner than in the fair class",
                p99s[0] / p99s[1].max(1.0),
                0.1,
                " of it",
            ),
        ],
        pictures: vec![Picture::new("p99 of lateness (us)", bars("us", &heights)?)],
        data: json!({ "p99_us": { "tuned": p99s[0], "fair": p99s[1] },
            "reserved_after_s": reserved }),
        ..Report::new(EXPERIMENT.name, "A light player beside many that compute").saying(&[
            "Two equal programs sleep until the next multiple of 20 ms, note how late they wake \
                up, and work for half a millisecond. Four processes a CPU compute. attune tune \
                listens to one of the two and reserves; the other stays in the fair class. \
                Lateness in microseconds, from a second after the reservation on.",
        ])
    })
}

fn start(stage: &Stage, seconds: u32) -> Result<Running> {
    let mut command = stage.program("attune-beat");
    command.args(BEAT).args(["log", &format!("for={seconds}")]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    Running::start(&mut command)
}
