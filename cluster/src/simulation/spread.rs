//! How far the nodes of a group differ, sampled over the run: the difference between the largest
//! and the smallest value of each variable that the cluster sees.

use std::collections::BTreeMap;
use std::sync::Arc;

use attune_language::ir::NodeProperty;
use attune_replica::Schema;
use attune_replica::messages::Property;
use attune_simulator::cluster::ClusterWorkload;
use attune_simulator::scheduler::Time;

use crate::Node;

/// Between two samples.
pub const PERIOD: Time = 10_000_000;

/// How far the nodes of a group differed in a variable.
#[derive(Clone, Debug, PartialEq)]
pub struct Spread {
    pub group: String,
    pub variable: String,
    /// Over all samples with at least two nodes.
    pub mean: f64,
    pub most: f64,
    /// The largest and the mean value of a node.
    pub largest: f64,
    pub level: f64,
}

#[derive(Default)]
struct Sum {
    samples: u64,
    sum: f64,
    most: f64,
    largest: f64,
    levels: f64,
}

pub struct Spreads {
    schema: Arc<Schema>,
    sums: BTreeMap<(usize, Property), Sum>,
}

impl Spreads {
    pub fn new(schema: &Arc<Schema>) -> Spreads {
        Spreads { schema: schema.clone(), sums: BTreeMap::new() }
    }

    pub fn sample<'n>(&mut self, nodes: impl Iterator<Item = (usize, &'n Node)>) {
        // Least, largest, sum, count.
        let mut found: BTreeMap<(usize, Property), (f64, f64, f64, u32)> = BTreeMap::new();
        for (group, node) in nodes {
            for (property, value) in node.exported() {
                let value = value.as_float();
                let entry = found.entry((group, property)).or_insert((value, value, 0.0, 0));
                *entry = (entry.0.min(value), entry.1.max(value), entry.2 + value, entry.3 + 1);
            }
        }
        for (key, (least, largest, sum, count)) in found {
            if count < 2 {
                continue;
            }
            let total = self.sums.entry(key).or_default();
            total.samples += 1;
            total.sum += largest - least;
            total.most = total.most.max(largest - least);
            total.largest = total.largest.max(largest);
            total.levels += sum / f64::from(count);
        }
    }

    pub fn finish(&self, workload: &ClusterWorkload) -> Vec<Spread> {
        let spread = |(&(group, property), sum): (&(usize, Property), &Sum)| {
            let variable = match &self.schema.properties[usize::from(property)] {
                NodeProperty::Variable(name) => name.clone(),
                NodeProperty::Size(name) => format!("|{name}|"),
                _ => return None,
            };
            let samples = sum.samples.max(1) as f64;
            Some(Spread {
                group: workload.nodes[group].name.clone(),
                variable,
                mean: sum.sum / samples,
                most: sum.most,
                largest: sum.largest,
                level: sum.levels / samples,
            })
        };
        self.sums.iter().filter_map(spread).collect()
    }
}
