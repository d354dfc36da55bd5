//! The spectrum of an event train, by direct sum: `S(f) = sum w_k exp(-2 pi i f t_k)`.
//!
//! A train has no sampling rate, so no transform of a sampled signal is needed: the sum is taken at
//! each frequency of a grid. Going from one frequency to the next turns each event's phasor by a
//! fixed angle, which costs one complex product.

/// Frequencies `low`, `low + step`, .. up to and including `high`, in Hz.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Grid {
    pub low: f64,
    pub high: f64,
    pub step: f64,
}

impl Grid {
    /// Number of frequencies; zero for a grid that makes no sense.
    pub fn len(&self) -> usize {
        let steps = ((self.high - self.low) / self.step + 1e-9).floor();
        if steps.is_finite() && steps >= 0.0 { steps as usize + 1 } else { 0 }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn frequency(&self, index: usize) -> f64 {
        self.low + self.step * index as f64
    }
}

/// `|S(f)|` on the grid. Events with their weights; times in seconds, best counted from near the
/// first of them.
pub fn magnitudes(events: &[(f64, f64)], grid: Grid) -> Vec<f64> {
    let phasor = |angle: f64| {
        let (sin, cos) = angle.sin_cos();
        (cos as f32, -sin as f32)
    };
    let turns = |frequency: f64, time: f64| (frequency * time).fract() * std::f64::consts::TAU;
    let count = events.len();
    let (mut re, mut im) = (vec![0f32; count], vec![0f32; count]);
    let (mut turn_re, mut turn_im) = (vec![0f32; count], vec![0f32; count]);
    for (index, &(time, _)) in events.iter().enumerate() {
        (turn_re[index], turn_im[index]) = phasor(turns(grid.step, time));
    }
    let mut result = Vec::with_capacity(grid.len());
    for step in 0..grid.len() {
        // Single precision drifts by its last digit each turn: begin anew now and then.
        if step % 1024 == 0 {
            for (index, &(time, weight)) in events.iter().enumerate() {
                let (cos, sin) = phasor(turns(grid.frequency(step), time));
                (re[index], im[index]) = (cos * weight as f32, sin * weight as f32);
            }
        }
        let (sum_re, sum_im) = sum_and_turn(&mut re, &mut im, &turn_re, &turn_im);
        result.push(f64::from(sum_re.mul_add(sum_re, sum_im * sum_im).sqrt()));
    }
    result
}

/// Sums the phasors, then turns each by its own angle. In lanes, so that the compiler can use
/// vector instructions.
fn sum_and_turn(re: &mut [f32], im: &mut [f32], turn_re: &[f32], turn_im: &[f32]) -> (f32, f32) {
    const LANES: usize = 8;
    let (mut sums_re, mut sums_im) = ([0f32; LANES], [0f32; LANES]);
    let chunks = re.chunks_mut(LANES).zip(im.chunks_mut(LANES));
    for ((re, im), (turn_re, turn_im)) in
        chunks.zip(turn_re.chunks(LANES).zip(turn_im.chunks(LANES)))
    {
        for lane in 0..re.len() {
            let (a, b) = (re[lane], im[lane]);
            sums_re[lane] += a;
            sums_im[lane] += b;
            re[lane] = a * turn_re[lane] - b * turn_im[lane];
            im[lane] = a * turn_im[lane] + b * turn_re[lane];
        }
    }
    (sums_re.iter().sum(), sums_im.iter().sum())
}

/// Indices of the local maxima, ends excluded.
pub fn peaks(spectrum: &[f64]) -> Vec<usize> {
    let is_peak = |&i: &usize| spectrum[i] > spectrum[i - 1] && spectrum[i] >= spectrum[i + 1];
    (1..spectrum.len().saturating_sub(1)).filter(is_peak).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fast_sum_is_the_sum() {
        let events: Vec<(f64, f64)> =
            (0..77).map(|k| (f64::from(k * k % 91) * 0.0213, 1.0 + f64::from(k % 3))).collect();
        let grid = Grid { low: 1.0, high: 300.0, step: 0.11 };
        let fast = magnitudes(&events, grid);
        assert_eq!(fast.len(), grid.len());
        for (index, value) in fast.iter().enumerate() {
            let angle = |time: f64| std::f64::consts::TAU * grid.frequency(index) * time;
            let re: f64 = events.iter().map(|&(time, weight)| weight * angle(time).cos()).sum();
            let im: f64 = events.iter().map(|&(time, weight)| weight * angle(time).sin()).sum();
            assert!(
                (value - re.hypot(im)).abs() < 0.02,
                "at {index}: {value} against {}",
                re.hypot(im)
            );
        }
    }

    #[test]
    fn a_grid_that_makes_no_sense_is_empty() {
        for (low, high, step) in [(2.0, 1.0, 0.1), (1.0, 2.0, f64::NAN), (1.0, 2.0, 0.0)] {
            assert!(magnitudes(&[(0.0, 1.0)], Grid { low, high, step }).is_empty());
        }
    }
}
