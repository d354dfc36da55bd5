//! What was found at each check, over all paths that reach it.

use la_arena::ArenaMap;

use super::facts::{Cause, Count, Site};
use super::lattice::{Places, Size, Truth};
use super::state::{Scene, State};
use crate::engine::event::Event;
use crate::ir::*;

/// A check as one path found it.
#[derive(Clone, Copy, Debug)]
pub struct Witness {
    /// The handler, and the occasion on which the engine called it.
    pub event: Option<Event>,
    pub occasion: usize,
    /// The container whose size the check is about, and what is known of it.
    pub container: Option<u16>,
    pub held: Size,
    pub seen: Size,
    /// Whether only threads that may run on this CPU count.
    pub filtered: bool,
    /// What changed the container last.
    pub cause: Cause,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Outcome {
    pub holds: bool,
    pub fails: bool,
    /// It fails on one path, whatever happens there.
    pub fails_certainly: bool,
    /// The first path on which it may or does fail.
    pub witness: Option<Witness>,
}

/// Outcomes of all checks of one program, and how much work is left to spend.
pub struct Record {
    outcomes: ArenaMap<CheckId, Outcome>,
    /// By the check of a named thread's transfer: where the thread may sit before it.
    origins: ArenaMap<CheckId, Places>,
    work: usize,
}

/// Enough for policies of 4000 queues whose every statement is about another one; in steps of one
/// container on one path through one statement. All of it takes a fraction of a second.
const MOST_WORK: usize = 400_000_000;

impl Record {
    pub fn new() -> Record {
        Record { outcomes: ArenaMap::default(), origins: ArenaMap::default(), work: MOST_WORK }
    }

    /// Takes note of what a path finds at a check. Paths of an unfinished fixed point may be noted:
    /// later ones cover them.
    pub fn add(
        &mut self,
        check: CheckId,
        truth: Truth,
        state: &State,
        scene: &Scene,
        site: Option<Site>,
        (event, occasion): (Option<Event>, usize),
    ) {
        if self.outcomes.get(check).is_none() {
            self.outcomes.insert(check, Outcome::default());
        }
        let Some(outcome) = self.outcomes.get_mut(check) else { return };
        outcome.holds |= truth != Truth::No;
        outcome.fails |= truth != Truth::Yes;
        outcome.fails_certainly |= truth == Truth::No;
        if truth != Truth::Yes && outcome.witness.is_none() {
            let count = site.map_or(Count::both(Size::ANY), |site| state.count(scene, site));
            outcome.witness = Some(Witness {
                event,
                occasion,
                container: site.map(Site::container),
                held: count.held,
                seen: count.seen,
                filtered: site.is_some_and(|site| scene.is_filtered(site.container())),
                cause: site.map_or(Cause::Several, |site| {
                    state.cells[usize::from(site.container())].cause
                }),
            });
        }
    }

    /// Takes note of where a named thread sits when a transfer takes it.
    pub fn note_origin(&mut self, check: CheckId, places: Places) {
        let known = self.origins.get(check).copied().unwrap_or(Places::UNBOUND);
        self.origins.insert(check, known.with(places));
    }

    pub fn origins(&self) -> impl Iterator<Item = (CheckId, Places)> {
        self.origins.iter().map(|(check, places)| (check, *places))
    }

    pub fn outcome(&self, check: CheckId) -> Option<&Outcome> {
        self.outcomes.get(check)
    }

    /// False when too much work was done: then nothing is claimed.
    pub fn spend(&mut self, work: usize) -> bool {
        self.work = self.work.saturating_sub(work);
        self.work > 0
    }

    pub fn gave_up(&self) -> bool {
        self.work == 0
    }
}

impl Outcome {
    pub fn verdict(&self) -> Verdict {
        match (self.holds, self.fails) {
            (_, false) => Verdict::Proved,
            (false, true) => Verdict::Refuted,
            (true, true) => Verdict::Checked,
        }
    }
}
