//! Experiment `period-load`: the rates of real players beside real-time tasks, found by ours and by
//! the heuristic of 2010.

use std::thread::sleep;
use std::time::Duration;

use anyhow::Result;
use attune_rhythm::windows::consecutive;
use attune_rhythm::{Method, Settings};
use serde_json::{Value, json};

use super::live::{Ear, Load, PLAYERS, Player, Stage, mean_and_deviation, require};
use crate::experiment::{Options, Procedure, Progress};
use crate::plot::{Line, lines};
use crate::report::{Claim, Picture, Report, Table};

pub const EXPERIMENT: Procedure = Procedure {
    name: "period-load",
    about: "rates found for mplayer, mpv, VLC, ffplay and sox beside real-time tasks of up to 60 \
        %, by ours and by the heuristic of 2010 (needs root and players)",
    check: |_| {
        require(&[
            "mplayer",
            "mpv",
            "cvlc",
            "ffplay",
            "sox",
            "pulseaudio",
            "Xvfb",
            "ffmpeg",
            "setpriv",
        ])
    },
    run,
};

const LOADING: Duration = Duration::from_millis(2500);
const LISTENED: Duration = Duration::from_millis(8100);
const WINDOW: f64 = 2.0;
const SHARES: [u32; 4] = [15, 30, 45, 60];
/// Mean rate in Hz that the heuristic of 2010 found for a player of 32.5 Hz, from no load to 60 %.
const PUBLISHED: &str = "32.7, 41.7, 58.0, 75.0 and 68.5 Hz";

struct Row {
    player: &'static Player,
    load: Load,
    /// Found by true rate in each window that was answered, and windows; ours, then the
    /// heuristic's.
    found: [Vec<f64>; 2],
    windows: usize,
}

impl Row {
    fn right(&self, method: usize) -> usize {
        self.found[method].iter().filter(|ratio| (*ratio - 1.0).abs() < 0.01).count()
    }
}

fn run(options: &Options, progress: Progress) -> Result<Report> {
    let stage = Stage::set(options, true)?;
    let loads: Vec<Load> = match options.quick {
        true => vec![Load::Nothing, Load::Fifo(60), Load::Deadline(60)],
        false => {
            let both =
                SHARES.into_iter().flat_map(|share| [Load::Fifo(share), Load::Deadline(share)]);
            std::iter::once(Load::Nothing).chain(both).collect()
        }
    };
    let mut rows = Vec::new();
    for load in loads {
        for player in PLAYERS {
            progress(&format!("{} beside {load}", player.name));
            rows.push(listen(&stage, player, load)?);
        }
    }
    report(&rows)
}

fn listen(stage: &Stage, player: &'static Player, load: Load) -> Result<Row> {
    let playing = stage.play(player, false)?;
    sleep(LOADING);
    let _others = stage.load(load, 30.0)?;
    let heard = Ear::on(playing.id(), None)?.listen(LISTENED);
    let ours = Settings::default();
    let published = Settings { method: Method::Spectrum2010(Default::default()), ..ours };
    let found = [ours, published].map(|settings| {
        let answers = consecutive(&heard, WINDOW, &settings);
        answers
            .filter_map(|(_, analysis)| analysis.frequency_hz)
            .map(|rate| rate / player.rate)
            .collect()
    });
    Ok(Row { player, load, found, windows: consecutive(&heard, WINDOW, &ours).count() })
}

fn share_of(load: Load) -> f64 {
    match load {
        Load::Fifo(share) | Load::Deadline(share) => f64::from(share),
        Load::Nothing | Load::Hogs(_) => 0.0,
    }
}

fn report(rows: &[Row]) -> Result<Report> {
    let table = rows.iter().map(|row| {
        let mean = |method: usize| match row.found[method].is_empty() {
            true => "-".to_owned(),
            false => format!("{:.2}", row.player.rate * mean_and_deviation(&row.found[method]).0),
        };
        let right = |method: usize| format!("{} of {}", row.right(method), row.windows);
        vec![
            row.load.to_string(),
            row.player.name.to_owned(),
            format!("{}", row.player.rate),
            right(0),
            mean(0),
            right(1),
            mean(1),
        ]
    });
    let data: Vec<Value> = rows
        .iter()
        .map(|row| {
            json!({ "load": row.load.to_string(), "player": row.player.name,
                "rate_hz": row.player.rate, "windows": row.windows,
                    "right": { "evidence": row.right(0), "spectrum-2010": row.right(1) },
                    "found_by_true": row.found })
        })
        .collect();
    let percent = |chosen: &dyn Fn(&&Row) -> bool, method: usize| {
        let windows: usize = rows.iter().filter(chosen).map(|row| row.windows).sum();
        let right: usize = rows.iter().filter(chosen).map(|row| row.right(method)).sum();
        100.0 * right as f64 / windows.max(1) as f64
    };
    let mut curves = Vec::new();
    for (method, name) in ["evidence", "spectrum-2010"].iter().enumerate() {
        let mut shares: Vec<f64> = rows.iter().map(|row| share_of(row.load)).collect();
        shares.sort_by(f64::total_cmp);
        shares.dedup();
        let point = |share: f64| {
            (share, percent(&|row: &&Row| share_of(row.load) == share, method).max(0.5))
        };
        curves.push(Line {
            name: (*name).to_owned(),
            points: shares.into_iter().map(point).collect(),
            dashed: method == 1,
        });
    }
    let loaded = |row: &&Row| row.load != Load::Nothing;
    let harmonic = |ratio: &f64| {
        let multiple = ratio.max(1.0 / ratio);
        multiple > 1.5 && (multiple / multiple.round() - 1.0).abs() < 0.02
    };
    let (harmonics, windows) =
        rows.iter().filter(loaded).fold((0usize, 0usize), |(harmonics, windows), row| {
            (
                harmonics + row.found[0].iter().filter(|ratio| harmonic(ratio)).count(),
                windows + row.windows,
            )
        });
    Ok(Report {
        tables: vec![Table::new(
            "Windows of 2 s",
            &[
                "beside",
                "player",
                "true (Hz)",
                "right",
                "mean (Hz)",
                "2010: right",
                "2010: mean (Hz)",
            ],
            table.collect(),
        )],
        claims: vec![
            Claim::at_least(
                "right in at least 95 % of windows under load",
                percent(&loaded, 0),
                95.0,
                " %",
            ),
            Claim::at_most(
                "harmonics and sub-harmonics under load below 3 %",
                100.0 * harmonics as f64 / windows.max(1) as f64,
                3.0,
                " %",
            ),
            Claim::at_least(
                "more often right than the heuristic of 2010",
                percent(&loaded, 0) - percent(&loaded, 1),
                0.0,
                " points",
            ),
        ],
        pictures: vec![Picture::new(
            "Right answers (%)",
            lines("real-time load (% of every CPU)", "right (%)", &curves)?,
        )],
        data: json!(data),
        ..Report::new(EXPERIMENT.name, "Rates of players beside real-time tasks").saying(&[
            "Real players with a display and a sound server of their own, beside periodic tasks, \
                two a CPU, of class SCHED_FIFO or under reservation, that take so many per cent of \
                every CPU. Eight seconds of each are heard in the kernel and cut into windows of \
                two seconds. Right: within 1 % of the true rate; no answer is not right. Mean: of \
                the answers, in Hz.",
            &format!(
                "Published (EuroSys 2010, section 5), a player of 32.5 Hz, from no real-time load \
                    to 60 %: mean rate found {PUBLISHED}."
            ),
        ])
    })
}
