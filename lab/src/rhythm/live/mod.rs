//! Supplies what the experiments with real players need: films and sounds, a display and a sound
//! server of their own, loads, and a look into the players from inside the kernel. Nothing here
//! touches the user's own display or sound.

mod films;
mod listen;
mod needs;
mod player;
mod running;
mod stage;
mod tuned;

pub use listen::{Ear, frames};
pub use needs::require;
pub use player::{PLAYERS, Player, player};
pub use running::Running;
pub use stage::{Load, Stage};
pub use tuned::{Tuning, is_reserved};

/// Mean and standard deviation; zeroes of nothing.
pub fn mean_and_deviation(values: &[f64]) -> (f64, f64) {
    let count = values.len().max(1) as f64;
    let mean = values.iter().sum::<f64>() / count;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count;
    (mean, variance.sqrt())
}

/// The middle one of them; zero of none.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(0.0)
}
