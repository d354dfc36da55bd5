//! Distributed schedulers in the IR: programs like any other, and whose values they import.
//!
//! To the master a node is what a thread is to a scheduler: `arrival` is its `newthread`,
//! `departure` its `set_dead`, and what a node has is a thread import of the master. In a node's
//! program the shared variables, and what it reads of other nodes, are imports. So a handler reads
//! each value once, when it starts, from what is known locally, and never waits for another node.
//!
//! Updates merge: an assignment whose value is a binary operation on the assigned import itself
//! (`x += e`, `x = x + e`) means that operation, whatever the value has become meanwhile. All that
//! a handler writes goes out together when it ends.

use super::{AttributeId, GlobalId};

/// Something of a node that the master or other nodes can see.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum NodeProperty {
    /// The number of its family; -1 where there is no node.
    Family,
    /// A scalar of its program, by name.
    Variable(String),
    /// How many threads its container of that name holds.
    Size(String),
    /// Whether the threads of its container of that name shall be suspended: 1 or 0, a command.
    Suspended(String),
    /// How long ago the variable's value was heard of.
    Age(String),
}

/// An import that a cluster supplies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remote {
    pub global: GlobalId,
    /// The node that the master calls so in `nodes`; none for a variable that all nodes share.
    pub node: Option<String>,
    pub property: NodeProperty,
}

/// What a program has to do with the cluster that it belongs to; empty for any other.
#[derive(Clone, Debug, Default)]
pub struct Membership {
    /// In a master: the names of the families, by number. Empty in a node's program.
    pub families: Vec<String>,
    /// In a master: what each of its thread imports is of a node.
    pub properties: Vec<(AttributeId, NodeProperty)>,
    pub remotes: Vec<Remote>,
    /// In a node's program: names that the master or other nodes see.
    pub observed: Vec<String>,
}
