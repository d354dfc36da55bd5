//! Places that can fail at run time, and what an analysis says of each.

use la_arena::ArenaMap;

use super::CheckId;
use crate::engine::event::Event;
use crate::source::Span;

/// A place that can fail at run time.
#[derive(Clone, Debug)]
pub struct Check {
    pub kind: CheckKind,
    /// The handler it stands in; None in prologues and invariants.
    pub event: Option<Event>,
    pub span: Span,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CheckKind {
    /// A transfer's source: the container is not empty.
    SourceFilled,
    /// A transfer's destination `threadref` is empty.
    DestinationEmpty,
    DispatchFilled,
    DestroyFilled,
    /// A transfer, dispatch or destroy of a named thread: it was not destroyed before.
    NamedTransfer,
    /// An attribute, alarm: the container is not empty.
    FirstFilled,
    /// An attribute, alarm: the named thread was not destroyed before.
    NamedUse,
    /// 0 <= index < length (for a per-CPU variable: the number of CPUs).
    IndexInRange,
    /// A new thread was stored.
    Stored,
    /// A local container is empty at the end.
    LocalEmptied,
    LoopBound,
    InvariantHolds,
}

impl CheckKind {
    /// Whether it counts among a scheduler's transfer checks.
    pub fn is_transfer(self) -> bool {
        matches!(
            self,
            CheckKind::SourceFilled
                | CheckKind::DestinationEmpty
                | CheckKind::DispatchFilled
                | CheckKind::DestroyFilled
                | CheckKind::NamedTransfer
        )
    }
}

/// What an analysis says of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// Cannot fail.
    Proved,
    /// May fail: checked at run time.
    Checked,
    /// Fails whenever it is reached.
    Refuted,
    /// The engine never calls the handler: checked at run time all the same, counted nowhere.
    Uncalled,
}

/// One engine's verdicts. A check without an entry is [`Verdict::Checked`].
#[derive(Clone, Debug, Default)]
pub struct Verdicts {
    by_check: ArenaMap<CheckId, Verdict>,
}

impl Verdicts {
    pub fn of(&self, check: CheckId) -> Verdict {
        self.by_check.get(check).copied().unwrap_or(Verdict::Checked)
    }

    pub fn set(&mut self, check: CheckId, verdict: Verdict) {
        self.by_check.insert(check, verdict);
    }
}
