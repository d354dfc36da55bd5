//! The values of literals.
//!
//! Units: times are nanoseconds. Invariant: a literal that cannot be held exactly as asked has an
//! error, which the parser reports once, and still a value, so that everything behind the parser
//! may go on.

use super::{AstNode, Expr, Literal, PrefixOp, tokens};
use crate::syntax::SyntaxKind;

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LiteralValue {
    Int(i64),
    Float(f64),
    /// In nanoseconds.
    Time(i64),
    Bool(bool),
}

impl LiteralValue {
    /// A literal that stands by itself, as on a command line: `10ms`, `-3`, `0.5`, `true`. None if
    /// it is none.
    pub fn parse(text: &str) -> Option<LiteralValue> {
        let (negated, digits) = match text.strip_prefix('-') {
            Some(digits) => (true, digits),
            None => (false, text),
        };
        let value = match digits {
            "true" if !negated => return Some(LiteralValue::Bool(true)),
            "false" if !negated => return Some(LiteralValue::Bool(false)),
            _ if !digits.starts_with(|c: char| c.is_ascii_digit()) => return None,
            _ if UNITS.iter().any(|(unit, _)| digits.ends_with(unit))
                && !digits.starts_with("0x") =>
            {
                decode_time(digits)
            }
            _ if digits.contains(['.', 'e', 'E']) && !digits.starts_with("0x") => {
                decode_float(digits)
            }
            _ => decode_int(digits, negated),
        };
        Some(match value.ok()? {
            LiteralValue::Int(value) if negated => LiteralValue::Int(value.wrapping_neg()),
            LiteralValue::Time(value) if negated => LiteralValue::Time(-value),
            LiteralValue::Float(value) if negated => LiteralValue::Float(-value),
            value => value,
        })
    }
}

/// Why a literal is not what it seems to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LiteralError {
    /// An integer or a time that does not fit 64 bits.
    OutOfRange,
    /// A time finer than a nanosecond.
    TooFine,
    /// Letters that make it neither a number nor a time.
    NotANumber,
    /// A float too large for a double.
    Infinite,
}

/// The units of time and their nanoseconds.
pub(crate) const UNITS: [(&str, i64); 6] = [
    ("ns", 1),
    ("us", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("min", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

impl Literal {
    /// The value. One that is out of range is the nearest there is.
    pub fn value(&self) -> LiteralValue {
        self.decode().unwrap_or_else(|(_, value)| value)
    }

    /// The value, or what is wrong with it and what to take instead.
    pub(crate) fn decode(&self) -> Result<LiteralValue, (LiteralError, LiteralValue)> {
        let Some(token) = tokens(self.syntax()).next() else { return Ok(LiteralValue::Int(0)) };
        match token.kind() {
            SyntaxKind::TRUE_KW => Ok(LiteralValue::Bool(true)),
            SyntaxKind::FALSE_KW => Ok(LiteralValue::Bool(false)),
            SyntaxKind::FLOAT => decode_float(token.text()),
            SyntaxKind::TIME => decode_time(token.text()),
            _ => decode_int(token.text(), self.is_negated()),
        }
    }

    /// Whether a minus sign stands directly before it: the lowest integer is written so.
    fn is_negated(&self) -> bool {
        let parent = self.syntax().parent().and_then(Expr::cast);
        matches!(parent, Some(Expr::Prefix(prefix)) if prefix.op() == Some(PrefixOp::Negate))
    }
}

fn decode_int(text: &str, negated: bool) -> Result<LiteralValue, (LiteralError, LiteralValue)> {
    const LOWEST: u64 = i64::MIN.unsigned_abs();
    let (digits, radix) = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => (digits, 16),
        None => (text, 10),
    };
    if digits.is_empty() || !digits.chars().all(|digit| digit.is_digit(radix)) {
        return Err((LiteralError::NotANumber, LiteralValue::Int(0)));
    }
    match u64::from_str_radix(digits, radix) {
        Ok(value) if value < LOWEST => Ok(LiteralValue::Int(value as i64)),
        Ok(LOWEST) if negated => Ok(LiteralValue::Int(i64::MIN)),
        _ => Err((LiteralError::OutOfRange, LiteralValue::Int(i64::MAX))),
    }
}

fn decode_float(text: &str) -> Result<LiteralValue, (LiteralError, LiteralValue)> {
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() => Ok(LiteralValue::Float(value)),
        _ => Err((LiteralError::Infinite, LiteralValue::Float(f64::MAX))),
    }
}

/// A decimal number and a unit, exactly: `1.5ms` is 1 500 000.
fn decode_time(text: &str) -> Result<LiteralValue, (LiteralError, LiteralValue)> {
    let is_unit = |c: char| !c.is_ascii_digit() && c != '.';
    let (number, unit) = text.split_at(text.find(is_unit).unwrap_or(text.len()));
    let not_a_number = Err((LiteralError::NotANumber, LiteralValue::Time(0)));
    let Some(&(_, unit)) = UNITS.iter().find(|(name, _)| *name == unit) else {
        return not_a_number;
    };
    let out_of_range = Err((LiteralError::OutOfRange, LiteralValue::Time(i64::MAX)));
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.contains('.') || fraction.contains('.') {
        return not_a_number;
    }
    let fraction = fraction.trim_end_matches('0');
    let mut nanoseconds = digits(whole) * i128::from(unit);
    let mut rest = i128::from(unit);
    for digit in fraction.bytes() {
        if rest % 10 != 0 {
            // A tenth of what is left is no whole number of nanoseconds.
            return Err((LiteralError::TooFine, LiteralValue::Time(clamp(nanoseconds))));
        }
        rest /= 10;
        nanoseconds += i128::from(digit - b'0') * rest;
    }
    i64::try_from(nanoseconds).map(LiteralValue::Time).or(out_of_range)
}

/// The value of decimal digits, saturating far above any time.
fn digits(text: &str) -> i128 {
    text.bytes().fold(0i128, |value, digit| (value * 10 + i128::from(digit - b'0')).min(1 << 70))
}

fn clamp(nanoseconds: i128) -> i64 {
    i64::try_from(nanoseconds).unwrap_or(i64::MAX)
}

/// Verbatim text without its two marks.
pub(super) fn between_marks(text: &str) -> String {
    text.get(2..text.len().saturating_sub(2)).unwrap_or_default().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_exact_nanoseconds() {
        let time = |text| decode_time(text).map_err(|(error, _)| error);
        assert_eq!(time("20ms"), Ok(LiteralValue::Time(20_000_000)));
        assert_eq!(time("100us"), Ok(LiteralValue::Time(100_000)));
        assert_eq!(time("3s"), Ok(LiteralValue::Time(3_000_000_000)));
        assert_eq!(time("5ns"), Ok(LiteralValue::Time(5)));
        assert_eq!(time("1.5ms"), Ok(LiteralValue::Time(1_500_000)));
        assert_eq!(time("1min"), Ok(LiteralValue::Time(60_000_000_000)));
        assert_eq!(time("0.1h"), Ok(LiteralValue::Time(360_000_000_000)));
        assert_eq!(time("1.500ns"), Err(LiteralError::TooFine));
        assert_eq!(time("2.0ns"), Ok(LiteralValue::Time(2)));
        assert_eq!(time("9223372036854775807ns"), Ok(LiteralValue::Time(i64::MAX)));
        assert_eq!(time("9223372036854775808ns"), Err(LiteralError::OutOfRange));
        assert_eq!(
            time("99999999999999999999999999999999999999999999h"),
            Err(LiteralError::OutOfRange)
        );
        assert_eq!(time("3sec"), Err(LiteralError::NotANumber));
        assert_eq!(time("1e3ms"), Err(LiteralError::NotANumber));
    }

    #[test]
    fn a_literal_by_itself() {
        assert_eq!(LiteralValue::parse("10ms"), Some(LiteralValue::Time(10_000_000)));
        assert_eq!(LiteralValue::parse("-1.5s"), Some(LiteralValue::Time(-1_500_000_000)));
        assert_eq!(LiteralValue::parse("-9223372036854775808"), Some(LiteralValue::Int(i64::MIN)));
        assert_eq!(LiteralValue::parse("0x1e"), Some(LiteralValue::Int(30)));
        assert_eq!(LiteralValue::parse("1e3"), Some(LiteralValue::Float(1000.0)));
        assert_eq!(LiteralValue::parse("true"), Some(LiteralValue::Bool(true)));
        for wrong in
            ["", "-", "soon", "--3", "1.2.3", "3 ms", "1..5ms", "1.2.3ms", "ms", "-true", "+1"]
        {
            assert_eq!(LiteralValue::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn the_lowest_integer_needs_its_minus_sign() {
        let int = |text, negated| decode_int(text, negated).map_err(|(error, _)| error);
        assert_eq!(int("9223372036854775807", false), Ok(LiteralValue::Int(i64::MAX)));
        assert_eq!(int("9223372036854775808", true), Ok(LiteralValue::Int(i64::MIN)));
        assert_eq!(int("9223372036854775808", false), Err(LiteralError::OutOfRange));
        assert_eq!(int("9223372036854775809", true), Err(LiteralError::OutOfRange));
        assert_eq!(int("0xff", false), Ok(LiteralValue::Int(255)));
        assert_eq!(int("0x", false), Err(LiteralError::NotANumber));
        assert_eq!(int("0xfg", false), Err(LiteralError::NotANumber));
    }
}
