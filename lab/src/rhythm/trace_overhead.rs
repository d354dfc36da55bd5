//! Experiment `trace-overhead`: what a transcode pays for being traced.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::live::{Stage, median, player, require};
use crate::experiment::{Options, Procedure, Progress};
use crate::plot::bars;
use crate::report::{Claim, Picture, Report, Table};

pub const EXPERIMENT: Procedure = Procedure {
    name: "trace-overhead",
    about: "CPU time of an ffmpeg transcode alone, under our tracer and under strace (needs root, \
        ffmpeg, strace)",
    check: |_| require(&["ffmpeg", "strace"]),
    run,
};

/// Ways to run it.
const WAYS: [&str; 4] =
    ["alone", "attune trace, as tuning listens", "attune trace, everything", "strace -f"];
/// Published for the tracer of 2010 and for strace, in per cent.
const PUBLISHED: [&str; 4] = ["", "0.63", "", "5.51"];

/// What a transcode costs, in seconds: CPU time, with the kernel's work for the tracer on its
/// account, and wall-clock time.
struct Cost {
    transcode: f64,
    wall: f64,
}

fn run(options: &Options, progress: Progress) -> Result<Report> {
    let rounds = if options.quick { 5 } else { 15 };
    let stage = Stage::bare(options)?;
    let film = player("mplayer 25").context("a film")?.film(&stage.folder)?;
    let mut costs: [Vec<Cost>; 4] = Default::default();
    for round in 0..rounds {
        progress(&format!("round {} of {rounds}", round + 1));
        // In turn, so that a machine that changes its speed changes it for all.
        for (way, costs) in WAYS.iter().zip(&mut costs) {
            costs.push(transcode(&stage, way, &film)?);
        }
    }
    let overhead = |way: usize, of: fn(&Cost) -> f64| {
        let ratios: Vec<f64> = costs[way]
            .iter()
            .zip(&costs[0])
            .map(|(cost, alone)| 100.0 * (of(cost) / of(alone) - 1.0))
            .collect();
        median(&ratios)
    };
    let cpu = |way| overhead(way, |cost: &Cost| cost.transcode);
    let wall = |way| overhead(way, |cost: &Cost| cost.wall);
    let mut rows = Vec::new();
    let mut data = Vec::<Value>::new();
    for (way, name) in WAYS.iter().enumerate() {
        let time = median(&costs[way].iter().map(|cost| cost.transcode).collect::<Vec<_>>());
        rows.push(vec![
            (*name).to_owned(),
            format!("{time:.3}"),
            format!("{:+.2}", cpu(way)),
            format!("{:+.2}", wall(way)),
            PUBLISHED[way].to_owned(),
        ]);
        data.push(json!({ "way": name, "cpu_s": time, "cpu_overhead_percent": cpu(way),
            "wall_overhead_percent": wall(way) }));
    }
    let heights =
        WAYS.iter().enumerate().skip(1).map(|(way, name)| ((*name).to_owned(), cpu(way).max(0.0)));
    Ok(Report {
        tables: vec![Table::new(
            "Transcode",
            &["way", "CPU time (s)", "CPU overhead %", "wall overhead %", "published %"],
            rows,
        )],
        claims: vec![
            Claim::at_most(
                "listening as tuning does costs at most 0.6 % of CPU time",
                cpu(1),
                0.6,
                " %",
            ),
            Claim::at_most("less wall-clock time than strace", wall(1) - wall(3), 0.0, " points"),
        ],
        pictures: vec![Picture::new(
            "CPU overhead (%)",
            bars("overhead (%)", &heights.collect::<Vec<_>>())?,
        )],
        data: json!(data),
        ..Report::new(EXPERIMENT.name, "What a transcode pays for being traced").saying(&[
            "ffmpeg decodes and encodes ten seconds of a film with one thread each; CPU time is \
                what the kernel charges to it and its threads, with what the tracing programs in \
                the kernel do on its account. The four ways take turns; overhead is the median of \
                the rounds' ratios to running alone. strace works in a process of its own, which \
                only wall-clock time shows.",
            "Published (EuroSys 2010, section 5): 0.63 % for its tracer in the kernel, 5.51 % for \
                strace.",
        ])
    })
}

fn transcode(stage: &Stage, way: &str, film: &std::path::Path) -> Result<Cost> {
    let log = stage.folder.join("transcode.trace");
    let mut command = match way {
        "alone" => Command::new("ffmpeg"),
        "strace -f" => {
            let mut command = Command::new("strace");
            command.args(["-f", "-o"]).arg(&log).arg("ffmpeg");
            command
        }
        _ => {
            let mut command = stage.program("attune");
            command.args(["trace", "-o"]).arg(&log);
            if way.contains("listens") {
                command.arg("--no-exits");
            }
            command.args(["--", "ffmpeg"]);
            command
        }
    };
    command
        .args([
            "-nostdin",
            "-hide_banner",
            "-nostats",
            "-benchmark",
            "-threads",
            "1",
            "-t",
            "10",
            "-i",
        ])
        .arg(film);
    command.args(["-an", "-c:v", "mpeg4", "-threads", "1", "-f", "null", "-"]).stdin(Stdio::null());
    let output = command.output().with_context(|| format!("starting {command:?}"))?;
    let text = [output.stdout, output.stderr].concat();
    match cost(&String::from_utf8_lossy(&text)) {
        Some(cost) if output.status.success() => Ok(cost),
        _ => bail!("{way}: the transcode failed; try `{command:?}` by hand"),
    }
}

/// From ffmpeg's own `bench: utime=1.880s stime=0.020s rtime=2.100s`.
fn cost(text: &str) -> Option<Cost> {
    let line = text.lines().find(|line| line.starts_with("bench: utime="))?;
    let seconds = |name: &str| -> Option<f64> {
        let word = line.split_whitespace().find_map(|word| word.strip_prefix(name))?;
        word.strip_suffix('s')?.parse().ok()
    };
    Some(Cost { transcode: seconds("utime=")? + seconds("stime=")?, wall: seconds("rtime=")? })
}

#[cfg(test)]
mod tests {
    #[test]
    fn ffmpegs_figures_are_read() {
        let cost = super::cost(
            "frame=250\nbench: utime=1.250s stime=0.250s rtime=2.000s\nbench: maxrss=1KiB\n",
        )
        .unwrap();
        assert_eq!((cost.transcode, cost.wall), (1.5, 2.0));
        assert!(super::cost("nothing").is_none());
    }
}
