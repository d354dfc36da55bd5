//! An experiment in the kernel as constants and a function that judges.

use super::part::Part;
use super::results::Results;
use crate::report::Claim;

pub struct Description {
    pub name: &'static str,
    /// One sentence, for lists.
    pub about: &'static str,
    pub title: &'static str,
    /// How it measures and how to read the figures, in paragraphs.
    pub text: &'static [&'static str],
    /// What others have published, or that nobody has.
    pub published: &'static str,
    pub parts: &'static [Part],
    /// Seeds of deterministic machines; `--quick` and baselines
    /// ([`Contestant::briefly`](super::Contestant::briefly)) use the first.
    pub seeds: &'static [u64],
    /// The figure that the picture shows.
    pub drawn: &'static str,
    pub claims: fn(&Results) -> Vec<Claim>,
}

/// For claims about the worst run.
pub const FIVE_SEEDS: &[u64] = &[1, 2, 3, 4, 5];
/// For costs and shares, which differ by less than a hundredth between seeds.
pub const TWO_SEEDS: &[u64] = &[1, 2];
