//! From a case that shows something to a small one that still does.
//!
//! Invariant: the result has passed the same test as the case given.

use crate::driver::Step;
use crate::generator::Sources;

/// What is made smaller.
#[derive(Clone, Debug)]
pub struct Candidate {
    pub sources: Sources,
    pub steps: Vec<Step>,
}

/// `shows` says whether a candidate still shows it; it is asked so many times at most.
pub fn shrink(
    case: Candidate,
    attempts: usize,
    mut shows: impl FnMut(&Candidate) -> bool,
) -> Candidate {
    let mut left = attempts;
    let mut best = case;
    loop {
        let size = (best.sources.pieces(), best.steps.len());
        best = fewer_steps(best, &mut left, &mut shows);
        best = simpler_sources(best, &mut left, &mut shows);
        if left == 0 || size == (best.sources.pieces(), best.steps.len()) {
            return best;
        }
    }
}

fn fewer_steps(
    mut best: Candidate,
    left: &mut usize,
    shows: &mut impl FnMut(&Candidate) -> bool,
) -> Candidate {
    let mut chunk = best.steps.len();
    while chunk > 0 {
        let mut start = 0;
        while start < best.steps.len() && *left > 0 {
            let end = (start + chunk).min(best.steps.len());
            let mut candidate = best.clone();
            candidate.steps.drain(start..end);
            *left -= 1;
            if shows(&candidate) {
                best = candidate;
            } else {
                start = end;
            }
        }
        chunk /= 2;
    }
    best
}

fn simpler_sources(
    mut best: Candidate,
    left: &mut usize,
    shows: &mut impl FnMut(&Candidate) -> bool,
) -> Candidate {
    let mut number = 0;
    while number < best.sources.pieces() && *left > 0 {
        let mut found = false;
        for sources in best.sources.simpler(number) {
            if *left == 0 {
                break;
            }
            *left -= 1;
            let candidate = Candidate { sources, steps: best.steps.clone() };
            if shows(&candidate) {
                best = candidate;
                found = true;
                break;
            }
        }
        // What stands there now may become simpler still.
        if !found {
            number += 1;
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{driver, generator};

    #[test]
    fn a_case_shrinks_to_what_it_takes() {
        let sources = generator::scheduler(3, 8);
        let steps = driver::steps(1, 60);
        let wanted = steps[41];
        let case = Candidate { sources, steps };
        let small = shrink(case, 100_000, |candidate| {
            candidate.steps.contains(&wanted)
                && candidate.sources.listing().contains("event switch_out")
        });
        assert_eq!(small.steps, [wanted]);
        assert!(small.sources.pieces() <= 4, "{}", small.sources.listing());
    }
}
