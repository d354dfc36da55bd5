//! Ratings travel over the graph: input ratings along its edges, to the processes that the client
//! wakes; output ratings against them, to the processes that wake the client.
//!
//! From each client its rating goes, breadth first, to every process that it reaches, once. What
//! comes from several clients adds up, to the ceiling. A hub takes what reaches it and passes
//! nothing on, its own rating neither.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::Graph;
use crate::process::Process;
use crate::settings::Settings;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the process that wakes to the process that is woken.
    Along,
    Against,
}

/// What reached a process.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reached {
    pub rating: f64,
    /// The way of the greatest part of it, from the client to this process, both included.
    pub path: Vec<Process>,
    /// The part that came this way.
    pub part: f64,
}

/// `sources`: the clients' own ratings. The result holds them too, with a path of one.
pub fn propagate(
    graph: &Graph,
    sources: &BTreeMap<Process, f64>,
    direction: Direction,
    hubs: &BTreeSet<Process>,
    settings: &Settings,
) -> BTreeMap<Process, Reached> {
    let mut next: BTreeMap<Process, Vec<Process>> = BTreeMap::new();
    for &(from, to) in graph.edges.keys() {
        let (near, far) = match direction {
            Direction::Along => (from, to),
            Direction::Against => (to, from),
        };
        if !hubs.contains(&near) {
            next.entry(near).or_default().push(far);
        }
    }
    let mut reached: BTreeMap<Process, Reached> = BTreeMap::new();
    for (&source, &rating) in sources.iter().filter(|(_, rating)| **rating > 0.0) {
        for (process, before) in breadth_first(source, &next, settings.reach) {
            let place = reached.entry(process).or_default();
            place.rating = (place.rating + rating).min(settings.ceiling);
            let own = before.len() == 1;
            // A client's own rating explains it better than any that comes to it.
            let replaces = match place.path.len() {
                0 => true,
                1 => false,
                _ => own || rating > place.part,
            };
            if replaces {
                place.path = before;
                place.part = rating;
            }
        }
    }
    reached
}

/// Each process that can be reached, with the shortest way to it.
fn breadth_first(
    source: Process,
    next: &BTreeMap<Process, Vec<Process>>,
    reach: usize,
) -> Vec<(Process, Vec<Process>)> {
    let mut seen = BTreeSet::from([source]);
    let mut open = VecDeque::from([vec![source]]);
    let mut found = Vec::new();
    while let Some(path) = open.pop_front() {
        let Some(&end) = path.last() else { continue };
        if path.len() <= reach {
            for &far in next.get(&end).into_iter().flatten() {
                if seen.insert(far) {
                    let longer = path.iter().copied().chain([far]).collect();
                    open.push_back(longer);
                }
            }
        }
        found.push((end, path));
    }
    found
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::tests::process;
    use super::*;

    fn graph(edges: &[(u32, u32)]) -> Graph {
        let mut graph = Graph::default();
        let wakes = edges.iter().map(|&(from, to)| (process(from), process(to), 4));
        graph.count(wakes, 1, &Settings::default());
        graph
    }

    fn ratings(
        edges: &[(u32, u32)],
        sources: &[(u32, f64)],
        direction: Direction,
        hubs: &[u32],
    ) -> BTreeMap<u32, f64> {
        let sources = sources.iter().map(|&(pid, rating)| (process(pid), rating)).collect();
        let hubs = hubs.iter().map(|&pid| process(pid)).collect();
        propagate(&graph(edges), &sources, direction, &hubs, &Settings::default())
            .into_iter()
            .map(|(process, reached)| (process.pid, reached.rating))
            .collect()
    }

    const X: u32 = 1;
    const XTERM: u32 = 2;
    const VIM: u32 = 3;
    const OTHER: u32 = 4;
    /// As typing makes it: the X server, a terminal, the editor in it, and another client.
    const TYPING: [(u32, u32); 6] =
        [(X, XTERM), (XTERM, VIM), (VIM, XTERM), (XTERM, X), (X, OTHER), (OTHER, X)];

    #[test]
    fn input_reaches_the_editor_behind_the_terminal_and_nobody_behind_the_server() {
        let rated = ratings(&TYPING, &[(XTERM, 10.0)], Direction::Along, &[X]);
        assert_eq!(rated, BTreeMap::from([(X, 10.0), (XTERM, 10.0), (VIM, 10.0)]));
    }

    #[test]
    fn output_reaches_the_process_that_feeds_the_client() {
        let edges = [(7, 8), (8, 9), (9, X)];
        let rated = ratings(&edges, &[(9, 4.0)], Direction::Against, &[X]);
        assert_eq!(rated, BTreeMap::from([(7, 4.0), (8, 4.0), (9, 4.0)]));
    }

    #[test]
    fn ratings_of_several_clients_add_up_to_the_ceiling() {
        let edges = [(5, 9), (6, 9), (7, 9)];
        let two = ratings(&edges, &[(5, 3.0), (6, 4.0)], Direction::Along, &[]);
        assert_eq!(two[&9], 7.0);
        let three = ratings(&edges, &[(5, 8.0), (6, 4.0), (7, 1.0)], Direction::Along, &[]);
        assert_eq!(three[&9], 10.0);
    }

    #[test]
    fn a_hub_passes_nothing_on_that_is_its_own() {
        assert_eq!(
            ratings(&[(5, 9)], &[(5, 8.0)], Direction::Along, &[5]),
            BTreeMap::from([(5, 8.0)])
        );
    }

    #[test]
    fn the_path_goes_from_the_client_to_the_process() {
        let sources = BTreeMap::from([(process(XTERM), 10.0)]);
        let hubs = BTreeSet::from([process(X)]);
        let reached =
            propagate(&graph(&TYPING), &sources, Direction::Along, &hubs, &Settings::default());
        assert_eq!(reached[&process(VIM)].path, [process(XTERM), process(VIM)]);
        assert_eq!(reached[&process(XTERM)].path, [process(XTERM)]);
    }

    proptest! {
        #[test]
        fn ratings_stay_within_bounds_and_paths_are_ways_past_hubs(
            edges in proptest::collection::vec((0u32..12, 0u32..12), 0..60),
            sources in proptest::collection::btree_map(0u32..12, 0.0..10.0f64, 0..5),
            hubs in proptest::collection::btree_set(0u32..12, 0..3),
            along in proptest::bool::ANY,
        ) {
            let settings = Settings::default();
            let graph = graph(&edges);
            let named = |(pid, rating)| (process(pid), rating);
            let sources: BTreeMap<_, _> = sources.into_iter().map(named).collect();
            let hubs: BTreeSet<_> = hubs.into_iter().map(process).collect();
            let direction = if along { Direction::Along } else { Direction::Against };
            let reached = propagate(&graph, &sources, direction, &hubs, &settings);
            for (end, reached) in &reached {
                prop_assert!(reached.rating > 0.0 && reached.rating <= settings.ceiling);
                prop_assert_eq!(reached.path.last(), Some(end));
                prop_assert!(sources.contains_key(&reached.path[0]));
                for step in reached.path.windows(2) {
                    prop_assert!(!hubs.contains(&step[0]));
                    let (from, to) = if along { (step[0], step[1]) } else { (step[1], step[0]) };
                    prop_assert!(graph.edge(from, to).is_some());
                }
            }
        }

        /// More input never makes any process less important.
        #[test]
        fn a_higher_source_lowers_no_rating(
            edges in proptest::collection::vec((0u32..10, 0u32..10), 0..40),
            sources in proptest::collection::btree_map(0u32..10, 0.1..10.0f64, 1..5),
        ) {
            let settings = Settings::default();
            let graph = graph(&edges);
            let named = |(pid, rating)| (process(pid), rating);
            let low: BTreeMap<_, _> = sources.into_iter().map(named).collect();
            let mut high = low.clone();
            if let Some(first) = high.values_mut().next() { *first += 1.0; }
            let none = BTreeSet::new();
            let before = propagate(&graph, &low, Direction::Along, &none, &settings);
            let after = propagate(&graph, &high, Direction::Along, &none, &settings);
            prop_assert_eq!(before.len(), after.len());
            for (process, reached) in before {
                prop_assert!(after[&process].rating >= reached.rating - 1e-9);
            }
        }
    }
}
