//! The arrows of the picture: which handlers move threads from where to where, and how certainly.

use std::collections::{BTreeMap, BTreeSet};

use attune_language::engine::event::Event;
use attune_language::ir::*;
use attune_language::source::SourceMap;
use attune_language::{EngineReport, Origin};

/// An end of an arrow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Place {
    /// Where new threads come from, and those of another instance.
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

/// The transfers of one handler between two places.
#[derive(Clone, Debug)]
pub(crate) struct Arrow {
    pub style: Style,
    /// Under which conditions, each a transfer's; none if they are not asked for.
    pub conditions: BTreeSet<String>,
}

/// What is drawn.
#[derive(Clone, Debug, Default)]
pub(crate) struct Transfers {
    /// By ends and handler.
    pub arrows: BTreeMap<(Place, Place, Event), Arrow>,
    pub dispatched: BTreeSet<u32>,
    /// What each handler calls its parameter.
    pub parameters: BTreeMap<Event, String>,
}

/// `report`: what an engine knows of the program. `conditions`: the texts that they are read from.
pub(crate) fn collect(
    program: &Program,
    report: Option<&EngineReport>,
    conditions: Option<&SourceMap>,
) -> Transfers {
    let mut transfers = Transfers::default();
    for handler in &program.handlers {
        // No engine splits the policy: no thread ever goes over.
        if matches!(handler.event, Event::Leaves | Event::Arrives) && !program.may_be_split {
            continue;
        }
        for part in &handler.parts {
            let mut walk = Walk {
                event: handler.event,
                program,
                report,
                sources: conditions,
                conditions: Vec::new(),
                names: Vec::new(),
                transfers: &mut transfers,
            };
            if let Some(parameter) = part.routine.parameter {
                let whence = match handler.event {
                    Event::NewThread | Event::Arrives => Place::New,
                    event => Place::Named(event),
                };
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
    program: &'a Program,
    report: Option<&'a EngineReport>,
    sources: Option<&'a SourceMap>,
    /// What must hold for the statement at hand to be reached, as far as its nesting says.
    conditions: Vec<String>,
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
                self.arrows(source, to, style);
                self.moved(source, to);
            }
            StatementKind::Destroy { thread } => {
                self.arrows(thread, Place::Destroyed, style);
                self.moved(thread, Place::Destroyed);
            }
            StatementKind::Dispatch { thread, .. } => {
                if let Place::Container(container) = self.place(thread) {
                    self.transfers.dispatched.insert(container);
                }
            }
            StatementKind::If { condition, then, otherwise } => {
                let before = self.names.clone();
                self.under(*condition, true);
                self.block(then, conditional);
                self.conditions.pop();
                // A thread that either branch may have moved is still drawn from where it was
                // before.
                self.names = before;
                self.under(*condition, false);
                self.block(otherwise, conditional);
                self.conditions.pop();
            }
            StatementKind::Loop(each) => {
                // The body of a `do` runs once in any case.
                let inside = Style {
                    looped: true,
                    conditional: style.conditional || each.test == Test::First,
                };
                self.under(each.condition, true);
                self.block(&each.prelude, Style { looped: true, ..style });
                self.block(&each.body, inside);
                self.block(&each.step, inside);
                self.conditions.pop();
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

    /// Adds a condition that holds, or fails, for what follows.
    fn under(&mut self, condition: ExprId, holds: bool) {
        let text =
            self.sources.map_or("", |sources| sources.slice(self.program.exprs[condition].span));
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        self.conditions.push(if holds { text } else { format!("!({text})") });
    }

    /// An arrow from each place where the thread may be.
    fn arrows(&mut self, thread: &ThreadExpr, to: Place, style: Style) {
        let place = self.place(thread);
        let known = match (place, thread.check, self.report) {
            (Place::Named(_), Some(check), Some(report)) => report.origins.get(&check),
            _ => None,
        };
        let Some(origins) = known.filter(|origins| !origins.is_empty()) else {
            return self.arrow(place, to, style);
        };
        let style = Style { conditional: style.conditional || origins.len() > 1, ..style };
        for origin in origins {
            let from = match origin {
                Origin::New => Place::New,
                Origin::Container(container) => Place::Container(index(*container)),
            };
            self.arrow(from, to, style);
        }
    }

    fn arrow(&mut self, from: Place, to: Place, style: Style) {
        let arrow = Arrow { style, conditions: BTreeSet::new() };
        let known = self.transfers.arrows.entry((from, to, self.event)).or_insert(arrow);
        known.style.looped |= style.looped;
        known.style.conditional &= style.conditional;
        if self.sources.is_some() && !self.conditions.is_empty() {
            known.conditions.insert(self.conditions.join(" && "));
        }
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
