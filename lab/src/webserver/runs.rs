//! Makes all runs of the experiment on this machine, in order: the pairs, what a request costs, the
//! simulator, then loads and clients without a claim.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Serialize;

use super::contest::{self, Contest};
use super::measure::{self, Sample};
use super::nginx::{self, Role};
use super::pairs::{self, Bench, POLICIES, Pairs};
use super::plan::{self, Pairing, Plan};
use super::server::Server;
use super::simulate::{self, Costs};
use crate::experiment::Options;
use crate::http::generator::Loop;
use crate::http::schedule::Pattern;
use crate::http::wrk;

/// Figures by server, in the order fifo, shortest_reply, nginx.
pub type ByServer<T> = Vec<(String, T)>;

/// All that was measured.
#[derive(Serialize)]
pub struct Results {
    pub pairs: Pairs,
    /// None: nginx is not installed.
    pub contest: Option<Contest>,
    /// By load in percent of the capacity.
    pub open: BTreeMap<u32, ByServer<Sample>>,
    /// The same in the simulator, with the measured costs.
    pub simulated: BTreeMap<u32, ByServer<Sample>>,
    pub costs: ByServer<Costs>,
    /// By clients.
    pub closed: BTreeMap<usize, ByServer<Sample>>,
    /// By clients; requests of the same mix, without and with keep-alive.
    pub wrk: BTreeMap<usize, ByServer<wrk::Summary>>,
    pub wrk_keep_alive: BTreeMap<usize, ByServer<wrk::Summary>>,
    /// What each server says of itself when it ends.
    pub accounts: ByServer<String>,
    pub commands: Vec<String>,
}

/// A share in whole percent.
pub fn percent(share: f64) -> u32 {
    (share * 100.0).round() as u32
}

pub fn run(bench: &Bench, site: &Path, options: &Options, folder: &Path) -> Result<Results> {
    let plan = &Plan::new(options.quick);
    let pairing = &Pairing::here(options.quick);
    let pairs = bench.run(pairing)?;
    let mut servers = vec![];
    for (policy, name) in POLICIES.iter().enumerate() {
        let server = bench.start(policy, &pairs.searches[policy].best)?;
        servers.push(((*name).to_owned(), server));
    }
    let mut contest = None;
    if nginx::program().is_some() {
        let nginx = |tuning| {
            let role = Role::Files(site, tuning);
            Server::start_nginx(&role, &folder.join("nginx"), bench.server_core)
        };
        let held = contest::run(bench, pairing, |settings| bench.start(1, &settings), nginx)?;
        servers.push(("nginx".to_owned(), nginx(held.nginx.best)?));
        contest = Some(held);
    }
    let rest = Rest { bench, plan, servers: &servers, capacity: pairs.capacity() };
    (bench.say)("measuring what a request and a byte cost");
    let costs = rest.costs()?;
    let simulated = rest.simulate(pairing, &costs, &pairs)?;
    let open = rest.open(pairing)?;
    let closed = rest.closed()?;
    let (wrk, wrk_keep_alive) = match wrk::is_installed() {
        true => (rest.wrk(folder, false)?, rest.wrk(folder, true)?),
        false => {
            (bench.say)("wrk is not installed: its figures are missing");
            Default::default()
        }
    };
    let quick = if options.quick { " --quick" } else { "" };
    let mut commands = vec![format!("attune lab run webserver{quick}")];
    commands.extend(
        servers
            .iter()
            .map(|(_, server)| format!("taskset -c {} {}", bench.server_core, server.command)),
    );
    let summaries = wrk.values().chain(wrk_keep_alive.values()).flatten();
    commands.extend(summaries.map(|(_, summary)| summary.command.clone()));
    let mut accounts = Vec::new();
    for (name, server) in servers {
        let (account, _) = server.stop().with_context(|| format!("ending {name}"))?;
        accounts.push((name, account));
    }
    Ok(Results {
        pairs,
        contest,
        open,
        simulated,
        costs,
        closed,
        wrk,
        wrk_keep_alive,
        accounts,
        commands,
    })
}

/// The runs beside the pairs.
pub struct Rest<'a> {
    pub bench: &'a Bench<'a>,
    pub plan: &'a Plan,
    pub servers: &'a [(String, Server)],
    pub capacity: f64,
}

impl Rest<'_> {
    /// What a request and a byte cost each policy's server, measured in turn, so that a disturbance
    /// of the machine disturbs both.
    fn costs(&self) -> Result<ByServer<Costs>> {
        let targets = self.bench.targets;
        let mean = |large: bool| {
            let sizes = targets.iter().filter(|target| target.large == large);
            let sizes: Vec<_> = sizes.map(|target| target.body.len()).collect();
            sizes.iter().sum::<usize>() as f64 / sizes.len().max(1) as f64
        };
        let mix = plan::LARGE_SHARE * mean(true) + (1.0 - plan::LARGE_SHARE) * mean(false);
        let mixed = self.busy_rates(plan::LARGE_SHARE)?;
        let large = self.busy_rates(1.0)?;
        let rates = self.servers.iter().zip(mixed.into_iter().zip(large));
        let cost = |((name, _), (mixed, large)): (&(String, Server), _)| {
            (name.clone(), Costs::of((mixed, mix), (large, mean(true))))
        };
        Ok(rates.map(cost).collect())
    }

    /// Requests a second that each policy's server answers when it is never idle.
    fn busy_rates(&self, large_share: f64) -> Result<[f64; 2]> {
        // The same number of bytes, more or less, whether all replies are large or few.
        let rate = if large_share < 0.5 { 20_000.0 } else { 2_000.0 };
        let pattern = Pattern { rate, length: 1_000_000_000, large_share, seed: 99 };
        let arrivals = pattern.arrivals(self.bench.targets);
        let mut rates = [vec![], vec![]];
        for _ in 0..5 {
            for (rates, (_, server)) in rates.iter_mut().zip(self.servers) {
                let busy = Loop::Closed(plan::BUSY_CLIENTS);
                rates.push(measure::run(server, self.bench.targets, &arrivals, busy)?.throughput);
            }
        }
        Ok(rates.map(measure::middle))
    }

    fn simulate(
        &self,
        pairing: &Pairing,
        costs: &ByServer<Costs>,
        pairs: &Pairs,
    ) -> Result<BTreeMap<u32, ByServer<Sample>>> {
        let mut by_load = BTreeMap::new();
        for &load in self.plan.loads.iter().chain(&[plan::OVERLOAD]) {
            (self.bench.say)(&format!("simulating {} % load", percent(load)));
            let mut samples = Vec::new();
            for ((name, costs), search) in costs.iter().zip(&pairs.searches) {
                let runs = (0..self.plan.repetitions as u64).map(|seed| {
                    let pattern = pairs::pattern(pairing.length, self.capacity, load, seed);
                    simulate::predict(name, &search.best, *costs, &pattern)
                });
                samples.push((name.clone(), measure::median(&runs.collect::<Result<Vec<_>>>()?)));
            }
            by_load.insert(percent(load), samples);
        }
        Ok(by_load)
    }

    pub fn open(&self, pairing: &Pairing) -> Result<BTreeMap<u32, ByServer<Sample>>> {
        let one = |&load: &f64| {
            let samples =
                self.in_turn(&format!("open loop, {} % load", percent(load)), |server, seed| {
                    let pattern = pairs::pattern(pairing.length, self.capacity, load, seed);
                    self.bench.open(server, &pattern)
                })?;
            Ok((percent(load), samples))
        };
        self.plan.loads.iter().map(one).collect()
    }

    fn closed(&self) -> Result<BTreeMap<usize, ByServer<Sample>>> {
        let length = (self.plan.closed_seconds * 1e9) as u64;
        let one = |&clients: &usize| {
            let samples =
                self.in_turn(&format!("closed loop, {clients} clients"), |server, seed| {
                    let targets = self.bench.targets;
                    let arrivals =
                        pairs::pattern(length, self.capacity, 1.0, seed).arrivals(targets);
                    measure::run(server, targets, &arrivals, Loop::Closed(clients))
                })?;
            Ok((clients, samples))
        };
        self.plan.clients.iter().map(one).collect()
    }

    /// Every server in turn, again and again; medians.
    fn in_turn(
        &self,
        what: &str,
        one: impl Fn(&Server, u64) -> Result<Sample>,
    ) -> Result<ByServer<Sample>> {
        let mut samples: Vec<Vec<Sample>> = vec![Vec::new(); self.servers.len()];
        for repetition in 0..self.plan.repetitions {
            (self.bench.say)(&format!("{what}: {} of {}", repetition + 1, self.plan.repetitions));
            for ((name, server), samples) in self.servers.iter().zip(&mut samples) {
                let sample = one(server, repetition as u64);
                samples.push(sample.with_context(|| format!("{what}, {name}"))?);
            }
        }
        let names = self.servers.iter().map(|(name, _)| name.clone());
        Ok(names.zip(samples.iter().map(|samples| measure::median(samples))).collect())
    }

    fn wrk(
        &self,
        folder: &Path,
        keep_alive: bool,
    ) -> Result<BTreeMap<usize, ByServer<wrk::Summary>>> {
        let script = folder.join(if keep_alive { "keep_alive.lua" } else { "mix.lua" });
        fs::write(&script, wrk::script(self.bench.targets, plan::LARGE_SHARE, keep_alive))?;
        let one = |&clients: &usize| {
            (self.bench.say)(&format!("wrk, {clients} clients, keep-alive: {keep_alive}"));
            let summaries = self.servers.iter().map(|(name, server)| {
                let summary = wrk::run(server.address, &script, clients, self.plan.wrk_length)?;
                Ok((name.clone(), summary))
            });
            Ok((clients, summaries.collect::<Result<_>>()?))
        };
        self.plan.clients.iter().map(one).collect()
    }
}
