//! Experiment `webserver`: what a scheduler that knows the sizes of replies is worth to a real web
//! server.
//!
//! The example server (examples/webserver) runs on one core under `fifo` and under
//! `shortest_reply`, nginx with one worker beside; clients run on another core. The claims rest on
//! [`pairs`], on this machine and inside a deterministic one ([`machine`]); the same policy files
//! then run in the simulator ([`simulate`]).
//!
//! **Claims.** At overload the mean response time under `shortest_reply` is at least 35 % below
//! that under `fifo`, each with the settings that suit it best by the same search; throughput is at
//! most 2 % below; the longest large reply takes at most 2.1 s longer; no request is lost or
//! answered wrongly. A server that is never idle answers at least as many requests a second as
//! nginx on the same core, with the best of several configurations. A claim is undecided where its
//! interval lies on both sides of the bound.

mod contest;
mod machine;
pub mod measure;
pub mod network;
pub mod nginx;
pub mod pairs;
pub mod plan;
pub mod proxy;
mod report;
mod runs;
pub mod server;
pub mod simulate;
pub mod site;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use attune_linux::affinity::Cpus;

use crate::experiment::{Options, Procedure, Progress};
use crate::report::Report;
use crate::{files, schedulers};
use pairs::{Bench, POLICIES, Pairs};
use plan::Pairing;
use server::Source;

pub const EXPERIMENT: Procedure = Procedure {
    name: "webserver",
    about: "a web server at overload: shortest reply first against first come, first served",
    check: |_| two_cores().map(drop),
    run,
};

/// One for the server, one for its clients.
fn two_cores() -> Result<[u32; 2]> {
    let cores: Vec<u32> = Cpus::of_this_thread().context("which cores there are")?.iter().collect();
    let [server_core, client_core, ..] = cores[..] else {
        bail!("it needs two cores, one for the server and one for its clients");
    };
    Ok([server_core, client_core])
}

fn run(options: &Options, progress: Progress) -> Result<Report> {
    let folder = options.folder.join("webserver");
    files::create_folder(&folder)?;
    let compiled = compile(&folder)?;
    let program = options.programs.join("webserver");
    let (results, network) = in_network(progress, |server_core, say| {
        let site = folder.join("site");
        let targets = site::create(&site)?;
        let (targets, schedulers) = (&targets[..], compiled.clone());
        let source = Source::Files(&site);
        let bench =
            Bench { program: program.clone(), schedulers, source, targets, server_core, say };
        runs::run(&bench, &site, options, &folder)
    })?;
    progress("the same in a deterministic machine with two CPUs");
    // A machine that fails says nothing about the claims of this one.
    let machine = machine::run(options, &compiled).map_err(|error| format!("{error:#}"));
    report::report(&results, &machine, network)
}

/// The policies, compiled into the folder.
fn compile(folder: &Path) -> Result<[PathBuf; 2]> {
    let compile = |policy: &str| -> Result<PathBuf> {
        let compiled = folder.join(format!("{policy}.so"));
        schedulers::compile(policy, &compiled)?;
        Ok(compiled)
    };
    Ok([compile(POLICIES[0])?, compile(POLICIES[1])?])
}

/// The pairs alone, for the inside of a machine: compiled schedulers in the order of [`POLICIES`],
/// `programs` the folder of the server.
pub fn pairs_inside(schedulers: [PathBuf; 2], programs: &Path, quick: bool) -> Result<Pairs> {
    let (pairs, network) = in_network(&|text| eprintln!("{text}"), |server_core, say| {
        let site = machine::site();
        let targets = &site::create(site)?[..];
        let program = programs.join("webserver");
        let source = Source::Files(site);
        let bench = Bench { program, schedulers, source, targets, server_core, say };
        bench.run(&Pairing::in_machine(quick))
    })?;
    network.map_or(Ok(pairs), Err)
}

/// Runs `work`, with the server's core, on the client's core in a network of its own. Some error:
/// the network is the machine's.
fn in_network<T: Send>(
    progress: Progress,
    work: impl FnOnce(u32, Progress) -> Result<T> + Send,
) -> Result<(T, Option<anyhow::Error>)> {
    let [server_core, client_core] = two_cores()?;
    // Entering a network and pinning are for good, so a thread that ends does both. Its messages
    // are printed here, because what prints them belongs to the caller.
    let (sender, said) = std::sync::mpsc::channel::<String>();
    std::thread::scope(|scope| {
        let measuring = scope.spawn(move || {
            let network = network::enter(server_core);
            Cpus::one(client_core).apply().context("pinning to a core")?;
            let done = work(server_core, &|text| drop(sender.send(text.to_owned())))?;
            Ok((done, network.err()))
        });
        said.iter().for_each(|text| progress(&text));
        measuring.join().map_err(|_| anyhow::anyhow!("the measuring thread panicked"))?
    })
}
