//! A cluster as it stands: its master, the lives of its nodes, the queue of what will happen.
//!
//! Invariants: a member's machine exists from its start to its end; `wake` of a member is the time
//! for which its machine's next event stands in the queue.

use std::collections::HashMap;

use attune_replica::messages::NodeId;
use attune_simulator::cluster::ClusterWorkload;
use attune_simulator::scheduler::Time;
use attune_simulator::{Diagnostic, Options, Outcome, Part, Reading, duration};

use super::Settings;
use super::channels::Channels;
use super::event::What;
use super::outcome::MasterFigures;
use super::queue::Queue;
use super::spread::Spreads;
use super::world::World;
use crate::{Master, Node};

pub type Result<T, E = Diagnostic> = std::result::Result<T, E>;

/// One life of a node.
pub struct Member<'a> {
    pub group: usize,
    pub index: u32,
    pub start: Time,
    /// Until its start.
    pub unborn: Option<(&'a mut Node, &'a Options)>,
    pub part: Option<Part<'a, Node>>,
    /// When it crashed or departed.
    pub ended: Option<Time>,
    pub over: Option<Outcome>,
    /// The time of its machine's event in the queue; [`Time::MAX`] without one.
    pub wake: Time,
    /// Nothing passes before that time.
    pub cut_until: Time,
    pub talk: Talk,
}

impl<'a> Member<'a> {
    pub fn new(
        group: usize,
        index: u32,
        start: Time,
        node: &'a mut Node,
        options: &'a Options,
    ) -> Member<'a> {
        Member {
            group,
            index,
            start,
            unborn: Some((node, options)),
            part: None,
            ended: None,
            over: None,
            wake: Time::MAX,
            cut_until: 0,
            talk: Talk::default(),
        }
    }

    /// The time by the member's own clock.
    pub fn own(&self, now: Time) -> Time {
        now - self.start
    }
}

/// When a node spoke and will speak.
pub struct Talk {
    pub said: Time,
    /// The last request of a thread that was sent.
    pub asked: u64,
    pub timer: Time,
    /// When the master last spoke to it.
    pub told: Time,
}

impl Default for Talk {
    fn default() -> Talk {
        Talk { said: LONG_AGO, asked: 0, timer: Time::MAX, told: LONG_AGO }
    }
}

/// When the master spoke to all nodes and will speak.
pub struct MasterTalk {
    pub said: Time,
    pub timer: Time,
}

impl Default for MasterTalk {
    fn default() -> MasterTalk {
        MasterTalk { said: LONG_AGO, timer: Time::MAX }
    }
}

const LONG_AGO: Time = Time::MIN / 4;

pub struct Cluster<'a> {
    pub master: Master,
    pub members: Vec<Member<'a>>,
    pub world: Option<Part<'a, World>>,
    pub world_wake: Time,
    pub workload: &'a ClusterWorkload,
    pub settings: &'a Settings,
    pub end: Time,
    pub now: Time,
    pub queue: Queue<What>,
    pub random: fastrand::Rng,
    pub channels: Channels,
    /// By the master's number.
    pub joined: HashMap<NodeId, usize>,
    /// Threads that wait for an answer of the owner.
    pub readings: HashMap<(usize, u64), Reading>,
    pub figures: MasterFigures,
    pub master_talk: MasterTalk,
    pub next_key: u64,
    pub spreads: Spreads,
    pub events: u64,
    pub at_once: u64,
}

impl<'a> Cluster<'a> {
    pub fn new(
        master: Master,
        members: Vec<Member<'a>>,
        world: Option<Part<'a, World>>,
        workload: &'a ClusterWorkload,
        settings: &'a Settings,
        end: Time,
    ) -> Cluster<'a> {
        let mut cluster = Cluster {
            next_key: members.len() as u64 + 1,
            spreads: Spreads::new(master.schema()),
            master,
            members,
            world,
            world_wake: Time::MAX,
            channels: Channels::new(workload, settings.seed),
            workload,
            settings,
            end,
            now: 0,
            queue: Queue::default(),
            random: fastrand::Rng::with_seed(settings.seed),
            joined: HashMap::new(),
            readings: HashMap::new(),
            figures: MasterFigures::default(),
            master_talk: MasterTalk::default(),
            events: 0,
            at_once: 0,
        };
        for member in 0..cluster.members.len() {
            cluster.queue.push(cluster.members[member].start, What::Start(member));
        }
        for (number, incident) in workload.incidents.iter().enumerate() {
            cluster.queue.push(incident.at, What::Incident(number));
        }
        cluster.queue.push(0, What::Sample);
        cluster
    }

    pub fn master_failed<T>(
        &self,
        result: std::result::Result<T, attune_simulator::interpreter::Failure>,
    ) -> Result<T> {
        result.map_err(|failure| {
            let place = failure.place.map_or(String::new(), |place| format!("{place}: "));
            Diagnostic::new(format!(
                "the master failed a check: {place}{}, at {}",
                failure.message,
                duration(self.now)
            ))
        })
    }

    /// An error in a machine, with the node in which it happened.
    pub fn named(&self, number: usize, mut error: Diagnostic) -> Diagnostic {
        error.message = format!("in the node {}: {}", self.name(number), error.message);
        error
    }

    pub fn name(&self, number: usize) -> String {
        let member = &self.members[number];
        let group = &self.workload.nodes[member.group];
        if group.count == 1 {
            group.name.clone()
        } else {
            format!("{}.{}", group.name, member.index)
        }
    }
}
