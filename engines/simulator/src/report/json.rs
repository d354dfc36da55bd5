//! Shows the outcome as one JSON object. Times are whole nanoseconds; a figure without a
//! measurement is null.

use serde::Serialize;

use crate::metrics::{Summary, Tally};
use crate::outcome::Outcome;
use crate::scheduler::Time;

#[derive(Serialize)]
struct Document<'a> {
    policy: &'a str,
    workload: &'a str,
    seed: u64,
    /// "duration", "all_ended", "stalled" or "event_limit".
    ended_by: &'a str,
    elapsed_ns: Time,
    context_switch_ns: Time,
    migration_ns: Time,
    events: u64,
    handler_calls: u64,
    jain_threads: Option<f64>,
    jain_groups: Option<f64>,
    instances: Vec<Instance>,
    cpus: Vec<Cpu>,
    total: Row<'a>,
    groups: Vec<Row<'a>>,
    threads: Vec<Row<'a>>,
    lost_messages: Vec<Lost<'a>>,
    warnings: Vec<String>,
}

#[derive(Serialize)]
struct Instance {
    first_cpu: u32,
    cpus: u32,
}

#[derive(Serialize)]
struct Cpu {
    busy_ns: Time,
    switching_ns: Time,
    lock_wait_ns: Time,
    idle_ns: Time,
    context_switches: u64,
}

#[derive(Serialize)]
struct Lost<'a> {
    channel: &'a str,
    messages: u64,
}

#[derive(Serialize)]
struct Row<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<&'a str>,
    outside: bool,
    threads: u64,
    created_ns: Time,
    ended_ns: Option<Time>,
    cpu_ns: Time,
    cpu_share: f64,
    /// In rows of groups: over the CPU time of their threads.
    jain: Option<f64>,
    dispatches: u64,
    context_switches: u64,
    migrations: u64,
    moves: u64,
    preemptions: u64,
    jobs: u64,
    jobs_per_second: f64,
    jobs_unfinished: u64,
    deadlines_missed: u64,
    releases_skipped: u64,
    threads_never_dispatched: u64,
    longest_wait_ns: Time,
    dispatch_latency: Option<Distribution>,
    response: Option<Distribution>,
    tardiness: Option<Distribution>,
}

#[derive(Serialize)]
struct Distribution {
    count: u64,
    mean_ns: f64,
    p50_ns: Time,
    p90_ns: Time,
    p99_ns: Time,
    p999_ns: Time,
    max_ns: Time,
}

pub fn render(outcome: &Outcome) -> String {
    let figures = &outcome.figures;
    let document = Document {
        policy: outcome.policy(),
        workload: outcome.workload(),
        seed: outcome.seed(),
        ended_by: outcome.ending().name(),
        elapsed_ns: outcome.elapsed(),
        context_switch_ns: figures.context_switch,
        migration_ns: figures.migration,
        events: outcome.events(),
        handler_calls: outcome.calls(),
        jain_threads: outcome.jain_threads(),
        jain_groups: outcome.jain_groups(),
        instances: outcome
            .instances()
            .iter()
            .map(|cpus| Instance { first_cpu: cpus.start, cpus: cpus.len() as u32 })
            .collect(),
        cpus: outcome
            .cpus()
            .iter()
            .zip(outcome.idle())
            .map(|(cpu, idle_ns)| Cpu {
                busy_ns: cpu.busy,
                switching_ns: cpu.overhead,
                lock_wait_ns: cpu.lock_wait,
                idle_ns,
                context_switches: cpu.switches,
            })
            .collect(),
        total: row(outcome, outcome.total(), None, None),
        groups: outcome
            .groups()
            .iter()
            .map(|group| row(outcome, group, None, outcome.jain_within(group.group)))
            .collect(),
        threads: outcome
            .threads()
            .iter()
            .map(|thread| {
                row(outcome, thread, Some(&outcome.groups()[thread.group as usize].name), None)
            })
            .collect(),
        lost_messages: outcome
            .lost()
            .iter()
            .map(|(channel, messages)| Lost { channel, messages: *messages })
            .collect(),
        warnings: outcome.warnings().iter().map(|warning| warning.to_string()).collect(),
    };
    // Only maps with keys that are no texts cannot be written, and there are none.
    serde_json::to_string_pretty(&document).unwrap_or_default()
}

fn row<'a>(
    outcome: &Outcome,
    tally: &'a Tally,
    group: Option<&'a str>,
    jain: Option<f64>,
) -> Row<'a> {
    Row {
        name: &tally.name,
        group,
        outside: tally.outside,
        threads: tally.threads,
        created_ns: tally.created,
        ended_ns: tally.ended,
        cpu_ns: tally.cpu,
        cpu_share: outcome.share(tally),
        jain,
        dispatches: tally.dispatches,
        context_switches: tally.switches,
        migrations: tally.migrations,
        moves: tally.moves,
        preemptions: tally.preemptions,
        jobs: tally.jobs,
        jobs_per_second: tally.jobs as f64 * 1e9 / outcome.elapsed().max(1) as f64,
        jobs_unfinished: tally.unfinished,
        deadlines_missed: tally.missed,
        releases_skipped: tally.skipped,
        threads_never_dispatched: tally.never_dispatched,
        longest_wait_ns: tally.longest_wait,
        dispatch_latency: distribution(&tally.latency),
        response: distribution(&tally.response),
        tardiness: distribution(&tally.tardiness),
    }
}

fn distribution(summary: &Summary) -> Option<Distribution> {
    (summary.count() > 0).then(|| Distribution {
        count: summary.count(),
        mean_ns: summary.mean(),
        p50_ns: summary.quantile(0.5),
        p90_ns: summary.quantile(0.9),
        p99_ns: summary.quantile(0.99),
        p999_ns: summary.quantile(0.999),
        max_ns: summary.max(),
    })
}
