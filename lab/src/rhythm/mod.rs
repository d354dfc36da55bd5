//! Experiments about rhythm, beside the figures of Cucinotta, Checconi, Abeni and Palopoli, *Self-tuning schedulers for legacy real-time
//! applications*, EuroSys 2010. They need no privileges: recordings of real players, and virtual time.

pub mod bandwidth;
pub mod controllers;
pub mod period_cost;
pub mod period_window;
mod recordings;

use crate::report::Claim;

/// A claim that a figure is at most, or at least, a bound.
fn at_most(claim: impl Into<String>, figure: f64, bound: f64, unit: &str) -> Claim {
    Claim { claim: claim.into(), holds: figure <= bound, measured: format!("{figure:.3}{unit}") }
}

fn at_least(claim: impl Into<String>, figure: f64, bound: f64, unit: &str) -> Claim {
    Claim { claim: claim.into(), holds: figure >= bound, measured: format!("{figure:.3}{unit}") }
}
