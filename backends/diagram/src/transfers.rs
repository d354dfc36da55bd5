//! The arrows of the picture: who moves threads from where to where, and how certainly.

use std::collections::{BTreeMap, BTreeSet};

use attune_language::event::Event;
use attune_language::ir::*;

/// An end of an arrow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Place {
    /// Where new threads come from.
    New,
    /// Index of a container in the program.
    Container(u32),
    /// Wherever the thread sits that the handler's parameter names.
    Named(Event),
    Destroyed,
}

/// How the transfers of one handler between two places are reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Style {
    /// One of them at least stands in a loop.
    pub looped: bool,
    /// Each of them stands under a condition.
    pub conditional: bool,
}

/// What is drawn.
#[derive(Clone, Debug, Default)]
pub(crate) struct Transfers {
    /// By ends and handler.
    pub arrows: BTreeMap<(Place, Place, Event), Style>,
    pub dispatched: BTreeSet<u32>,
    /// What each handler calls its parameter.
    pub parameters: BTreeMap<Event, String>,
}

pub(crate) fn collect(program: &Program) -> Transfers {
    let mut transfers = Transfers::default();
    for handler in &program.handlers {
        for part in &handler.parts {
            let mut walk = Walk { event: handler.event, names: Vec::new(), transfers: &mut transfers };
            if let Some(parameter) = part.routine.parameter {
                let whence =
                    if handler.event == Event::NewThread { Place::New } else { Place::Named(handler.event) };
                walk.names.push((parameter, whence));
                let name = program.names[parameter].name.clone();
                walk.transfers.parameters.entry(handler.event).or_insert(name);
            }
            walk.block(&part.routine.body, Style { looped: false, conditional: false });
        }
    }
    transfers
}

pub(crate) fn index(container: ContainerId) -> u32 {
    container.into_raw().into_u32()
}

struct Walk<'a> {
    event: Event,
    /// Where each named thread is, as far as the text says.
    names: Vec<(NameId, Place)>,
    transfers: &'a mut Transfers,
}

impl Walk<'_> {
    fn block(&mut self, block: &Block, mut style: Style) {
        for statement in &block.statements {
            self.statement(statement, style);
            // What follows an `if (..) return;` is reached only when the condition does not hold.
            style.conditional |= leaves(statement);
        }
    }

    fn statement(&mut self, statement: &Statement, style: Style) {
        let conditional = Style { conditional: true, ..style };
        match &statement.kind {
            StatementKind::Transfer { source, destination, .. } => {
                let to = Place::Container(index(destination.container));
                self.arrow(self.place(source), to, style);
                self.moved(source, to);
            }
            StatementKind::Destroy { thread } => {
                self.arrow(self.place(thread), Place::Destroyed, style);
                self.moved(thread, Place::Destroyed);
            }
            StatementKind::Dispatch { thread, .. } => {
                if let Place::Container(container) = self.place(thread) {
                    self.transfers.dispatched.insert(container);
                }
            }
            StatementKind::If { then, otherwise, .. } => {
                let before = self.names.clone();
                self.block(then, conditional);
                // A thread that either branch may have moved is still drawn from where it was before.
                self.names = before;
                self.block(otherwise, conditional);
            }
            StatementKind::Loop(each) => {
                // The body of a `do` runs once in any case.
                let inside =
                    Style { looped: true, conditional: style.conditional || each.test == Test::First };
                self.block(&each.prelude, Style { looped: true, ..style });
                self.block(&each.body, inside);
                self.block(&each.step, inside);
            }
            StatementKind::Foreach { name, container, body } => {
                self.names.push((*name, Place::Container(index(container.container))));
                self.block(body, Style { looped: true, ..style });
                self.names.pop();
            }
            _ => {}
        }
    }

    fn place(&self, thread: &ThreadExpr) -> Place {
        match &thread.kind {
            ThreadKind::First(container) => Place::Container(index(container.container)),
            ThreadKind::Name(name) => {
                let known = self.names.iter().rev().find(|(known, _)| known == name);
                known.map_or(Place::Named(self.event), |(_, place)| *place)
            }
        }
    }

    fn moved(&mut self, thread: &ThreadExpr, to: Place) {
        if let ThreadKind::Name(name) = &thread.kind
            && let Some((_, place)) = self.names.iter_mut().rev().find(|(known, _)| known == name)
        {
            *place = to;
        }
    }

    fn arrow(&mut self, from: Place, to: Place, style: Style) {
        let known = self.transfers.arrows.entry((from, to, self.event)).or_insert(style);
        known.looped |= style.looped;
        known.conditional &= style.conditional;
    }
}

/// Whether a statement may leave the part or the loop before its end.
fn leaves(statement: &Statement) -> bool {
    let block = |block: &Block| block.statements.iter().any(leaves);
    match &statement.kind {
        StatementKind::Return(_)
        | StatementKind::Dispatch { .. }
        | StatementKind::Break
        | StatementKind::Continue => true,
        StatementKind::If { then, otherwise, .. } => block(then) || block(otherwise),
        StatementKind::Loop(each) => returns(&each.body),
        StatementKind::Foreach { body, .. } => returns(body),
        _ => false,
    }
}

/// Whether a loop's body may leave more than the loop.
fn returns(block: &Block) -> bool {
    block.statements.iter().any(|statement| match &statement.kind {
        StatementKind::Return(_) | StatementKind::Dispatch { .. } => true,
        StatementKind::If { then, otherwise, .. } => returns(then) || returns(otherwise),
        StatementKind::Loop(each) => returns(&each.body),
        StatementKind::Foreach { body, .. } => returns(body),
        _ => false,
    })
}
