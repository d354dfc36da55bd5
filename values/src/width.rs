//! What an imported variable looks like in memory, and how values go in and out of it.
//!
//! Invariant: the order of [`Width::ALL`] is the order of `enum attune_width` in the ABI of
//! compiled schedulers.

use crate::{Fitted, Value};

/// The shape of an application's variable, in the machine's byte order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Width {
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    F32,
    F64,
    /// C's and Rust's bool: one byte that is 0 or 1.
    Bool,
}

impl Width {
    pub const ALL: [Width; 11] = [
        Width::I8,
        Width::I16,
        Width::I32,
        Width::I64,
        Width::U8,
        Width::U16,
        Width::U32,
        Width::U64,
        Width::F32,
        Width::F64,
        Width::Bool,
    ];

    /// The width with this number in the ABI.
    pub fn from_abi(number: u32) -> Option<Width> {
        Width::ALL.get(number as usize).copied()
    }

    /// Size of the variable in bytes.
    pub fn size(self) -> usize {
        match self {
            Width::I8 | Width::U8 | Width::Bool => 1,
            Width::I16 | Width::U16 => 2,
            Width::I32 | Width::U32 | Width::F32 => 4,
            Width::I64 | Width::U64 | Width::F64 => 8,
        }
    }

    /// The value of the variable whose bytes are `bytes`: an int, or a float for the two float
    /// widths. Only an unsigned 64-bit number can be clamped here.
    ///
    /// Bytes that are missing read as zero, bytes beyond [`Width::size`] are ignored.
    pub fn load(self, bytes: &[u8]) -> Fitted<Value> {
        let int = |n: i64| Fitted::exact(Value::Int(n));
        match self {
            Width::I8 => int(i8::from_ne_bytes(head(bytes)).into()),
            Width::I16 => int(i16::from_ne_bytes(head(bytes)).into()),
            Width::I32 => int(i32::from_ne_bytes(head(bytes)).into()),
            Width::I64 => int(i64::from_ne_bytes(head(bytes))),
            Width::U8 => int(u8::from_ne_bytes(head(bytes)).into()),
            Width::U16 => int(u16::from_ne_bytes(head(bytes)).into()),
            Width::U32 => int(u32::from_ne_bytes(head(bytes)).into()),
            Width::U64 => {
                let n = u64::from_ne_bytes(head(bytes));
                Fitted {
                    value: Value::Int(n.min(i64::MAX as u64) as i64),
                    clamped: n > i64::MAX as u64,
                }
            }
            Width::F32 => Fitted::exact(Value::Float(f32::from_ne_bytes(head(bytes)).into())),
            Width::F64 => Fitted::exact(Value::Float(f64::from_ne_bytes(head(bytes)))),
            Width::Bool => int((u8::from_ne_bytes(head(bytes)) != 0).into()),
        }
    }

    /// The bytes of a variable that holds `value`, in the first [`Width::size`] places; the rest
    /// are zero.
    ///
    /// An integer variable takes a float's whole part and the nearest integer it can hold; a 32-bit
    /// float takes a finite number beyond its range as its largest number. Rounding to a float's
    /// precision is no clamping.
    pub fn store(self, value: Value) -> Fitted<[u8; 8]> {
        let int = |low: i64, high: i64| {
            let whole = value.to_int();
            let fitted = whole.value.clamp(low, high);
            Fitted { value: fitted, clamped: whole.clamped || fitted != whole.value }
        };
        match self {
            Width::I8 => pack(int(i8::MIN.into(), i8::MAX.into()), |n| (n as i8).to_ne_bytes()),
            Width::I16 => pack(int(i16::MIN.into(), i16::MAX.into()), |n| (n as i16).to_ne_bytes()),
            Width::I32 => pack(int(i32::MIN.into(), i32::MAX.into()), |n| (n as i32).to_ne_bytes()),
            Width::I64 => pack(int(i64::MIN, i64::MAX), i64::to_ne_bytes),
            Width::U8 => pack(int(0, u8::MAX.into()), |n| (n as u8).to_ne_bytes()),
            Width::U16 => pack(int(0, u16::MAX.into()), |n| (n as u16).to_ne_bytes()),
            Width::U32 => pack(int(0, u32::MAX.into()), |n| (n as u32).to_ne_bytes()),
            Width::U64 => pack(int(0, i64::MAX), |n| (n as u64).to_ne_bytes()),
            Width::F32 => {
                let x = value.to_float();
                let narrow = x as f32;
                let overflows = x.is_finite() && narrow.is_infinite();
                let narrow = if overflows { f32::MAX.copysign(narrow) } else { narrow };
                pack(Fitted { value: narrow, clamped: overflows }, f32::to_ne_bytes)
            }
            Width::F64 => pack(Fitted::exact(value.to_float()), f64::to_ne_bytes),
            Width::Bool => pack(int(0, 1), |n| [n as u8]),
        }
    }
}

/// The first N bytes, zero where there are none.
fn head<const N: usize>(bytes: &[u8]) -> [u8; N] {
    std::array::from_fn(|i| bytes.get(i).copied().unwrap_or(0))
}

fn pack<T, const N: usize>(fitted: Fitted<T>, to_bytes: impl Fn(T) -> [u8; N]) -> Fitted<[u8; 8]> {
    let bytes = to_bytes(fitted.value);
    Fitted { value: head(&bytes), clamped: fitted.clamped }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(width: Width, value: Value) -> (Value, bool) {
        let stored = width.store(value);
        let loaded = width.load(&stored.value[..width.size()]);
        (loaded.value, stored.clamped || loaded.clamped)
    }

    #[test]
    fn abi_numbers_are_the_order_of_all() {
        for (number, width) in Width::ALL.into_iter().enumerate() {
            assert_eq!(width as usize, number);
            assert_eq!(Width::from_abi(number as u32), Some(width));
        }
        assert_eq!(Width::from_abi(11), None);
    }

    #[test]
    fn values_that_fit_survive() {
        for width in Width::ALL {
            assert!(!round_trip(width, Value::Int(1)).1, "{width:?}");
            assert_eq!(round_trip(width, Value::Int(1)).0.to_float(), 1.0, "{width:?}");
        }
        assert_eq!(round_trip(Width::I8, Value::Int(-128)), (Value::Int(-128), false));
        assert_eq!(round_trip(Width::U16, Value::Time(65535)), (Value::Int(65535), false));
        assert_eq!(round_trip(Width::F32, Value::Float(0.5)), (Value::Float(0.5), false));
        assert_eq!(
            round_trip(Width::F32, Value::Float(f64::INFINITY)),
            (Value::Float(f64::INFINITY), false)
        );
    }

    #[test]
    fn values_that_do_not_fit_are_clamped_and_say_so() {
        assert_eq!(round_trip(Width::I8, Value::Int(128)), (Value::Int(127), true));
        assert_eq!(round_trip(Width::U8, Value::Int(-1)), (Value::Int(0), true));
        assert_eq!(round_trip(Width::U64, Value::Int(-1)), (Value::Int(0), true));
        assert_eq!(
            round_trip(Width::I32, Value::Float(-1e10)),
            (Value::Int(i32::MIN.into()), true)
        );
        assert_eq!(round_trip(Width::I64, Value::Float(f64::NAN)), (Value::Int(0), true));
        assert_eq!(
            round_trip(Width::F32, Value::Float(-1e300)),
            (Value::Float(-f64::from(f32::MAX)), true)
        );
        assert_eq!(round_trip(Width::Bool, Value::Int(2)), (Value::Int(1), true));
        assert_eq!(
            Width::U64.load(&u64::MAX.to_ne_bytes()),
            Fitted { value: Value::Int(i64::MAX), clamped: true }
        );
    }

    #[test]
    fn a_fraction_is_cut_off_without_counting() {
        assert_eq!(round_trip(Width::I16, Value::Float(-2.75)), (Value::Int(-2), false));
        assert_eq!(round_trip(Width::Bool, Value::Float(0.9)), (Value::Int(0), false));
    }

    #[test]
    fn short_input_reads_as_zero() {
        assert_eq!(Width::I64.load(&[]).value, Value::Int(0));
        assert_eq!(Width::F64.load(&[]).value, Value::Float(0.0));
    }
}
