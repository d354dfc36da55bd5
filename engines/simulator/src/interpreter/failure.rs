//! Writes the message about a failed check: what the handler tried, what it found, where the
//! threads are.

use std::fmt::Write;

use attune_language::ir::{CheckId, CheckKind, Extent, LOOP_BUDGET, Program};

use crate::scheduler::{Place, ThreadId, Trap};

use super::containers::NONE;
use super::state::State;
use super::trap::{Found, What};

/// Why a run of a handler ended early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// None: not the scheduler's error but a call that the contract of
    /// [`crate::scheduler::Scheduler`] does not allow.
    pub check: Option<CheckId>,
    pub place: Option<Place>,
    /// What was tried and what was found, containers with their threads.
    pub message: String,
}

impl From<Failure> for Trap {
    fn from(failure: Failure) -> Trap {
        Trap { message: failure.message, place: failure.place }
    }
}

/// The most threads that a message lists of one container.
const LISTED: usize = 16;

pub(super) fn message(program: &Program, state: &State, found: &Found) -> String {
    let name = |slot: u32| container_name(program, state, slot);
    let contents = |slots: &[Option<u32>]| contents(program, state, slots);
    let kind = found.check.map(|check| program.checks[check].kind);
    match found.what {
        What::Empty { container, destination } => {
            let wanted = match kind {
                Some(CheckKind::DispatchFilled) => "there is no thread to dispatch",
                Some(CheckKind::DestroyFilled) => "there is no thread to destroy",
                Some(CheckKind::SourceFilled) => "there is no thread to move",
                _ => "there is no thread to ask",
            };
            // A filtered container may hold threads and yet read as empty.
            let reads = if state.containers.size(container) > 0 {
                "holds none for this CPU"
            } else {
                "is empty"
            };
            let listed = contents(&[Some(container), destination]);
            format!("{wanted}: {} {reads} ({listed})", name(container))
        }
        What::Full { container, thread, source } => format!(
            "there is no room for thread {}: {} holds another ({})",
            ThreadId(thread),
            name(container),
            contents(&[source, Some(container)])
        ),
        What::Gone { thread } => format!("thread {} has been destroyed", ThreadId(thread)),
        What::Index { at, length } => format!("index {at} is outside 0..{length}"),
        What::NotStored { thread } => {
            format!("the new thread {} was put into no container", ThreadId(thread))
        }
        What::NotEmpty { container } => format!(
            "{} is local and not empty at the end ({})",
            name(container),
            contents(&[Some(container)])
        ),
        What::Endless => format!("more than {LOOP_BUDGET} iterations in one handler"),
        What::Invariant { container } => {
            format!(
                "the invariant of {} does not hold ({})",
                name(container),
                contents(&[Some(container)])
            )
        }
    }
}

/// `RQ`, or `RQ[3]` for an element of an array or a CPU's instance.
pub(super) fn container_name(program: &Program, state: &State, slot: u32) -> String {
    let slot = &state.slots[slot as usize];
    let Some(container) = program.containers.values().nth(slot.container as usize) else {
        return String::new();
    };
    match container.extent {
        Extent::One => container.name.clone(),
        Extent::PerCpu if state.cpus == 1 => container.name.clone(),
        Extent::Array(_) | Extent::PerCpu => format!("{}[{}]", container.name, slot.element),
    }
}

fn contents(program: &Program, state: &State, slots: &[Option<u32>]) -> String {
    let mut text = String::new();
    for &slot in slots.iter().flatten().filter(|&&slot| slot != NONE) {
        if !text.is_empty() {
            text.push_str("; ");
        }
        // Writing into a string cannot fail.
        let _ = write!(text, "{}:", container_name(program, state, slot));
        for thread in state.containers.threads(slot).take(LISTED) {
            let _ = write!(text, " {}", ThreadId(thread));
        }
        match state.containers.size(slot) as usize {
            0 => text.push_str(" empty"),
            size if size > LISTED => {
                let _ = write!(text, " and {} more", size - LISTED);
            }
            _ => {}
        }
    }
    text
}
