//! What travels between a node and the master, as plain data. A transport may lose, repeat and
//! reorder messages; it must not change them.

use std::fmt;

use attune_language::ir::Value;

use crate::operation::Operation;

/// Counts what has changed the store: one handler of the master, or one batch of a node.
pub type Revision = u64;

/// A place in the store; [`crate::Schema`] says what is where.
pub type Cell = u32;

/// A node, by a number that its master never gives again.
pub type NodeId = u64;

/// Something that nodes have, by its number in [`crate::Schema::properties`].
pub type Property = u16;

/// A shared variable, by its number in [`crate::Schema::shared`].
pub type Shared = u16;

/// A node wants to take part.
#[derive(Clone, Debug, PartialEq)]
pub struct Hello {
    /// [`crate::Schema::identity`] of the text that the node runs.
    pub identity: String,
    /// The name of its family.
    pub family: String,
    /// Chosen by the node: the same in each repetition of one hello, and in no other.
    pub key: u64,
    /// What it was before, if it was part of this cluster and the master gave it up.
    pub former: Option<NodeId>,
    /// Its own values at the start: no newer than what it has told of its other writes, so that a
    /// node that is killed after its hello leaves no half of a batch behind.
    pub values: Vec<(Property, Value)>,
}

/// The node takes part.
#[derive(Clone, Debug, PartialEq)]
pub struct Welcome {
    pub node: NodeId,
    /// The whole store.
    pub revision: Revision,
    pub values: Vec<Value>,
    /// The last batch of the node's former life that has taken effect; 0 if there is none.
    pub counted: u64,
    /// It goes on as the node that it was: a manager that lost its connections, not its store.
    pub resumed: bool,
    pub started: bool,
}

/// Why a node cannot take part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It runs another text.
    Version {
        master: String,
        node: String,
    },
    Family(String),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Version { master, node } => write!(
                f,
                "the node runs another version of the scheduler: the manager's is {master}, the \
                 node's {node}; build the node anew from the manager's text"
            ),
            Refusal::Family(family) => {
                write!(f, "the master's `nodefamilies` name no family `{family}`")
            }
        }
    }
}

impl std::error::Error for Refusal {}

/// From a node: what it wrote, and what it has heard.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    pub node: NodeId,
    /// The revision of the node's copy.
    pub heard: Revision,
    /// The oldest batch that the node does not know to have taken effect.
    pub batch: Option<Batch>,
}

/// Writes that take effect together and once.
#[derive(Clone, Debug, PartialEq)]
pub struct Batch {
    /// From 1, without gaps.
    pub number: u64,
    /// The last orders that the node had followed before it sealed the batch.
    pub obeyed: u64,
    pub writes: Vec<(Target, Operation)>,
}

/// What is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    Shared(Shared),
    /// Something that the sender owns: its value is told.
    Own(Property),
    /// A variable of another node, or a command to it.
    Of(NodeId, Property),
}

/// From the master: what changed.
#[derive(Clone, Debug, PartialEq)]
pub struct News {
    pub node: NodeId,
    /// The store from that revision on, `since`, is brought to this one by `cells`.
    pub revision: Revision,
    pub since: Revision,
    pub cells: Vec<(Cell, Value)>,
    /// The last batch of the node that `cells` take into account.
    pub counted: u64,
    pub orders: Option<Orders>,
    /// As many nodes have come as the families expect.
    pub started: bool,
}

/// Writes of others to a node's variables, and commands; they take effect together and once.
#[derive(Clone, Debug, PartialEq)]
pub struct Orders {
    /// From 1, without gaps.
    pub number: u64,
    pub writes: Vec<(Property, Operation)>,
}

/// The request model: writes at the owner that take effect together, or a read.
#[derive(Clone, Debug, PartialEq)]
pub struct Ask {
    pub node: NodeId,
    /// From 1; each is performed once.
    pub number: u64,
    /// No answer below this number is needed any more.
    pub unanswered: u64,
    /// Whose value the answer tells.
    pub variable: Shared,
    /// None: a read.
    pub writes: Vec<(Shared, Operation)>,
}

/// The value after the writes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Answer {
    pub node: NodeId,
    pub number: u64,
    pub value: Value,
}
