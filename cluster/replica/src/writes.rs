//! A queue of writes that stays short: writes to one variable merge.
//!
//! Invariant: applying the queue gives what applying every write in turn gives, for integers to the
//! bit; sums of floats may be rounded differently.

use attune_language::ir::Value;

use crate::operation::Operation;

/// Writes to variables of type `T`, each variable's in their order.
#[derive(Clone, Debug, PartialEq)]
pub struct Writes<T> {
    list: Vec<(T, Operation)>,
}

impl<T> Default for Writes<T> {
    fn default() -> Writes<T> {
        Writes { list: Vec::new() }
    }
}

impl<T: PartialEq + Copy> Writes<T> {
    pub fn push(&mut self, to: T, operation: Operation) {
        if let Some((_, last)) = self.list.iter_mut().rfind(|(earlier, _)| *earlier == to)
            && let Some(merged) = merge(*last, operation)
        {
            *last = merged;
            return;
        }
        self.list.push((to, operation));
    }

    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub fn len(&self) -> usize {
        self.list.len()
    }

    pub fn iter(&self) -> impl Iterator<Item = (T, Operation)> + '_ {
        self.list.iter().copied()
    }

    /// What the variable holds after the writes to it.
    pub fn applied(&self, to: T, mut value: Value) -> Value {
        for (_, operation) in self.list.iter().filter(|(each, _)| *each == to) {
            value = operation.apply(value);
        }
        value
    }

    /// Takes all writes out of the queue.
    pub fn take(&mut self) -> Vec<(T, Operation)> {
        std::mem::take(&mut self.list)
    }
}

/// Applies writes that have left their queue.
pub fn applied<T: PartialEq>(writes: &[(T, Operation)], to: &T, mut value: Value) -> Value {
    for (_, operation) in writes.iter().filter(|(each, _)| each == to) {
        value = operation.apply(value);
    }
    value
}

fn merge(first: Operation, next: Operation) -> Option<Operation> {
    use Operation::{Add, Multiply};
    use Value::Float;
    first.then(next).or(match (first, next) {
        (Add(Float(a)), Add(Float(b))) => Some(Add(Float(a + b))),
        (Multiply(Float(a)), Multiply(Float(b))) => Some(Multiply(Float(a * b))),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use Value::{Float, Int};

    #[test]
    fn a_million_additions_are_one_write() {
        let mut writes = Writes::default();
        for _ in 0..1_000_000 {
            writes.push("r", Operation::Add(Int(1)));
            writes.push("load", Operation::Add(Float(0.5)));
            writes.push("n", Operation::Set(Int(3)));
        }
        assert_eq!(writes.len(), 3);
        assert_eq!(writes.applied("r", Int(5)), Int(1_000_005));
        assert_eq!(writes.applied("load", Float(0.0)), Float(500_000.0));
        assert_eq!(writes.applied("n", Int(9)), Int(3));
    }

    #[test]
    fn operations_that_do_not_commute_keep_their_order() {
        let mut writes = Writes::default();
        writes.push(0, Operation::Add(Int(2)));
        writes.push(0, Operation::Multiply(Int(10)));
        writes.push(1, Operation::Add(Int(1)));
        writes.push(0, Operation::Add(Int(1)));
        assert_eq!(writes.applied(0, Int(1)), Int(31));
        assert_eq!(applied(&writes.take(), &1, Int(0)), Int(1));
        assert!(writes.is_empty());
    }
}
