//! The values that all nodes see, with the order of their changes.
//!
//! Every change belongs to a revision, and everything that changes at one revision is seen
//! together. A copy at revision r that takes all later changes is the store again, so a lost
//! message costs nothing but time: the next one tells of everything since.

use attune_language::ir::Value;
use attune_replica::Operation;
use attune_replica::messages::{Cell, Revision};

#[derive(Clone, Debug)]
pub struct Store {
    values: Vec<Value>,
    /// The revision at which each value changed last.
    changed: Vec<Revision>,
    revision: Revision,
}

impl Store {
    pub fn new(values: Vec<Value>) -> Store {
        Store { changed: vec![0; values.len()], values, revision: 0 }
    }

    /// The store that another process held; `changed` has a revision for each value.
    pub fn restored(values: Vec<Value>, changed: Vec<Revision>, revision: Revision) -> Store {
        Store { values, changed, revision }
    }

    pub fn revision(&self) -> Revision {
        self.revision
    }

    pub fn values(&self) -> &[Value] {
        &self.values
    }

    /// By cell, the revision at which it changed last.
    pub fn changed(&self) -> &[Revision] {
        &self.changed
    }

    /// The value of a cell; 0 if there is no such cell.
    pub fn get(&self, cell: Cell) -> Value {
        self.values.get(cell as usize).copied().unwrap_or(Value::Int(0))
    }

    /// Begins a revision, to which the changes from now on belong.
    pub fn begin(&mut self) {
        self.revision += 1;
    }

    /// Changes a value in the present revision. Nothing happens if there is no such cell.
    pub fn set(&mut self, cell: Cell, value: Value) {
        let Some(old) = self.values.get_mut(cell as usize) else { return };
        if !old.is(value) {
            *old = value;
            self.changed[cell as usize] = self.revision;
        }
    }

    /// Applies an operation in the present revision, and returns the value after it.
    pub fn apply(&mut self, cell: Cell, operation: Operation) -> Value {
        self.set(cell, operation.apply(self.get(cell)));
        self.get(cell)
    }

    /// The cells that changed after that revision, with what they hold now.
    pub fn since(&self, revision: Revision) -> Vec<(Cell, Value)> {
        let cells = self.changed.iter().zip(&self.values).enumerate();
        let changed = cells.filter(|(_, (changed, _))| **changed > revision);
        changed.map(|(cell, (_, value))| (cell as Cell, *value)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Value::{Float, Int};

    #[test]
    fn a_copy_that_takes_all_later_changes_is_the_store_again() {
        let mut store = Store::new(vec![Int(0), Float(0.0), Int(7)]);
        store.begin();
        store.apply(0, Operation::Add(Int(3)));
        let copied = store.clone();
        store.begin();
        assert_eq!(store.apply(1, Operation::Add(Int(2))), Float(2.0));
        store.set(2, Int(7));
        assert_eq!(store.since(copied.revision()), [(1, Float(2.0))]);
        let mut values = copied.values().to_vec();
        for (cell, value) in store.since(copied.revision()) {
            values[cell as usize] = value;
        }
        assert_eq!(values, store.values());
        store.set(99, Int(1));
        assert_eq!(store.get(99), Int(0));
    }
}
