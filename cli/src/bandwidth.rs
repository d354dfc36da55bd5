//! `attune bandwidth`: the least bandwidth against the server period.

use std::fmt::Write;
use std::process::ExitCode;

use attune_lab::plot::{Line, lines};
use attune_rhythm::bandwidth::{Task, Tasks};
use serde_json::json;

use crate::args::BandwidthArgs;
use crate::failure::Failure;
use crate::output;

/// Server periods in one table or curve, at most.
const MOST_POINTS: f64 = 10_000.0;

struct Point {
    server: f64,
    own: Option<f64>,
    one: Option<f64>,
}

pub fn run(args: &BandwidthArgs) -> Result<ExitCode, Failure> {
    let tasks =
        Tasks::new(args.tasks.clone()).map_err(|error| Failure::usage(error.to_string()))?;
    let points: Vec<Point> = servers(args, &tasks)?
        .into_iter()
        .map(|server| Point { server, own: tasks.own(server), one: tasks.one(server) })
        .collect();
    let text = if args.json { json_text(&tasks, &points) } else { table(&tasks, &points) };
    output::print(&text)?;
    if let Some(path) = &args.plot {
        output::write(path, plot(&points)?)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The server periods that are asked for: by default up to twice the longest period, in forty
/// steps.
fn servers(args: &BandwidthArgs, tasks: &Tasks) -> Result<Vec<f64>, Failure> {
    let longest = tasks.tasks().iter().map(|task| task.period).fold(0.0, f64::max);
    let to = args.to.unwrap_or(2.0 * longest);
    let step = args.step.unwrap_or(to / 40.0);
    let from = args.from.unwrap_or(step);
    // Comparisons that a NaN fails too.
    if !(from > 0.0 && step > 0.0 && to >= from && (to - from) / step < MOST_POINTS) {
        return Err(Failure::usage(format!(
            "server periods from {from} to {to} in steps of {step}: they must be positive, and not \
                more than {MOST_POINTS}"
        )));
    }
    let count = ((to - from) / step + 1e-9) as usize;
    Ok((0..=count).map(|index| from + step * index as f64).collect())
}

fn table(tasks: &Tasks, points: &[Point]) -> String {
    let mut text = String::new();
    for task in tasks.tasks() {
        let _ = writeln!(
            text,
            "task  {} every {}: {:.2} %",
            task.cost,
            task.period,
            100.0 * task.cost / task.period
        );
    }
    let _ = writeln!(
        text,
        "a server of its own for each, with its period: {:.2} %\n\nserver period  one each  all in \
            one\n-------------  --------  ----------",
        100.0 * tasks.utilisation()
    );
    let percent = |bandwidth: Option<f64>| {
        bandwidth.map_or("-".to_owned(), |share| format!("{:.2} %", 100.0 * share))
    };
    for point in points {
        let _ = writeln!(
            text,
            "{:13.3}  {:>8}  {:>10}",
            point.server,
            percent(point.own),
            percent(point.one)
        );
    }
    text.push_str(
        "\none each: a constant bandwidth server per task; all in one: fixed priorities inside; -: \
            no budget is enough\n",
    );
    text
}

fn json_text(tasks: &Tasks, points: &[Point]) -> String {
    let list: Vec<_> = tasks
        .tasks()
        .iter()
        .map(|task| json!({ "cost": task.cost, "period": task.period }))
        .collect();
    let curve: Vec<_> = points
        .iter()
        .map(|point| {
            json!({ "server_period": point.server, "one_each": point.own,
            "all_in_one": point.one })
        })
        .collect();
    format!("{}\n", json!({ "tasks": list, "utilisation": tasks.utilisation(), "curve": curve }))
}

fn plot(points: &[Point]) -> Result<String, Failure> {
    let line = |name: &str, dashed, bandwidth: fn(&Point) -> Option<f64>| Line {
        name: name.to_owned(),
        points: points
            .iter()
            .filter_map(|point| Some((point.server, 100.0 * bandwidth(point)?)))
            .collect(),
        dashed,
    };
    let curves = [
        line("one server each", false, |point| point.own),
        line("all in one", true, |point| point.one),
    ];
    let drawn = lines("server period", "least bandwidth (%)", &curves);
    drawn.map_err(|error| Failure::wrong(format!("{error:#}")))
}

/// `C,P` as a task.
pub fn parse_task(text: &str) -> Result<Task, String> {
    let numbers = text
        .split_once(',')
        .and_then(|(cost, period)| Some((cost.trim().parse().ok()?, period.trim().parse().ok()?)));
    let (cost, period) =
        numbers.ok_or_else(|| format!("{text} is no task; a task is C,P such as 20,100"))?;
    Ok(Task { cost, period })
}
