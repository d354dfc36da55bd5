//! Causal order: a node that sees the k-th write of n sees all that n had seen when it wrote it,
//! and never sees less than it has seen before or has written itself.

use std::collections::BTreeMap;

use super::world::NODES;

/// By node, how many of its writes are counted.
pub type Counts = [i64; NODES];

/// What nodes have seen.
#[derive(Default)]
pub struct Seen {
    /// By node and number of its write, what it had seen when it made it.
    by: BTreeMap<(usize, i64), Counts>,
    looks: Vec<(usize, Counts)>,
}

impl Seen {
    pub fn writes(&mut self, node: usize, number: i64, seen: Counts) {
        self.by.insert((node, number), seen);
    }

    pub fn looks(&mut self, node: usize, counts: Counts) {
        self.looks.push((node, counts));
    }

    pub fn check(&self) -> Result<(), String> {
        let mut before = [[0; NODES]; NODES];
        for (node, counts) in &self.looks {
            for of in 0..NODES {
                if counts[of] < before[*node][of] {
                    return Err(format!("node {node} sees less of {of} than before: {counts:?}"));
                }
                if counts[of] == 0 {
                    continue;
                }
                let Some(seen) = self.by.get(&(of, counts[of])) else {
                    return Err(format!("node {node} sees a write of {of} that is not there"));
                };
                if (0..NODES).any(|each| each != of && seen[each] > counts[each]) {
                    return Err(format!(
                        "node {node} sees write {} of {of} and not what {of} had seen: {counts:?}, \
                         {seen:?}",
                        counts[of]
                    ));
                }
            }
            before[*node] = *counts;
        }
        Ok(())
    }
}
