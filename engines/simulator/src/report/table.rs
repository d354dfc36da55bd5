//! Shows the outcome as plain text: a summary, one line per group, one line per thread if they are
//! few.

use crate::duration::duration;
use crate::metrics::Tally;
use crate::outcome::{Ending, Outcome};

/// More threads than this are not listed one by one; the JSON has them.
const MOST_THREADS: usize = 40;

pub fn render(outcome: &Outcome) -> String {
    let mut text = summary(outcome);
    text += "\n";
    let mut rows: Vec<&Tally> = outcome.groups().iter().collect();
    let total;
    if rows.iter().filter(|group| !group.outside).count() > 1 {
        total = outcome.total();
        rows.push(total);
    }
    text += &table("group", outcome, &rows);
    let threads = outcome.threads();
    if threads.len() > outcome.groups().len() && threads.len() <= MOST_THREADS {
        text += "\n";
        text += &table("thread", outcome, &threads.iter().collect::<Vec<_>>());
    }
    text
}

fn summary(outcome: &Outcome) -> String {
    let cpus = outcome.cpus().len();
    let elapsed = outcome.elapsed();
    let ending = match outcome.ending() {
        Ending::Duration => "",
        Ending::AllEnded => ", until all threads ended",
        Ending::Stalled => ", until nothing could happen any more",
        Ending::EventLimit => ", until the limit of events",
    };
    let idle: i64 = outcome.idle().sum();
    let overhead: i64 = outcome.cpus().iter().map(|cpu| cpu.overhead).sum();
    let switches: u64 = outcome.cpus().iter().map(|cpu| cpu.switches).sum();
    let capacity = (elapsed * cpus as i64).max(1) as f64;
    let percent = |time: i64| format!("{:.1} %", time as f64 * 100.0 / capacity);
    let index = |index: Option<f64>| index.map_or("-".into(), |index| format!("{index:.4}"));
    let instances = match outcome.instances().len() {
        1 => String::new(),
        count => format!(" in {count} instances"),
    };
    let mut text = format!(
        "{} under {}: {} on {cpus} CPU{}{instances}{ending}, seed {}\n",
        outcome.workload(),
        outcome.policy(),
        duration(elapsed),
        if cpus == 1 { "" } else { "s" },
        outcome.seed(),
    );
    text += &format!(
        "busy {}, switching {} ({switches} context switches), idle {}\n",
        percent(outcome.total().cpu),
        percent(overhead),
        percent(idle)
    );
    text += &format!(
        "Jain's index of CPU time: {} over threads, {} over groups; {} events, {} handler calls\n",
        index(outcome.jain_threads()),
        index(outcome.jain_groups()),
        outcome.events(),
        outcome.calls()
    );
    for (channel, lost) in outcome.lost() {
        text += &format!("channel {channel}: {lost} messages found no room\n");
    }
    text
}

const HEADINGS: [&str; 23] = [
    "threads",
    "never ran",
    "cpu",
    "share",
    "Jain",
    "switches",
    "migr.",
    "moves",
    "jobs",
    "jobs/s",
    "not done",
    "missed",
    "lat. p50",
    "p99",
    "p99.9",
    "longest",
    "resp. mean",
    "p50",
    "p99",
    "max",
    "tard. p50",
    "p99",
    "max",
];

fn table(what: &str, outcome: &Outcome, rows: &[&Tally]) -> String {
    let mut lines =
        vec![std::iter::once(what).chain(HEADINGS).map(String::from).collect::<Vec<_>>()];
    lines.extend(rows.iter().map(|tally| row(outcome, tally)));
    // Columns that say nothing about anybody are left out.
    let said: Vec<bool> = (0..lines[0].len())
        .map(|column| lines[1..].iter().any(|line| !matches!(line[column].as_str(), "" | "-")))
        .collect();
    let widths: Vec<usize> = (0..lines[0].len())
        .map(|column| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0))
        .collect();
    let mut text = String::new();
    for line in &lines {
        let mut shown = String::new();
        for (column, cell) in line.iter().enumerate().filter(|(column, _)| said[*column]) {
            let width = widths[column];
            if column == 0 {
                shown += &format!("{cell:<width$}");
            } else {
                shown += &format!("  {cell:>width$}");
            }
        }
        text += shown.trim_end();
        text += "\n";
    }
    text
}

fn row(outcome: &Outcome, tally: &Tally) -> Vec<String> {
    let none = || "-".to_string();
    let seconds = (outcome.elapsed().max(1)) as f64 / 1e9;
    let inside = |text: String| if tally.outside { none() } else { text };
    let counted = |count: u64| if count == 0 { none() } else { count.to_string() };
    let of = |summary: &crate::metrics::Summary, text: String| {
        if summary.count() == 0 { none() } else { text }
    };
    let latency = |q: f64| inside(of(&tally.latency, duration(tally.latency.quantile(q))));
    let response = |q: f64| of(&tally.response, duration(tally.response.quantile(q)));
    let tardiness = |q: f64| of(&tally.tardiness, duration(tally.tardiness.quantile(q)));
    let is_group = outcome.groups().iter().any(|group| std::ptr::eq(group, tally));
    let jain = if is_group && tally.threads > 1 { outcome.jain_within(tally.group) } else { None };
    let jobs = |text: String| if tally.jobs == 0 { none() } else { text };
    vec![
        tally.name.clone(),
        if tally.threads == 1 { none() } else { tally.threads.to_string() },
        counted(tally.never_dispatched),
        inside(duration(tally.cpu)),
        inside(format!("{:.1} %", outcome.share(tally) * 100.0)),
        jain.map_or_else(none, |jain| format!("{jain:.3}")),
        inside(tally.switches.to_string()),
        if outcome.cpus().len() == 1 { none() } else { inside(tally.migrations.to_string()) },
        if outcome.instances().len() == 1 { none() } else { inside(tally.moves.to_string()) },
        jobs(tally.jobs.to_string()),
        jobs(format!("{:.1}", tally.jobs as f64 / seconds)),
        counted(tally.unfinished),
        if tally.has_deadlines() { tally.missed.to_string() } else { none() },
        latency(0.5),
        latency(0.99),
        latency(0.999),
        inside(duration(tally.longest_wait)),
        of(&tally.response, duration(tally.response.mean() as i64)),
        response(0.5),
        response(0.99),
        of(&tally.response, duration(tally.response.max())),
        tardiness(0.5),
        tardiness(0.99),
        of(&tally.tardiness, duration(tally.tardiness.max())),
    ]
}
