//! Summarises a distribution of durations in bounded memory: count, mean and extremes are exact,
//! percentiles are within 1 %.

use hdrhistogram::Histogram;

use crate::scheduler::Time;

/// Significant decimal digits of a percentile: two, so that it is off by less than 1 % of its
/// value.
const DIGITS: u8 = 2;

#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// None until the first value, since most threads have no values of most kinds.
    histogram: Option<Box<Histogram<u32>>>,
    count: u64,
    sum: i128,
    min: Time,
    max: Time,
}

impl Summary {
    /// Adds a duration; a negative one counts as 0.
    pub fn record(&mut self, value: Time) {
        let value = value.max(0);
        let histogram = match &mut self.histogram {
            Some(histogram) => histogram,
            empty => {
                // The constructor refuses only digits outside 0..=5.
                let Ok(histogram) = Histogram::new(DIGITS) else { return };
                self.min = value;
                empty.insert(Box::new(histogram))
            }
        };
        // Only a histogram of fixed size refuses a value.
        let _ = histogram.record(value as u64);
        self.count += 1;
        self.sum += i128::from(value);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    pub fn add(&mut self, other: &Summary) {
        let Some(theirs) = &other.histogram else { return };
        match &mut self.histogram {
            None => *self = other.clone(),
            Some(histogram) => {
                // As above: this histogram grows.
                let _ = histogram.add(&**theirs);
                self.count += other.count;
                self.sum += other.sum;
                self.min = self.min.min(other.min);
                self.max = self.max.max(other.max);
            }
        }
    }

    pub fn count(&self) -> u64 {
        self.count
    }

    pub fn max(&self) -> Time {
        self.max
    }

    /// Nanoseconds, 0 without values.
    pub fn mean(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum as f64 / self.count as f64 }
    }

    /// The value that the share `q` of all values does not exceed; 0 without values.
    pub fn quantile(&self, q: f64) -> Time {
        match &self.histogram {
            Some(histogram) => (histogram.value_at_quantile(q) as Time).clamp(self.min, self.max),
            None => 0,
        }
    }

    /// Values of 0: what was in time, or ran at once.
    pub fn zeros(&self) -> u64 {
        self.histogram.as_ref().map_or(0, |histogram| u64::from(histogram.count_at(0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_within_a_percent_of_the_exact_ones() {
        let mut summary = Summary::default();
        let values: Vec<Time> = (1..=10_000).map(|n| n * n).collect();
        values.iter().for_each(|&value| summary.record(value));
        for q in [0.5, 0.9, 0.99, 0.999] {
            let exact = values[(q * 10_000.0) as usize - 1];
            let error = (summary.quantile(q) - exact).abs() as f64 / exact as f64;
            assert!(error < 0.01, "p{q}: {} for {exact}", summary.quantile(q));
        }
        assert_eq!((summary.count(), summary.max()), (10_000, 100_000_000));
        assert_eq!(summary.mean(), values.iter().sum::<Time>() as f64 / 10_000.0);
    }

    #[test]
    fn equal_values_are_exact_and_summaries_add_up() {
        let mut a = Summary::default();
        assert_eq!((a.quantile(0.5), a.mean()), (0, 0.0));
        (0..5).for_each(|_| a.record(1_234_567));
        assert_eq!(a.quantile(0.99), 1_234_567);
        let mut b = Summary::default();
        b.record(0);
        b.add(&a);
        assert_eq!((b.count(), b.zeros(), b.quantile(1.0)), (6, 1, 1_234_567));
    }
}
