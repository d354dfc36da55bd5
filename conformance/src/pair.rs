//! The interpreter and an implementation side by side: every call goes to both, and after every
//! call everything that they show is compared.

use std::time::{Duration, Instant};

use attune_kernel::{Contents, Found};
use attune_language::engine::event::{Answer, Event};
use attune_language::ir::{Program, Scope, Storage};
use attune_replica::{Change, Operation};
use attune_simulator::interpreter::{Failure, Snapshot};
use attune_simulator::scheduler::{Call, CpuSet, Decision, ThreadId, Value};

use crate::driver::{Ending, Subject};
use crate::implementation::{Bits, Implementation, Trap, Written};
use crate::interpreted::{Interpreted, check_number, is_age, trapped};

/// Threads that are noted of a container: ATTUNE_LISTED of failure.h.
const LISTED: usize = 16;

/// A handler that takes less must come to its end.
const ALLOWED: Duration = Duration::from_millis(200);

pub struct Pair<'r> {
    interpreted: Interpreted,
    implementation: Box<dyn Implementation + 'r>,
    /// The implementation's answer; each call uses its memory again.
    decision: Decision,
    living: Vec<ThreadId>,
    now: i64,
    /// When the cluster was heard of.
    heard_at: Option<i64>,
    /// By global: what handlers of the interpreter have done to it since the cluster took that.
    changes: Vec<Change>,
}

impl<'r> Pair<'r> {
    pub fn new(interpreted: Interpreted, implementation: Box<dyn Implementation + 'r>) -> Pair<'r> {
        let changes = vec![Change::NONE; interpreted.interpreter(0).program().globals.len()];
        Pair {
            interpreted,
            implementation,
            decision: Decision::default(),
            living: Vec::new(),
            now: 0,
            heard_at: None,
            changes,
        }
    }

    fn program(&self) -> &Program {
        self.interpreted.interpreter(0).program()
    }

    fn compare_outcomes(
        &self,
        call: &Call,
        mine: &Decision,
        outcome: &Result<(), Failure>,
        trap: &Option<Trap>,
    ) -> Result<(), String> {
        if let Some(trap) = trap.as_ref().filter(|trap| trap.crashed) {
            return Err(format!("implementation: ended by signal {} {}", trap.check, trap.message));
        }
        match (outcome, trap) {
            (Ok(()), None) => self.compare_decisions(call.event, mine),
            (Err(failure), Some(trap)) => compare_traps(failure, trap),
            (Ok(()), Some(trap)) => {
                Err(format!("interpreter:    no check failed\nimplementation: {}", trap.message))
            }
            (Err(failure), None) => {
                Err(format!("interpreter:    {failure:?}\nimplementation: no check failed"))
            }
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

    /// What an implementation noted that went on behind the check, where the interpreter stands.
    fn compare_found(
        &self,
        instance: u32,
        outcome: &Result<(), Failure>,
        found: &Found,
    ) -> Result<(), String> {
        let message = outcome.as_ref().err().map_or("", |failure| failure.message.as_str());
        match found {
            Found::Index { index, length } => differ(
                "what was found",
                &message,
                &format!("index {index} is outside 0..{length}").as_str(),
            ),
            Found::Thread(thread) if message.contains(&format!("thread {thread} ")) => Ok(()),
            Found::Thread(thread) => {
                Err(format!("interpreter:    {message}\nimplementation: thread {thread}"))
            }
            // Dealt with before anything is compared.
            Found::Cut => Ok(()),
            Found::Containers(all) => {
                let snapshot = self.interpreted.interpreter(instance).snapshot();
                let mut names: Vec<&str> = all.iter().map(|noted| noted.name.as_str()).collect();
                names.sort_unstable();
                let mine = comparable(contents_named(message), &names);
                differ("containers that were found", &mine, &names)?;
                all.iter().try_for_each(|noted| self.compare_noted(&snapshot, noted))
            }
        }
    }

    fn compare_noted(&self, snapshot: &Snapshot, noted: &Contents) -> Result<(), String> {
        let (name, element) = match noted.name.split_once('[') {
            Some((name, rest)) => (name, rest.trim_end_matches(']').parse().unwrap_or(usize::MAX)),
            None => (noted.name.as_str(), 0),
        };
        let all = self.program().containers.values().zip(&snapshot.containers);
        // Handlers may each have a local container of that name.
        let named = all.filter(|(container, _)| container.name == name);
        let mine: Vec<Contents> = named
            .filter_map(|(_, elements)| {
                let threads = elements.get(element)?;
                let listed = threads.iter().take(LISTED).map(|thread| thread.0.into()).collect();
                Some(Contents {
                    name: noted.name.clone(),
                    size: threads.len() as u32,
                    threads: listed,
                })
            })
            .collect();
        if mine.contains(noted) {
            Ok(())
        } else {
            differ("what was found", &mine.first(), &Some(noted))
        }
    }

    fn compare_states(&mut self) -> Result<(), String> {
        (0..self.interpreted.instances()).try_for_each(|instance| {
            self.compare_instance(instance).map_err(|difference| match instance {
                0 => difference,
                _ => format!("in instance {instance}: {difference}"),
            })
        })?;
        for &thread in &self.living {
            let (mine, found) =
                (self.interpreted.is_stored(thread), self.implementation.is_stored(thread));
            differ(&format!("thread {thread} sits in a container"), &mine, &found)?;
        }
        Ok(())
    }

    /// What the last call has written: `mine` is the interpreter's.
    fn compare_written(&self, mine: &[(u32, Operation)]) -> Result<(), String> {
        match self.implementation.written() {
            // What is no number has many forms, which are written alike.
            Written::Each(theirs) => {
                differ("what was written", &format!("{mine:?}"), &format!("{theirs:?}"))
            }
            Written::Merged(theirs) => {
                // Code that no cluster supplies keeps none.
                let theirs = theirs.into_iter().chain(std::iter::repeat(Change::NONE));
                let theirs = theirs.take(self.changes.len()).collect();
                differ("what was written since the cluster took it", &self.changes, &theirs)
            }
        }
    }

    fn compare_instance(&mut self, instance: u32) -> Result<(), String> {
        let snapshot = self.interpreted.interpreter(instance).snapshot();
        let theirs = self.implementation.state(instance);
        let program = self.program().clone();
        for (container, mine) in program.containers.values().zip(&snapshot.containers) {
            if container.scope == Scope::Scheduler {
                let found = theirs.containers.get(&container.name);
                let found = found.ok_or_else(|| {
                    format!("the implementation shows no container {}", container.name)
                })?;
                differ(&container.name, mine, found)?;
            }
        }
        let globals = program.globals.iter().zip(&snapshot.globals);
        // A handler may find out an age by itself.
        for ((_, global), mine) in globals.filter(|((id, _), _)| !is_age(&program, *id)) {
            let found = theirs.globals.get(&global.name);
            let found = match (found, global.storage) {
                (Some(found), _) => found,
                (None, Storage::Const) => continue,
                (None, _) => {
                    return Err(format!("the implementation shows no variable {}", global.name));
                }
            };
            compare_values(&global.name, mine, found)?;
        }
        for (thread, mine) in &snapshot.threads {
            let found = self.implementation.attributes_of(*thread);
            for (attribute, value) in program.attributes.values().zip(mine) {
                let found = found.get(&attribute.name);
                let found = found.ok_or_else(|| {
                    format!("the implementation shows no thread variable {}", attribute.name)
                })?;
                compare_values(&format!("{}.{}", thread, attribute.name), &[*value], &[*found])?;
            }
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

    fn create(
        &mut self,
        instance: u32,
        thread: ThreadId,
        affinity: &CpuSet,
        now: i64,
    ) -> Result<(), Ending> {
        self.living.push(thread);
        self.interpreted.create(instance, thread, affinity, now)?;
        match self.implementation.create(instance, thread, now) {
            None => {
                self.implementation.set_affinity(thread, affinity);
                Ok(())
            }
            // The interpreter runs the prologue with `newthread`: initial values that fail are no
            // part of the comparison.
            Some(trap) => Err(Ending::Trapped { check: Some(trap.check), message: trap.message }),
        }
    }

    fn move_thread(&mut self, thread: ThreadId, to: u32, affinity: &CpuSet) {
        self.interpreted.move_thread(thread, to, affinity);
        self.implementation.leave(thread);
        self.implementation.set_affinity(thread, affinity);
    }

    fn set_affinity(&mut self, thread: ThreadId, affinity: &CpuSet) {
        self.interpreted.set_affinity(thread, affinity);
        self.implementation.set_affinity(thread, affinity);
    }

    fn remove(&mut self, thread: ThreadId) {
        self.living.retain(|&living| living != thread);
        self.interpreted.remove(thread);
        self.implementation.remove(thread);
    }

    fn write_thread_import(&mut self, thread: ThreadId, import: usize, value: Value) {
        self.interpreted.write_thread_import(thread, import, value);
        self.implementation.write_thread_import(thread, import, value);
    }

    fn write_global_import(&mut self, import: usize, value: Value) {
        // What was written before it is counted in what a node hears.
        self.implementation.take_written();
        self.changes.fill(Change::NONE);
        // Clocks of engines have gone on for a while: 0 is never.
        self.heard_at = Some(self.now.max(1));
        self.interpreted.write_global_import(import, value);
        let name = self.interpreted.global_import(import);
        self.implementation.write_global_import(name, value);
    }

    fn call(&mut self, instance: u32, call: &Call, decision: &mut Decision) -> Result<(), Ending> {
        if self.implementation.handles(call.event) != self.handles(call.event) {
            return Err(Ending::Differs(format!("{}: only one engine has a handler", call.event)));
        }
        self.now = call.now;
        self.interpreted.set_age(self.heard_at.map_or(i64::MAX, |at| (call.now - at).max(0)));
        self.implementation.hear(self.heard_at, call.now);
        let outcome = self.interpreted.run(instance, call, decision);
        let written = self.interpreted.take_written(instance);
        for (global, operation) in &written {
            let change = &mut self.changes[*global as usize];
            *change = change.then(Change::of(*operation).unwrap_or(Change::NONE));
        }
        self.decision.clear();
        let began = Instant::now();
        let trap = self.implementation.call(instance, call, &mut self.decision);
        if let Some(trap) = trap.as_ref().filter(|trap| trap.found == Some(Found::Cut)) {
            return Err(cut_short(call, trap, began.elapsed()));
        }
        let same = self.compare_outcomes(call, decision, &outcome, &trap).and_then(|()| match trap
            .and_then(|trap| trap.found)
        {
            Some(found) => self.compare_found(instance, &outcome, &found),
            None => self.compare_written(&written).and_then(|()| self.compare_states()),
        });
        match (same, outcome) {
            (Err(difference), _) => Err(Ending::Differs(format!(
                "{} of {}: {difference}",
                call.event,
                self.program().name
            ))),
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

/// The containers that a message of the interpreter's tells, each once: `.. (current: 3; RQ:
/// empty)`.
fn contents_named(message: &str) -> Vec<&str> {
    let told = message.rsplit_once('(').map_or("", |(_, told)| told.trim_end_matches(')'));
    let mut names: Vec<&str> =
        told.split("; ").filter_map(|one| Some(one.split_once(':')?.0)).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Those of the containers that an interpreter names which an implementation can name, too, if it
/// names these: a program computes no index behind the check of a transfer's source, so it may be
/// unable to say which element of an array the thread would have gone to.
fn comparable<'n>(mut mine: Vec<&'n str>, theirs: &[&str]) -> Vec<&'n str> {
    mine.retain(|name| !name.contains('[') || theirs.contains(name));
    mine
}

/// The kernel ends a loop after a time. What other engines would have done then is no matter, but
/// it must have been long.
fn cut_short(call: &Call, trap: &Trap, took: Duration) -> Ending {
    if took < ALLOWED || trap.line == 0 {
        return Ending::Differs(format!("{}: ended after {took:?}: {}", call.event, trap.message));
    }
    Ending::Trapped { check: None, message: trap.message.clone() }
}

fn compare_traps(failure: &Failure, trap: &Trap) -> Result<(), String> {
    let place = failure.place.as_ref();
    let mine = (
        failure.check.map(check_number),
        place.map(|place| (place.file.clone(), place.line, place.column)),
    );
    let theirs = (Some(trap.check), Some((trap.file.clone(), trap.line, trap.column)));
    if mine == theirs {
        return Ok(());
    }
    Err(format!(
        "different checks failed\ninterpreter:    {:?} {:?} {}\nimplementation: {:?} {:?} {}",
        mine.0, mine.1, failure.message, theirs.0, theirs.1, trap.message
    ))
}

fn compare_values(name: &str, mine: &[Value], theirs: &[Bits]) -> Result<(), String> {
    let same = |(mine, theirs): (&Value, &Bits)| match mine {
        Value::Int(mine) => mine == theirs,
        Value::Float(mine) => {
            let theirs = f64::from_bits(*theirs as u64);
            // What is no number has many forms, which mean the same.
            mine.to_bits() == theirs.to_bits() || (mine.is_nan() && theirs.is_nan())
        }
    };
    if mine.len() <= theirs.len() && mine.iter().zip(theirs).all(same) {
        return Ok(());
    }
    let float = matches!(mine.first(), Some(Value::Float(_)));
    let shown: Vec<Value> = theirs
        .iter()
        .map(
            |&bits| {
                if float { Value::Float(f64::from_bits(bits as u64)) } else { Value::Int(bits) }
            },
        )
        .collect();
    Err(format!("{name} differs\ninterpreter:    {mine:?}\nimplementation: {shown:?}"))
}

fn differ<T: PartialEq + std::fmt::Debug>(name: &str, mine: &T, theirs: &T) -> Result<(), String> {
    if mine == theirs {
        Ok(())
    } else {
        Err(format!("{name} differs\ninterpreter:    {mine:?}\nimplementation: {theirs:?}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_element_may_go_unnamed_beside_one_that_is_named() {
        let message = "no thread (C6[0]: empty; C7[0]: 0)";
        let mine = || contents_named(message);
        assert_eq!(mine(), ["C6[0]", "C7[0]"]);
        assert_eq!(comparable(mine(), &["C6[0]"]), ["C6[0]"]);
        assert_eq!(comparable(mine(), &["C6[0]", "C7[0]"]), ["C6[0]", "C7[0]"]);
        assert!(comparable(mine(), &[]).is_empty());
        assert_ne!(comparable(mine(), &["C6[1]"]), ["C6[1]"]);
        assert_eq!(comparable(vec!["RQ", "WQ"], &["RQ"]), ["RQ", "WQ"]);
    }
}
