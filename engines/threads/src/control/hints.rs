//! Values of thread imports that a user gives for a program which does not supply them itself:
//! `attune hint`.

use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use attune_abi::Variable;
use attune_values::wire::{self, Refusal};

use super::variables::{self, is_linked, storage, write};
use super::{Answer, Refused, everywhere};
use crate::engine::{Engine, worker};
use crate::load::Loaded;
use crate::scheduler::{self, Scheduler};
use crate::thread::ThreadRef;

/// Requests for all threads so far.
static REQUESTS: AtomicU64 = AtomicU64::new(0);

/// A value for all threads of a worker, of now and later.
pub struct Hint {
    variable: &'static Variable,
    value: i64,
    /// The user has given it. Else it is the default, in place of one that was given before.
    given: bool,
    /// The requests of the user in their order, the same on all workers.
    request: u64,
}

/// Gives a thread that is new to the worker what it has not been given: it may have been on another
/// worker until now, and may have a value of its own since.
pub fn catch_up(hints: &[Hint], thread: ThreadRef) {
    let seen = thread.hinted.get();
    for hint in hints.iter().filter(|hint| hint.request > seen) {
        hint.give(thread);
        thread.hinted.set(thread.hinted.get().max(hint.request));
    }
}

impl Hint {
    fn give(&self, thread: ThreadRef) {
        give(self.variable, self.value, thread);
    }
}

fn give(variable: &Variable, value: i64, thread: ThreadRef) {
    let place = place(variable, thread);
    if !is_linked(variable, place) {
        write(variable, place, value);
    }
}

/// Follows a request for this process, or for the thread of that number in it; None as a value: the
/// default holds again.
pub fn hint(loaded: Loaded, hint: &wire::Hint) -> Answer<()> {
    let wire::Hint { process, thread, values } = hint;
    let (process, thread, own) = (*process, *thread, std::process::id());
    if process as u32 != own {
        let message = format!("this program is process {own}, not {process}");
        return Err(Refused(Refusal::NoSuchThread, message));
    }
    let values: Vec<_> = values
        .iter()
        .map(|(name, value)| Ok((find(loaded, name)?, *value)))
        .collect::<Answer<_>>()?;
    let results = match thread {
        None => {
            let request = REQUESTS.fetch_add(1, Relaxed) + 1;
            everywhere(move |engine| all(engine, request, &values))?
        }
        Some(number) => {
            let unknown = move || {
                Refused(Refusal::NoSuchThread, format!("the program has no thread {number}"))
            };
            let number = number as u64;
            let home = worker::home_of(number).map_err(|_| unknown())?;
            vec![super::about(number, home, move |engine| {
                let living = engine.living_thread(number);
                one(engine, living.map_err(|_| unknown())?, &values)
            })?]
        }
    };
    results.into_iter().collect()
}

/// Its place in the table.
fn find(loaded: Loaded, name: &str) -> Answer<usize> {
    let imports = scheduler::attributes(loaded.scheduler());
    let known = |variable: &Variable| storage(variable).map(|_| variables::name(variable));
    imports.iter().position(|variable| known(variable).as_deref() == Some(name)).ok_or_else(|| {
        let names: Vec<_> = imports.iter().filter_map(known).collect();
        let names = if names.is_empty() { "none at all".to_owned() } else { names.join(", ") };
        let message = format!("the scheduler has no thread import `{name}`; it has {names}");
        Refused(Refusal::UnknownImport, message)
    })
}

fn all(engine: &mut Engine, request: u64, values: &[(usize, Option<i64>)]) -> Answer<()> {
    for &(import, value) in values {
        let variable = &engine.scheduler.attributes()[import];
        if engine.bindings.supplies(variable) {
            return Err(taken(variable));
        }
        let default = engine.default_of(variable);
        engine.hints.retain(|hint| !std::ptr::eq(hint.variable, variable));
        let given = value.is_some();
        let hint = Hint { variable, value: value.unwrap_or(default), given, request };
        for thread in engine.threads.iter() {
            hint.give(thread);
            thread.hinted.set(request);
        }
        engine.trace_hint(None, import, hint.value);
        engine.hints.push(hint);
    }
    Ok(())
}

fn one(engine: &mut Engine, thread: ThreadRef, values: &[(usize, Option<i64>)]) -> Answer<()> {
    for &(import, value) in values {
        let variable = &engine.scheduler.attributes()[import];
        if is_linked(variable, place(variable, thread)) {
            return Err(taken(variable));
        }
        let mut of_all = engine.hints.iter().filter(|hint| hint.given);
        let of_all = of_all.find(|hint| std::ptr::eq(hint.variable, variable));
        let of_all = of_all.map(|hint| hint.value);
        let value = value.or(of_all).unwrap_or_else(|| engine.default_of(variable));
        give(variable, value, thread);
        engine.trace_hint(Some(thread), import, value);
    }
    Ok(())
}

fn taken(variable: &Variable) -> Refused {
    let name = variables::name(variable);
    Refused(Refusal::Taken, format!("the program itself supplies {name}"))
}

/// The value of a thread's attribute or import, as a handler would read it.
pub fn read(scheduler: &Scheduler, variable: &Variable, thread: ThreadRef) -> i64 {
    variables::read(scheduler, variable, place(variable, thread))
}

fn place(variable: &Variable, thread: ThreadRef) -> *mut c_void {
    thread.record().wrapping_byte_add(variable.offset).cast()
}
