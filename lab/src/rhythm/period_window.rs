//! Experiment `period-window`: how the answer depends on the length of the window.

use anyhow::Result;
use attune_rhythm::windows::consecutive;
use attune_rhythm::{Method, Settings};
use serde_json::{Value, json};

use super::recordings::RECORDINGS;
use crate::experiment::{Options, Procedure, Progress, nothing_needed};
use crate::plot::{Line, lines};
use crate::report::{Claim, Picture, Report, Table};

pub const EXPERIMENT: Procedure = Procedure {
    name: "period-window",
    about: "how often the period analyser is right in windows of 0.2 to 2 s, on recordings of \
        players, beside the heuristic of 2010",
    check: nothing_needed,
    run,
};

const WINDOWS: [f64; 4] = [0.2, 0.5, 1.0, 2.0];
/// Found rate by true rate, below and above which an answer is not right.
const RIGHT: f64 = 0.01;

/// The answers in all windows of a kind.
#[derive(Clone, Default)]
struct Answers {
    windows: usize,
    /// Found by true rate; a window of a program without a beat that is called periodic counts as
    /// one.
    ratios: Vec<f64>,
}

impl Answers {
    fn right(&self) -> f64 {
        let right = self.ratios.iter().filter(|ratio| (*ratio - 1.0).abs() < RIGHT).count();
        100.0 * right as f64 / self.windows.max(1) as f64
    }

    fn answered(&self) -> f64 {
        100.0 * self.ratios.len() as f64 / self.windows.max(1) as f64
    }

    fn quantile(&self, share: f64) -> String {
        let mut ratios = self.ratios.clone();
        ratios.sort_by(f64::total_cmp);
        let at = (share * ratios.len().saturating_sub(1) as f64).round() as usize;
        ratios.get(at).map_or("-".to_owned(), |ratio| format!("{ratio:.3}"))
    }
}

fn run(_options: &Options, progress: Progress) -> Result<Report> {
    let ours = Settings::default();
    let methods = [
        ("evidence", ours),
        ("spectrum-2010", Settings { method: Method::Spectrum2010(Default::default()), ..ours }),
    ];
    let kinds = ["idle", "loaded", "no beat"];
    let mut columns: Vec<String> =
        ["window", "program", "method", "windows", "right %", "answered %"]
            .map(str::to_owned)
            .to_vec();
    columns.extend(["p5", "median", "p95"].map(str::to_owned));
    let (mut rows, mut data, mut curves) = (Vec::new(), Vec::<Value>::new(), Vec::<Line>::new());
    let mut figures = Vec::new();
    for window in WINDOWS {
        progress(&format!("windows of {window} s"));
        let mut answers = vec![[Answers::default(), Answers::default()]; kinds.len()];
        for recording in RECORDINGS {
            let kind = if recording.rate.is_none() { 2 } else { usize::from(recording.loaded) };
            let events = recording.events()?;
            for ((_, settings), answers) in methods.iter().zip(&mut answers[kind]) {
                for (_, found) in consecutive(&events, window, settings) {
                    answers.windows += 1;
                    answers.ratios.extend(
                        found
                            .frequency_hz
                            .map(|found| recording.rate.map_or(1.0, |rate| found / rate)),
                    );
                }
            }
        }
        for (kind, answers) in kinds.iter().zip(&answers) {
            for ((method, _), answers) in methods.iter().zip(answers) {
                let beat = *kind != "no beat";
                let mut row = vec![
                    format!("{window} s"),
                    (*kind).to_owned(),
                    (*method).to_owned(),
                    answers.windows.to_string(),
                ];
                row.push(if beat { format!("{:.1}", answers.right()) } else { String::new() });
                row.push(format!("{:.1}", answers.answered()));
                row.extend(
                    [0.05, 0.5, 0.95]
                        .map(|share| if beat { answers.quantile(share) } else { String::new() }),
                );
                rows.push(row);
                data.push(json!({ "window_s": window, "program": kind, "method": method,
                        "windows": answers.windows,
                                  "right_percent": answers.right(),
                                  "answered_percent": answers.answered() }));
                if beat {
                    let name = format!("{method}, {kind}");
                    match curves.iter_mut().find(|line| line.name == name) {
                        Some(line) => line.points.push((window, answers.right())),
                        None => curves.push(Line {
                            name,
                            points: vec![(window, answers.right())],
                            dashed: *method != "evidence",
                        }),
                    }
                }
            }
        }
        figures.push(answers);
    }
    let [one, two] = [&figures[2], &figures[3]];
    let claims = vec![
        Claim::at_least(
            "right in at least 99 % of 1 s windows on an idle machine",
            one[0][0].right(),
            99.0,
            " %",
        ),
        Claim::at_least(
            "right in at least 95 % of 2 s windows under load",
            two[1][0].right(),
            95.0,
            " %",
        ),
        Claim::at_most(
            "programs without a beat are called periodic in under 2 % of 2 s windows",
            two[2][0].answered(),
            2.0,
            " %",
        ),
        Claim::at_least(
            "under load in 2 s windows right more often than the heuristic of 2010, by at least 20 \
                points",
            two[1][0].right() - two[1][1].right(),
            20.0,
            " points",
        ),
    ];
    Ok(Report {
        tables: vec![Table { title: "Answers".to_owned(), columns, rows, notes: Vec::new() }],
        claims,
        pictures: vec![Picture::new(
            "Right answers (%)",
            lines("window (s)", "right (%)", &curves)?,
        )],
        data: json!(data),
        ..Report::new(EXPERIMENT.name, "The answer against the length of the window").saying(&[
            "Recordings of players (knowledge/rhythm/traces) are cut into consecutive windows and \
                each is analysed by itself. Right: within 1 % of the true rate. p5, median, p95: \
                the distribution of the found by the true rate, windows without an answer left \
                out.",
            "Published (EuroSys 2010, section 5): the distribution of the detected frequency of an \
                MP3 player narrows to the true one as the tracing time grows from 0.2 to 2 s.",
        ])
    })
}
