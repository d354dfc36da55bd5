//! What the analyser looks for, and how.

use crate::spectrum_2010;

/// How a period is found.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Method {
    /// Ours: job starts weighed as evidence.
    #[default]
    Evidence,
    /// The published heuristic, with its own range of frequencies.
    Spectrum2010(spectrum_2010::Parameters),
}

/// Frequencies in Hz.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    pub method: Method,
    pub f_min: f64,
    pub f_max: f64,
    /// Cycles that a window must hold for a period to be seen in it.
    pub least_cycles: f64,
}

impl Default for Settings {
    fn default() -> Self {
        Settings { method: Method::Evidence, f_min: 2.0, f_max: 220.0, least_cycles: 5.0 }
    }
}
