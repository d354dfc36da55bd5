//! Weighs how much the job starts speak for a period.
//!
//! A hypothesis is a frequency. Its cycles are laid over each other; the *beat* is the phase window
//! that catches the most starts. If starts came at random, a cycle's window would catch one with
//! the small probability `p = 1 - exp(-rate * width)`. With `h` of `m` cycles hit, the log
//! likelihood ratio of "hit with probability h/m" against "hit by chance" is
//!
//! ```text
//! nats = h ln((h/m) / p) + (m - h) ln((1 - h/m) / (1 - p))
//! ```
//!
//! It settles harmonics and sub-harmonics without a rule of thumb. At twice the true frequency
//! every second cycle is missed: the same hits, bought with twice the cycles. At half the frequency
//! the beat explains half of the starts and leaves the other half to chance: about half the nats.
//! Delayed and lost beats cost nats, they do not move the answer.
//!
//! Programs do not sleep at a constant rate. The second count, `concentration`, holds the number of
//! starts fixed and asks how unlikely it is that so many of them share a phase: it is blind to slow
//! changes of the rate. A verdict needs both.

/// Starts laid over a period. Times in seconds from the beginning of the window of analysis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Evidence {
    /// Hz.
    pub frequency: f64,
    /// Standard error of the frequency, as a share of it: what least squares can know, given the
    /// jitter of the starts on the beat.
    pub error: f64,
    /// Time of a beat, in seconds.
    pub origin: f64,
    /// Half the width of the beat's window, as a share of the period.
    pub tolerance: f64,
    /// Cycles in the window of analysis.
    pub cycles: f64,
    /// Cycles with a start in the beat's window.
    pub hits: usize,
    /// Log likelihood ratio of the hits.
    pub nats: f64,
    /// Log likelihood ratio of the starts' phases, their number being given.
    pub concentration: f64,
}

impl Evidence {
    /// Whether a start at `time` belongs to a beat.
    pub fn explains(&self, time: f64) -> bool {
        let turns = (time - self.origin) * self.frequency;
        (turns - turns.round()).abs() <= 1.5 * self.tolerance
    }

    /// Whether two frequencies are one within what a window can tell apart.
    pub fn same_rate(&self, other: &Evidence) -> bool {
        (self.frequency / other.frequency - 1.0).abs() < 0.01
    }

    /// How many starts hit the first, second, .. of each `k` beats.
    pub fn hits_by_place(&self, starts: &[f64], k: usize) -> Vec<usize> {
        let mut hits = vec![0; k.max(1)];
        for &start in starts.iter().filter(|&&start| self.explains(start)) {
            hits[self.place(start, k.max(1))] += 1;
        }
        hits
    }

    /// Which of each `k` beats is nearest to a time.
    pub fn place(&self, time: f64, k: usize) -> usize {
        let cycle = ((time - self.origin) * self.frequency).round();
        cycle.rem_euclid(k as f64) as usize % k
    }

    /// The same beats, of which only every `k`-th counts: those at the place that is hit most.
    pub fn slower_at(&self, k: usize, starts: &[f64]) -> Evidence {
        let hits = self.hits_by_place(starts, k);
        let place = (0..hits.len()).max_by_key(|&place| hits[place]).unwrap_or(0);
        let origin = self.origin + place as f64 / self.frequency;
        Evidence { origin, hits: hits.get(place).copied().unwrap_or(0), ..self.slower(k) }
    }

    /// The same beats, of which only every `k`-th counts.
    pub fn slower(&self, k: usize) -> Evidence {
        let k = k as f64;
        Evidence {
            frequency: self.frequency / k,
            tolerance: self.tolerance / k,
            cycles: self.cycles / k,
            hits: (self.hits as f64 / k).round() as usize,
            ..*self
        }
    }
}

/// Half widths of the beat's window that are tried, from wide to narrow, as shares of the period.
const TOLERANCES: [f64; 5] = [0.12, 0.07, 0.04, 0.02, 0.01];
const BINS: usize = 64;

/// Weighs `frequency`, and frequencies so near that the fold shows their difference as a slope, and
/// returns the best. `starts` lie in a window of `length` seconds. None where there is nothing to
/// weigh.
pub fn weigh(starts: &[f64], length: f64, frequency: f64) -> Option<Evidence> {
    refine(starts, length, frequency, &TOLERANCES)
}

/// Like [`weigh`], with one narrowing only: a fifth of the cost, for choosing what to weigh.
pub fn glance(starts: &[f64], length: f64, frequency: f64) -> Option<Evidence> {
    let mut fold = Fold::new(starts, length, frequency)?;
    fold.centre(starts, 0.12);
    fold.regress(starts, 0.15);
    Some(fold.evidence(starts, length, 0.04))
}

fn refine(starts: &[f64], length: f64, frequency: f64, tolerances: &[f64]) -> Option<Evidence> {
    let mut fold = Fold::new(starts, length, frequency)?;
    let mut best: Option<Evidence> = None;
    for &tolerance in tolerances {
        fold.centre(starts, tolerance);
        fold.regress(starts, tolerance * 1.5);
        let evidence = fold.evidence(starts, length, tolerance);
        if best.is_none_or(|best| evidence.nats > best.nats) {
            best = Some(evidence);
        }
    }
    best
}

/// `k ln(q/p) + (n - k) ln((1-q)/(1-p))` with `q = k/n`; zero unless `q` exceeds `p`.
pub fn log_likelihood_ratio(k: f64, n: f64, p: f64) -> f64 {
    let k = k.min(n);
    if n <= 0.0 || k / n <= p || p <= 0.0 {
        return 0.0;
    }
    let q = k / n;
    let missed = if q < 1.0 { (n - k) * ((1.0 - q) / (1.0 - p)).ln() } else { 0.0 };
    k * (q / p).ln() + missed
}

/// 1 for an offset within the tolerance, else 0: a factor, since to foresee a branch that starts
/// take at random costs more than the products.
fn inside(offset: f64, tolerance: f64) -> f64 {
    f64::from(u8::from(offset.abs() <= tolerance))
}

/// Starts laid over a period: cycle `n` has its beat at `origin + n / frequency`.
struct Fold {
    frequency: f64,
    /// Never later than the first cycle, so that cycle numbers are not negative.
    origin: f64,
}

impl Fold {
    fn new(starts: &[f64], length: f64, frequency: f64) -> Option<Fold> {
        let sound =
            starts.len() >= 3 && length > 0.0 && frequency > 0.0 && frequency * length < 1e6;
        sound.then_some(Fold { frequency, origin: -1.0 / frequency })
    }

    /// Cycle number and offset from its beat, in cycles, -0.5..0.5.
    fn turns(&self, time: f64) -> (f64, f64) {
        let turns = (time - self.origin) * self.frequency;
        // Truncation is the rounding that is one instruction; turns are positive.
        let cycle = f64::from((turns + 0.5) as i32);
        (cycle, turns - cycle)
    }

    /// Moves the origin by `turns` of a cycle.
    fn shift(&mut self, turns: f64) {
        self.origin += turns / self.frequency;
        if self.origin > -0.5 / self.frequency {
            self.origin -= 1.0 / self.frequency;
        }
    }

    /// Moves the origin so that the window of that tolerance around the beat holds the most starts.
    fn centre(&mut self, starts: &[f64], tolerance: f64) {
        let mut bins = [0u16; BINS];
        for &start in starts {
            let (_, offset) = self.turns(start);
            let bin = ((offset + 0.5) * BINS as f64) as usize;
            bins[bin.min(BINS - 1)] = bins[bin.min(BINS - 1)].saturating_add(1);
        }
        let width = ((2.0 * tolerance * BINS as f64).round() as usize).clamp(1, BINS);
        let mut count: u32 = bins[..width].iter().map(|&bin| u32::from(bin)).sum();
        let mut best = (count, 0);
        for first in 1..BINS {
            count += u32::from(bins[(first + width - 1) % BINS]);
            count -= u32::from(bins[first - 1]);
            if count > best.0 {
                best = (count, first);
            }
        }
        let centre = (best.1 as f64 + width as f64 / 2.0) / BINS as f64 - 0.5;
        self.shift(centre);
    }

    /// Least squares of the times against the cycle numbers, over the starts within `tolerance`.
    fn regress(&mut self, starts: &[f64], tolerance: f64) {
        let (mut n, mut sx, mut sy, mut sxx, mut sxy) = (0.0, 0.0, 0.0, 0.0, 0.0);
        for &start in starts {
            let (cycle, offset) = self.turns(start);
            let inside = inside(offset, tolerance);
            n += inside;
            sx += inside * cycle;
            sy += inside * offset;
            sxx += inside * cycle * cycle;
            sxy += inside * cycle * offset;
        }
        let spread = n * sxx - sx * sx;
        if n < 3.0 || spread <= 0.0 {
            return;
        }
        // offset = a + b * cycle: the period is longer by the share b.
        let b = ((n * sxy - sx * sy) / spread).clamp(-0.05, 0.05);
        let a = (sy - b * sx) / n;
        self.shift(a);
        self.frequency /= 1.0 + b;
    }

    fn evidence(&self, starts: &[f64], length: f64, tolerance: f64) -> Evidence {
        let (mut caught, mut hits, mut last) = (0.0, 0usize, -1.0);
        let (mut sx, mut sxx, mut syy) = (0.0, 0.0, 0.0);
        for &start in starts {
            let (cycle, offset) = self.turns(start);
            let inside = inside(offset, tolerance);
            caught += inside;
            sx += inside * cycle;
            sxx += inside * cycle * cycle;
            syy += inside * offset * offset;
            let latest = if inside > 0.0 { cycle } else { last };
            hits += usize::from(latest != last);
            last = latest;
        }
        let cycles = length * self.frequency;
        let rate = starts.len() as f64 / length;
        let chance = 1.0 - (-rate * 2.0 * tolerance / self.frequency).exp();
        // Offsets in cycles against cycle numbers: the error of their slope is that of the period,
        // as a share of it.
        let spread = (sxx - sx * sx / caught.max(1.0)).max(f64::MIN_POSITIVE);
        Evidence {
            frequency: self.frequency,
            error: (syy / (caught - 2.0).max(1.0) / spread).sqrt().min(1.0),
            origin: self.origin,
            tolerance,
            cycles,
            hits,
            nats: log_likelihood_ratio(hits as f64, cycles, chance),
            concentration: log_likelihood_ratio(caught, starts.len() as f64, 2.0 * tolerance),
        }
    }
}
