//! Rhythm: the beat of a program that cannot be changed, and the reservation that it needs.
//!
//! [`recording`] reads event trains, [`analyser`] finds their periods, [`windows`] follows them
//! through time, [`controller`] finds budgets. All of it is pure: no clock, no input or output, no
//! panic on any train. The method and how well it does stand in this crate's README.

pub mod analyser;
pub mod bandwidth;
pub mod controller;
pub mod evidence;
pub mod hypothesis;
pub mod intervals;
pub mod recording;
pub mod resolve;
pub mod settings;
pub mod spectrum;
pub mod spectrum_2010;
pub mod starts;
pub mod train;
pub mod windows;
pub mod work;

pub use analyser::{Analysis, Candidate, Period, analyse};
pub use settings::{Constants, Method, Settings};
