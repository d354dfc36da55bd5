//! What walks a routine: the program, what surrounds a state, and where findings go.

use super::effects::Moves;
use super::facts::Site;
use super::lattice::Truth;
use super::prepared::{MOST_TRAITS, Prepared};
use super::state::{Scene, State};
use super::verdict::Record;
use crate::engine::event::Event;
use crate::ir::*;

/// Walks routines, taking every path at once.
pub struct Walker<'a> {
    pub program: &'a Program,
    pub scene: Scene<'a>,
    pub prepared: &'a Prepared,
    pub moves: &'a mut Moves,
    pub recording: &'a mut Record,
    /// Which individual the handler's parameter is.
    pub parameter: usize,
    /// The roles in which the parameter runs on another CPU.
    pub elsewhere_roles: u8,
    /// The roles in which the parameter may sit anywhere: that the handler moves it says nothing of
    /// what the container is for in which it sat.
    pub incidental_roles: u8,
    /// By trait: the values of ready threads.
    pub ready_traits: [u64; MOST_TRAITS],
    /// What is analysed, for messages.
    pub event: Option<Event>,
    pub occasion: usize,
}

impl Walker<'_> {
    pub fn has_check(&self, expr: ExprId) -> bool {
        self.prepared.has_check[u32::from(expr.into_raw()) as usize]
    }

    pub fn record(&mut self, check: CheckId, truth: Truth, state: &State, site: Option<Site>) {
        self.recording.add(check, truth, state, &self.scene, site, (self.event, self.occasion));
    }
}
