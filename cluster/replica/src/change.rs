//! What is done to a number by any number of assignments that set it, add to it and multiply it: a
//! factor and a sum (`struct attune_change` of generated C). Integers wrap around, as everywhere.

use crate::Operation;
use attune_language::ir::Value;

/// A number becomes `number * scale + shift`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Change {
    pub scale: i64,
    pub shift: i64,
}

impl Change {
    pub const NONE: Change = Change { scale: 1, shift: 0 };

    /// None: a division, or an operation of floats. The front end lets no node whose engine merges
    /// so have them (language/src/engine/limits.rs).
    pub fn of(operation: Operation) -> Option<Change> {
        let Value::Int(by) = operation.operand() else { return None };
        match operation {
            Operation::Set(_) => Some(Change { scale: 0, shift: by }),
            Operation::Add(_) => Some(Change { scale: 1, shift: by }),
            Operation::Multiply(_) => Some(Change { scale: by, shift: 0 }),
            Operation::Divide(_) | Operation::Remainder(_) => None,
        }
    }

    /// This one, and then the other.
    pub fn then(self, next: Change) -> Change {
        Change {
            scale: self.scale.wrapping_mul(next.scale),
            shift: self.shift.wrapping_mul(next.scale).wrapping_add(next.shift),
        }
    }

    pub fn apply(self, number: i64) -> i64 {
        number.wrapping_mul(self.scale).wrapping_add(self.shift)
    }

    /// The operations that do the same, one after the other.
    pub fn operations(self) -> impl Iterator<Item = Operation> {
        let Change { scale, shift } = self;
        let by = match scale {
            0 => Some(Operation::Set(Value::Int(shift))),
            1 => None,
            _ => Some(Operation::Multiply(Value::Int(scale))),
        };
        let add = (scale != 0 && shift != 0).then_some(Operation::Add(Value::Int(shift)));
        by.into_iter().chain(add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Value::Int;

    #[test]
    fn a_change_does_what_its_operations_do_one_by_one() {
        let operations = [
            Operation::Add(Int(3)),
            Operation::Multiply(Int(i64::MAX)),
            Operation::Add(Int(i64::MIN)),
            Operation::Set(Int(5)),
            Operation::Multiply(Int(-2)),
            Operation::Multiply(Int(0)),
            Operation::Add(Int(7)),
        ];
        for number in [0, 1, -9, i64::MAX, i64::MIN] {
            for end in 0..=operations.len() {
                for start in 0..=end {
                    let some = &operations[start..end];
                    let one_by_one = some.iter().fold(Int(number), |it, next| next.apply(it));
                    let change = some.iter().filter_map(|it| Change::of(*it));
                    let change = change.fold(Change::NONE, Change::then);
                    assert!(one_by_one.is(Int(change.apply(number))), "{some:?} to {number}");
                    let merged = change.operations().fold(Int(number), |it, next| next.apply(it));
                    assert!(merged.is(one_by_one), "{some:?} to {number}");
                }
            }
        }
        assert_eq!(Change::of(Operation::Divide(Int(2))), None);
        assert_eq!(Change::NONE.operations().count(), 0);
    }
}
