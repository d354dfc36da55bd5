//! Which programs the person at the display deals with, and which processes work for them.
//!
//! A [`display`] adapter observes input, output and windows of a display's clients, [`sound`] tells
//! which processes can be heard, and the [`wakes`] program in the kernel counts which process wakes
//! which. All become [`observation`]s, and from these alone [`Attention`] computes an input and an
//! output rating for each process, with the reason for each. The [`monitor`] is the loop that joins
//! them.
//!
//! Ratings are numbers from 0 to `ceiling`; policies read them as 0 to 1000. Times are nanoseconds
//! of CLOCK_MONOTONIC. Keys are counted and never read.

mod attention;
pub mod display;
pub mod displays;
mod explanation;
pub mod graph;
mod meter;
pub mod monitor;
pub mod observation;
mod process;
pub mod rating;
pub mod recording;
mod region;
mod settings;
pub mod sound;
pub mod sway;
pub mod wakes;
mod workload;
pub mod x11;

pub use attention::{Attention, Cause, FULL_VALUE, Rated, Rating};
pub use explanation::{Explanation, Neighbour, Side};
pub use process::{Facts, Process};
pub use settings::{Decay, Settings};
pub use workload::Replay;
