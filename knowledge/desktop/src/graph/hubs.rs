//! Hubs: processes that serve many others, so that a wake-up from or by them does not say which
//! process works for which. Ratings end at a hub.
//!
//! A process is a hub if it is a display server, if it is the machine's first process, if its name
//! is one of the settings' `hubs`, or by its partners: at least `hub_fan` processes that it did not
//! start wake it, and it wakes at least as many. A shell with eight jobs is no hub, since it
//! started them; a message bus is. A hub by its partners stays one until it has less than half as
//! many.

use std::collections::{BTreeMap, BTreeSet};

use super::Graph;
use crate::observation::Program;
use crate::process::Process;
use crate::settings::Settings;

/// Generations that are followed from a process to one that started it.
const GENERATIONS: usize = 32;

impl Graph {
    /// All hubs now.
    pub fn hubs(
        &mut self,
        servers: &BTreeSet<Process>,
        programs: &BTreeMap<Process, Program>,
        settings: &Settings,
    ) -> BTreeSet<Process> {
        self.fanned = self.fanned(programs, settings);
        let named = programs
            .values()
            .filter(|program| program.process.pid == 1 || settings.hubs.contains(&program.name));
        let named = named.map(|program| program.process);
        self.fanned.iter().copied().chain(named).chain(servers.iter().copied()).collect()
    }

    fn fanned(
        &self,
        programs: &BTreeMap<Process, Program>,
        settings: &Settings,
    ) -> BTreeSet<Process> {
        // How many each process wakes, and how many wake it.
        let mut partners: BTreeMap<Process, [usize; 2]> = BTreeMap::new();
        for &(from, to) in self.edges.keys() {
            if !started(from, to, programs) {
                partners.entry(from).or_default()[0] += 1;
            }
            if !started(to, from, programs) {
                partners.entry(to).or_default()[1] += 1;
            }
        }
        let is_hub = |process: &Process, [out, into]: [usize; 2]| {
            let enough = match self.fanned.contains(process) {
                true => settings.hub_fan.div_ceil(2),
                false => settings.hub_fan,
            };
            out >= enough && into >= enough
        };
        partners
            .into_iter()
            .filter(|(process, counts)| is_hub(process, *counts))
            .map(|(process, _)| process)
            .collect()
    }
}

/// Whether the elder started the younger, or one of those that started it.
fn started(elder: Process, younger: Process, programs: &BTreeMap<Process, Program>) -> bool {
    let parent = |process| programs.get(&process).and_then(|program: &Program| program.parent);
    let line = std::iter::successors(parent(younger), |&process| parent(process));
    line.take(GENERATIONS).any(|process| process == elder)
}

#[cfg(test)]
mod tests {
    use super::super::tests::process;
    use super::*;
    use crate::observation::SECOND;

    fn program(pid: u32, name: &str, parent: u32) -> (Process, Program) {
        let facts =
            Program { process: process(pid), name: name.to_owned(), parent: Some(process(parent)) };
        (process(pid), facts)
    }

    fn star(middle: u32, others: std::ops::Range<u32>, second: u64) -> Graph {
        let mut graph = Graph::default();
        let wakes = others.flat_map(|other| {
            [(process(middle), process(other), 4), (process(other), process(middle), 4)]
        });
        graph.count(wakes, second * SECOND, &Settings::default());
        graph
    }

    #[test]
    fn a_bus_is_a_hub_and_a_shell_with_many_jobs_is_not() {
        let settings = Settings::default();
        let mut graph = star(5, 100..112, 1);
        let bus: BTreeMap<_, _> = (100..112).map(|pid| program(pid, "client", 2)).collect();
        assert_eq!(graph.hubs(&BTreeSet::new(), &bus, &settings), BTreeSet::from([process(5)]));
        let mut graph = star(5, 100..112, 1);
        let jobs: BTreeMap<_, _> = (100..112).map(|pid| program(pid, "cc", 5)).collect();
        assert_eq!(graph.hubs(&BTreeSet::new(), &jobs, &settings), BTreeSet::new());
    }

    #[test]
    fn servers_the_first_process_and_named_ones_are_hubs() {
        let programs = BTreeMap::from([
            program(1, "init", 0),
            program(20, "dbus-daemon", 1),
            program(30, "vim", 1),
        ]);
        let hubs =
            Graph::default().hubs(&BTreeSet::from([process(40)]), &programs, &Settings::default());
        assert_eq!(hubs, BTreeSet::from([process(1), process(20), process(40)]));
    }

    #[test]
    fn a_hub_stays_one_until_it_has_lost_half_of_its_partners() {
        let settings = Settings { least_weight: 1.0, ..Settings::default() };
        let programs = BTreeMap::new();
        let mut graph = star(5, 100..108, 1);
        assert_eq!(graph.hubs(&BTreeSet::new(), &programs, &settings).len(), 1);
        for (second, left, hub) in [(4, 5, true), (8, 3, false)] {
            let wakes = (100..100 + left).flat_map(|other| {
                [(process(5), process(other), 4), (process(other), process(5), 4)]
            });
            graph.count(wakes, second * SECOND, &settings);
            let is_hub = !graph.hubs(&BTreeSet::new(), &programs, &settings).is_empty();
            assert_eq!(is_hub, hub, "{left} partners left");
        }
    }
}
