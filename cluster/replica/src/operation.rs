//! What an assignment does to a number that a cluster shares: it means the same wherever it is
//! applied, so that updates of several nodes merge and none is lost.
//!
//! `x += e` and `x = x + e` are an addition of e, whatever x has become meanwhile; any other
//! assignment sets the value. docs/language.md says so of the language.

use attune_language::ir::Value;

/// What an assignment does to a number. A subtraction is the addition of the negated number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Operation {
    Set(Value),
    Add(Value),
    Multiply(Value),
    /// A division by zero gives zero.
    Divide(Value),
    /// By zero it leaves the number as it is.
    Remainder(Value),
}

impl Operation {
    /// The number that is added, set and so on.
    pub fn operand(self) -> Value {
        match self {
            Operation::Set(by)
            | Operation::Add(by)
            | Operation::Multiply(by)
            | Operation::Divide(by)
            | Operation::Remainder(by) => by,
        }
    }

    /// The number after the operation, which keeps its type: a float that an int becomes is cut
    /// off.
    pub fn apply(self, to: Value) -> Value {
        typed_like(to, self.apply_freely(to))
    }

    fn apply_freely(self, to: Value) -> Value {
        use Value::{Float, Int};
        match (self, to) {
            (Operation::Set(value), _) => value,
            (Operation::Add(Int(by)), Int(to)) => Int(to.wrapping_add(by)),
            (Operation::Multiply(Int(by)), Int(to)) => Int(to.wrapping_mul(by)),
            (Operation::Divide(Int(0)), Int(_)) => Int(0),
            (Operation::Divide(Int(by)), Int(to)) => Int(to.wrapping_div(by)),
            (Operation::Remainder(Int(0)), Int(to)) => Int(to),
            (Operation::Remainder(Int(by)), Int(to)) => Int(to.wrapping_rem(by)),
            (operation, to) => Float(operation.apply_float(to.as_float())),
        }
    }

    fn apply_float(self, to: f64) -> f64 {
        match self {
            Operation::Set(value) => value.as_float(),
            Operation::Add(by) => to + by.as_float(),
            Operation::Multiply(by) => to * by.as_float(),
            Operation::Divide(by) if by.as_float() == 0.0 => 0.0,
            Operation::Divide(by) => to / by.as_float(),
            Operation::Remainder(by) if by.as_float() == 0.0 => to,
            Operation::Remainder(by) => to % by.as_float(),
        }
    }

    /// One operation that does the same as this one and then `next`, if there is one for every
    /// number that they may meet. Sums of floats depend on their order, and are left apart.
    pub fn then(self, next: Operation) -> Option<Operation> {
        use Value::Int;
        match (self, next) {
            (_, Operation::Set(value)) => Some(Operation::Set(value)),
            (Operation::Set(value), next) => Some(Operation::Set(next.apply(value))),
            (Operation::Add(Int(a)), Operation::Add(Int(b))) => {
                Some(Operation::Add(Int(a.wrapping_add(b))))
            }
            (Operation::Multiply(Int(a)), Operation::Multiply(Int(b))) => {
                Some(Operation::Multiply(Int(a.wrapping_mul(b))))
            }
            _ => None,
        }
    }
}

/// A value in the type of another one. A float is cut off to an integer.
fn typed_like(model: Value, value: Value) -> Value {
    match (model, value) {
        (Value::Int(_), Value::Float(value)) => Value::Int(value as i64),
        (Value::Float(_), Value::Int(value)) => Value::Float(value as f64),
        (_, value) => value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Value::{Float, Int};

    #[test]
    fn merged_operations_do_what_they_do_one_by_one() {
        let operations = [
            Operation::Set(Int(7)),
            Operation::Add(Int(i64::MAX)),
            Operation::Add(Int(-3)),
            Operation::Multiply(Int(5)),
            Operation::Divide(Int(0)),
            Operation::Divide(Int(-1)),
            Operation::Remainder(Int(4)),
            Operation::Remainder(Int(0)),
        ];
        for first in operations {
            for second in operations {
                let Some(merged) = first.then(second) else { continue };
                for number in [0, 1, -1, 12, i64::MIN, i64::MAX] {
                    let apart = second.apply(first.apply(Int(number)));
                    assert_eq!(merged.apply(Int(number)), apart, "{first:?} {second:?}");
                }
            }
        }
        assert_eq!(Operation::Add(Float(0.1)).then(Operation::Add(Float(0.2))), None);
    }

    #[test]
    fn a_number_keeps_its_type() {
        assert_eq!(Operation::Add(Float(1.5)).apply(Int(10)), Int(11));
        assert_eq!(Operation::Multiply(Float(0.5)).apply(Int(-3)), Int(-1));
        assert_eq!(Operation::Set(Float(2.7)).apply(Int(0)), Int(2));
        assert_eq!(Operation::Add(Int(1)).apply(Float(0.5)), Float(1.5));
    }
}
