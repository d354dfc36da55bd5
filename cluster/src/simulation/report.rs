//! Shows what came of a cluster: plain text, JSON, a page, a trace. Each is a pure function of the
//! outcome, so that equal runs give equal bytes.

use std::fmt::Write;

use attune_replica::schema::Model;
use attune_simulator::metrics::Tally;
use attune_simulator::report::{TracedMachine, trace_of};
use attune_simulator::scheduler::Value;
use attune_simulator::{Outcome, duration};

use super::outcome::{ClusterOutcome, NodeOutcome};

/// More nodes than this are shown by their groups only; the JSON has them all.
const MOST_NODES: usize = 40;

const HEADINGS: [&str; 14] = [
    "nodes",
    "here",
    "busy",
    "jobs",
    "jobs/s",
    "not done",
    "missed",
    "lat. p50",
    "p99",
    "resp. mean",
    "p50",
    "p99",
    "max",
    "lost",
];

impl ClusterOutcome {
    /// Plain text with aligned columns.
    pub fn table(&self) -> String {
        let mut text = self.summary();
        let mut groups: Vec<&str> = Vec::new();
        for node in &self.nodes {
            if !groups.contains(&node.group.as_str()) {
                groups.push(&node.group);
            }
        }
        let mut rows = Vec::new();
        for group in groups {
            let nodes: Vec<&NodeOutcome> =
                self.nodes.iter().filter(|node| node.group == group).collect();
            rows.push(self.row(group, &nodes));
        }
        let all: Vec<&NodeOutcome> = self.nodes.iter().collect();
        if rows.len() > 1 {
            rows.push(self.row("total", &all));
        }
        if let Some(world) = &self.world {
            rows.extend(world.groups().iter().map(|group| self.outside(group)));
        }
        text += "\n";
        text += &aligned("group", rows);
        if self.nodes.len() > 1 && self.nodes.len() <= MOST_NODES {
            text += "\n";
            text +=
                &aligned("node", all.iter().map(|node| self.row(&node.name, &[node])).collect());
        }
        if !self.spreads.is_empty() {
            text += "\n";
            for spread in &self.spreads {
                let _ = writeln!(
                    text,
                    "{} of {}: mean {:.2}, largest {:.2}; difference between nodes: mean {:.2}, \
                     largest {:.2}",
                    spread.variable,
                    spread.group,
                    spread.level,
                    spread.largest,
                    spread.mean,
                    spread.most
                );
            }
        }
        text
    }

    fn summary(&self) -> String {
        let nodes = self.nodes.len();
        let mut text = format!(
            "{} under {}: {} with {nodes} node{}, seed {}\n",
            self.workload,
            self.policy,
            duration(self.elapsed),
            if nodes == 1 { "" } else { "s" },
            self.seed
        );
        let master = &self.master;
        let _ = writeln!(
            text,
            "{} arrivals, {} departures; {} messages with the master, {} of them lost; {} \
             revisions; {} events",
            master.arrivals,
            master.departures,
            master.messages,
            master.lost,
            master.revisions,
            self.events
        );
        for (name, model, value) in &self.shared {
            let model = match model {
                Model::Cache => "",
                Model::Request => " (request)",
            };
            let _ = writeln!(text, "GLOBAL.{name}{model} = {}", number(*value));
        }
        for (channel, lost) in &self.lost {
            let _ = writeln!(text, "channel {channel}: {lost} messages found no room");
        }
        text
    }

    fn row(&self, name: &str, nodes: &[&NodeOutcome]) -> Vec<String> {
        let mut all = Tally::default();
        let (mut capacity, mut lost, mut lost_anywhere) = (0, 0, false);
        let mut here = 0;
        for node in nodes {
            all.add(node.outcome.total());
            capacity += node.outcome.elapsed() * node.outcome.cpus().len() as i64;
            here += node.outcome.elapsed();
            lost_anywhere |= !node.outcome.lost().is_empty();
            lost += node.outcome.lost().iter().map(|(_, lost)| lost).sum::<u64>();
        }
        let busy = all.cpu as f64 * 100.0 / capacity.max(1) as f64;
        let mut row = vec![
            name.to_string(),
            if nodes.len() == 1 { none() } else { nodes.len().to_string() },
            if here == self.elapsed * nodes.len() as i64 {
                none()
            } else {
                duration(here / nodes.len().max(1) as i64)
            },
            format!("{busy:.1} %"),
        ];
        row.extend(self.jobs(&all));
        row.push(if lost_anywhere { lost.to_string() } else { none() });
        row
    }

    fn outside(&self, group: &Tally) -> Vec<String> {
        let mut row = vec![group.name.clone(), none(), none(), none()];
        row.extend(self.jobs(group));
        row.push(none());
        row
    }

    fn jobs(&self, tally: &Tally) -> Vec<String> {
        let seconds = self.elapsed.max(1) as f64 / 1e9;
        let counted = |count: u64| if count == 0 { none() } else { count.to_string() };
        let response = |text: String| if tally.response.count() == 0 { none() } else { text };
        let latency = |q: f64| match tally.latency.count() {
            0 => none(),
            _ => duration(tally.latency.quantile(q)),
        };
        let per_second = format!("{:.1}", tally.jobs as f64 / seconds);
        vec![
            counted(tally.jobs),
            if tally.jobs == 0 { none() } else { per_second },
            counted(tally.unfinished),
            if tally.has_deadlines() { tally.missed.to_string() } else { none() },
            latency(0.5),
            latency(0.99),
            response(duration(tally.response.mean() as i64)),
            response(duration(tally.response.quantile(0.5))),
            response(duration(tally.response.quantile(0.99))),
            response(duration(tally.response.max())),
        ]
    }

    /// One JSON object; docs/workloads.md describes it.
    pub fn json(&self) -> String {
        let master = &self.master;
        let mut text = format!(
            "{{\n\"policy\": {},\n\"workload\": {},\n\"seed\": {},\n\"elapsed_ns\": {},\n\
             \"events\": {},\n\"master\": {{\"arrivals\": {}, \"departures\": {}, \"given_up\": \
             {}, \"messages\": {}, \"messages_lost\": {}, \"calls_reset\": {}, \
             \"revisions\": {}}},\n",
            quoted(&self.policy),
            quoted(&self.workload),
            self.seed,
            self.elapsed,
            self.events,
            master.arrivals,
            master.departures,
            master.given_up,
            master.messages,
            master.lost,
            master.reset,
            master.revisions
        );
        let shared = self.shared.iter().map(|(name, model, value)| {
            let model = if *model == Model::Cache { "cache" } else { "request" };
            format!(
                "{{\"name\": {}, \"model\": \"{model}\", \"value\": {}}}",
                quoted(name),
                number(*value)
            )
        });
        let spreads = self.spreads.iter().map(|spread| {
            format!(
                "{{\"group\": {}, \"variable\": {}, \"mean\": {}, \"largest\": {}, \
                 \"mean_difference\": {}, \"largest_difference\": {}}}",
                quoted(&spread.group),
                quoted(&spread.variable),
                spread.level,
                spread.largest,
                spread.mean,
                spread.most
            )
        });
        let lost = self.lost.iter().map(|(channel, lost)| {
            format!("{{\"channel\": {}, \"messages\": {lost}}}", quoted(channel))
        });
        let nodes = self.nodes.iter().map(|node| {
            let ended = node.ended.map_or("null".to_string(), |ended| ended.to_string());
            format!(
                "{{\"name\": {}, \"group\": {}, \"family\": {}, \"start_ns\": {}, \"ended_ns\": \
                 {ended}, \"outcome\": {}}}",
                quoted(&node.name),
                quoted(&node.group),
                quoted(&node.family),
                node.start,
                node.outcome.json()
            )
        });
        let _ = write!(
            text,
            "\"shared\": [{}],\n\"spreads\": [{}],\n\"lost_messages\": [{}],\n\"clients\": {},\n\
             \"nodes\": [{}]\n}}\n",
            listed(shared),
            listed(spreads),
            listed(lost),
            self.world.as_ref().map_or("null".to_string(), Outcome::json),
            listed(nodes)
        );
        text
    }

    /// A page that needs nothing from the network.
    pub fn html(&self) -> String {
        let title = escaped(&format!("{} under {}", self.workload, self.policy));
        let mut page = format!(
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}\
             </title>\n<style>body{{font:15px/1.5 system-ui,sans-serif;max-width:1080px;\
             margin:2rem auto}}pre{{overflow-x:auto}}</style></head>\n<body><h1>{title}</h1>\n\
             <pre>{}</pre>\n",
            escaped(&self.table())
        );
        for node in self.nodes.iter().take(MOST_NODES) {
            let _ = writeln!(
                page,
                "<h2>{}</h2>\n<pre>{}</pre>",
                escaped(&node.name),
                escaped(&node.outcome.table())
            );
        }
        page + "</body></html>\n"
    }

    /// A trace that Perfetto opens, each node with tracks of its own.
    pub fn perfetto(&self) -> Vec<u8> {
        let machines = self.nodes.iter().map(|node| TracedMachine {
            name: &node.name,
            start: node.start,
            outcome: &node.outcome,
        });
        trace_of(machines, &format!("{} under {}, seed {}", self.workload, self.policy, self.seed))
    }

    /// What the machines warn of, each with its node.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings: Vec<String> = Vec::new();
        for node in &self.nodes {
            for warning in node.outcome.warnings() {
                let warning = format!("in nodes of {}: {warning}", node.group);
                if !warnings.contains(&warning) {
                    warnings.push(warning);
                }
            }
        }
        warnings
    }
}

fn none() -> String {
    "-".to_string()
}

fn aligned(what: &str, rows: Vec<Vec<String>>) -> String {
    let mut lines: Vec<Vec<String>> =
        vec![std::iter::once(what).chain(HEADINGS).map(String::from).collect()];
    lines.extend(rows);
    // Columns that say nothing about anybody are left out.
    let columns: Vec<usize> = (0..=HEADINGS.len())
        .filter(|&column| lines[1..].iter().any(|line| line[column] != "-"))
        .collect();
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max();
    let widths: Vec<usize> = columns.iter().map(|&column| width(column).unwrap_or(0)).collect();
    let mut text = String::new();
    for line in &lines {
        let mut shown = String::new();
        for (&column, &width) in columns.iter().zip(&widths) {
            let cell = &line[column];
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

fn number(value: Value) -> String {
    match value {
        Value::Int(value) => value.to_string(),
        Value::Float(value) => format!("{value:?}"),
    }
}

fn listed(items: impl Iterator<Item = String>) -> String {
    let items: Vec<String> = items.collect();
    if items.is_empty() { String::new() } else { format!("\n{}\n", items.join(",\n")) }
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
