//! Writes durations for people to read.

use crate::scheduler::Time;

/// Nanoseconds for people: three significant digits and a unit.
pub fn duration(time: Time) -> String {
    let (value, unit) = match time.unsigned_abs() {
        0 => return "0".into(),
        1..1_000 => return format!("{time} ns"),
        1_000..1_000_000 => (time as f64 / 1e3, "us"),
        1_000_000..1_000_000_000 => (time as f64 / 1e6, "ms"),
        _ => (time as f64 / 1e9, "s"),
    };
    let digits = if value.abs() < 10.0 {
        2
    } else if value.abs() < 100.0 {
        1
    } else {
        0
    };
    format!("{value:.digits$} {unit}")
}

#[cfg(test)]
mod tests {
    use super::duration;

    #[test]
    fn durations_read_well() {
        assert_eq!(
            [0, 999, 1_500, 12_345_678, 999_900_000, 61_000_000_000].map(duration),
            ["0", "999 ns", "1.50 us", "12.3 ms", "1000 ms", "61.0 s"]
        );
    }
}
