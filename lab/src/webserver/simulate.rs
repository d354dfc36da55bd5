//! Computes the simulator's prediction: the same policy files, the same load, and the costs that
//! were measured on the server.

use anyhow::{Context, Result, anyhow};
use attune_simulator::metrics::{Summary, Tally};
use attune_simulator::{Outcome, Workload, simulate};
use serde::Serialize;
use toml::{Table, Value};

use super::measure::{Latency, SHARES, Sample};
use super::server::Settings;
use crate::http::schedule::Pattern;
use crate::schedulers;

/// What a server's answers cost it, in nanoseconds of its core.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Costs {
    pub per_request: f64,
    pub per_byte: f64,
}

impl Costs {
    /// From what a server that is never idle answers in a second: of a mix with so many bytes a
    /// reply on average, and of large replies of so many bytes.
    pub fn of(mix: (f64, f64), large: (f64, f64)) -> Costs {
        let ((mix_rate, mix_bytes), (large_rate, large_bytes)) = (mix, large);
        let per_byte = ((1e9 / large_rate - 1e9 / mix_rate) / (large_bytes - mix_bytes)).max(0.0);
        Costs { per_request: (1e9 / mix_rate - mix_bytes * per_byte).max(0.0), per_byte }
    }
}

/// Where the server and its clients are described.
const WORKLOAD: &str = "lab/workloads/webserver.toml";
const WORKLOAD_TEXT: &str = include_str!("../../workloads/webserver.toml");

/// What the server would do under a scheduler of the library.
pub fn predict(
    scheduler: &str,
    settings: &Settings,
    costs: Costs,
    pattern: &Pattern,
) -> Result<Sample> {
    let text = adapt(WORKLOAD_TEXT, settings, costs, pattern).context(WORKLOAD)?;
    let workload = Workload::from_toml(&text, WORKLOAD).map_err(|error| anyhow!("{error}"))?;
    let run = |duration: Option<i64>| -> Result<Outcome> {
        let options =
            attune_simulator::Options { seed: pattern.seed, duration, ..Default::default() };
        let mut policy = schedulers::interpret(scheduler)?;
        simulate(&mut policy, &workload, &options).map_err(|error| anyhow!("{scheduler}: {error}"))
    };
    // Throughput is what was answered while requests came, as it is measured.
    let coming = run(Some(pattern.length as i64))?;
    let answered: u64 = clients(&coming).map(|group| group.jobs).sum();
    let outcome = run(None)?;
    let class = |name: &str| {
        clients(&outcome).find(|group| group.name == name).context("the clients' groups")
    };
    let (small, large) = (&class("small")?.response, &class("large")?.response);
    let mut all = Summary::default();
    all.add(small);
    all.add(large);
    Ok(Sample {
        throughput: answered as f64 / pattern.length as f64 * 1e9,
        small: latency(small),
        large: latency(large),
        curve: SHARES.iter().map(|share| all.quantile(*share) as f64 / 1e6).collect(),
        all: latency(&all),
        ..Sample::default()
    })
}

fn clients(outcome: &Outcome) -> impl Iterator<Item = &Tally> {
    outcome
        .groups()
        .iter()
        .filter(|group| group.outside && (group.name == "small" || group.name == "large"))
}

fn latency(summary: &Summary) -> Latency {
    let milliseconds = |time: i64| time as f64 / 1e6;
    Latency {
        count: summary.count() as f64,
        mean: summary.mean() / 1e6,
        p50: milliseconds(summary.quantile(0.5)),
        p99: milliseconds(summary.quantile(0.99)),
        max: milliseconds(summary.max()),
    }
}

/// The workload with this server's costs and settings and this load.
fn adapt(text: &str, settings: &Settings, costs: Costs, pattern: &Pattern) -> Result<String> {
    let mut workload: Table = text.parse()?;
    let globals =
        workload.get_mut("globals").and_then(Value::as_table_mut).context("it has no [globals]")?;
    let mut set = |name: &str, value: f64| -> Result<()> {
        *globals.get_mut(name).with_context(|| format!("it has no global {name}"))? =
            Value::Float(value);
        Ok(())
    };
    set("gap", 1e9 / pattern.rate)?;
    set("coming", pattern.length as f64)?;
    set("large_share", pattern.large_share)?;
    set("per_request", costs.per_request)?;
    set("per_byte", costs.per_byte)?;
    set("chunk", settings.chunk as f64)?;
    let threads =
        workload.get_mut("thread").and_then(Value::as_array_mut).context("it has no threads")?;
    let named = |thread: &&mut Value| thread.get("name").and_then(Value::as_str) == Some("handler");
    let handler = threads
        .iter_mut()
        .find(named)
        .and_then(Value::as_table_mut)
        .context("it has no handler")?;
    handler.insert("count".to_owned(), Value::Integer(settings.handlers as i64));
    Ok(workload.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_explain_the_rates_they_come_from() {
        let costs = Costs::of((1e9 / 30_000.0, 10_000.0), (1e9 / 230_000.0, 1_010_000.0));
        assert!(
            (costs.per_byte - 0.2).abs() < 1e-9 && (costs.per_request - 28_000.0).abs() < 1e-6,
            "{costs:?}"
        );
    }

    #[test]
    fn shortest_reply_halves_the_mean_of_an_overloaded_server() {
        let costs = Costs { per_request: 25_000.0, per_byte: 0.3 };
        let settings = Settings { handlers: 4000, chunk: 16 << 10 };
        // The mix costs 25 us + 0.3 ns * (2 % * 1048576 + 98 % * 13300), 35.2 us, on average, so
        // this is 115 %.
        let pattern =
            Pattern { rate: 1.15e9 / 35_200.0, length: 500_000_000, large_share: 0.02, seed: 1 };
        let fifo = predict("fifo", &settings, costs, &pattern).unwrap();
        let shortest = predict("shortest_reply", &settings, costs, &pattern).unwrap();
        assert_eq!(fifo.all.count, shortest.all.count);
        assert!((fifo.all.count - pattern.rate * 0.5).abs() < 600.0, "{}", fifo.all.count);
        assert!(shortest.all.mean < fifo.all.mean / 2.0, "{} {}", shortest.all.mean, fifo.all.mean);
        assert!(shortest.throughput > fifo.throughput);
        assert!(shortest.large.max < 1_000.0, "{}", shortest.large.max);
    }
}
