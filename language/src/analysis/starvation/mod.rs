//! Whether a policy can starve a ready thread: leave it waiting for ever though others are served.
//!
//! # What it establishes
//!
//! - [`Waiting::Bounded`]: one of two patterns. First in, first out: ready threads sit in one queue
//!   between handlers. `schedule` takes the first one whenever there is one, and dispatches it with
//!   a slice. Nothing else takes a thread out of the queue but what happens to that very thread. So
//!   a thread waits for a slice of each thread that was there before it, and of the one that runs.
//!   Or [`rounds`]: whatever the order is, a thread that has waited for a whole round goes to a
//!   queue that is served first.
//! - [`Waiting::Starves`]: there are threads, and values of imports, for which it does. Either no
//!   statement takes ready threads out of a container, or it takes only the first one, by an order
//!   in which others can come before a thread again and again; or a thread has a CPU for as long as
//!   it wants, and no `preempt` ends that.
//! - [`Waiting::NotProved`]: neither. Virtual time alone is among these: a thread that is pinned to
//!   a CPU that falls behind, or is charged nothing for a short stay, may wait for ever.
//!
//! Verbatim text may do anything: nothing is claimed of a policy with it.

mod moves;
mod rounds;

use moves::Moves;

use super::occupancy::Occupancy;
use crate::engine::event::Event;
use crate::engine::report::Waiting;
use crate::ir::*;

pub fn judge(program: &Program, occupancy: &Occupancy) -> Waiting {
    let Some(ready) = &occupancy.ready else {
        return not_proved("it is not known where ready threads sit");
    };
    if !program.verbatim.is_empty() {
        return not_proved("verbatim text may do anything");
    }
    let Some(schedule) = program.handler(Event::Schedule) else {
        return Waiting::Starves("it has no `schedule`: no thread ever runs".into());
    };
    let moves = Moves::of(program);
    let name = |container: ContainerId| &program.containers[container].name;
    for &container in ready {
        if !occupancy.left[index(container)] && !moves.taken(container) {
            return Waiting::Starves(format!(
                "no statement takes a thread out of `{}`",
                name(container)
            ));
        }
    }
    if moves.unbounded && !moves.preempts {
        return Waiting::Starves(
            "`dispatch` names no time: a thread that does not block keeps its CPU".into(),
        );
    }
    for &container in ready {
        if let Some(why) = overtaken(program, &moves, container) {
            return Waiting::Starves(why);
        }
    }
    if let [queue] = occupancy.becomes_ready.as_slice()
        && let Some(holder) = server(program, schedule, *queue)
        && !moves.taken_elsewhere(*queue)
        // What is put there is dispatched at once: it runs, and is not ready.
        && moves.all.iter().filter(|it| it.to == Some(holder)).count() == 1
        && ready.iter().all(|id| [*queue, holder].contains(id))
    {
        return Waiting::Bounded(format!(
            "for one slice of each thread before it in `{}`, first in, first out",
            name(*queue)
        ));
    }
    if let Some(why) = rounds::bound(program, &moves, ready) {
        return Waiting::Bounded(why);
    }
    match ready.iter().find_map(|id| program.containers[*id].sort.map(|sort| (*id, sort))) {
        Some((container, sort)) => not_proved(&format!(
            "`{}` is sorted on `{}`, and nothing shows how long others come first",
            name(container),
            program.attributes[sort.by].name
        )),
        None => {
            let names: Vec<String> = ready.iter().map(|id| format!("`{}`", name(*id))).collect();
            not_proved(&format!(
                "ready threads sit in {}, and `schedule` does not just take the first one",
                names.join(", ")
            ))
        }
    }
}

fn not_proved(why: &str) -> Waiting {
    Waiting::NotProved(why.to_string())
}

fn index(container: ContainerId) -> usize {
    container.into_raw().into_u32() as usize
}

/// Why threads that come later may be served before one that sits there, again and again. None
/// where a `foreach` takes threads out, whatever its order.
fn overtaken(program: &Program, moves: &Moves, id: ContainerId) -> Option<String> {
    let container = &program.containers[id];
    if moves.visited.contains(&id) || !moves.takes_first(id) {
        return None;
    }
    let name = &container.name;
    match (container.kind, container.sort) {
        (ContainerKind::Stack | ContainerKind::PStack, None) => {
            Some(format!("`{name}` is a stack: threads that come later run first, without a bound"))
        }
        (_, Some(sort)) if program.attributes[sort.by].import => {
            let key = &program.attributes[sort.by];
            let bound = if key.terms.range.is_none() { " without a bound" } else { "" };
            Some(format!(
                "`{name}` is sorted on `{}`, which {}{bound}: others can always come first",
                key.name,
                suppliers(key.terms.supplier)
            ))
        }
        _ => None,
    }
}

fn suppliers(supplier: Supplier) -> &'static str {
    match supplier {
        Supplier::Owner => "programs supply",
        Supplier::Loader => "programs of the loader supply",
        Supplier::Table => "a table by process supplies",
        Supplier::Kernel => "the kernel supplies",
    }
}

/// R, where `schedule` is `if (|Q| > 0) { Q => R; dispatch R for ..; }`, beside statements that
/// touch no thread.
fn server(program: &Program, schedule: &Handler, queue: ContainerId) -> Option<ContainerId> {
    if program.containers[queue].kind != ContainerKind::Queue
        || program.containers[queue].extent != Extent::One
    {
        return None;
    }
    let [part] = schedule.parts.as_slice() else { return None };
    let mut served = None;
    for statement in &part.routine.body.statements {
        match &statement.kind {
            StatementKind::Assign { place: Place::Global(..) | Place::Local(..), .. } => {}
            StatementKind::If { condition, then, otherwise }
                if served.is_none()
                    && is_filled(program, *condition, queue)
                    && otherwise.statements.is_empty() =>
            {
                served = Some(serves(then, queue)?);
            }
            _ => return None,
        }
    }
    served
}

/// `|Q| > 0`.
fn is_filled(program: &Program, condition: ExprId, queue: ContainerId) -> bool {
    let ExprKind::Binary(op, left, right) = &program.exprs[condition].kind else { return false };
    let size = matches!(
        &program.exprs[*left].kind,
        ExprKind::Size(of) if of.container == queue && of.index.is_none()
    );
    let zero = matches!(program.exprs[*right].kind, ExprKind::Constant(Value::Int(0)));
    size && zero && matches!(op, BinaryOp::Greater | BinaryOp::NotEqual)
}

/// `Q => R; dispatch R for ..;`
fn serves(block: &Block, queue: ContainerId) -> Option<ContainerId> {
    let mut holder = None;
    for statement in &block.statements {
        match &statement.kind {
            StatementKind::Assign { place: Place::Global(..) | Place::Local(..), .. } => {}
            StatementKind::Transfer { source, destination, .. }
                if holder.is_none() && first_of(source) == Some(queue) =>
            {
                holder = Some(destination.container);
            }
            StatementKind::Dispatch { thread, slice: Some(_) } => {
                return holder.filter(|_| first_of(thread) == holder);
            }
            _ => return None,
        }
    }
    None
}

fn first_of(thread: &ThreadExpr) -> Option<ContainerId> {
    match thread.kind {
        ThreadKind::First(of) => Some(of.container),
        ThreadKind::Name(_) => None,
    }
}
