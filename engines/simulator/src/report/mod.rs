//! Shows an outcome. Every form is a pure function of the outcome, so that equal runs give equal
//! bytes.

mod html;
mod intervals;
mod json;
mod plot;
mod table;
mod timeline;
mod trace;

pub use trace::{Place as TracePlace, document as trace_document};

use crate::outcome::Outcome;

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

    /// A trace that Perfetto and chrome://tracing open. Whole only if [`crate::Options::trace`] was
    /// set.
    pub fn perfetto(&self) -> String {
        trace::render(self)
    }

    /// The events of its trace, separated by commas, as those of one machine among others.
    pub fn trace_events(&self, place: TracePlace<'_>) -> String {
        trace::events(self, place)
    }

    /// Whether the recording ended before the run.
    pub fn is_trace_truncated(&self) -> bool {
        self.figures.recorder.truncated
    }
}
