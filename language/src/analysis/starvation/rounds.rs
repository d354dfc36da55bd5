//! Rounds: a thread that has waited for a whole round goes to a queue that is served first.
//!
//! ```text
//! switch_out   if (now >= ENDS) {
//!                  foreach t in ORDERED            // one such loop or several
//!                      if (t.STAMP < ROUND)
//!                          t => LATE;
//!                  ROUND++;
//!                  ENDS = now + LENGTH;
//!              }
//! schedule     foreach t in INBOX { ..; t.STAMP = ROUND; ..; t => ORDERED; }
//!              if (|LATE| > 0) { LATE => HOLDER; .. } else ..
//!              dispatch HOLDER for ..;
//! ```
//!
//! Whatever the order of ORDERED is, a thread there is marked with the round in which it came. The
//! end of that round leaves it, and the end of the next one moves it to LATE. A busy CPU ends each
//! stay within a slice, so each of the two rounds ends up to a slice late. In LATE a thread waits
//! for one slice of each thread before it, since `schedule` takes no other while there is one.
//!
//! Invariant: what is claimed holds for any values of imports, attributes and tunables. All that
//! could break the pattern is looked for in the whole program: other transfers out of INBOX,
//! ORDERED and LATE, or into ORDERED and LATE, and other assignments to ENDS, ROUND and STAMP.

use super::moves::{From, Move, Moves};
use super::{first_of, is_filled};
use crate::engine::event::Event;
use crate::ir::*;

/// What a thread waits for, where ready threads sit in these containers alone between handlers.
pub(super) fn bound(program: &Program, moves: &Moves, ready: &[ContainerId]) -> Option<String> {
    let round = Round::of(program)?;
    let service = Service::of(program, &round)?;
    let sound = !moves.unbounded
        && ready.iter().all(|id| service.holds(&round, *id))
        && moves.all.iter().all(|it| service.allows(&round, it))
        && Assignments::of(program, &round) == service.assignments();
    sound.then(|| {
        let length = match program.exprs[round.length].kind {
            ExprKind::Read(Place::Global(length, _)) => {
                format!("rounds of `{}`", program.globals[length].name)
            }
            _ => "rounds".to_owned(),
        };
        format!(
            "for two {length}, each of which ends up to a slice late, and then for one slice of \
             each thread before it in `{}`, first in, first out",
            program.containers[round.late].name
        )
    })
}

struct Round {
    ends: GlobalId,
    number: GlobalId,
    length: ExprId,
    stamp: AttributeId,
    ordered: Vec<ContainerId>,
    late: ContainerId,
}

impl Round {
    /// That of `switch_out`, if it is looked at whenever a thread's stay ends.
    fn of(program: &Program) -> Option<Round> {
        let parts = &program.handler(Event::SwitchOut)?.parts;
        parts.iter().find_map(|part| {
            let mut reached =
                part.routine.body.statements.iter().take_while(|it| !leaves(program, it));
            reached.find_map(|it| Round::read(program, it))
        })
    }

    fn read(program: &Program, statement: &Statement) -> Option<Round> {
        let StatementKind::If { condition, then, otherwise } = &statement.kind else { return None };
        let ExprKind::Binary(BinaryOp::GreaterEqual, left, right) = program.exprs[*condition].kind
        else {
            return None;
        };
        let ends = variable(program, right)?;
        let [moves @ .., one, other] = then.statements.as_slice() else { return None };
        let (number, length) =
            advances(program, one, other, ends).or_else(|| advances(program, other, one, ends))?;
        let each = moves.iter().map(|it| move_of_late(program, it, number));
        let each: Vec<(ContainerId, AttributeId, ContainerId)> = each.collect::<Option<_>>()?;
        let &(_, stamp, late) = each.first()?;
        let alike = each.iter().all(|(_, own, to)| (*own, *to) == (stamp, late));
        let queue = &program.containers[late];
        let first_out = queue.kind == ContainerKind::Queue && is_one(program, late);
        let begun = matches!(program.globals[ends].initial, Value::Int(at) if at <= 0);
        let ordered = each.into_iter().map(|(from, ..)| from).collect();
        let found = Round { ends, number, length, stamp, ordered, late };
        let is_now = matches!(program.exprs[left].kind, ExprKind::Now);
        (is_now && otherwise.statements.is_empty() && alike && first_out && begun).then_some(found)
    }
}

/// `ROUND++` and `ENDS = now + LENGTH`: its number, and its length, which no handler changes.
fn advances(
    program: &Program,
    counts: &Statement,
    sets: &Statement,
    ends: GlobalId,
) -> Option<(GlobalId, ExprId)> {
    let (number, next) = assigned(counts)?;
    let (set, end) = assigned(sets)?;
    let exprs = &program.exprs;
    let ExprKind::Binary(BinaryOp::Add, old, step) = exprs[next].kind else { return None };
    let ExprKind::Binary(BinaryOp::Add, from, length) = exprs[end].kind else { return None };
    let counted = variable(program, old) == Some(number)
        && matches!(exprs[step].kind, ExprKind::Constant(Value::Int(1)));
    let timed = set == ends && matches!(exprs[from].kind, ExprKind::Now);
    let fixed = match exprs[length].kind {
        ExprKind::Constant(_) => true,
        ExprKind::Read(Place::Global(id, None)) => program.globals[id].storage == Storage::Tunable,
        _ => false,
    };
    (counted && timed && fixed).then_some((number, length))
}

/// `foreach t in ORDERED if (t.STAMP < ROUND) { t => LATE; .. }`
fn move_of_late(
    program: &Program,
    statement: &Statement,
    number: GlobalId,
) -> Option<(ContainerId, AttributeId, ContainerId)> {
    let StatementKind::Foreach { name, container, body } = &statement.kind else { return None };
    let [only] = body.statements.as_slice() else { return None };
    let StatementKind::If { condition, then, otherwise } = &only.kind else { return None };
    let ExprKind::Binary(BinaryOp::Less, left, right) = program.exprs[*condition].kind else {
        return None;
    };
    let ExprKind::Read(Place::Attribute(of, stamp)) = program.exprs[left].kind else { return None };
    let [first, rest @ ..] = then.statements.as_slice() else { return None };
    let StatementKind::Transfer { source, destination, .. } = &first.kind else { return None };
    let marks = |it: &Statement| {
        matches!(it.kind, StatementKind::Assign { place: Place::Attribute(..), .. })
    };
    let moves = is_named(&of, *name)
        && variable(program, right) == Some(number)
        && is_named(source, *name)
        && otherwise.statements.is_empty()
        && is_one(program, container.container)
        && rest.iter().all(marks);
    moves.then_some((container.container, stamp, destination.container))
}

/// How `schedule` serves threads.
struct Service {
    holder: ContainerId,
    /// All that they hold is marked and ordered before a thread is chosen.
    inboxes: Vec<ContainerId>,
}

impl Service {
    fn of(program: &Program, round: &Round) -> Option<Service> {
        let parts = &program.handler(Event::Schedule)?.parts;
        let own = parts.iter().find(|part| part.role == Role::Own)?;
        let (mut inboxes, mut holder, mut dispatched) = (Vec::new(), None, false);
        for statement in &own.routine.body.statements {
            match &statement.kind {
                _ if is_quiet(program, statement) => {}
                StatementKind::Foreach { name, container, body }
                    if holder.is_none()
                        && is_one(program, container.container)
                        && orders(program, round, *name, body) =>
                {
                    inboxes.push(container.container);
                }
                StatementKind::If { condition, then, .. }
                    if holder.is_none() && is_filled(program, *condition, round.late) =>
                {
                    (holder, dispatched) = serves(program, round, then)?;
                }
                StatementKind::Dispatch { thread, .. } if first_of(thread) == holder => {
                    dispatched = true;
                }
                _ => return None,
            }
        }
        let holder = holder.filter(|_| dispatched)?;
        let mut others = parts.iter().filter(|part| part.role != Role::Own);
        let harmless = |part: &Part| {
            let found = Effects::of_block(program, &part.routine.body);
            let only = |it: &ContainerId| part.role == Role::After && *it == holder;
            !found.moves && found.dispatched.iter().all(only)
        };
        others.all(harmless).then_some(Service { holder, inboxes })
    }

    fn holds(&self, round: &Round, id: ContainerId) -> bool {
        id == self.holder
            || id == round.late
            || round.ordered.contains(&id)
            || self.inboxes.contains(&id)
    }

    /// Whether a thread that waits still has its place after the move, or is served by it.
    fn allows(&self, round: &Round, it: &Move) -> bool {
        let schedule = it.event == Event::Schedule;
        let served = schedule && it.to == Some(self.holder);
        let ordered = |id: ContainerId| round.ordered.contains(&id);
        let put = it.to.is_none_or(|to| to != round.late && !ordered(to));
        match it.from {
            From::First(from) if from == round.late || ordered(from) => served,
            From::Walk(from) if ordered(from) => it.to == Some(round.late),
            From::Walk(from) if self.inboxes.contains(&from) => {
                schedule && it.to.is_some_and(ordered)
            }
            From::Walk(from) if from == round.late => false,
            From::First(from) if self.inboxes.contains(&from) => false,
            From::First(from) if from == self.holder => put && !schedule,
            From::First(_) | From::Walk(_) => put,
            From::Parameter => put && !it.moves_one_that_stays_ready(),
        }
    }

    /// Those of the pattern, and no others.
    fn assignments(&self) -> Assignments {
        Assignments { ends: 1, number: 1, stamp: self.inboxes.len() }
    }
}

/// `{ ..; t.STAMP = ROUND; ..; t => ORDERED; }`, also where each way ends in a transfer of its own.
fn orders(program: &Program, round: &Round, name: NameId, body: &Block) -> bool {
    let marks = |it: &Statement| match it.kind {
        StatementKind::Assign { place: Place::Attribute(of, stamp), value } => {
            is_named(&of, name)
                && stamp == round.stamp
                && variable(program, value) == Some(round.number)
        }
        _ => false,
    };
    body.statements.iter().any(marks) && ends_ordered(program, round, name, body)
}

fn ends_ordered(program: &Program, round: &Round, name: NameId, block: &Block) -> bool {
    let Some((last, before)) = block.statements.split_last() else { return false };
    let goes_on = |it: &Statement| is_quiet(program, it) && !skips(program, it);
    let ordered = match &last.kind {
        StatementKind::Transfer { source, destination, .. } => {
            is_named(source, name) && round.ordered.contains(&destination.container)
        }
        StatementKind::If { then, otherwise, .. } => {
            [then, otherwise].into_iter().all(|it| ends_ordered(program, round, name, it))
        }
        _ => false,
    };
    ordered && before.iter().all(goes_on)
}

/// `LATE => HOLDER`, and whether it is dispatched here already.
fn serves(program: &Program, round: &Round, then: &Block) -> Option<(Option<ContainerId>, bool)> {
    let (mut holder, mut dispatched) = (None, false);
    for statement in &then.statements {
        match &statement.kind {
            _ if is_quiet(program, statement) => {}
            StatementKind::Transfer { source, destination, .. }
                if holder.is_none() && first_of(source) == Some(round.late) =>
            {
                holder = Some(destination.container);
            }
            StatementKind::Dispatch { thread, .. }
                if holder.is_some() && first_of(thread) == holder =>
            {
                dispatched = true;
            }
            _ => return None,
        }
    }
    holder.map(|holder| (Some(holder), dispatched))
}

/// How often handlers, and what sets initial values, assign to a round's variables.
#[derive(Default, PartialEq, Eq)]
struct Assignments {
    ends: usize,
    number: usize,
    stamp: usize,
}

impl Assignments {
    fn of(program: &Program, round: &Round) -> Assignments {
        let mut counted = Counted { round, found: Assignments::default() };
        visit::block(program, &program.prologue.body, &mut counted);
        visit::block(program, &program.thread_prologue.body, &mut counted);
        for handler in &program.handlers {
            visit::handler(program, handler, &mut counted);
        }
        counted.found
    }
}

struct Counted<'a> {
    round: &'a Round,
    found: Assignments,
}

impl visit::Visitor for Counted<'_> {
    fn place_written(&mut self, _program: &Program, place: &Place) {
        match place {
            Place::Global(id, _) => {
                self.found.ends += usize::from(*id == self.round.ends);
                self.found.number += usize::from(*id == self.round.number);
            }
            Place::Attribute(_, id) => self.found.stamp += usize::from(*id == self.round.stamp),
            Place::Local(..) => {}
        }
    }
}

/// What a statement, with those in it, does beside computing.
#[derive(Default)]
struct Effects {
    moves: bool,
    dispatched: Vec<ContainerId>,
    returns: bool,
    skips: bool,
}

impl Effects {
    fn of(program: &Program, statement: &Statement) -> Effects {
        let mut found = Effects::default();
        visit::statement(program, statement, &mut found);
        found
    }

    fn of_block(program: &Program, block: &Block) -> Effects {
        let mut found = Effects::default();
        visit::block(program, block, &mut found);
        found
    }
}

impl visit::Visitor for Effects {
    fn statement(&mut self, _program: &Program, statement: &Statement) {
        match &statement.kind {
            StatementKind::Transfer { .. } | StatementKind::Destroy { .. } => self.moves = true,
            StatementKind::Dispatch { thread, .. } => match first_of(thread) {
                Some(container) => self.dispatched.push(container),
                None => self.moves = true,
            },
            StatementKind::Return(_) => self.returns = true,
            StatementKind::Break | StatementKind::Continue => self.skips = true,
            _ => {}
        }
    }
}

/// It moves and dispatches no thread, and what follows it is reached.
fn is_quiet(program: &Program, statement: &Statement) -> bool {
    let found = Effects::of(program, statement);
    !found.moves && found.dispatched.is_empty() && !found.returns
}

fn leaves(program: &Program, statement: &Statement) -> bool {
    Effects::of(program, statement).returns
}

fn skips(program: &Program, statement: &Statement) -> bool {
    Effects::of(program, statement).skips
}

/// All CPUs have the same: what one does with all of its threads concerns each that waits there.
fn is_one(program: &Program, id: ContainerId) -> bool {
    let container = &program.containers[id];
    container.scope == Scope::Scheduler && container.extent == Extent::One
}

fn is_named(thread: &ThreadExpr, name: NameId) -> bool {
    matches!(thread.kind, ThreadKind::Name(its) if its == name)
}

/// The one variable of the scheduler that is read there.
fn variable(program: &Program, value: ExprId) -> Option<GlobalId> {
    match program.exprs[value].kind {
        ExprKind::Read(Place::Global(id, None)) => is_variable(program, id).then_some(id),
        _ => None,
    }
}

fn assigned(statement: &Statement) -> Option<(GlobalId, ExprId)> {
    match statement.kind {
        StatementKind::Assign { place: Place::Global(id, None), value } => Some((id, value)),
        _ => None,
    }
}

fn is_variable(program: &Program, id: GlobalId) -> bool {
    let global = &program.globals[id];
    global.storage == Storage::Data && global.extent == Extent::One
}
