//! Which statements move threads: from where, where to, and in which event's handler.

use std::collections::HashMap;

use crate::engine::event::Event;
use crate::ir::*;

#[derive(Default)]
pub(super) struct Moves {
    pub all: Vec<Move>,
    /// A `foreach` walks them.
    pub visited: Vec<ContainerId>,
    /// Some thread is dispatched without a slice.
    pub unbounded: bool,
    /// Some CPU is made to choose again before that.
    pub preempts: bool,
}

pub(super) struct Move {
    pub event: Event,
    pub from: From,
    /// None: the thread is destroyed.
    pub to: Option<ContainerId>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum From {
    /// It is the container's first thread.
    First(ContainerId),
    /// A `foreach` over the container names it.
    Walk(ContainerId),
    /// The event is about it.
    Parameter,
}

impl Moves {
    pub fn of(program: &Program) -> Moves {
        let mut moves = Moves::default();
        for handler in &program.handlers {
            let mut found =
                Found { event: handler.event, moves: &mut moves, names: HashMap::new() };
            visit::handler(program, handler, &mut found);
        }
        moves
    }

    pub fn taken(&self, container: ContainerId) -> bool {
        self.visited.contains(&container) || self.takes_first(container)
    }

    pub fn takes_first(&self, container: ContainerId) -> bool {
        self.all.iter().any(|it| it.from == From::First(container))
    }

    /// Anything but `schedule` may change the order.
    pub fn taken_elsewhere(&self, container: ContainerId) -> bool {
        let first = From::First(container);
        self.visited.contains(&container)
            || self.all.iter().any(|it| {
                it.moves_one_that_stays_ready() || it.from == first && it.event != Event::Schedule
            })
    }
}

impl Move {
    /// These events leave their thread as ready as it was; others are its own doing, or its end.
    pub fn moves_one_that_stays_ready(&self) -> bool {
        !matches!(self.from, From::First(_))
            && matches!(self.event, Event::Alarm | Event::SetNextThread)
    }
}

struct Found<'a> {
    event: Event,
    moves: &'a mut Moves,
    names: HashMap<NameId, ContainerId>,
}

impl Found<'_> {
    fn add(&mut self, thread: &ThreadExpr, to: Option<ContainerId>) {
        let from = match thread.kind {
            ThreadKind::First(of) => From::First(of.container),
            ThreadKind::Name(name) => {
                self.names.get(&name).map_or(From::Parameter, |of| From::Walk(*of))
            }
        };
        self.moves.all.push(Move { event: self.event, from, to });
    }
}

impl visit::Visitor for Found<'_> {
    fn statement(&mut self, _program: &Program, statement: &Statement) {
        match &statement.kind {
            StatementKind::Transfer { source, destination, .. } => {
                self.add(source, Some(destination.container));
            }
            StatementKind::Destroy { thread } => self.add(thread, None),
            StatementKind::Foreach { name, container, .. } => {
                self.names.insert(*name, container.container);
                self.moves.visited.push(container.container);
            }
            StatementKind::Dispatch { slice: None, .. } => self.moves.unbounded = true,
            StatementKind::Preempt { .. } => self.moves.preempts = true,
            _ => {}
        }
    }
}
