//! Numbers, as they travel between a policy and whatever is outside of it.

/// A number of a policy, also on its way to it or between the nodes of a cluster.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// An int, or a time in nanoseconds.
    Int(i64),
    Float(f64),
}

impl Value {
    /// The number as a float.
    pub fn as_float(self) -> f64 {
        match self {
            Value::Int(value) => value as f64,
            Value::Float(value) => value,
        }
    }

    /// Whether both are the same bits of the same type: what is no number equals itself.
    pub fn is(self, other: Value) -> bool {
        match (self, other) {
            (Value::Int(a), Value::Int(b)) => a == b,
            (Value::Float(a), Value::Float(b)) => a.to_bits() == b.to_bits(),
            _ => false,
        }
    }
}
