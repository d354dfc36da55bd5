//! Arithmetic on constants: the language's, as every engine performs it at run time.
//!
//! Units: ints and times are `i64`. An operation that a run would count (division by zero) is not
//! folded here, so that it is counted when it runs.

use crate::ir::{BinaryOp, Type, UnaryOp, Value};

/// The value in another type. A float becomes an int by truncation, saturating; what is no number
/// becomes 0.
pub(super) fn convert(value: Value, to: Type) -> Value {
    match (value, to) {
        (Value::Int(int), Type::Float) => Value::Float(int as f64),
        (Value::Float(float), Type::Int | Type::Time) => Value::Int(float as i64),
        _ => value,
    }
}

pub(super) fn is_zero(value: Value) -> bool {
    match value {
        Value::Int(int) => int == 0,
        Value::Float(float) => float == 0.0,
    }
}

pub(super) fn unary(op: UnaryOp, operand: Value) -> Value {
    match (op, operand) {
        (UnaryOp::Negate, Value::Int(int)) => Value::Int(int.wrapping_neg()),
        (UnaryOp::Negate, Value::Float(float)) => Value::Float(-float),
        (UnaryOp::Not, value) => truth(is_zero(value)),
    }
}

/// None where the operands differ in form, or where a run would count a division by zero.
pub(super) fn binary(op: BinaryOp, left: Value, right: Value) -> Option<Value> {
    match (left, right) {
        (Value::Int(left), Value::Int(right)) => ints(op, left, right),
        (Value::Float(left), Value::Float(right)) => floats(op, left, right),
        _ => None,
    }
}

fn ints(op: BinaryOp, left: i64, right: i64) -> Option<Value> {
    Some(match op {
        BinaryOp::Add => Value::Int(left.wrapping_add(right)),
        BinaryOp::Subtract => Value::Int(left.wrapping_sub(right)),
        BinaryOp::Multiply => Value::Int(left.wrapping_mul(right)),
        BinaryOp::Divide | BinaryOp::Remainder if right == 0 => return None,
        BinaryOp::Divide => Value::Int(left.wrapping_div(right)),
        BinaryOp::Remainder => Value::Int(left.wrapping_rem(right)),
        BinaryOp::Equal => truth(left == right),
        BinaryOp::NotEqual => truth(left != right),
        BinaryOp::Less => truth(left < right),
        BinaryOp::Greater => truth(left > right),
        BinaryOp::LessEqual => truth(left <= right),
        BinaryOp::GreaterEqual => truth(left >= right),
    })
}

fn floats(op: BinaryOp, left: f64, right: f64) -> Option<Value> {
    Some(match op {
        BinaryOp::Add => Value::Float(left + right),
        BinaryOp::Subtract => Value::Float(left - right),
        BinaryOp::Multiply => Value::Float(left * right),
        BinaryOp::Divide | BinaryOp::Remainder if right == 0.0 => return None,
        BinaryOp::Divide => Value::Float(left / right),
        BinaryOp::Remainder => Value::Float(left % right),
        BinaryOp::Equal => truth(left == right),
        BinaryOp::NotEqual => truth(left != right),
        BinaryOp::Less => truth(left < right),
        BinaryOp::Greater => truth(left > right),
        BinaryOp::LessEqual => truth(left <= right),
        BinaryOp::GreaterEqual => truth(left >= right),
    })
}

fn truth(holds: bool) -> Value {
    Value::Int(holds.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_wrap_around() {
        let int = |op, left, right| binary(op, Value::Int(left), Value::Int(right));
        assert_eq!(int(BinaryOp::Add, i64::MAX, 1), Some(Value::Int(i64::MIN)));
        assert_eq!(int(BinaryOp::Divide, i64::MIN, -1), Some(Value::Int(i64::MIN)));
        assert_eq!(int(BinaryOp::Remainder, i64::MIN, -1), Some(Value::Int(0)));
        assert_eq!(int(BinaryOp::Divide, 7, 0), None);
        assert_eq!(int(BinaryOp::Remainder, -7, 2), Some(Value::Int(-1)));
        assert_eq!(unary(UnaryOp::Negate, Value::Int(i64::MIN)), Value::Int(i64::MIN));
    }

    #[test]
    fn a_float_becomes_an_int_by_truncation_within_its_bounds() {
        assert_eq!(convert(Value::Float(-2.9), Type::Int), Value::Int(-2));
        assert_eq!(convert(Value::Float(1e30), Type::Time), Value::Int(i64::MAX));
        assert_eq!(convert(Value::Float(f64::NAN), Type::Int), Value::Int(0));
        assert_eq!(convert(Value::Int(3), Type::Float), Value::Float(3.0));
    }
}
