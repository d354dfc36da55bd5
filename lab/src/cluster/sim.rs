//! Experiment `cluster-sim`: in virtual time, the example clusters with and without their
//! schedulers, and clusters of 1 to 10 000 nodes under both models.

use anyhow::{Context, Result, anyhow};
use attune_cluster::simulation::{ClusterOutcome, Settings, simulate};
use attune_language::resolve::SourceText;
use attune_language::{Checked, check};
use attune_simulator::cluster::ClusterWorkload;
use attune_simulator::scheduler::Value;
use serde_json::json;

use super::example::{CAMERAS, Example, POOL, WEBAPP};
use crate::experiment::{Options, Procedure, Progress, nothing_needed};
use crate::report::{Claim, Report, Table};

pub const EXPERIMENT: Procedure = Procedure {
    name: "cluster-sim",
    about: "distributed schedulers in virtual time: a pool, cameras and a web application with and \
        without; 1 to 10 000 nodes under both models",
    check: nothing_needed,
    run,
};

fn run_example(example: &Example, seed: u64, with: bool) -> Result<ClusterOutcome> {
    let off = if with { &[] } else { example.off };
    let shared = off.iter().map(|(name, value)| (name.to_string(), Value::Int(*value)));
    let settings = Settings { seed, shared: shared.collect(), ..Settings::default() };
    simulated(&checked(example.master, example.nodes)?, example.workload, &settings)
        .with_context(|| format!("{} with seed {seed}", example.name))
}

fn checked(master: &str, nodes: &[(&str, &str)]) -> Result<Checked> {
    let source = SourceText { name: "master.sched".to_string(), text: master.to_string() };
    let mut loader = nodes;
    let checked = check(&source, &mut loader, &attune_language::Options::default());
    let first = checked.diagnostics.first().map(|diagnostic| diagnostic.message.clone());
    first.map_or(Ok(checked), |message| Err(anyhow!(message)))
}

fn simulated(checked: &Checked, workload: &str, settings: &Settings) -> Result<ClusterOutcome> {
    let workload = ClusterWorkload::from_toml(workload, "workload.toml");
    let workload = workload.map_err(|error| anyhow!(error.to_string()))?;
    simulate(checked, &workload, settings).map_err(|error| anyhow!(error.to_string()))
}

/// What an example is judged by, smaller is better: mean and largest difference of load, pictures
/// lost, mean responses of dynamic pages and of files in milliseconds.
fn figures(outcome: &ClusterOutcome) -> Vec<f64> {
    let spread = outcome.spreads.iter().find(|spread| spread.variable == "load");
    if let Some(spread) = spread {
        return vec![spread.mean, spread.most];
    }
    if let Some((_, lost)) = outcome.lost.first() {
        return vec![*lost as f64];
    }
    let groups = outcome.world.iter().flat_map(|world| world.groups());
    groups.map(|group| group.response.mean() / 1e6).collect()
}

/// What the examples do over the seeds, each with and without its scheduler.
struct Both {
    with: Vec<Vec<f64>>,
    without: Vec<Vec<f64>>,
}

impl Both {
    fn of(example: &Example, seeds: u64) -> Result<Both> {
        let runs = |with| -> Result<Vec<Vec<f64>>> {
            (1..=seeds).map(|seed| Ok(figures(&run_example(example, seed, with)?))).collect()
        };
        Ok(Both { with: runs(true)?, without: runs(false)? })
    }

    /// The mean over the seeds of one figure with the scheduler by that without it.
    fn ratio(&self, figure: usize) -> f64 {
        let mean = |runs: &[Vec<f64>]| runs.iter().map(|run| run[figure]).sum::<f64>();
        mean(&self.with) / mean(&self.without)
    }
}

const COUNT: &str = r#"distributed scheduler count {
    nodefamilies { "member.subsched" : member; }
    nodes { queue all; }
    global { int total = 0; int tickets = 0; }
    arrival (n) { n => all; }
}"#;

const MEMBER: &str = "scheduler member {
    data { threadref current; queue ready, waiting; }
    thread { int blocked = 0; }
    event newthread(t) { total += 1; t => ready; }
    event set_waiting(fixed t) { t.blocked = 1; }
    event event_raised(t) { t => ready; }
    event schedule {
        if (|ready| > 0) ready => current;
        if (|current| > 0) dispatch current;
    }
    event switch_out {
        if (|current| > 0) {
            if (current.blocked) { current.blocked = 0; current => waiting; }
            else current => ready;
        }
    }
}";

/// Nodes that each start two threads, which draw a ticket each; the links lose one message in a
/// hundred.
fn crowd(nodes: u32, model: &str) -> Result<ClusterOutcome> {
    let workload = format!(
        r#"
        duration = "3s"
        [models]
        tickets = "{model}"
        [link]
        delay = "500us"
        jitter = "200us"
        loss = 0.01
        pace = "20ms"
        resend = "100ms"
        heartbeat = "1s"
        [[node]]
        family = "member"
        count = {nodes}
        [[node.thread]]
        name = "job"
        count = 2
        start = "uniform(0, 1s)"
        do = [
            {{ compute = "1ms" }},
            {{ job = [{{ update = "tickets", add = 1, into = "ticket" }}] }},
        ]
        "#
    );
    let files = [("member.subsched", MEMBER)];
    simulated(&checked(COUNT, &files)?, &workload, &Settings::default())
}

fn shared(outcome: &ClusterOutcome, name: &str) -> f64 {
    let found = outcome.shared.iter().find(|(known, ..)| known == name);
    found.map_or(f64::NAN, |(_, _, value)| value.as_float())
}

fn run(options: &Options, progress: Progress) -> Result<Report> {
    let seeds = if options.quick { 3 } else { 20 };
    let mut claims = Vec::new();
    let mut rows = Vec::new();
    let mut data = Vec::new();
    for (example, names) in [
        (POOL, &["mean difference of load", "largest difference of load"][..]),
        (CAMERAS, &["pictures lost"]),
        (WEBAPP, &["dynamic pages (ms)", "files (ms)"]),
    ] {
        progress(example.name);
        let both = Both::of(&example, seeds)?;
        for (figure, name) in names.iter().enumerate() {
            let mean = |runs: &[Vec<f64>]| {
                runs.iter().map(|run| run[figure]).sum::<f64>() / runs.len() as f64
            };
            let (with, without) = (mean(&both.with), mean(&both.without));
            rows.push(vec![
                example.name.to_owned(),
                (*name).to_owned(),
                format!("{with:.2}"),
                format!("{without:.2}"),
            ]);
            data.push(json!({ "example": example.name, "figure": name, "with": with,
                "without": without }));
        }
        claims.extend(judge(example.name, &both));
    }
    let examples = Table::new("Examples", &["cluster", "figure", "with", "without"], rows);

    let sizes: &[u32] = if options.quick { &[1, 10, 100] } else { &[1, 10, 100, 1000, 10_000] };
    let (mut rows, mut exact, mut slowest) = (Vec::new(), true, 0.0_f64);
    for model in ["cache", "request"] {
        for &nodes in sizes {
            progress(&format!("{nodes} nodes, {model}"));
            let outcome = crowd(nodes, model)?;
            let (total, tickets) = (shared(&outcome, "total"), shared(&outcome, "tickets"));
            exact &= total == f64::from(2 * nodes) && tickets == total;
            let tallies = outcome.nodes.iter().map(|node| node.outcome.total());
            let (mut jobs, mut time) = (0, 0.0);
            for tally in tallies {
                jobs += tally.jobs;
                time += tally.response.mean() * tally.jobs as f64;
            }
            let update = time / jobs.max(1) as f64 / 1e6;
            if model == "cache" {
                slowest = update.max(slowest);
            }
            rows.push(vec![
                model.to_owned(),
                nodes.to_string(),
                format!("{tickets}"),
                format!("{update:.3}"),
                outcome.master.messages.to_string(),
                outcome.master.lost.to_string(),
            ]);
            data.push(json!({ "model": model, "nodes": nodes, "tickets": tickets,
                "update_ms": update, "messages": outcome.master.messages,
                "messages_lost": outcome.master.lost }));
        }
    }
    let largest = sizes.last().copied().unwrap_or(0);
    claims.push(Claim::new(
        format!("up to {largest} nodes lose and double no update"),
        Some((exact, if exact { "none" } else { "some" }.to_owned())),
    ));
    // A message takes ten times as long; what is left is the wait for the node's CPU.
    let name = "an update in the cache waits for no message";
    claims.push(Claim::at_most(name, slowest, 0.05, " ms"));
    let columns = ["model", "nodes", "tickets", "update (ms)", "messages", "of them lost"];
    Ok(Report {
        tables: vec![examples, Table::new("Nodes", &columns, rows)],
        claims,
        data: json!(data),
        ..Report::new(EXPERIMENT.name, "Clusters in virtual time").saying(&[
            "The three examples of docs/distributed.md, each with its scheduler and with the same \
                scheduler switched off, over several seeds. Then clusters in which each node \
                starts two threads, which count themselves in a handler and draw a ticket each. A \
                message takes 0.5 to 0.7 ms, and one of a hundred is lost.",
        ])
    })
}

fn judge(example: &str, both: &Both) -> Vec<Claim> {
    match example {
        "pool" => vec![
            Claim::at_most("pool: 0.6 of the mean difference", both.ratio(0), 0.6, ""),
            Claim::at_most("pool: half the largest difference", both.ratio(1), 0.5, ""),
        ],
        "cameras" => {
            let never = both.with.iter().all(|run| run[0] == 0.0);
            let always = both.without.iter().all(|run| run[0] > 0.0);
            let runs = both.with.len();
            vec![
                Claim::new(
                    "cameras: no picture is lost in any run",
                    Some((never, format!("{runs} runs"))),
                ),
                Claim::new(
                    "cameras: without the scheduler pictures are lost in every run",
                    Some((always, format!("{runs} runs"))),
                ),
            ]
        }
        _ => vec![
            Claim::at_most("webapp: dynamic pages in a quarter", both.ratio(0), 0.25, ""),
            Claim::at_most("webapp: files in at most 3 times", both.ratio(1), 3.0, ""),
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_claim_but_that_on_the_largest_difference_holds_on_three_seeds() {
        let folder = std::env::temp_dir();
        let options = Options { quick: true, fresh: false, programs: folder.clone(), folder };
        let report = run(&options, &|_| {}).unwrap();
        let missed = report.claims.iter().filter(|claim| !claim.holds());
        let missed: Vec<&str> = missed.map(|claim| claim.claim.as_str()).collect();
        assert!(missed.iter().all(|claim| claim.contains("largest")), "{}", report.to_text());
    }
}
