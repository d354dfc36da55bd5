//! What a manager tells its user.

use attune_replica::messages::NodeId;

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Happening {
    Arrived {
        node: NodeId,
        family: String,
        process: u32,
    },
    /// It is one that the manager before, which was killed, had as a node.
    Returned {
        node: NodeId,
        process: u32,
    },
    /// Its process has ended, or has closed the socket.
    Departed {
        node: NodeId,
        process: u32,
    },
    Refused {
        process: u32,
        reason: String,
    },
    /// The node's own refusal to speak the protocol.
    Dropped {
        process: u32,
    },
    /// The master's state cannot be kept, for that reason. Until it can, nobody is told anything.
    NotKept(String),
    KeptAgain,
    /// So many managers share the master's state.
    Managers(usize),
}

impl Happening {
    /// It is about this manager and the others, not about nodes.
    pub(super) fn is_of_managers(&self) -> bool {
        matches!(self, Happening::NotKept(_) | Happening::KeptAgain | Happening::Managers(_))
    }
}
