//! Experiment `proxy`: what a scheduler that knows the sizes of replies is worth to a caching
//! reverse proxy, and how the proxy compares with nginx as one.
//!
//! The example server (examples/webserver) keeps the replies of an upstream nginx. One small reply
//! in five may not be kept, so the proxy fetches it anew each time. The pool has 512 handlers, as
//! the published proxy had. Everything else is as in the experiment `webserver`.
//!
//! **Claims.** At overload the mean response time under `shortest_reply` is at least 35 % below
//! that under `fifo`, each with the settings that suit it best; throughput is at most 2 % below;
//! the longest large reply takes at most 2.1 s longer. A proxy that is never idle answers at least
//! as many requests a second as nginx on the same core, with the best of several configurations.
//! No request is lost or answered wrongly.

mod report;

use std::collections::BTreeMap;
use std::net::SocketAddrV4;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use attune_linux::affinity::Cpus;
use serde::Serialize;

use super::contest::{self, Contest};
use super::measure::Sample;
use super::nginx::{self, Role, Tuning};
use super::pairs::{Bench, POLICIES, Pairs};
use super::plan::{Pairing, Plan};
use super::runs::{ByServer, Rest};
use super::server::{Server, Source};
use super::{compile, in_network, site, two_cores};
use crate::experiment::{Options, Procedure, Progress};
use crate::files;
use crate::http::schedule::Target;
use crate::report::Report;

pub const EXPERIMENT: Procedure = Procedure {
    name: "proxy",
    about: "a caching proxy at overload: shortest reply first against first come, first served, \
            and nginx",
    check: |_| {
        ensure!(
            nginx::program().is_some(),
            "it needs nginx: on Debian `tools/setup.sh webserver` installs it"
        );
        two_cores().map(drop)
    },
    run,
};

/// Handlers of the published proxy's pool.
const POOL: usize = 512;

/// One small reply in so many may not be kept.
const LIVE: usize = 5;

/// All that was measured.
#[derive(Serialize)]
struct Results {
    pairs: Pairs,
    contest: Contest,
    /// By load in percent of fifo's capacity.
    open: BTreeMap<u32, ByServer<Sample>>,
    /// What each server says of itself when it ends.
    accounts: ByServer<String>,
    commands: Vec<String>,
}

fn run(options: &Options, progress: Progress) -> Result<Report> {
    let folder = options.folder.join("proxy");
    files::create_folder(&folder)?;
    let schedulers = compile(&folder)?;
    let program = options.programs.join("webserver");
    let (results, network) = in_network(progress, |server_core, say| {
        let site = folder.join("site");
        let targets = targets(&site)?;
        let upstream = start_upstream(&site, &folder)?;
        let source = Source::Upstream(upstream.address);
        let (program, schedulers, targets) = (program.clone(), schedulers.clone(), &targets[..]);
        let bench = Bench { program, schedulers, source, targets, server_core, say };
        measure(&bench, upstream.address, options, &folder)
    })?;
    report::report(&results, network)
}

/// The site's files, and every fourth small one once more where replies may not be kept.
fn targets(site: &Path) -> Result<Vec<Target>> {
    let mut targets = site::create(site)?;
    let small: Vec<Target> = targets.iter().filter(|target| !target.large).cloned().collect();
    let live = small.into_iter().step_by(LIVE - 1);
    targets.extend(live.map(|target| Target { path: live_path(&target.path), ..target }));
    Ok(targets)
}

fn live_path(path: &str) -> String {
    path.replacen("/small/", "/live/", 1)
}

/// On the clients' core, where the calling thread is: it works for one request in five.
fn start_upstream(site: &Path, folder: &Path) -> Result<Server> {
    let here = Cpus::of_this_thread()?.iter().next().context("a core for the upstream")?;
    Server::start_nginx(&Role::Upstream(site), &folder.join("upstream"), here)
}

fn measure(
    bench: &Bench,
    upstream: SocketAddrV4,
    options: &Options,
    folder: &Path,
) -> Result<Results> {
    let pairing = &Pairing { handlers: &[POOL], ..Pairing::here(options.quick) };
    let plan = &Plan::new(options.quick);
    let pairs = bench.run(pairing)?;
    let nginx = |tuning: Tuning| -> Result<Server> {
        let scratch: PathBuf = folder.join("nginx");
        let server =
            Server::start_nginx(&Role::Proxy(upstream, tuning), &scratch, bench.server_core)?;
        bench.warm(&server)?;
        Ok(server)
    };
    let ours = |settings| bench.start(1, &settings);
    let contest = contest::run(bench, pairing, ours, nginx)?;
    let [fifo, ours] = [0, 1].map(|policy| bench.start(policy, &pairs.searches[policy].best));
    let (fifo, ours) = (fifo?, ours?);
    let named = |name: &str, server| (name.to_owned(), server);
    let servers = vec![
        named(POLICIES[0], fifo),
        named(POLICIES[1], ours),
        named("nginx", nginx(contest.nginx.best)?),
    ];
    let rest = Rest { bench, plan, servers: &servers, capacity: pairs.capacity() };
    let open = rest.open(pairing)?;
    let quick = if options.quick { " --quick" } else { "" };
    let mut commands = vec![format!("attune lab run proxy{quick}")];
    let started = |(_, server): &(String, Server)| {
        format!("taskset -c {} {}", bench.server_core, server.command)
    };
    commands.extend(servers.iter().map(started));
    let mut accounts = vec![];
    for (name, server) in servers {
        let (account, _) = server.stop().with_context(|| format!("ending {name}"))?;
        accounts.push((name, account));
    }
    Ok(Results { pairs, contest, open, accounts, commands })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_small_target_in_five_may_not_be_kept() {
        let site = tempfile::tempdir().unwrap();
        let targets = targets(site.path()).unwrap();
        let count = |wanted: &dyn Fn(&Target) -> bool| targets.iter().filter(|t| wanted(t)).count();
        let live = count(&|target| target.path.starts_with("/live/"));
        let small = count(&|target| !target.large);
        assert_eq!((live * LIVE, count(&|target| target.large)), (small, 8));
        let of = |path: &str| targets.iter().find(|target| target.path == path).unwrap();
        assert_eq!(of("/live/4").body, of("/small/4").body);
    }
}
