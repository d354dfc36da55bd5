//! Measures how much of a program's work keeps a beat.
//!
//! Starts tell when jobs begin; the number of events tells how much is done. All events are laid
//! over a period in bins of equal time. If `m[b]` is the mean number of events that a cycle puts
//! into bin `b`, then `V = sum (m[b] - mean)^2` measures how uneven the profile is, and `f sqrt(V)`
//! is the number of events a second that are locked to the beat. `V` is estimated from products of
//! *different* cycles, which noise cannot inflate: a train without the beat gives zero on average,
//! not a small positive number that grows with the number of bins.
//!
//! **Contrast** settles whether one of every `k` beats is another kind of beat. With equal beats,
//! locked work at `f/k` is `1/sqrt(k)` of that at `f`; if all the work is done at every k-th beat,
//! it is the same. Contrast maps these two to 0 and 1. A player that polls every 10 ms and shows a
//! frame every 40 ms has a high contrast at `k = 4`: its job is the frame.

/// Bins of one cycle at the frequency that is being judged.
const BINS: usize = 24;

/// Events a second that are locked to `frequency`, as a share of all. `times` are sorted, from the
/// beginning of a window of `length` seconds.
pub fn locked_share(times: &[f64], length: f64, frequency: f64) -> f64 {
    let rate = times.len() as f64 / length;
    if rate > 0.0 {
        frequency * unevenness(times, length, frequency, BINS).max(0.0).sqrt() / rate
    } else {
        0.0
    }
}

/// How different the `k` beats are that make one cycle of `frequency / k`: 0 for equal ones, 1 if
/// one of them does all the work; near zero, also below it, where there is nothing to see.
pub fn contrast(times: &[f64], length: f64, frequency: f64, k: usize) -> f64 {
    let each = unevenness(times, length, frequency, BINS);
    let together = unevenness(times, length, frequency / k as f64, BINS * k);
    if each <= 0.0 {
        return 0.0;
    }
    let equal = 1.0 / k as f64;
    (together / each * equal * equal - equal) / (1.0 - equal)
}

/// The sum over the bins of the squared deviation of a cycle's mean number of events, without bias.
fn unevenness(times: &[f64], length: f64, frequency: f64, bins: usize) -> f64 {
    let cycles = length * frequency;
    if cycles < 2.0 || times.is_empty() {
        return 0.0;
    }
    let mut sums = vec![0.0f64; bins];
    let mut squares = vec![0.0f64; bins];
    // Sorted times visit the bins of a cycle in order: the events of one cycle in one bin follow
    // each other.
    let (mut here, mut count) = ((0u64, 0usize), 0.0f64);
    let mut close = |(_, bin): (u64, usize), count: f64| {
        sums[bin] += count;
        squares[bin] += count * count;
    };
    for &time in times {
        let turns = (time * frequency).max(0.0);
        let cycle = turns as u64;
        let bin = (((turns - cycle as f64) * bins as f64) as usize).min(bins - 1);
        if (cycle, bin) != here {
            close(here, count);
            (here, count) = ((cycle, bin), 0.0);
        }
        count += 1.0;
    }
    close(here, count);
    let pairs = cycles * (cycles - 1.0);
    let products: f64 =
        sums.iter().zip(&squares).map(|(sum, square)| (sum * sum - square) / pairs).sum();
    let mean = times.len() as f64 / cycles / bins as f64;
    products - bins as f64 * mean * mean
}

#[cfg(test)]
mod tests {
    use super::*;

    fn beats(frequency: f64, sizes: &[usize]) -> Vec<f64> {
        (0..(2.0 * frequency) as usize)
            .flat_map(|beat| {
                let size = sizes[beat % sizes.len()];
                (0..size).map(move |event| (beat as f64 + 0.3) / frequency + 1e-6 * event as f64)
            })
            .collect()
    }

    #[test]
    fn equal_beats_have_no_contrast_and_lock_all_work() {
        let times = beats(50.0, &[10]);
        assert!(locked_share(&times, 2.0, 50.0) > 0.95);
        for k in 2..=5 {
            assert!(contrast(&times, 2.0, 50.0, k).abs() < 0.02, "k = {k}");
        }
    }

    #[test]
    fn polls_between_frames_have_a_high_contrast() {
        let times = beats(100.0, &[20, 2, 2, 2]);
        assert!(contrast(&times, 2.0, 100.0, 4) > 0.4);
        assert!(contrast(&times, 2.0, 100.0, 3).abs() < 0.05);
        // Two kinds of frame that differ by half are still frames.
        assert!(contrast(&beats(25.0, &[18, 27]), 2.0, 25.0, 2) < 0.1);
    }

    #[test]
    fn noise_locks_nothing() {
        let mut random = fastrand::Rng::with_seed(3);
        let mut times: Vec<f64> = (0..500).map(|_| 2.0 * random.f64()).collect();
        times.sort_by(f64::total_cmp);
        assert!(locked_share(&times, 2.0, 25.0) < 0.12);
        assert_eq!(locked_share(&[], 2.0, 25.0), 0.0);
    }
}
