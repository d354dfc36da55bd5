//! Experiment `period-cost`: CPU time of an analysis against window, step and range.

use anyhow::{Context, Result};
use attune_linux::time::thread_cpu_time;
use attune_rhythm::recording::Event;
use attune_rhythm::{Method, Settings, analyse, spectrum_2010};
use serde_json::{Value, json};

use super::recordings::RECORDINGS;
use crate::experiment::{Options, Procedure, Progress, nothing_needed};
use crate::plot::{Line, lines};
use crate::report::{Claim, Picture, Report, Table};

pub const EXPERIMENT: Procedure = Procedure {
    name: "period-cost",
    about: "CPU time of the period analyser against the length of the window, and of the heuristic \
        of 2010 against step and range too",
    check: nothing_needed,
    run,
};

/// A recording of two periods and a dozen threads, with about a thousand events a second.
const RECORDING: &str = "vlc-v50.idle";
const WINDOWS: [f64; 5] = [0.25, 0.5, 1.0, 2.0, 4.0];

fn run(options: &Options, progress: Progress) -> Result<Report> {
    let recording = RECORDINGS.iter().find(|recording| recording.name == RECORDING);
    let events = recording.with_context(|| format!("no recording {RECORDING}"))?.events()?;
    let from = events.first().map_or(0.0, |first| first.time);
    let published = |df, f_max| spectrum_2010::Parameters { df, f_max, ..Default::default() };
    let ours = |f_max| Settings { f_max, ..Settings::default() };
    let theirs = |df, f_max| Settings {
        method: Method::Spectrum2010(published(df, f_max)),
        ..Settings::default()
    };
    let settings: Vec<(String, Settings)> = [100.0, 220.0]
        .into_iter()
        .map(|f_max| (format!("evidence, to {f_max} Hz"), ours(f_max)))
        .chain([(0.1, 100.0), (0.5, 100.0), (0.1, 50.0)].into_iter().map(|(df, f_max)| {
            (format!("spectrum-2010, to {f_max} Hz in steps of {df}"), theirs(df, f_max))
        }))
        .collect();
    let rounds = if options.quick { 10 } else { 50 };
    let (mut rows, mut data, mut curves) = (Vec::new(), Vec::<Value>::new(), Vec::new());
    for (name, settings) in &settings {
        progress(name);
        let mut points = Vec::new();
        for window in WINDOWS {
            let inside: Vec<Event> =
                events.iter().copied().filter(|event| event.time < from + window).collect();
            let cost = median_cost(&inside, from, from + window, settings, rounds);
            rows.push(vec![
                name.clone(),
                format!("{window}"),
                inside.len().to_string(),
                format!("{cost:.3}"),
            ]);
            data.push(json!({ "method": name, "window_s": window, "events": inside.len(),
                "cpu_ms": cost }));
            points.push((window, cost));
        }
        curves.push(Line { name: name.clone(), points, dashed: name.starts_with("spectrum") });
    }
    let two_thousand = two_thousand_events(from);
    let cost = median_cost(&two_thousand, from, from + 2.0, &Settings::default(), rounds);
    rows.push(vec![
        "evidence, 40 jobs a second of 25 calls".to_owned(),
        "2".to_owned(),
        two_thousand.len().to_string(),
        format!("{cost:.3}"),
    ]);
    let real = curves[1].points[3].1;
    Ok(Report {
        tables: vec![Table::new("CPU time", &["method", "window (s)", "events", "ms"], rows)],
        claims: vec![
            Claim::at_most(
                "a 2 s window of 2000 events of one thread takes under 5 ms",
                cost,
                5.0,
                " ms",
            ),
            Claim::at_most(
                "a 2 s window of a player with a dozen threads takes under 5 ms",
                real,
                5.0,
                " ms",
            ),
        ],
        pictures: vec![Picture::new(
            "CPU time (ms)",
            lines("window (s)", "CPU time (ms)", &curves)?,
        )],
        data: json!(data),
        ..Report::new(EXPERIMENT.name, "What an analysis costs").saying(&[&format!(
            "The first seconds of {RECORDING}, medians of {rounds} analyses, in milliseconds of \
                CPU time of one thread. The heuristic of 2010 grows with events times frequencies; \
                ours looks at job starts, as many as there is time for. Published (EuroSys 2010, \
                section 5): the cost is linear in the number of events, in the range and in the \
                inverse of the step."
        )])
    })
}

/// Eighty jobs in two seconds, 25 calls each.
fn two_thousand_events(from: f64) -> Vec<Event> {
    let lines: String = (0..80)
        .flat_map(|job| {
            (0..25).map(move |call| from + f64::from(job) / 40.0 + 2e-5 * f64::from(call))
        })
        .map(|time| format!("{time:.6} 1\n"))
        .collect();
    attune_rhythm::recording::parse(lines.as_bytes())
        .map(|recording| recording.events)
        .unwrap_or_default()
}

/// Milliseconds of this thread's CPU time.
fn median_cost(events: &[Event], from: f64, to: f64, settings: &Settings, rounds: usize) -> f64 {
    let mut costs: Vec<f64> = (0..rounds)
        .map(|_| {
            let begin = thread_cpu_time();
            std::hint::black_box(analyse(std::hint::black_box(events), from, to, settings));
            (thread_cpu_time() - begin) as f64 / 1e6
        })
        .collect();
    costs.sort_by(f64::total_cmp);
    costs[costs.len() / 2]
}
