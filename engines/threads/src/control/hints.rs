//! Values of thread imports that a user gives for a program which does not supply them itself:
//! `attune hint`.

use std::ffi::c_void;

use attune_abi::Variable;
use attune_values::wire::{self, Refusal};

use super::variables::{self, is_linked, storage, write};
use super::{Answer, Refused, everywhere};
use crate::engine::{Engine, worker};
use crate::load::Loaded;
use crate::scheduler::{self, Scheduler};
use crate::thread::ThreadRef;

/// A value for all threads of a worker, of now and later.
pub struct Hint {
    variable: &'static Variable,
    value: i64,
}

impl Hint {
    pub fn give(&self, thread: ThreadRef) {
        let place = place(self.variable, thread);
        if !is_linked(self.variable, place) {
            write(self.variable, place, self.value);
        }
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
        None => everywhere(move |engine| all(engine, &values))?,
        Some(number) => {
            let unknown = move || {
                Refused(Refusal::NoSuchThread, format!("the program has no thread {number}"))
            };
            let worker = worker::of(number as u64).map_err(|_| unknown())?;
            vec![super::on(worker, move |engine| {
                let living = engine.living_thread(number as u64);
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

fn all(engine: &mut Engine, values: &[(usize, Option<i64>)]) -> Answer<()> {
    for &(import, value) in values {
        let variable = &engine.scheduler.attributes()[import];
        if engine.bindings.supplies(variable) {
            return Err(taken(variable));
        }
        let default = engine.default_of(variable);
        engine.hints.retain(|hint| !std::ptr::eq(hint.variable, variable));
        let hint = Hint { variable, value: value.unwrap_or(default) };
        engine.threads.iter().for_each(|thread| hint.give(thread));
        engine.trace_hint(None, import, hint.value);
        engine.hints.extend(value.map(|_| hint));
    }
    Ok(())
}

fn one(engine: &mut Engine, thread: ThreadRef, values: &[(usize, Option<i64>)]) -> Answer<()> {
    for &(import, value) in values {
        let variable = &engine.scheduler.attributes()[import];
        if is_linked(variable, place(variable, thread)) {
            return Err(taken(variable));
        }
        let of_all = engine.hints.iter().find(|hint| std::ptr::eq(hint.variable, variable));
        let of_all = of_all.map(|hint| hint.value);
        let value = value.or(of_all).unwrap_or_else(|| engine.default_of(variable));
        Hint { variable, value }.give(thread);
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
