//! Values as people write them.

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

#[cfg(test)]
mod tests {
    use super::parse;

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
