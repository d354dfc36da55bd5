//! Experiment `pool`: how evenly processes on one listening socket share their requests, with the
//! cluster's policy and without.
//!
//! The example (examples/pool) runs in pairs, one run after the other under the same requests: its
//! processes as nodes of a cluster with a manager, and the same program with the same compiled
//! scheduler alone, so that chance decides which process accepts. Times are a twenty-fifth of the
//! published ones: a request every 10 ms, which lasts 10 to 200 ms.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::experiment::{Options, Procedure, Progress};
use crate::report::{Claim, Picture, Report, Table};
use crate::{files, median_interval, plot};

pub const EXPERIMENT: Procedure = Procedure {
    name: "pool",
    about: "processes on one listening socket: a cluster's policy against chance",
    check: |options| {
        for program in ["attune", "pool"] {
            let program = options.programs.join(program);
            ensure!(program.exists(), "there is no {}: make build", program.display());
        }
        Ok(())
    },
    run,
};

const MASTER: &str = include_str!("../../examples/pool/pool.sched");
const NODE: &str = include_str!("../../examples/pool/process.subsched");
/// Bounds of the claims, from the published figures: 2.68 to 1.78, and 12 to 6.
const MOST_MEAN: f64 = 0.6;
const MOST_WORST: f64 = 0.5;

/// What a run of the program says.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Outcome {
    requests: u32,
    answered: u32,
    mean_difference: f64,
    worst_difference: f64,
}

#[derive(Serialize)]
struct Pair {
    alone: Outcome,
    cluster: Outcome,
}

fn run(options: &Options, progress: Progress) -> Result<Report> {
    let folder = options.folder.join("pool");
    files::create_folder(&folder)?;
    files::write_atomically(&folder.join("pool.sched"), MASTER.as_bytes())?;
    files::write_atomically(&folder.join("process.subsched"), NODE.as_bytes())?;
    let attune = options.programs.join("attune");
    let built = Command::new(&attune)
        .args(["build", "pool.sched", "--node", "process", "-o", "process.so"])
        .current_dir(&folder)
        .status()
        .context("attune build")?;
    ensure!(built.success(), "attune build failed");
    let (pairs, requests) = if options.quick { (3, 400) } else { (10, 1500) };
    let program = options.programs.join("pool");
    let mut results = Vec::new();
    for number in 0..pairs {
        progress(&format!("pair {} of {pairs}", number + 1));
        let run = |clustered: bool| -> Result<Outcome> {
            let manager = clustered.then(|| Manager::start(&attune, &folder)).transpose()?;
            let outcome = pool(&program, &folder, requests, number + 1, clustered);
            drop(manager);
            outcome
        };
        // Which of the two is first alternates.
        let first = run(number % 2 == 0)?;
        let second = run(number % 2 != 0)?;
        let (cluster, alone) = if number % 2 == 0 { (first, second) } else { (second, first) };
        results.push(Pair { alone, cluster });
    }
    report(&results, requests)
}

/// A manager that listens.
struct Manager(Child);

impl Manager {
    fn start(attune: &Path, folder: &Path) -> Result<Manager> {
        let mut child = Command::new(attune)
            .args(["manager", "pool.sched", "--name", "./socket", "--json"])
            .current_dir(folder)
            .stdout(Stdio::piped())
            .spawn()
            .context("attune manager")?;
        let said = child.stdout.take().context("its output")?;
        let mut manager = Manager(child);
        let mut said = BufReader::new(said);
        let mut line = String::new();
        said.read_line(&mut line)?;
        ensure!(!line.is_empty(), "the manager ended: {:?}", manager.0.wait());
        // It goes on when nobody reads; a full pipe would stop it.
        std::thread::spawn(move || std::io::copy(&mut said, &mut std::io::sink()));
        Ok(manager)
    }
}

impl Drop for Manager {
    fn drop(&mut self) {
        // It has ended already, or does now.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn pool(program: &Path, folder: &Path, requests: u32, seed: u32, node: bool) -> Result<Outcome> {
    let mut command = Command::new(program);
    command
        .args(["--interval", "0.01", "--shortest", "0.01", "--longest", "0.2"])
        .args(["--requests", &requests.to_string(), "--seed", &seed.to_string()])
        .current_dir(folder)
        .env("ATTUNE_SCHED", "./process.so")
        .env_remove("ATTUNE_CLUSTER");
    if node {
        command.env("ATTUNE_CLUSTER", "./socket");
    }
    let output = command.output().context("the pool")?;
    let said = String::from_utf8_lossy(&output.stdout);
    ensure!(output.status.success(), "the pool: {}{said}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_str(&said).with_context(|| format!("the pool said {said}"))
}

fn report(pairs: &[Pair], requests: u32) -> Result<Report> {
    let median = |figure: fn(&Pair) -> f64| {
        let values: Vec<f64> = pairs.iter().map(figure).collect();
        median_interval::of(&values).context("no pair")
    };
    let row = |name: &str, mean: fn(&Pair) -> f64, worst: fn(&Pair) -> f64| -> Result<_> {
        let (mean, worst) = (median(mean)?, median(worst)?);
        Ok(vec![name.to_owned(), format!("{:.2}", mean.value), format!("{:.0}", worst.value)])
    };
    let rows = vec![
        row("alone", |it| it.alone.mean_difference, |it| it.alone.worst_difference)?,
        row("cluster", |it| it.cluster.mean_difference, |it| it.cluster.worst_difference)?,
        vec!["published: alone".into(), "2.68".into(), "12".into()],
        vec!["published: balanced".into(), "1.78".into(), "6".into()],
    ];
    let columns = ["", "mean difference, requests", "worst difference, requests"];
    let mut table = Table::new("Busiest process less idlest", &columns, rows);
    table.notes.push(format!("medians of {} pairs of {requests} requests", pairs.len()));
    let mean = median(|it| it.cluster.mean_difference / it.alone.mean_difference)?;
    let worst = median(|it| it.cluster.worst_difference / it.alone.worst_difference)?;
    let all = pairs.iter().flat_map(|pair| [&pair.alone, &pair.cluster]);
    let lost: u32 = all.map(|it| it.requests - it.answered).sum();
    let claims = vec![
        Claim::interval("mean difference at most 0.6 times that of chance", mean, MOST_MEAN),
        Claim::interval("worst difference at most half that of chance", worst, MOST_WORST),
        Claim::new("no request is lost", Some((lost == 0, format!("{lost} lost")))),
    ];
    let bars = [
        ("alone".to_owned(), median(|it| it.alone.mean_difference)?.value),
        ("cluster".to_owned(), median(|it| it.cluster.mean_difference)?.value),
    ];
    let picture = Picture::new("Mean difference", plot::bars("requests", &bars)?);
    let report = Report::new("pool", "Processes on one listening socket").saying(&[
        "Six processes wait for connections on one socket; a request comes every 10 ms on average \
         and lasts 10 to 200 ms. Alone, chance decides which process accepts. In the cluster a \
         process that has more than its share of the requests pauses the thread that accepts.",
    ]);
    Ok(Report {
        tables: vec![table],
        claims,
        pictures: vec![picture],
        data: json!(pairs),
        ..report
    })
}
