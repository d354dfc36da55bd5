//! Processes that the manager knows without a connection: nodes whose manager was killed, and which
//! may come to this one; nodes that have departed while their process lives.

use attune_linux::process::Process;
use attune_linux::procfs;
use attune_linux::time::{self, SECOND};
use attune_replica::messages::NodeId;

/// For how long a process that lives may stay away from a manager that took over. Nodes look for a
/// manager ten times a second.
const PATIENCE: time::Time = 60 * SECOND;
/// Processes in all; of more, the first are forgotten.
const MOST: usize = 4096;

/// A process as it can be found again: a later one of the same number has started later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    pub number: u32,
    pub start: u64,
}

impl Identity {
    /// 0 stands for what cannot be found out.
    pub fn of(number: u32) -> Identity {
        Identity { number, start: procfs::start_time(number).unwrap_or(0) }
    }

    /// The process, if it still lives.
    pub fn open(self) -> Option<Process> {
        let process = Process::open(self.number).ok()?;
        (procfs::start_time(self.number) == Some(self.start)).then_some(process)
    }
}

pub struct Absent {
    pub node: NodeId,
    pub identity: Identity,
    process: Process,
    until: time::Time,
}

#[derive(Default)]
pub struct Processes {
    /// Nodes that may come to this manager.
    pub awaited: Vec<Absent>,
    /// Nodes that have departed, and may arrive anew.
    departed: Vec<Absent>,
}

impl Processes {
    pub fn wait_for(&mut self, node: NodeId, identity: Identity, process: Process) {
        let until = time::now() + PATIENCE;
        self.awaited.push(Absent { node, identity, process, until });
    }

    pub fn awaits(&self, node: NodeId) -> Option<&Absent> {
        self.awaited.iter().find(|absent| absent.node == node)
    }

    /// Whether the node was waited for, which now is over.
    pub fn came(&mut self, node: NodeId) -> bool {
        let awaited = self.awaited.iter().position(|absent| absent.node == node);
        awaited.map(|at| self.awaited.swap_remove(at)).is_some()
    }

    /// Nodes that will not come any more, or not soon, with their processes' numbers.
    pub fn given_up(&mut self) -> Vec<(NodeId, u32)> {
        let now = time::now();
        let lost = |absent: &mut Absent| now >= absent.until || !absent.process.lives();
        self.awaited
            .extract_if(.., lost)
            .map(|absent| (absent.node, absent.identity.number))
            .collect()
    }

    /// Waits for nobody any more; gives the nodes that it waited for.
    pub fn no_longer_awaited(&mut self) -> Vec<(NodeId, u32)> {
        self.awaited.drain(..).map(|absent| (absent.node, absent.identity.number)).collect()
    }

    /// A node has departed, and its process may live.
    pub fn departed(&mut self, node: NodeId, identity: Identity, process: Process) {
        self.departed.push(Absent { node, identity, process, until: time::NEVER });
    }

    /// Departed nodes that cannot come back.
    pub fn ended(&mut self) -> Vec<NodeId> {
        let surplus = self.departed.len().saturating_sub(MOST);
        let mut ended: Vec<NodeId> =
            self.departed.drain(..surplus).map(|absent| absent.node).collect();
        let dead = self.departed.extract_if(.., |absent| !absent.process.lives());
        ended.extend(dead.map(|absent| absent.node));
        ended
    }
}
