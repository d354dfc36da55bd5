//! Says what the analyser looks for, and how.

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

/// What was chosen by looking at recordings. `examples/leave_one_out.rs` chooses each anew with one
/// player left out, and judges on that one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Constants {
    /// A big job is at least so much of the mean one: a program that polls does little when there
    /// is nothing to do.
    pub big: f64,
    /// The share of cycles that must be hit: below, it is no beat that a server could keep.
    pub least_hits: f64,
    /// What all other beats do, at most, by what every k-th does, for that to be the job and the
    /// others none.
    pub idle_beats: f64,
    /// Evidence that is asked for beyond what luck could bring, in nats.
    pub caution: f64,
}

impl Default for Constants {
    fn default() -> Self {
        Constants { big: 1.0, least_hits: 0.2, idle_beats: 0.2, caution: 0.0 }
    }
}

/// Frequencies in Hz.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    pub method: Method,
    pub f_min: f64,
    pub f_max: f64,
    /// Cycles that a window must hold for a period to be seen in it.
    pub least_cycles: f64,
    pub constants: Constants,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            method: Method::Evidence,
            f_min: 2.0,
            f_max: 220.0,
            least_cycles: 5.0,
            constants: Constants::default(),
        }
    }
}
