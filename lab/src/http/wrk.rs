//! Runs wrk, the closed-loop generator that everybody knows. Latencies are nanoseconds.

use std::fmt::Write as _;
use std::net::SocketAddrV4;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::schedule::Target;

/// What wrk says about a run.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Summary {
    pub requests_per_second: f64,
    pub mean: f64,
    pub median: f64,
    pub p99: f64,
    /// Connections refused or broken, timeouts, replies other than 2xx and 3xx.
    pub errors: u64,
    /// The command, for the record.
    pub command: String,
}

/// Whether wrk can be run.
pub fn is_installed() -> bool {
    Command::new("wrk").arg("--version").output().is_ok()
}

/// A script for wrk that asks for targets at random, the large ones with probability `large_share`.
pub fn script(targets: &[Target], large_share: f64, keep_alive: bool) -> String {
    let mut text = String::from("math.randomseed(1)\nlocal small, large = {}, {}\n");
    for target in targets {
        let kind = if target.large { "large" } else { "small" };
        let connection = if keep_alive { "keep-alive" } else { "close" };
        // Written by hand: wrk.format would do this for every request.
        let request = format!(
            "GET {} HTTP/1.1\\r\\nHost: lab\\r\\nConnection: {connection}\\r\\n\\r\\n",
            target.path
        );
        let _ = writeln!(text, "{kind}[#{kind} + 1] = \"{request}\"");
    }
    let _ = writeln!(
        text,
        "function request()\n  local kind = small\n  if math.random() < {large_share} then kind = \
            large end\n  return kind[math.random(#kind)]\nend"
    );
    text
}

/// Runs wrk with one thread and so many connections.
pub fn run(
    server: SocketAddrV4,
    script: &Path,
    connections: usize,
    length: Duration,
) -> Result<Summary> {
    let mut command = Command::new("wrk");
    command.args([
        "--latency",
        "-t1",
        &format!("-c{connections}"),
        &format!("-d{}s", length.as_secs().max(1)),
    ]);
    command.args(["--timeout", "30s", "-s"]).arg(script).arg(format!("http://{server}/"));
    let words: Vec<_> =
        command.get_args().map(|word| word.to_string_lossy().into_owned()).collect();
    let output = command.output().context("starting wrk")?;
    let text = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        bail!("wrk failed: {}{}", text, String::from_utf8_lossy(&output.stderr));
    }
    parse(&text, format!("wrk {}", words.join(" ")))
        .with_context(|| format!("cannot read what wrk says:\n{text}"))
}

fn parse(text: &str, command: String) -> Option<Summary> {
    let after =
        |start: &str| text.lines().find_map(|line| line.trim().strip_prefix(start)).map(str::trim);
    let time_after =
        |start| after(start).and_then(|rest| duration(rest.split_whitespace().next()?));
    // "Socket errors: connect 0, read 3, write 0, timeout 1"
    let numbers = |rest: &str| {
        rest.split(|c: char| !c.is_ascii_digit())
            .filter_map(|word| word.parse::<u64>().ok())
            .sum::<u64>()
    };
    Some(Summary {
        requests_per_second: after("Requests/sec:")?.parse().ok()?,
        mean: time_after("Latency  ")?,
        median: time_after("50%")?,
        p99: time_after("99%")?,
        errors: after("Socket errors:").map_or(0, numbers)
            + after("Non-2xx or 3xx responses:").map_or(0, numbers),
        command,
    })
}

/// "1.25ms" in nanoseconds.
fn duration(text: &str) -> Option<f64> {
    let units = [("us", 1e3), ("ms", 1e6), ("m", 60e9), ("h", 3600e9), ("s", 1e9)];
    let (number, unit) =
        units.iter().find_map(|(name, unit)| Some((text.strip_suffix(name)?, unit)))?;
    Some(number.parse::<f64>().ok()? * unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: &str = "\
Running 2s test @ http://127.0.0.1:18080/
  1 threads and 16 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency   446.38us  264.69us   5.23ms   74.11%
    Req/Sec    33.85k     1.23k   35.23k    76.19%
  Latency Distribution
     50%  400.00us
     75%  500.00us
     90%    1.10ms
     99%    1.52s
  70646 requests in 2.10s, 49.59MB read
  Socket errors: connect 0, read 3, write 0, timeout 1
  Non-2xx or 3xx responses: 7
Requests/sec:  33647.59
Transfer/sec:     23.62MB
";

    #[test]
    fn reads_what_wrk_says() {
        let summary = parse(SAID, String::new()).unwrap();
        assert_eq!(summary.requests_per_second, 33647.59);
        assert!((summary.mean - 446_380.0).abs() < 1.0);
        assert_eq!((summary.median, summary.p99, summary.errors), (400_000.0, 1.52e9, 11));
        assert_eq!(parse("unable to connect", String::new()), None);
    }
}
