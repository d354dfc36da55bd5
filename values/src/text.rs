//! Values as people write them.

use std::fmt;

use crate::wire::Type;

/// `42`, `-1`, `10ms`, `1.5s`: a number, or a time in nanoseconds.
pub fn parse(text: &str) -> Option<i64> {
    let text = text.trim();
    if let Ok(number) = text.parse() {
        return Some(number);
    }
    let unit_at = text.find(|c: char| c.is_ascii_alphabetic())?;
    let (number, unit) = text.split_at(unit_at);
    let unit = match unit {
        "ns" => 1.0,
        "us" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        _ => return None,
    };
    let nanoseconds = number.trim().parse::<f64>().ok()? * unit;
    (nanoseconds.abs() < 9e18).then_some(nanoseconds.round() as i64)
}

/// A time in nanoseconds as [`parse`] reads it, in the largest unit that it has one of: `1.5s`,
/// `20ms`, `0`.
pub fn time(nanoseconds: i64) -> String {
    let units = [(1_000_000_000, 9, "s"), (1_000_000, 6, "ms"), (1000, 3, "us"), (1, 0, "ns")];
    let size = nanoseconds.unsigned_abs();
    let Some((unit, digits, name)) = units.into_iter().find(|(unit, ..)| size >= *unit) else {
        return "0".to_owned();
    };
    let sign = if nanoseconds < 0 { "-" } else { "" };
    let (whole, rest) = (size / unit, size % unit);
    match rest {
        0 => format!("{sign}{whole}{name}"),
        rest => {
            let rest = format!("{rest:0digits$}");
            format!("{sign}{whole}.{}{name}", rest.trim_end_matches('0'))
        }
    }
}

/// Why a text is no value for a variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unsuitable {
    NoTime { name: String, value: String },
    NoNumber { name: String, value: String },
    TooLarge { name: String, value: String, limits: &'static str },
}

impl fmt::Display for Unsuitable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unsuitable::NoTime { name, value } => write!(
                f,
                "`{value}` is no value for {name}, which is a time: a number with a unit, such as \
                 10ms"
            ),
            Unsuitable::NoNumber { name, value } => {
                write!(f, "`{value}` is no value for {name}, which is a number without a unit")
            }
            Unsuitable::TooLarge { name, value, limits } => {
                write!(f, "`{value}` is too large for {name}: {limits}")
            }
        }
    }
}

impl std::error::Error for Unsuitable {}

/// The value that somebody sets a variable to: that of a time has a unit, a number has none.
pub fn setting(name: &str, ty: Type, value: &str) -> Result<i64, Unsuitable> {
    let plain: Option<i64> = value.trim().parse().ok();
    let (name, value) = (name.to_owned(), value.trim().to_owned());
    let (digits, unit) = value
        .split_at(value.find(|c: char| c.is_ascii_lowercase() && c != 'e').unwrap_or(value.len()));
    let is_number = digits.trim().parse::<f64>().is_ok();
    match (ty, plain) {
        (Type::Int, Some(number)) | (Type::Time, Some(number @ 0)) => Ok(number),
        (Type::Int, None) if is_number && unit.is_empty() && !digits.contains(['.', 'e']) => {
            Err(Unsuitable::TooLarge { name, value, limits: NUMBERS })
        }
        (Type::Int, None) => Err(Unsuitable::NoNumber { name, value }),
        (Type::Time, Some(_)) => Err(Unsuitable::NoTime { name, value }),
        (Type::Time, None) => match parse(&value) {
            Some(time) => Ok(time),
            None if is_number && ["ns", "us", "ms", "s"].contains(&unit) => {
                Err(Unsuitable::TooLarge { name, value, limits: TIMES })
            }
            None => Err(Unsuitable::NoTime { name, value }),
        },
    }
}

const NUMBERS: &str = "numbers go from -9223372036854775808 to 9223372036854775807";
const TIMES: &str = "times go from -9000000000s to 9000000000s";

#[cfg(test)]
mod tests {
    use super::{parse, time};

    #[test]
    fn times_are_written_as_they_are_read() {
        let written =
            [0, 20_000_000, 1_500_000_000, 100_000, -3000, 7, 1_000_001, 90_000_000_000].map(time);
        assert_eq!(written, ["0", "20ms", "1.5s", "100us", "-3us", "7ns", "1.000001ms", "90s"]);
        let mut number = 1i64;
        while number < 1 << 52 {
            assert_eq!(parse(&time(number)), Some(number));
            assert_eq!(parse(&time(-number)), Some(-number));
            number = number * 3 + 1;
        }
        assert_eq!(time(i64::MIN), "-9223372036.854775808s");
    }

    #[test]
    fn values_have_units() {
        assert_eq!(parse("42"), Some(42));
        assert_eq!(parse("10ms"), Some(10_000_000));
        assert_eq!(parse("1.5s"), Some(1_500_000_000));
        assert_eq!(parse("-3us"), Some(-3000));
        assert_eq!(parse("3 apples"), None);
        assert_eq!(parse(""), None);
        assert_eq!(parse("1e30s"), None);
    }
}
