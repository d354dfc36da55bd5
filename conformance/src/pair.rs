//! Interpreter and compiled C side by side: every call goes to both, and after every call everything that they show is
//! compared.

use attune_language::event::{Answer, Event};
use attune_language::ir::{Program, Scope, Storage, Value as IrValue};
use attune_simulator::interpreter::Failure;
use attune_simulator::policy::{Call, CpuSet, Decision, ThreadId, Value};

use crate::compiled::{Bits, CTrap, Compiled};
use crate::interpreted::{Interpreted, check_number, trapped};
use crate::world::{Ending, Subject};

pub struct Pair<'l> {
    interpreted: Interpreted,
    compiled: Compiled<'l>,
    /// Of the compiled side; its memory is kept.
    decision: Decision,
    living: Vec<ThreadId>,
}

impl<'l> Pair<'l> {
    /// `at_start`: what attaching the compiled scheduler ended in.
    pub fn new(interpreted: Interpreted, compiled: Compiled<'l>) -> Pair<'l> {
        Pair { interpreted, compiled, decision: Decision::default(), living: Vec::new() }
    }

    fn program(&self) -> &Program {
        self.interpreted.interpreter.program()
    }

    fn compare_outcomes(
        &self,
        call: &Call,
        mine: &Decision,
        outcome: &Result<(), Failure>,
        trap: &Option<CTrap>,
    ) -> Result<(), String> {
        if let Some(trap) = trap.as_ref().filter(|trap| trap.crashed) {
            return Err(format!("compiled: ended by signal {}", trap.check));
        }
        match (outcome, trap) {
            (Ok(()), None) => self.compare_decisions(call.event, mine),
            (Err(failure), Some(trap)) => compare_traps(failure, trap),
            (Ok(()), Some(trap)) => {
                Err(format!("interpreter: no check failed\ncompiled:    {}", trap.message))
            }
            (Err(failure), None) => Err(format!("interpreter: {failure:?}\ncompiled:    no check failed")),
        }
    }

    fn compare_decisions(&self, event: Event, mine: &Decision) -> Result<(), String> {
        let theirs = &self.decision;
        differ("dispatch", &mine.dispatch, &theirs.dispatch)?;
        differ("alarms", &mine.alarms, &theirs.alarms)?;
        differ("preempt", &mine.preempt, &theirs.preempt)?;
        match event.answer() {
            Answer::Int | Answer::Time => {
                differ("value", &mine.value.unwrap_or(0), &theirs.value.unwrap_or(0))
            }
            Answer::Thread => differ("thread returned", &mine.value_thread, &theirs.value_thread),
            Answer::Nothing => Ok(()),
        }
    }

    fn compare_states(&mut self) -> Result<(), String> {
        let snapshot = self.interpreted.interpreter.snapshot();
        let theirs = self.compiled.state();
        let program = self.interpreted.interpreter.program().clone();
        for (container, mine) in program.containers.values().zip(&snapshot.containers) {
            if container.scope == Scope::Scheduler {
                let found = theirs.containers.get(&container.name);
                let found = found.ok_or_else(|| format!("compiled shows no container {}", container.name))?;
                differ(&container.name, mine, found)?;
            }
        }
        for (global, mine) in program.globals.values().zip(&snapshot.globals) {
            let found = theirs.globals.get(&global.name);
            let found = match (found, global.storage) {
                (Some(found), _) => found,
                (None, Storage::Const) => continue,
                (None, _) => return Err(format!("compiled shows no variable {}", global.name)),
            };
            compare_values(&global.name, mine, found)?;
        }
        for (thread, mine) in &snapshot.threads {
            let found = self.compiled.attributes_of(*thread);
            for (attribute, value) in program.attributes.values().zip(mine) {
                let found = found.get(&attribute.name);
                let found =
                    found.ok_or_else(|| format!("compiled shows no thread variable {}", attribute.name))?;
                compare_values(&format!("{}.{}", thread, attribute.name), &[*value], &[*found])?;
            }
        }
        for &thread in &self.living {
            let (mine, found) = (self.interpreted.is_stored(thread), self.compiled.is_stored(thread));
            differ(&format!("thread {thread} sits in a container"), &mine, &found)?;
        }
        differ("divisions by zero", &snapshot.divisions_by_zero, &theirs.divisions_by_zero)
    }
}

impl Subject for Pair<'_> {
    fn handles(&self, event: Event) -> bool {
        self.interpreted.handles(event)
    }

    fn imports(&self) -> (usize, usize) {
        self.interpreted.imports()
    }

    fn create(&mut self, thread: ThreadId, affinity: &CpuSet, now: i64) -> Result<(), Ending> {
        self.living.push(thread);
        self.interpreted.create(thread, affinity, now)?;
        match self.compiled.create(thread, now) {
            None => Ok(()),
            // The interpreter runs the prologue with `newthread`: initial values that fail are no part of the comparison.
            Some(trap) => Err(Ending::Trapped { check: Some(trap.check), message: trap.message }),
        }
    }

    fn set_affinity(&mut self, thread: ThreadId, affinity: &CpuSet) {
        self.interpreted.set_affinity(thread, affinity);
    }

    fn remove(&mut self, thread: ThreadId) {
        self.living.retain(|&living| living != thread);
        self.interpreted.remove(thread);
        self.compiled.remove(thread);
    }

    fn write_thread_import(&mut self, thread: ThreadId, import: usize, value: Value) {
        self.interpreted.write_thread_import(thread, import, value);
        self.compiled.write_thread_import(thread, import, value);
    }

    fn write_global_import(&mut self, import: usize, value: Value) {
        self.interpreted.write_global_import(import, value);
        self.compiled.write_global_import(import, value);
    }

    fn call(&mut self, call: &Call, decision: &mut Decision) -> Result<(), Ending> {
        if self.compiled.handles(call.event) != self.handles(call.event) {
            return Err(Ending::Differs(format!("{}: only one engine has a handler", call.event)));
        }
        let outcome = self.interpreted.interpreter.run(call, decision);
        self.decision.clear();
        let trap = self.compiled.call(call, &mut self.decision);
        let same =
            self.compare_outcomes(call, decision, &outcome, &trap).and_then(|()| self.compare_states());
        match (same, outcome) {
            (Err(difference), _) => {
                Err(Ending::Differs(format!("{} of {}: {difference}", call.event, self.program().name)))
            }
            (Ok(()), Err(failure)) => Err(trapped(&failure)),
            (Ok(()), Ok(())) => Ok(()),
        }
    }

    fn is_stored(&self, thread: ThreadId) -> bool {
        self.interpreted.is_stored(thread)
    }

    fn settled(&mut self) -> Result<(), Ending> {
        // Removals change containers outside of calls.
        self.compare_states().map_err(Ending::Differs)
    }
}

fn compare_traps(failure: &Failure, trap: &CTrap) -> Result<(), String> {
    let place = failure.place.as_ref();
    let mine =
        (failure.check.map(check_number), place.map(|place| (place.file.clone(), place.line, place.column)));
    let theirs = (Some(trap.check), Some((trap.file.clone(), trap.line, trap.column)));
    if mine == theirs {
        return Ok(());
    }
    Err(format!(
        "different checks failed\ninterpreter: {:?} {:?} {}\ncompiled:    {:?} {:?} {}",
        mine.0, mine.1, failure.message, theirs.0, theirs.1, trap.message
    ))
}

fn compare_values(name: &str, mine: &[IrValue], theirs: &[Bits]) -> Result<(), String> {
    let same = |(mine, theirs): (&IrValue, &Bits)| match mine {
        IrValue::Int(mine) => mine == theirs,
        IrValue::Float(mine) => {
            let theirs = f64::from_bits(*theirs as u64);
            // What is no number has many forms, which mean the same.
            mine.to_bits() == theirs.to_bits() || (mine.is_nan() && theirs.is_nan())
        }
    };
    if mine.len() <= theirs.len() && mine.iter().zip(theirs).all(same) {
        return Ok(());
    }
    let float = matches!(mine.first(), Some(IrValue::Float(_)));
    let shown: Vec<IrValue> = theirs
        .iter()
        .map(|&bits| if float { IrValue::Float(f64::from_bits(bits as u64)) } else { IrValue::Int(bits) })
        .collect();
    Err(format!("{name} differs\ninterpreter: {mine:?}\ncompiled:    {shown:?}"))
}

fn differ<T: PartialEq + std::fmt::Debug>(name: &str, mine: &T, theirs: &T) -> Result<(), String> {
    if mine == theirs {
        Ok(())
    } else {
        Err(format!("{name} differs\ninterpreter: {mine:?}\ncompiled:    {theirs:?}"))
    }
}
