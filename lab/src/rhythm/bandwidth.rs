//! Experiment `bandwidth`: what a reservation costs against its server period.

use anyhow::Result;
use attune_rhythm::bandwidth::{Task, Tasks};
use serde_json::json;

use crate::experiment::{Options, Procedure, Progress, nothing_needed};
use crate::plot::{Line, lines};
use crate::report::{Claim, Picture, Report, Table};

pub const EXPERIMENT: Procedure = Procedure {
    name: "bandwidth",
    about: "the least bandwidth against the server period, for the published task sets",
    check: nothing_needed,
    run,
};

fn run(_options: &Options, _progress: Progress) -> Result<Report> {
    let tasks = |list: &[(f64, f64)]| {
        Tasks::new(list.iter().map(|&(cost, period)| Task { cost, period }).collect())
    };
    let (one, three) = (tasks(&[(20.0, 100.0)])?, tasks(&[(3.0, 15.0), (5.0, 20.0), (5.0, 30.0)])?);
    let curve = |name: &str, periods: &[f64], bandwidth: &dyn Fn(f64) -> Option<f64>| Line {
        name: name.to_owned(),
        points: periods
            .iter()
            .filter_map(|&period| Some((period, 100.0 * bandwidth(period)?)))
            .collect(),
        dashed: false,
    };
    let long: Vec<f64> = (1..=400).map(|half| 0.5 * f64::from(half)).collect();
    let short: Vec<f64> = (1..=300).map(|tenth| 0.1 * f64::from(tenth)).collect();
    let single = curve("20 every 100, a server of its own", &long, &|period| one.own(period));
    let each = curve("3/15, 5/20, 5/30: one server each", &short, &|period| three.own(period));
    let together = curve("3/15, 5/20, 5/30: all in one", &short, &|period| three.one(period));
    let least = |line: &Line| line.points.iter().map(|point| point.1).fold(f64::MAX, f64::min);
    let at_task = one.own(100.0).unwrap_or(f64::MAX) * 100.0;
    let rows = [
        (&single, 100.0 * one.utilisation()),
        (&each, 100.0 * three.utilisation()),
        (&together, 100.0 * three.utilisation()),
    ]
    .map(|(line, used)| {
        vec![line.name.clone(), format!("{used:.2}"), format!("{:.2}", least(line))]
    });
    Ok(Report {
        tables: vec![Table::new(
            "Least bandwidth (%)",
            &["tasks", "used", "least over the curve"],
            rows.to_vec(),
        )],
        claims: vec![
            Claim::at_most(
                "20 every 100 needs 20 % at a server period of 100",
                at_task,
                20.0 + 1e-6,
                " %",
            ),
            Claim::at_most(
                "the three tasks need 62 % in servers of their own",
                least(&each),
                62.0,
                " %",
            ),
            Claim::at_least(
                "all in one under fixed priorities needs more, at least 70 %",
                least(&together),
                70.0 - 1e-6,
                " %",
            ),
        ],
        pictures: vec![
            Picture::new("One task", lines("server period", "least bandwidth (%)", &[single])?),
            Picture::new(
                "Three tasks",
                lines("server period", "least bandwidth (%)", &[each, together])?,
            ),
        ],
        commands: vec![
            "attune lab run bandwidth".to_owned(),
            "attune bandwidth --task 3,15 --task 5,20 --task 5,30".to_owned(),
        ],
        data: json!({ "one_at_its_period": at_task, "used_by_three": 100.0 * three.utilisation() }),
        ..Report::new(EXPERIMENT.name, "Bandwidth against server period").saying(&[
            "The least bandwidth with which every job meets its deadline, by the supply of a \
                constant bandwidth server (knowledge/rhythm, module bandwidth). A server whose \
                period is the task's, or an integer part of it, costs no more than the task; any \
                other costs more, which is why the period is worth finding. Published: EuroSys \
                2010, section 3.",
        ])
    })
}
