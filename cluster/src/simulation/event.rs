//! What can happen in a cluster, as entries of its queue.

use attune_replica::messages::{Answer, Ask, Hello, News, NodeId, Report, Welcome};
use attune_simulator::Reading;
use attune_simulator::scheduler::Time;

pub enum What {
    Start(usize),
    /// A machine's next event.
    Machine(usize),
    World,
    Incident(usize),
    /// The master learns of a crash.
    Noticed(NodeId),
    NodeTalks(usize),
    MasterTalks,
    ToMaster(usize, Up),
    ToNode(usize, Down),
    /// A message reaches its channel.
    Message(usize, Envelope),
    /// A message is handed to a waiting thread.
    Hand(Address, Envelope),
    /// A reply, or nothing because the node that should reply is gone.
    Reply(u64, Option<f64>),
    /// The value of a shared variable for a thread.
    Answer(usize, Reading, f64),
    Sample,
}

pub enum Up {
    Hello(Hello),
    Report(Report),
    Ask(Ask),
}

pub enum Down {
    Welcome(Welcome),
    News(News),
    Answer(Answer),
    /// The master has given the node up.
    Stranger,
}

/// A message on its way.
#[derive(Clone, Copy, Debug)]
pub struct Envelope {
    pub value: f64,
    pub sent: Time,
    pub call: Option<u64>,
}

/// A member, None for the world, and the number of a channel in its workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address {
    pub member: Option<usize>,
    pub channel: u16,
}
