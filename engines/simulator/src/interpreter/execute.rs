//! Executes statements and handlers: what they change, and in which order.
//!
//! Invariant: a statement whose check fails has changed nothing; the statements before it have.

use attune_language::engine::event::Event;
use attune_language::ir::{LOOP_BUDGET, Type};
use attune_replica::Operation;

use crate::scheduler::{Dispatch, ThreadId};

use super::code::{
    Code, Container, Foreach, Handler, If, Loop, Routine, Share, SharePlace, ShareValue, Statement,
    Transfer,
};
use super::containers::NONE;
use super::layout::raw;
use super::snapshot::typed;
use super::state::{Life, State};
use super::trap::{Tripped, What};
use super::update::{Update, Updated, operation};

/// Where execution goes after a statement.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flow {
    Next,
    Break,
    Continue,
    /// Out of the part.
    Leave,
}

impl State {
    /// Runs all parts of a handler, then its exit checks. `thread` is its parameter.
    pub fn handle(&mut self, code: &Code, handler: &Handler, thread: u32) -> Result<(), Tripped> {
        self.filtered = handler.event == Event::Schedule && self.cpus > 1 && self.pinned > 0;
        self.budget = LOOP_BUDGET;
        for part in &handler.parts {
            self.routine(code, part, thread)?;
        }
        if let Some(check) = handler.stored
            && self.life(thread) == Life::Living
            && self.containers.home(thread) == NONE
        {
            return self.trip(Some(check), What::NotStored { thread });
        }
        for &(container, check) in &handler.emptied {
            if self.containers.size(container) > 0 {
                return self.trip(Some(check), What::NotEmpty { container });
            }
        }
        Ok(())
    }

    /// Runs a prologue, which has a loop budget of its own.
    pub fn prologue(&mut self, code: &Code, routine: &Routine, thread: u32) -> Result<(), Tripped> {
        self.filtered = false;
        self.budget = LOOP_BUDGET;
        self.routine(code, routine, thread)
    }

    fn routine(&mut self, code: &Code, routine: &Routine, thread: u32) -> Result<(), Tripped> {
        self.locals[routine.locals.start as usize..routine.locals.end as usize].fill(0);
        if let Some(name) = routine.parameter {
            self.names[name as usize] = thread;
        }
        let result = self.block(code, &routine.body);
        self.containers.close(0);
        result.map(|_| ())
    }

    fn block(&mut self, code: &Code, block: &[Statement]) -> Result<Flow, Tripped> {
        for statement in block {
            match self.statement(code, statement)? {
                Flow::Next => {}
                flow => return Ok(flow),
            }
        }
        Ok(Flow::Next)
    }

    fn statement(&mut self, code: &Code, statement: &Statement) -> Result<Flow, Tripped> {
        match statement {
            Statement::SetLocal(slot, value) => self.locals[*slot as usize] = self.eval(value)?,
            Statement::SetGlobal(slot, value) => self.globals[*slot as usize] = self.eval(value)?,
            Statement::SetGlobalHere(base, value) => {
                let value = self.eval(value)?;
                self.globals[(base + self.cpu) as usize] = value;
            }
            Statement::SetAttribute(thread, attribute, value) => {
                let value = self.eval(value)?;
                let thread = self.require(thread)?;
                self.assign_attribute(thread, *attribute, value);
            }
            Statement::Share(share) => self.share(share)?,
            Statement::If(each) => return self.branch(code, each),
            Statement::Transfer(transfer) => self.transfer(transfer)?,
            Statement::Dispatch(thread, slice) => {
                let thread = ThreadId(self.require(thread)?);
                let slice = match slice {
                    // A negative time is none.
                    Some(slice) => Some(self.eval(slice)?.max(0)),
                    None => None,
                };
                self.decision.dispatch = Some(Dispatch { thread, slice });
                return Ok(Flow::Leave);
            }
            Statement::Foreach(each) => return self.foreach(code, each),
            Statement::Loop(each) => return self.iterate(code, each),
            Statement::SetLocalAt(indexed, value) => {
                let value = self.eval(value)?;
                let slot = self.indexed(indexed)?;
                self.locals[slot as usize] = value;
            }
            Statement::SetGlobalAt(indexed, value) => {
                let value = self.eval(value)?;
                let slot = self.indexed(indexed)?;
                self.globals[slot as usize] = value;
            }
            Statement::Clear(slots) => {
                self.locals[slots.start as usize..slots.end as usize].fill(0)
            }
            Statement::Random(slot, bound) => {
                let bound = self.eval(bound)?;
                self.locals[*slot as usize] = self.random.below(bound);
            }
            Statement::Destroy(thread) => {
                let thread = self.require(thread)?;
                self.take(thread);
                self.lives[thread as usize] = Life::Destroyed;
            }
            Statement::Alarm(thread, at) => {
                let thread = ThreadId(self.require(thread)?);
                let at = self.eval(at)?;
                self.decision.alarms.push((thread, at));
            }
            Statement::Preempt(cpu, at) => {
                let cpu = self.eval(cpu)?;
                let at = at.as_ref().map_or(Ok(0), |at| self.eval(at))?;
                self.decision.preempt.push((cpu, at));
            }
            Statement::Break => return Ok(Flow::Break),
            Statement::Continue => return Ok(Flow::Continue),
            Statement::Return => return Ok(Flow::Leave),
            Statement::ReturnNumber(value) => {
                self.decision.value = Some(self.eval(value)?);
                return Ok(Flow::Leave);
            }
            Statement::ReturnThread(thread) => {
                let thread = self.name(thread)?;
                self.decision.value_thread = (thread != NONE).then_some(ThreadId(thread));
                return Ok(Flow::Leave);
            }
            Statement::Watched(inner) => {
                let flow = self.statement(code, inner)?;
                self.check_invariants(code)?;
                return Ok(flow);
            }
            Statement::Noted(number, inner) => {
                self.noted_statements[*number as usize] += 1;
                return self.statement(code, inner);
            }
        }
        Ok(Flow::Next)
    }

    fn branch(&mut self, code: &Code, each: &If) -> Result<Flow, Tripped> {
        let taken = if self.eval(&each.condition)? != 0 { &each.then } else { &each.otherwise };
        self.block(code, taken)
    }

    /// Assigns something that a cluster shares.
    fn share(&mut self, share: &Share) -> Result<(), Tripped> {
        let ty = if share.float { Type::Float } else { Type::Int };
        let (new, operation) = match &share.value {
            ShareValue::Any(value) => {
                let new = self.eval(value)?;
                (new, Operation::Set(typed(ty, new)))
            }
            ShareValue::Operation { old, temporary, operator, operand, mixed } => {
                let old = self.eval(old)?;
                if let Some(temporary) = temporary {
                    self.locals[*temporary as usize] = old;
                }
                let operand = self.eval(operand)?;
                let mut new = self.binary(*operator, old, operand);
                let ty_of_operand = if *mixed { Type::Float } else { ty };
                let operation = operation(*operator, typed(ty_of_operand, operand));
                if *mixed {
                    new = f64::from_bits(new as u64) as i64;
                }
                (new, operation.unwrap_or(Operation::Set(typed(ty, new))))
            }
        };
        let place = match &share.place {
            SharePlace::Global { slot, id } => {
                self.globals[*slot as usize] = new;
                Updated::Global(*id)
            }
            SharePlace::Attribute { thread, id } => {
                let thread = self.require(thread)?;
                self.assign_attribute(thread, raw(*id) as u32, new);
                Updated::Attribute(ThreadId(thread), *id)
            }
        };
        self.updates.push(Update { place, operation });
        Ok(())
    }

    fn transfer(&mut self, transfer: &Transfer) -> Result<(), Tripped> {
        let Ok(thread) = self.require(&transfer.source) else {
            self.tell_destination(&transfer.destination);
            return Err(Tripped);
        };
        let container = self.container(&transfer.destination)?;
        if transfer.destination_check.is_some() {
            let inside = self.containers.first(container);
            if inside != NONE && inside != thread {
                let source = self.containers.home(thread);
                let what =
                    What::Full { container, thread, source: (source != NONE).then_some(source) };
                return self.trip(transfer.destination_check, what);
            }
        }
        self.put(thread, container);
        Ok(())
    }

    /// Adds to what a failed transfer found where it would have gone, if that can be said.
    #[cold]
    fn tell_destination(&mut self, destination: &Container) {
        let found = self.found.take();
        let divisions_by_zero = self.divisions_by_zero;
        let place = self.container(destination).ok();
        self.divisions_by_zero = divisions_by_zero;
        self.found = found.map(|mut found| {
            if let What::Empty { destination, .. } = &mut found.what {
                *destination = place;
            }
            found
        });
    }

    fn iterate(&mut self, code: &Code, each: &Loop) -> Result<Flow, Tripped> {
        loop {
            if self.budget == 0 {
                return self.trip(Some(each.bound), What::Endless);
            }
            self.budget -= 1;
            if each.test_first && !self.holds(code, each)? {
                return Ok(Flow::Next);
            }
            match self.block(code, &each.body)? {
                Flow::Next | Flow::Continue => {}
                Flow::Break => return Ok(Flow::Next),
                Flow::Leave => return Ok(Flow::Leave),
            }
            self.block(code, &each.step)?;
            if !each.test_first && !self.holds(code, each)? {
                return Ok(Flow::Next);
            }
        }
    }

    fn holds(&mut self, code: &Code, each: &Loop) -> Result<bool, Tripped> {
        self.block(code, &each.prelude)?;
        Ok(self.eval(&each.condition)? != 0)
    }

    fn foreach(&mut self, code: &Code, each: &Foreach) -> Result<Flow, Tripped> {
        let container = self.container(&each.container)?;
        let cursor = self.containers.open(container);
        loop {
            let thread = self.containers.advance(cursor);
            if thread == NONE {
                break;
            }
            if self.filters(container) && !self.allowed(thread) {
                continue;
            }
            self.names[each.name as usize] = thread;
            match self.block(code, &each.body)? {
                Flow::Next | Flow::Continue => {}
                Flow::Break => break,
                Flow::Leave => {
                    self.containers.close(cursor);
                    return Ok(Flow::Leave);
                }
            }
        }
        self.containers.close(cursor);
        Ok(Flow::Next)
    }

    /// Runs the invariants of the containers that the last statement changed, in the order of their
    /// declaration.
    fn check_invariants(&mut self, code: &Code) -> Result<(), Tripped> {
        if self.changed.is_empty() {
            return Ok(());
        }
        let changed = std::mem::take(&mut self.changed);
        // An invariant speaks of all threads, and answers nothing.
        let filtered = std::mem::replace(&mut self.filtered, false);
        let value = self.decision.value;
        for invariant in &code.invariants {
            if let Some(&container) =
                changed.iter().find(|slot| invariant.containers.contains(slot))
            {
                self.decision.value = None;
                self.locals[invariant.routine.locals.start as usize
                    ..invariant.routine.locals.end as usize]
                    .fill(0);
                self.block(code, &invariant.routine.body)?;
                if self.decision.value == Some(0) {
                    return self.trip(Some(invariant.check), What::Invariant { container });
                }
            }
        }
        self.decision.value = value;
        self.filtered = filtered;
        self.changed = changed;
        self.changed.clear();
        Ok(())
    }
}
