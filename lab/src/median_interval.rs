//! Computes a median and its confidence interval.

use serde::Serialize;

/// A median and an interval that contains the true median in at least 95 of 100 measurements. With
/// fewer than six values no such interval exists; then it reaches from the least to the greatest.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Median {
    pub value: f64,
    pub low: f64,
    pub high: f64,
}

const CONFIDENCE: f64 = 0.95;

/// Order statistics: the number of values below the true median is binomial, whatever their
/// distribution. None without values.
pub fn of(values: &[f64]) -> Option<Median> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let count = sorted.len();
    let (&first, &last) = sorted.first().zip(sorted.last())?;
    let value = (sorted[(count - 1) / 2] + sorted[count / 2]) / 2.0;
    // The probability that the interval from the k-th least to the k-th greatest misses the true
    // median.
    let mut missed = 0.0;
    let mut ways = 1.0;
    let (mut low, mut high) = (first, last);
    for cut in 0..count / 2 {
        missed += 2.0 * ways * 0.5f64.powi(count as i32);
        if missed > 1.0 - CONFIDENCE {
            break;
        }
        (low, high) = (sorted[cut], sorted[count - 1 - cut]);
        ways *= (count - cut) as f64 / (cut + 1) as f64;
    }
    Some(Median { value, low, high })
}

#[cfg(test)]
mod tests {
    #[test]
    fn intervals_are_those_of_the_tables() {
        let of = |count: u32| {
            let values: Vec<f64> = (1..=count).rev().map(f64::from).collect();
            let median = super::of(&values).expect("values");
            (median.value, median.low, median.high)
        };
        // Ranks of the 95 % interval of a median as in tables of order statistics.
        assert_eq!(of(6), (3.5, 1.0, 6.0));
        assert_eq!(of(9), (5.0, 2.0, 8.0));
        assert_eq!(of(12), (6.5, 3.0, 10.0));
        assert_eq!(of(15), (8.0, 4.0, 12.0));
        assert_eq!(of(20), (10.5, 6.0, 15.0));
        // Too few for that confidence.
        assert_eq!(of(3), (2.0, 1.0, 3.0));
        assert_eq!(of(1), (1.0, 1.0, 1.0));
        assert_eq!(super::of(&[]), None);
    }
}
