//! What the program itself, outside of handlers, does with shared variables.
//!
//! Reads of the cached model are plain loads: the program points at a word for each variable, which
//! the library refreshes while the program is inside one of its functions.

use std::cell::Cell;

use attune_language::ir::{Type, Value};
use attune_replica::messages::{Shared, Target};
use attune_replica::schema::{Model, SharedVariable};
use attune_replica::{Operation, Replica};

use super::Cluster;

/// By shared variable, the bits of its value in the copy. It never moves.
pub struct Copies(Box<[Cell<u64>]>);

impl Copies {
    pub fn of(replica: &Replica) -> Copies {
        let count = replica.schema().shared.len();
        let copies = Copies((0..count).map(|_| Cell::new(0)).collect());
        copies.refresh(replica);
        copies
    }

    pub fn refresh(&self, replica: &Replica) {
        for (number, copy) in self.0.iter().enumerate() {
            copy.set(match replica.shared(number as Shared) {
                Value::Int(value) => value as u64,
                Value::Float(value) => value.to_bits(),
            });
        }
    }
}

impl Cluster {
    pub fn find(&self, name: &str) -> Option<Shared> {
        self.connection.replica().schema().shared(name)
    }

    pub fn is_float(&self, variable: Shared) -> Option<bool> {
        self.declared(variable).map(|it| it.ty == Type::Float)
    }

    /// Programs ask the owner for it.
    pub fn is_requested(&self, variable: Shared) -> bool {
        self.declared(variable).is_some_and(|it| it.model == Model::Request)
    }

    fn declared(&self, variable: Shared) -> Option<&SharedVariable> {
        self.connection.replica().schema().shared.get(usize::from(variable))
    }

    /// The word of a variable.
    pub fn copy(&self, variable: Shared) -> Option<*mut u64> {
        self.copies.0.get(usize::from(variable)).map(Cell::as_ptr)
    }

    pub fn value(&self, variable: Shared) -> Value {
        self.connection.replica().shared(variable)
    }

    /// Writes that go out together, merged with those that have not gone out yet.
    pub fn queue(&mut self, writes: &[(Shared, Operation)]) {
        for &(variable, operation) in writes {
            self.connection.replica_mut().write(Target::Shared(variable), operation);
        }
        self.stale = true;
        self.copies.refresh(self.connection.replica());
    }

    /// Asks the owner: see [`attune_cluster_local::connection::Connection::ask`].
    pub fn ask(&mut self, variable: Shared, writes: Vec<(Shared, Operation)>, now: i64) -> u64 {
        self.connection.ask(variable, writes, now)
    }

    /// No thread waits for that answer any more.
    pub fn abandon(&mut self, number: u64) {
        self.connection.replica_mut().abandon(number);
    }

    /// A number for all that has been written so far.
    pub fn written(&self) -> u64 {
        self.connection.replica().written()
    }

    /// Whether the manager has counted what was written until then.
    pub fn has_counted(&self, written: u64) -> bool {
        self.connection.replica().has_counted(written)
    }

    /// How long ago the manager was heard of. Nanoseconds.
    pub fn age(&self, now: i64) -> i64 {
        self.connection.replica().age(now)
    }
}
