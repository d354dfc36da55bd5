//! The process dependency graph: which process wakes which, and so which works for which.
//!
//! An edge goes from the process that wakes to the one that is woken, one edge a pair of address
//! spaces. Its weight counts the wake-ups and decays, so that the graph tells of the last seconds.
//! The graph holds at most `most_edges` edges, the heaviest.

mod dot;
mod hubs;
mod propagation;

use std::collections::{BTreeMap, BTreeSet};

pub use dot::{Look, dot};
pub use propagation::{Direction, Reached, propagate};

use crate::observation::{SECOND, Time};
use crate::process::Process;
use crate::settings::{Decay, Settings};

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Edge {
    pub weight: f64,
    /// The last second in which one woke the other.
    pub last: Time,
}

#[derive(Debug, Default)]
pub struct Graph {
    edges: BTreeMap<(Process, Process), Edge>,
    /// Until when all weights have decayed.
    at: Time,
    /// Processes that were hubs by their number of partners when it was looked last.
    fanned: BTreeSet<Process>,
}

impl Graph {
    /// Adds what was counted since the last time, up to now.
    pub fn count(
        &mut self,
        wakes: impl IntoIterator<Item = (Process, Process, u64)>,
        now: Time,
        settings: &Settings,
    ) {
        self.decay(now, settings);
        for (from, to, count) in wakes {
            if from == to || count == 0 {
                continue;
            }
            let edge = self.edges.entry((from, to)).or_insert(Edge { weight: 0.0, last: now });
            edge.weight = (edge.weight + count as f64).min(settings.most_weight);
            edge.last = now;
        }
        self.bound(settings);
    }

    fn decay(&mut self, now: Time, settings: &Settings) {
        let seconds = now.saturating_sub(self.at) as f64 / SECOND as f64;
        self.at = self.at.max(now);
        self.edges.retain(|_, edge| match settings.decay {
            Decay::Halving => {
                edge.weight *= (-seconds).exp2();
                edge.weight >= settings.least_weight
            }
            Decay::Linear(per_second) => {
                edge.weight -= per_second * seconds;
                edge.weight >= settings.least_weight
            }
            Decay::FixedTime(kept) => {
                (now.saturating_sub(edge.last) as f64) <= kept * SECOND as f64
            }
        });
    }

    /// Drops the lightest edges, an eighth at a time, so that a graph at its bound is not sorted
    /// each second.
    fn bound(&mut self, settings: &Settings) {
        if self.edges.len() <= settings.most_edges {
            return;
        }
        let kept = settings.most_edges - settings.most_edges / 8;
        let mut order: Vec<_> =
            self.edges.iter().map(|(&pair, edge)| (edge.weight, pair)).collect();
        order.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        for (_, pair) in &order[kept.min(order.len())..] {
            self.edges.remove(pair);
        }
    }

    /// A process that ended works for nobody.
    pub fn remove(&mut self, ended: &BTreeSet<Process>) {
        if !ended.is_empty() {
            self.edges.retain(|(from, to), _| !ended.contains(from) && !ended.contains(to));
            self.fanned.retain(|process| !ended.contains(process));
        }
    }

    pub fn edges(&self) -> impl Iterator<Item = (Process, Process, Edge)> {
        self.edges.iter().map(|(&(from, to), &edge)| (from, to, edge))
    }

    pub fn edge(&self, from: Process, to: Process) -> Option<Edge> {
        self.edges.get(&(from, to)).copied()
    }

    pub fn len(&self) -> usize {
        self.edges.len()
    }

    pub fn is_empty(&self) -> bool {
        self.edges.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    pub fn process(pid: u32) -> Process {
        Process { pid, start: 1 }
    }

    fn weight(graph: &Graph, from: u32, to: u32) -> Option<f64> {
        graph.edge(process(from), process(to)).map(|edge| edge.weight)
    }

    fn after(decay: Decay, seconds: u64) -> Option<f64> {
        let settings = Settings { decay, ..Settings::default() };
        let mut graph = Graph::default();
        graph.count([(process(1), process(2), 16)], SECOND, &settings);
        graph.count([], SECOND + seconds * SECOND, &settings);
        weight(&graph, 1, 2)
    }

    #[test]
    fn weights_decay_by_half_a_second_or_as_the_setting_says() {
        assert_eq!(after(Decay::Halving, 1), Some(8.0));
        assert_eq!(after(Decay::Halving, 6), Some(0.25));
        assert_eq!(after(Decay::Halving, 7), None);
        assert_eq!(after(Decay::Linear(3.0), 5), Some(1.0));
        assert_eq!(after(Decay::Linear(3.0), 6), None);
        assert_eq!(after(Decay::FixedTime(4.0), 4), Some(16.0));
        assert_eq!(after(Decay::FixedTime(4.0), 5), None);
    }

    #[test]
    fn wake_ups_between_the_threads_of_one_process_are_no_edge() {
        let mut graph = Graph::default();
        graph.count(
            [(process(1), process(1), 9), (process(1), process(2), 0)],
            1,
            &Settings::default(),
        );
        assert!(graph.is_empty());
    }

    #[test]
    fn thousands_of_short_processes_do_not_push_out_what_matters() {
        let settings = Settings { most_edges: 64, ..Settings::default() };
        let mut graph = Graph::default();
        for second in 1..50u64 {
            let short = (0..5000u32).map(|n| (process(10), process(1000 + n), 1));
            let typed = [(process(1), process(2), 8)];
            graph.count(typed.into_iter().chain(short), second * SECOND, &settings);
            assert!(graph.len() <= 64);
            assert!(weight(&graph, 1, 2).is_some_and(|weight| weight >= 8.0));
        }
    }

    #[test]
    fn a_process_that_ended_has_no_edges() {
        let mut graph = Graph::default();
        let wakes =
            [(process(1), process(2), 1), (process(2), process(3), 1), (process(1), process(3), 1)];
        graph.count(wakes, SECOND, &Settings::default());
        graph.remove(&BTreeSet::from([process(2)]));
        assert_eq!(
            graph.edges().map(|(from, to, _)| (from.pid, to.pid)).collect::<Vec<_>>(),
            [(1, 3)]
        );
    }

    proptest! {
        #[test]
        fn memory_and_weights_stay_bounded_whatever_is_counted(
            seconds in proptest::collection::vec(
                proptest::collection::vec((0u32..40, 0u32..40, 0u64..5000), 0..200), 1..12),
        ) {
            let settings = Settings { most_edges: 50, ..Settings::default() };
            let mut graph = Graph::default();
            for (second, wakes) in seconds.into_iter().enumerate() {
                let named = |(from, to, count)| (process(from), process(to), count);
                let wakes = wakes.into_iter().map(named);
                graph.count(wakes, second as u64 * SECOND, &settings);
                prop_assert!(graph.len() <= 50);
                for (from, to, edge) in graph.edges() {
                    prop_assert!(from != to);
                    prop_assert!(edge.weight >= settings.least_weight);
                    prop_assert!(edge.weight <= settings.most_weight);
                }
            }
        }
    }
}
