//! Values as a scheduler sees them, and how one type becomes another.
//!
//! Units: a time is a number of nanoseconds.

/// The type of a scheduler's variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    Int,
    Float,
    Time,
}

/// A value of one of the types.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    Int(i64),
    Float(f64),
    Time(i64),
}

/// A result, and whether it is what was asked for or only the nearest that fits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fitted<T> {
    pub value: T,
    pub clamped: bool,
}

impl<T> Fitted<T> {
    pub fn exact(value: T) -> Fitted<T> {
        Fitted { value, clamped: false }
    }
}

impl Value {
    /// Zero of the type.
    pub fn zero(ty: Type) -> Value {
        match ty {
            Type::Int => Value::Int(0),
            Type::Float => Value::Float(0.0),
            Type::Time => Value::Time(0),
        }
    }

    pub fn ty(self) -> Type {
        match self {
            Value::Int(_) => Type::Int,
            Value::Float(_) => Type::Float,
            Value::Time(_) => Type::Time,
        }
    }

    /// The value as an integer: a float is truncated and saturates, a time is its nanoseconds.
    pub fn to_int(self) -> Fitted<i64> {
        match self {
            Value::Int(n) | Value::Time(n) => Fitted::exact(n),
            Value::Float(x) => float_to_int(x),
        }
    }

    /// The value as a float, rounded to the nearest.
    pub fn to_float(self) -> f64 {
        match self {
            Value::Int(n) | Value::Time(n) => n as f64,
            Value::Float(x) => x,
        }
    }

    /// The value as one of type `ty`.
    pub fn to_type(self, ty: Type) -> Fitted<Value> {
        match ty {
            Type::Float => Fitted::exact(Value::Float(self.to_float())),
            Type::Int | Type::Time => {
                let Fitted { value, clamped } = self.to_int();
                let value = if ty == Type::Int { Value::Int(value) } else { Value::Time(value) };
                Fitted { value, clamped }
            }
        }
    }
}

/// Truncation towards zero, saturating; NaN becomes 0. Clamped when the truncated number is no
/// `i64`.
pub fn float_to_int(x: f64) -> Fitted<i64> {
    // -2^63 is an i64, 2^63 is not; both are exact as floats. NaN fails both comparisons.
    let fits = (-(2f64.powi(63))..2f64.powi(63)).contains(&x);
    Fitted { value: x as i64, clamped: !fits }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_truncate_towards_zero_and_saturate() {
        assert_eq!(float_to_int(2.9), Fitted::exact(2));
        assert_eq!(float_to_int(-2.9), Fitted::exact(-2));
        assert_eq!(float_to_int(-(2f64.powi(63))), Fitted::exact(i64::MIN));
        assert_eq!(float_to_int(2f64.powi(63)), Fitted { value: i64::MAX, clamped: true });
        assert_eq!(float_to_int(f64::NEG_INFINITY), Fitted { value: i64::MIN, clamped: true });
        assert_eq!(float_to_int(f64::NAN), Fitted { value: 0, clamped: true });
    }

    #[test]
    fn a_value_becomes_another_type() {
        assert_eq!(Value::Float(1.5).to_type(Type::Time), Fitted::exact(Value::Time(1)));
        assert_eq!(Value::Time(7).to_type(Type::Int), Fitted::exact(Value::Int(7)));
        assert_eq!(Value::Int(-3).to_type(Type::Float), Fitted::exact(Value::Float(-3.0)));
        assert_eq!(
            Value::Float(1e300).to_type(Type::Int),
            Fitted { value: Value::Int(i64::MAX), clamped: true }
        );
    }
}
