//! A period that one train speaks for, and how strongly.

use crate::evidence::Evidence;

/// A period that one train speaks for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hypothesis {
    pub evidence: Evidence,
    /// The pause before an event that makes it a start, in seconds.
    pub pause: f64,
    /// Evidence less luck, in nats: significant when positive.
    pub net: f64,
    /// The share of the train's events that the period locks; zero where it was not asked.
    pub share: f64,
    /// Whether equal intervals speak for it, not a common phase.
    pub sleeper: bool,
    /// Which of the train's kinds of starts speak for it.
    pub scale: usize,
}
