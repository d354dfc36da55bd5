//! The runs of the experiment, in order: capacity, fifo's settings, open loop, closed loop, wrk.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::Serialize;

use super::measure::{self, Sample};
use super::plan::{self, Plan};
use super::server::{self, Server, Settings};
use super::simulate::{self, Costs};
use super::site;
use crate::experiment::{Options, Progress};
use crate::load::generator::Loop;
use crate::load::schedule::{Pattern, Target};
use crate::load::wrk;

/// Where and how things are run.
pub struct Bench<'a> {
    pub options: &'a Options,
    /// For what is written.
    pub folder: &'a Path,
    pub server_core: usize,
    pub say: Progress<'a>,
}

/// The figures of one load: by server, in the order fifo, shortest_reply, nginx.
pub type ByServer<T> = Vec<(String, T)>;

/// All that was measured.
#[derive(Serialize)]
pub struct Results {
    /// Requests a second that fifo answers when it is never idle.
    pub capacity: f64,
    pub fifo: Settings,
    pub shortest_reply: Settings,
    /// fifo's mean response time at overload by its settings, milliseconds.
    pub tuning: Vec<(Settings, f64)>,
    /// By load in percent of the capacity.
    pub open: BTreeMap<u32, ByServer<Sample>>,
    /// The same in the simulator, with the costs that were measured.
    pub simulated: BTreeMap<u32, ByServer<Sample>>,
    pub costs: ByServer<Costs>,
    /// By clients.
    pub closed: BTreeMap<usize, ByServer<Sample>>,
    /// By clients; requests of the same mix, without and with keep-alive.
    pub wrk: BTreeMap<usize, ByServer<wrk::Summary>>,
    pub wrk_keep_alive: BTreeMap<usize, ByServer<wrk::Summary>>,
    /// What each server did in all, as it says itself when it ends.
    pub accounts: ByServer<String>,
    pub commands: Vec<String>,
}

/// A share in whole percent.
pub fn percent(share: f64) -> u32 {
    (share * 100.0).round() as u32
}

impl Bench<'_> {
    pub fn run(&self) -> Result<Results> {
        let plan = Plan::new(self.options.quick);
        let site = self.folder.join("site");
        let targets = site::create(&site)?;
        let fifo = self.compile("fifo")?;
        let shortest_reply = self.compile("shortest_reply")?;

        let first = Settings { handlers: plan.fifo_handlers[0], chunk: plan.fifo_chunks[0] };
        (self.say)("finding the capacity");
        let server = self.start(&fifo, &site, &first)?;
        let capacity = self.busy_rates(&[&server], &targets, plan::LARGE_SHARE, 3)?[0];
        drop(server);
        let (tuning, best) = self.tune(&plan, &fifo, &site, &targets, capacity)?;
        let chosen = Settings { handlers: plan::HANDLERS, chunk: plan::CHUNK };

        let mut servers = vec![
            ("fifo".to_owned(), self.start(&fifo, &site, &best)?),
            ("shortest_reply".to_owned(), self.start(&shortest_reply, &site, &chosen)?),
        ];
        if server::nginx_program().is_some() {
            let nginx = Server::start_nginx(&site, &self.folder.join("nginx"), self.server_core)?;
            servers.push(("nginx".to_owned(), nginx));
        }
        (self.say)("measuring what a request and a byte cost");
        let costs = self.costs(&servers[..2], &targets)?;
        let simulated = self.simulate(&plan, &costs, &[&best, &chosen], capacity)?;
        let open = self.open(&plan, &servers, &targets, capacity)?;
        let closed = self.closed(&plan, &servers, &targets, capacity)?;
        let (wrk, wrk_keep_alive) = if wrk::is_installed() {
            (self.wrk(&plan, &servers, &targets, false)?, self.wrk(&plan, &servers, &targets, true)?)
        } else {
            (self.say)("wrk is not installed: its figures are missing");
            Default::default()
        };
        let commands = self.commands(&servers, &wrk, &wrk_keep_alive);
        let mut accounts = Vec::new();
        for (name, server) in servers {
            let (account, _) = server.stop().with_context(|| format!("ending {name}"))?;
            accounts.push((name, account));
        }
        Ok(Results {
            capacity,
            fifo: best,
            shortest_reply: chosen,
            tuning,
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

    fn start(&self, scheduler: &Path, site: &Path, settings: &Settings) -> Result<Server> {
        let program = self.options.programs.join("webserver");
        if !program.is_file() {
            bail!("{} is not built; `make build` builds it", program.display());
        }
        Server::start(&program, Some(scheduler), site, settings, &[], self.server_core)
    }

    /// Requests a second that each server answers when a closed loop of many clients leaves it no rest.
    fn busy_rates(
        &self,
        servers: &[&Server],
        targets: &[Target],
        large_share: f64,
        times: usize,
    ) -> Result<Vec<f64>> {
        // The same number of bytes, more or less, whether all replies are large or few.
        let rate = if large_share < 0.5 { 20_000.0 } else { 2_000.0 };
        let arrivals = Pattern { rate, length: 1_000_000_000, large_share, seed: 99 }.arrivals(targets);
        let mut rates = vec![Vec::new(); servers.len()];
        for _ in 0..times {
            for (server, rates) in servers.iter().zip(&mut rates) {
                let sample = measure::run(server, targets, &arrivals, Loop::Closed(plan::BUSY_CLIENTS))?;
                rates.push(sample.throughput);
            }
        }
        Ok(rates.into_iter().map(measure::middle).collect())
    }

    /// What a request and a byte cost each server, measured in turn so that what disturbs the machine disturbs all of them.
    fn costs(&self, servers: &[(String, Server)], targets: &[Target]) -> Result<ByServer<Costs>> {
        let mean = |large: bool| {
            let sizes: Vec<_> =
                targets.iter().filter(|target| target.large == large).map(|t| t.body.len()).collect();
            sizes.iter().sum::<usize>() as f64 / sizes.len().max(1) as f64
        };
        let mix = plan::LARGE_SHARE * mean(true) + (1.0 - plan::LARGE_SHARE) * mean(false);
        let running: Vec<&Server> = servers.iter().map(|(_, server)| server).collect();
        let mix_rates = self.busy_rates(&running, targets, plan::LARGE_SHARE, 5)?;
        let large_rates = self.busy_rates(&running, targets, 1.0, 5)?;
        let rates = mix_rates.into_iter().zip(large_rates);
        Ok(servers
            .iter()
            .zip(rates)
            .map(|((name, _), (mix_rate, large_rate))| {
                (name.clone(), Costs::of((mix_rate, mix), (large_rate, mean(true))))
            })
            .collect())
    }

    fn simulate(
        &self,
        plan: &Plan,
        costs: &ByServer<Costs>,
        settings: &[&Settings],
        capacity: f64,
    ) -> Result<BTreeMap<u32, ByServer<Sample>>> {
        let mut by_load = BTreeMap::new();
        for &load in &plan.loads {
            (self.say)(&format!("simulating {:.0} % load", load * 100.0));
            let mut samples = Vec::new();
            for ((name, costs), settings) in costs.iter().zip(settings) {
                let runs = (0..plan.repetitions).map(|seed| {
                    let pattern = self.pattern(plan, capacity, load, seed as u64);
                    simulate::predict(name, settings, *costs, &pattern)
                });
                samples.push((name.clone(), measure::median(&runs.collect::<Result<Vec<_>>>()?)));
            }
            by_load.insert(percent(load), samples);
        }
        Ok(by_load)
    }

    /// The settings with which fifo's mean response time at overload is lowest.
    fn tune(
        &self,
        plan: &Plan,
        scheduler: &Path,
        site: &Path,
        targets: &[Target],
        capacity: f64,
    ) -> Result<(Vec<(Settings, f64)>, Settings)> {
        let mut tried: Vec<(Settings, f64)> = Vec::new();
        for &handlers in &plan.fifo_handlers {
            for &chunk in &plan.fifo_chunks {
                let settings = Settings { handlers, chunk };
                (self.say)(&format!("tuning fifo: {handlers} handlers, chunks of {} kB", chunk >> 10));
                let server = self.start(scheduler, site, &settings)?;
                let samples = (0..2).map(|seed| {
                    let arrivals =
                        self.pattern(plan, capacity, plan::OVERLOAD, 1000 + seed).arrivals(targets);
                    measure::run_undisturbed(&server, targets, &arrivals, Loop::Open)
                });
                let samples = samples.collect::<Result<Vec<_>>>()?;
                let mean = samples.iter().map(|sample| sample.all.mean).fold(f64::MAX, f64::min);
                tried.push((settings, mean));
            }
        }
        let best = tried.iter().min_by(|a, b| a.1.total_cmp(&b.1)).context("no settings to try")?.0.clone();
        Ok((tried, best))
    }

    fn pattern(&self, plan: &Plan, capacity: f64, load: f64, seed: u64) -> Pattern {
        Pattern { rate: capacity * load, length: plan.length, large_share: plan::LARGE_SHARE, seed }
    }

    fn open(
        &self,
        plan: &Plan,
        servers: &[(String, Server)],
        targets: &[Target],
        capacity: f64,
    ) -> Result<BTreeMap<u32, ByServer<Sample>>> {
        let mut by_load = BTreeMap::new();
        for &load in &plan.loads {
            let samples = self.interleave(
                plan,
                servers,
                &format!("open loop, {} % load", percent(load)),
                |server, seed| {
                    let arrivals = self.pattern(plan, capacity, load, seed).arrivals(targets);
                    measure::run_undisturbed(server, targets, &arrivals, Loop::Open)
                },
            )?;
            by_load.insert(percent(load), samples);
        }
        Ok(by_load)
    }

    fn closed(
        &self,
        plan: &Plan,
        servers: &[(String, Server)],
        targets: &[Target],
        capacity: f64,
    ) -> Result<BTreeMap<usize, ByServer<Sample>>> {
        let mut by_clients = BTreeMap::new();
        for &clients in &plan.clients {
            let length = (plan.closed_seconds * 1e9) as u64;
            let samples = self.interleave(
                plan,
                servers,
                &format!("closed loop, {clients} clients"),
                |server, seed| {
                    let pattern = Pattern { length, ..self.pattern(plan, capacity, 1.0, seed) };
                    measure::run(server, targets, &pattern.arrivals(targets), Loop::Closed(clients))
                },
            )?;
            by_clients.insert(clients, samples);
        }
        Ok(by_clients)
    }

    /// Every server in turn, again and again, so that what disturbs the machine disturbs all of them; medians.
    fn interleave(
        &self,
        plan: &Plan,
        servers: &[(String, Server)],
        what: &str,
        one: impl Fn(&Server, u64) -> Result<Sample>,
    ) -> Result<ByServer<Sample>> {
        let mut samples: Vec<Vec<Sample>> = vec![Vec::new(); servers.len()];
        for repetition in 0..plan.repetitions {
            (self.say)(&format!("{what}: {} of {}", repetition + 1, plan.repetitions));
            for ((name, server), samples) in servers.iter().zip(&mut samples) {
                samples.push(one(server, repetition as u64).with_context(|| format!("{what}, {name}"))?);
            }
        }
        Ok(servers
            .iter()
            .zip(&samples)
            .map(|((name, _), samples)| (name.clone(), measure::median(samples)))
            .collect())
    }

    fn wrk(
        &self,
        plan: &Plan,
        servers: &[(String, Server)],
        targets: &[Target],
        keep_alive: bool,
    ) -> Result<BTreeMap<usize, ByServer<wrk::Summary>>> {
        let script = self.folder.join(if keep_alive { "keep_alive.lua" } else { "mix.lua" });
        fs::write(&script, wrk::script(targets, plan::LARGE_SHARE, keep_alive))?;
        let mut by_clients = BTreeMap::new();
        for &clients in &plan.clients {
            (self.say)(&format!("wrk, {clients} clients{}", if keep_alive { ", keep-alive" } else { "" }));
            let mut summaries = Vec::new();
            for (name, server) in servers {
                let summary = wrk::run(server.address, &script, clients, plan.wrk_length)?;
                summaries.push((name.clone(), summary));
            }
            by_clients.insert(clients, summaries);
        }
        Ok(by_clients)
    }

    fn commands(
        &self,
        servers: &[(String, Server)],
        wrk: &BTreeMap<usize, ByServer<wrk::Summary>>,
        wrk_keep_alive: &BTreeMap<usize, ByServer<wrk::Summary>>,
    ) -> Vec<String> {
        let quick = if self.options.quick { " --quick" } else { "" };
        let mut commands = vec![format!("attune lab run webserver{quick}")];
        commands.extend(
            servers.iter().map(|(_, server)| format!("taskset -c {} {}", self.server_core, server.command)),
        );
        let summaries = wrk.values().chain(wrk_keep_alive.values()).flatten();
        commands.extend(summaries.map(|(_, summary)| summary.command.clone()));
        commands
    }

    /// A scheduler of the standard library as the threads engine loads it.
    fn compile(&self, name: &str) -> Result<PathBuf> {
        (self.say)(&format!("compiling {name}"));
        let compiled = self.folder.join(format!("{name}.so"));
        crate::schedulers::compile(name, &compiled)?;
        Ok(compiled)
    }
}
