//! Experiment `partition`: three machines share a cluster through etcd while links are cut and
//! processes are killed.
//!
//! Hosts are network namespaces. A manager runs on each of three, etcd on a fourth. Two nodes on
//! each machine decide all the time: a decision reads what is shared and its age, and adds one. So
//! in the end the shared number must be the number of decisions. Whether a decision waits is not a
//! matter of time, which other load disturbs: the kernel counts how often a thread has given up its
//! CPU to wait.
//!
//! Beside it, on this machine's loopback: what an atomic `+=` costs by a manager and etcd, in
//! alternating pairs with a compare-and-swap by etcd's own client.

pub mod nodes;
mod update;

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde::Serialize;
use serde_json::json;

use super::hosts::{self, Etcd, Network};
use crate::experiment::{Options, Procedure, Progress};
use crate::plot::{self, Line};
use crate::report::{Claim, Picture, Report, Table};
use nodes::{Nodes, Sample};

pub const EXPERIMENT: Procedure = Procedure {
    name: "partition",
    about: "three machines share a cluster while links are cut and processes are killed",
    check,
    run,
};

const MASTER: &str = "distributed scheduler farm {
    nodefamilies { \"worker.subsched\" : worker; }
    nodes { queue all; }
    global { int jobs = 0; int here = 0; }
    arrival (n) { n => all; here += 1; }
    departure (n) { here -= 1; }
}
";
const WORKER: &str = "scheduler worker {
    data { threadref current; queue ready; int allowed; }
    event newthread(t) { t => ready; }
    event schedule {
        allowed = jobs + here;
        if (|ready| > 0) { ready => current; dispatch current; }
    }
    event switch_out { if (|current| > 0) current => ready; }
    event event_raised(t) { t => ready; }
}
";

const MACHINES: [&str; 3] = ["a", "b", "c"];
/// The host with etcd, and the one whose link is cut.
const ETCD: usize = 3;
const CUT: usize = 2;
const NODES_EACH: usize = 2;
/// How long the others wait for a machine before they let its nodes depart.
const PATIENCE: Duration = attune_cluster::database::PATIENCE;

fn check(options: &Options) -> Result<()> {
    hosts::check()?;
    let program = options.programs.join("attune");
    ensure!(program.exists(), "there is no {}: make build", program.display());
    Ok(())
}

/// A part of the experiment; seconds since its start.
#[derive(Clone, Debug, Serialize)]
struct Phase {
    name: &'static str,
    from: f64,
    to: f64,
}

fn run(options: &Options, progress: Progress) -> Result<Report> {
    fs::create_dir_all(&options.folder)?;
    let folder = tempfile::tempdir_in(&options.folder)?;
    write_texts(folder.path())?;
    let rounds = if options.quick { 1 } else { 5 };
    let (phases, nodes) = cut_and_kill(options, folder.path(), rounds, progress)?;
    progress("updates");
    let pairs = update::pairs(options, folder.path(), if options.quick { 200 } else { 1000 })?;
    report(&phases, &nodes, &pairs)
}

/// A folder with the farm's texts.
pub fn write_texts(folder: &Path) -> Result<()> {
    fs::write(folder.join("farm.sched"), MASTER)?;
    fs::write(folder.join("worker.subsched"), WORKER)?;
    Ok(())
}

/// A manager of the farm, which listens.
struct Manager(Child);

impl Manager {
    /// `command` is the program, and ends with the lab.
    fn start(mut command: Command, folder: &Path, machine: &str, etcd: &str) -> Result<Manager> {
        let socket = format!("./{machine}/farm");
        command
            .args(["manager", "farm.sched", "--name", &socket, "--at", etcd, "--json"])
            .current_dir(folder)
            .stdout(Stdio::piped());
        let child = command.spawn().context("attune manager")?;
        let mut manager = Manager(child);
        let mut said = BufReader::new(manager.0.stdout.take().context("its output")?);
        let mut line = String::new();
        said.read_line(&mut line)?;
        ensure!(!line.is_empty(), "the manager ended: {:?}", manager.0.wait());
        // It goes on when nobody reads; a full pipe would stop it.
        std::thread::spawn(move || std::io::copy(&mut said, &mut std::io::sink()));
        Ok(manager)
    }

    /// As by `kill -9`.
    fn kill(&mut self) -> Result<()> {
        self.0.kill()?;
        self.0.wait()?;
        Ok(())
    }
}

impl Drop for Manager {
    fn drop(&mut self) {
        // It has ended already, or does now.
        let _ = self.kill();
    }
}

fn cut_and_kill(
    options: &Options,
    folder: &Path,
    rounds: u32,
    progress: Progress,
) -> Result<(Vec<Phase>, nodes::Outcome)> {
    let network = Network::of(MACHINES.len() + 1)?;
    let mut etcd = Etcd::start(&network.hosts[ETCD], &folder.join("etcd"), &[])?;
    let address = etcd.address().to_owned();
    let attune = options.programs.join("attune");
    let start = |machine: usize| {
        let command = network.hosts[machine].command(&attune);
        Manager::start(command, folder, MACHINES[machine], &address)
    };
    let mut managers = Vec::new();
    for machine in 0..MACHINES.len() {
        managers.push(start(machine)?);
    }
    let begin = Instant::now();
    let nodes = Nodes::start(folder, &MACHINES, NODES_EACH, begin)?;
    let mut phases = Vec::new();
    let mut phase = |name: &'static str, seconds: f64| {
        progress(name);
        let from = begin.elapsed().as_secs_f64();
        std::thread::sleep(Duration::from_secs_f64(seconds));
        phases.push(Phase { name, from, to: begin.elapsed().as_secs_f64() });
    };
    for _ in 0..rounds {
        phase("whole", 2.0);
        network.cut(CUT)?;
        phase("cut", 3.0);
        network.mend(CUT)?;
        phase("mended", 4.0);
        network.cut(CUT)?;
        phase("cut for long", PATIENCE.as_secs_f64() + 4.0);
        network.mend(CUT)?;
        phase("mended again", 4.0);
        etcd.kill()?;
        phase("etcd killed", 3.0);
        etcd.again(&network.hosts[ETCD])?;
        phase("etcd again", 5.0);
        managers[1].kill()?;
        phase("manager of b killed", 1.0);
        managers[1] = start(1)?;
        phase("manager of b again", 3.0);
    }
    let outcome = nodes.finish()?;
    Ok((phases, outcome))
}

fn report(phases: &[Phase], outcome: &nodes::Outcome, pairs: &[update::Pair]) -> Result<Report> {
    // The greatest age that a node of these machines saw in the last part of a phase.
    let greatest = |phase: &Phase, machines: &[usize], part: f64| {
        let from = phase.to - (phase.to - phase.from) * part;
        let within = |sample: &&Sample| from <= sample.at && sample.at <= phase.to;
        let samples = outcome.samples.iter().filter(|it| machines.contains(&it.machine));
        samples.filter(within).map(|it| it.age).fold(0.0, f64::max)
    };
    let of = |name: &'static str| phases.iter().filter(move |phase| phase.name == name);
    let others = [0, 1];
    let mut rows = Vec::new();
    for phase in phases {
        let seen = outcome
            .samples
            .iter()
            .filter(|it| it.machine == 0 && phase.from <= it.at && it.at <= phase.to);
        let (least, most) = seen
            .map(|sample| sample.here)
            .fold((i64::MAX, i64::MIN), |(least, most), it| (least.min(it), most.max(it)));
        rows.push(vec![
            phase.name.to_owned(),
            format!("{:.1}", phase.to - phase.from),
            format!("{:.2}", greatest(phase, &others, 1.0)),
            format!("{:.2}", greatest(phase, &[CUT], 1.0)),
            if least == most { least.to_string() } else { format!("{least} to {most}") },
        ]);
    }
    let columns = ["", "length, s", "age on a and b, s", "age on c, s", "nodes that a sees"];
    let mut table = Table::new("What the nodes saw", &columns, rows);
    table.notes.push("ages are the greatest of the phase".to_owned());

    let grows = of("cut")
        .chain(of("cut for long"))
        .map(|phase| greatest(phase, &[CUT], 1.0) / (phase.to - phase.from));
    let grows = grows.fold(f64::INFINITY, f64::min);
    let elsewhere =
        of("cut for long").map(|phase| greatest(phase, &others, 1.0) / (phase.to - phase.from));
    let elsewhere = elsewhere.fold(0.0, f64::max);
    let after = of("mended").chain(of("mended again")).chain(of("etcd again"));
    let after = after.map(|phase| greatest(phase, &[0, 1, 2], 0.25)).fold(0.0, f64::max);
    let all = (MACHINES.len() * NODES_EACH) as i64;
    let without = all - NODES_EACH as i64;
    let returns = of("mended again").zip(of("cut for long")).all(|(mended, cut)| {
        let last = |phase: &Phase| {
            let before = |it: &&Sample| it.machine == 0 && it.at <= phase.to;
            outcome.samples.iter().filter(before).max_by(|a, b| a.at.total_cmp(&b.at))
        };
        last(cut).is_some_and(|it| it.here == without)
            && last(mended).is_some_and(|it| it.here == all)
    });
    let ratio = update::ratio(pairs)?;
    let exact = outcome.read.iter().all(|read| *read == outcome.decisions as i64);
    let claims = vec![
        Claim::new(
            "no increment is lost or doubled",
            Some((
                exact,
                format!("{} decisions; nodes read {:?}", outcome.decisions, outcome.read),
            )),
        ),
        Claim::new(
            "no decision waited",
            Some((
                outcome.waits == 0,
                format!("{} of {} decisions", outcome.waits, outcome.decisions),
            )),
        ),
        Claim::at_least(
            "while a machine is cut off, the age of what its nodes know grows as time does",
            grows,
            0.9,
            " of the cut",
        ),
        Claim::at_most("meanwhile the others hear on: age", elsewhere, 0.5, " of the cut"),
        Claim::at_most("afterwards ages are those of a whole network", after, 1.0, " s"),
        Claim::new(
            "nodes of a machine that is cut off for long depart, and come back",
            Some((returns, format!("{all}, then {without}, then {all}"))),
        ),
        Claim::interval(
            "an atomic += over etcd costs at most 1.5 times its client's compare-and-swap",
            ratio.ratio,
            1.5,
        ),
    ];
    let mut update = Table::new(
        "An atomic update, microseconds",
        &["", "median"],
        vec![
            vec!["compare-and-swap by etcd's client".into(), format!("{:.0}", ratio.swap)],
            vec!["+= by a node".into(), format!("{:.0}", ratio.update)],
        ],
    );
    update.notes.push(format!("{} alternating pairs, etcd on this machine", pairs.len()));
    let line = |name: &str, machine: usize| Line {
        name: name.to_owned(),
        points: outcome
            .samples
            .iter()
            .filter(|sample| sample.machine == machine && sample.node == 0)
            // A logarithmic axis has no 0.
            .map(|sample| (sample.at, sample.age.max(0.001)))
            .collect(),
        dashed: false,
    };
    let lines = [line("a node on a", 0), line("a node on c, which is cut off", CUT)];
    let picture =
        Picture::new("How old what a node knows is", plot::lines("time, s", "age, s", &lines)?);
    let report =
        Report::new("partition", "Three machines, links cut and processes killed").saying(&[
            "Six nodes on three hosts decide all the time and add one to a shared number with each \
             decision. The link of one host is cut, for a shorter and for a longer time than the \
             others wait for it; etcd is killed and started again, and so is a manager.",
            "A node's age is the time since it heard from its manager what the store is. The \
             kernel counts whether a thread waited during a decision.",
        ]);
    Ok(Report {
        tables: vec![table, update],
        claims,
        pictures: vec![picture],
        data: json!({ "phases": phases, "outcome": outcome, "pairs": pairs }),
        ..report
    })
}
