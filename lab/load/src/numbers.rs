//! Figures of merit.

use serde_json::{Value, json};

/// Jain's index of fairness: 1 if all are equal, 1/n if one has all.
pub fn jain(shares: &[f64]) -> f64 {
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|share| share * share).sum();
    if squares == 0.0 { 1.0 } else { sum * sum / (shares.len() as f64 * squares) }
}

/// Quantiles of times, in the unit of the times.
pub fn quantiles(times: &mut [u64]) -> Value {
    times.sort_unstable();
    let at = |part: f64| {
        let rank = (part * times.len() as f64).ceil() as usize;
        times.get(rank.saturating_sub(1)).copied().unwrap_or(0)
    };
    let mean = times.iter().sum::<u64>() as f64 / times.len().max(1) as f64;
    json!({ "count": times.len(), "mean": mean, "min": times.first().unwrap_or(&0),
        "p50": at(0.5), "p90": at(0.9), "p99": at(0.99), "p999": at(0.999),
            "max": at(1.0) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fairness_is_one_for_equals_and_a_part_for_a_winner() {
        assert_eq!(jain(&[3.0, 3.0, 3.0]), 1.0);
        assert_eq!(jain(&[5.0, 0.0, 0.0, 0.0]), 0.25);
        assert_eq!(jain(&[0.0, 0.0]), 1.0);
    }

    #[test]
    fn quantiles_are_values_that_were_there() {
        let mut times: Vec<u64> = (1..=100).rev().collect();
        let found = quantiles(&mut times);
        assert_eq!(
            (&found["p50"], &found["p99"], &found["max"]),
            (&json!(50), &json!(99), &json!(100))
        );
        assert_eq!(found["min"], json!(1));
        assert_eq!(quantiles(&mut [])["max"], json!(0));
    }
}
