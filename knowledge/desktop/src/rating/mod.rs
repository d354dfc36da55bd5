//! The arithmetic of ratings: numbers from 0 to the ceiling, for one client or process at a time.

mod class;
pub mod guess;
mod input;
mod output;

pub use class::Class;
pub use input::InputLevel;
pub use output::{screen_ratings, sound_ratings};

/// A rating follows what is observed by half of the way each second.
pub fn smoothed(rating: f64, new: f64) -> f64 {
    (rating + new) / 2.0
}
