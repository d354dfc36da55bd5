//! Loops and counters as a verifier wants them; plain C where the target has none.
//!
//! A verifier follows a counter whose value it knows number by number. Where the target has one,
//! counters start at ATTUNE_ZERO, which it does not know, and each loop asks ATTUNE_MAY_LOOP.

use attune_language::source::Span;

use super::Writer;

impl Writer<'_> {
    /// Where a loop over an array starts.
    pub(super) fn zero(&self) -> &'static str {
        if self.is_verified() { "(uint32_t)ATTUNE_ZERO" } else { "0" }
    }

    /// The test of a loop over an array.
    pub(super) fn bounded(&self, length: &str) -> String {
        let test = format!("attune_i < {length}");
        if self.is_verified() { format!("{test} && ATTUNE_MAY_LOOP") } else { test }
    }

    /// Asks whether a loop of the scheduler's may go on.
    pub(super) fn may_loop(
        &mut self,
        span: Span,
        what: impl FnOnce(&Self) -> String,
    ) -> Option<String> {
        self.is_verified().then(|| format!("ATTUNE_MAY_LOOP_AT({})", self.cut(span, what)))
    }

    pub(super) fn is_verified(&self) -> bool {
        self.target.verifier.is_some()
    }
}
