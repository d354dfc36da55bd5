//! What the simulation of a cluster found.

use attune_replica::messages::Revision;
use attune_replica::schema::Model;
use attune_simulator::Outcome;
use attune_simulator::scheduler::{Time, Value};

use super::spread::Spread;

pub struct ClusterOutcome {
    pub policy: String,
    pub workload: String,
    pub seed: u64,
    pub elapsed: Time,
    /// Events of machines, links and incidents.
    pub events: u64,
    pub master: MasterFigures,
    /// The shared variables at the end, at the owner.
    pub shared: Vec<(String, Model, Value)>,
    /// How far the nodes of each group differed.
    pub spreads: Vec<Spread>,
    /// Messages that found no room, by shared channel of bounded capacity.
    pub lost: Vec<(String, u64)>,
    /// The clients outside.
    pub world: Option<Outcome>,
    /// In the order of groups and of starts; a node that came back after a crash is another one.
    pub nodes: Vec<NodeOutcome>,
}

pub struct NodeOutcome {
    pub name: String,
    pub group: String,
    pub family: String,
    pub start: Time,
    /// When it crashed or departed.
    pub ended: Option<Time>,
    pub outcome: Outcome,
}

/// What the master and the links did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MasterFigures {
    pub arrivals: u64,
    pub departures: u64,
    /// Departures of nodes that were silent for too long.
    pub given_up: u64,
    /// Between nodes and the master, both ways, and how many of them were lost.
    pub messages: u64,
    pub lost: u64,
    /// Calls that found no room, or whose node crashed.
    pub reset: u64,
    pub revisions: Revision,
}
