//! `attune lab`: experiments.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use attune_lab::columns;
use attune_lab::experiment::{Experiment, Options};
use attune_lab::registry::{self, EXPERIMENTS};
use attune_peers::{Cache, PEERS};

use crate::args::{LabArgs, LabCommand, LabRunArgs, PeersCommand};
use crate::failure::Failure;
use crate::output;

pub fn run(args: &LabArgs) -> Result<ExitCode, Failure> {
    match &args.command {
        LabCommand::List => list(),
        LabCommand::Run(args) => run_all(args),
        LabCommand::Pairs { fifo, shortest_reply, quick } => {
            let compiled = [fifo.clone(), shortest_reply.clone()];
            let pairs = attune_lab::webserver::pairs_inside(compiled, &own_folder()?, *quick);
            let pairs = pairs.map_err(|error| Failure::wrong(format!("lab pairs: {error:#}")))?;
            let line =
                serde_json::to_string(&pairs).map_err(|error| Failure::wrong(error.to_string()))?;
            output::print(&(line + "\n"))?;
            Ok(ExitCode::SUCCESS)
        }
        LabCommand::Peers { command: Some(PeersCommand::Build { names }) } => build_peers(names),
        LabCommand::Peers { .. } => list_peers(),
    }
}

fn list() -> Result<ExitCode, Failure> {
    let row = |it: &&dyn Experiment| vec![it.name().to_owned(), it.about().to_owned()];
    print_columns(&EXPERIMENTS.iter().map(row).collect::<Vec<_>>())
}

fn print_columns(rows: &[Vec<String>]) -> Result<ExitCode, Failure> {
    output::print(&(columns::lines(rows, &[false]).join("\n") + "\n"))?;
    Ok(ExitCode::SUCCESS)
}

fn run_all(args: &LabRunArgs) -> Result<ExitCode, Failure> {
    let experiments = registry::find(&args.names).map_err(|name| {
        Failure::usage(format!("no experiment {name}; `attune lab list` lists them"))
    })?;
    let programs = own_folder()?;
    let folder = args.output.clone().unwrap_or_else(|| programs.with_file_name("demo"));
    fs::create_dir_all(&folder).map_err(|error| Failure::file("create", &folder, error))?;
    let options = Options { quick: args.quick, fresh: args.fresh, programs, folder };
    let several = experiments.len() > 1;
    // All are checked before the first runs: some take hours.
    let (able, lacking): (Vec<_>, Vec<_>) =
        experiments.into_iter().partition(|experiment| can_run(*experiment, &options));
    if !lacking.is_empty() && !args.keep_going {
        return Err(Failure::wrong(
            "nothing was run; --keep-going runs the experiments that can run",
        ));
    }
    let verdict =
        |experiment: &dyn Experiment, verdict: &str| format!("{}: {verdict}\n", experiment.name());
    let mut verdicts: String =
        lacking.iter().map(|experiment| verdict(*experiment, "could not run")).collect();
    let mut all_hold = lacking.is_empty();
    for experiment in able {
        let (holds, words) = match run_one(experiment, &options, args.json) {
            Ok(true) => (true, "no claim is missed"),
            Ok(false) => (false, "a claim is missed"),
            // The others run all the same.
            Err(failure) => {
                failure.report();
                (false, "could not run")
            }
        };
        all_hold &= holds;
        verdicts += &verdict(experiment, words);
    }
    if several {
        eprint!("{verdicts}");
    }
    Ok(if all_hold { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Says what it lacks if it cannot be run here.
fn can_run(experiment: &dyn Experiment, options: &Options) -> bool {
    let able = experiment.check(options);
    able.map_err(|error| Failure::wrong(format!("{}: {error:#}", experiment.name())).report())
        .is_ok()
}

/// Whether its claims hold.
fn run_one(experiment: &dyn Experiment, options: &Options, json: bool) -> Result<bool, Failure> {
    let report = experiment
        .run(options, &|text| eprintln!("{}: {text}", experiment.name()))
        .map_err(|error| Failure::wrong(format!("{}: {error:#}", experiment.name())))?;
    let page = options.folder.join(format!("{}.html", report.name));
    let data = options.folder.join(format!("{}.json", report.name));
    output::write(&page, report.to_html())?;
    output::write(&data, format!("{:#}\n", report.to_json()))?;
    output::print(&if json { format!("{}\n", report.to_json()) } else { report.to_text() })?;
    eprintln!("report: {}\nfigures: {}", page.display(), data.display());
    Ok(report.holds())
}

fn list_peers() -> Result<ExitCode, Failure> {
    let cache = Cache::default_place();
    let row = |peer: &attune_peers::Peer| {
        let built = if cache.program(peer).is_some() { "built" } else { "not built" };
        let built = format!("{built}, {} lines", cache.lines(peer));
        vec![peer.name.to_owned(), peer.version.to_owned(), built, peer.about.to_owned()]
    };
    print_columns(&PEERS.iter().map(row).collect::<Vec<_>>())
}

fn build_peers(names: &[String]) -> Result<ExitCode, Failure> {
    let known = |name: &String| {
        attune_peers::find(name)
            .ok_or_else(|| Failure::usage(format!("no peer {name}; `attune lab peers` lists them")))
    };
    let chosen = names.iter().map(known).collect::<Result<Vec<_>, _>>()?;
    let cache = Cache::default_place();
    for peer in if chosen.is_empty() { PEERS.iter().collect() } else { chosen } {
        eprintln!("peers: {} {}", peer.name, peer.version);
        let program =
            cache.build(peer).map_err(|error| Failure::wrong(format!("peers: {error:#}")))?;
        output::print(&format!("{}\n", program.display()))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Where this program lies, and with it the programs that experiments run.
fn own_folder() -> Result<PathBuf, Failure> {
    let program =
        std::env::current_exe().map_err(|error| Failure::usage(format!("where am I? {error}")))?;
    let folder = program.parent().map(PathBuf::from);
    folder.ok_or_else(|| Failure::usage("this program lies in no folder"))
}
