//! What a handler did to values that a cluster shares.

use attune_language::ir::{AttributeId, GlobalId};
use attune_replica::Operation;

use super::code::Operator;
use crate::scheduler::{ThreadId, Value};

/// An operation on a shared number, in the order in which a handler did it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Update {
    pub place: Updated,
    pub operation: Operation,
}

/// What was assigned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Updated {
    /// An import that the cluster supplies.
    Global(GlobalId),
    /// In a master: something of a node.
    Attribute(ThreadId, AttributeId),
}

/// The operation of `x = x OP operand`; none for comparisons, whose result is set. A subtraction
/// is the addition of the negated number.
pub fn operation(operator: Operator, operand: Value) -> Option<Operation> {
    Some(match operator {
        Operator::Add | Operator::AddFloat => Operation::Add(operand),
        Operator::Subtract | Operator::SubtractFloat => Operation::Add(match operand {
            Value::Int(value) => Value::Int(value.wrapping_neg()),
            Value::Float(value) => Value::Float(-value),
        }),
        Operator::Multiply | Operator::MultiplyFloat => Operation::Multiply(operand),
        Operator::Divide | Operator::DivideFloat => Operation::Divide(operand),
        Operator::Remainder | Operator::RemainderFloat => Operation::Remainder(operand),
        _ => return None,
    })
}
