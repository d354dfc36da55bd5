//! Shows an outcome. Every form is a pure function of the outcome, so that equal runs give equal
//! bytes.

mod html;
mod intervals;
mod json;
mod plot;
mod table;
mod timeline;
mod trace;

pub use trace::{Machine as TracedMachine, trace_of};

use crate::outcome::Outcome;
use crate::scheduler::Time;

impl Outcome {
    /// Plain text with aligned columns.
    pub fn table(&self) -> String {
        table::render(self)
    }

    /// One JSON object; docs/workloads.md describes it. The same for the same policy, workload and
    /// options.
    pub fn json(&self) -> String {
        json::render(self)
    }

    /// A page that needs nothing from the network.
    pub fn html(&self) -> String {
        html::render(self)
    }

    /// A trace that Perfetto opens. Whole only if [`crate::Options::trace`] was set.
    pub fn perfetto(&self) -> Vec<u8> {
        trace::render(self)
    }

    /// The stays on CPUs: the thread's name and how long it stayed, in the order in which they end.
    /// All of them only if [`crate::Options::trace`] was set.
    pub fn stays(&self) -> Vec<(String, Time)> {
        let all = intervals::intervals(self, intervals::end_of_recording(self)).into_iter();
        let stays = all.filter(|it| matches!(it.state, intervals::State::Running(_)));
        stays.map(|stay| (self.recorded_name(stay.thread), stay.to - stay.from)).collect()
    }

    /// Whether the recording ended before the run.
    pub fn is_trace_truncated(&self) -> bool {
        self.figures.recorder.truncated
    }
}
