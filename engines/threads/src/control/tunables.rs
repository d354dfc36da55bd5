//! Tunables and global imports, as `attune set` lists and changes them.

use attune_abi::Variable;
use attune_values::text;
use attune_values::wire::{Refusal, Tunable};

use super::variables::{self, is_linked, read, storage, ty, write};
use super::{Answer, Refused, everywhere};
use crate::engine::Engine;
use crate::load::Loaded;
use crate::scheduler::{self, Scheduler};

/// What can be set, and its values on this worker.
pub fn all(scheduler: &Scheduler) -> Vec<Tunable> {
    let tunable = |variable: &Variable| {
        Some(Tunable {
            scheduler: scheduler.name().to_string_lossy().into_owned(),
            role: None,
            name: variables::name(variable),
            storage: storage(variable)?,
            ty: ty(variable)?,
            value: read(scheduler, variable, scheduler.place(variable.offset)),
        })
    };
    scheduler.globals().iter().filter_map(tunable).collect()
}

/// Sets them on all workers; on each of them all or, where one cannot be set, none.
pub fn set(loaded: Loaded, settings: &[(String, String)]) -> Answer<()> {
    let unsuitable = |why: String| Refused(Refusal::Unsuitable, why);
    let values = settings.iter().map(|(name, value)| find(loaded, name, value));
    let values: Vec<_> = values.collect::<Result<_, _>>().map_err(unsuitable)?;
    let results = everywhere(move |engine| store(engine, &values))?;
    results.into_iter().collect::<Result<Vec<()>, _>>().map(|_| ()).map_err(unsuitable)
}

/// A variable's place in the table, and the value that it is to have.
fn find(loaded: Loaded, name: &str, value: &str) -> Result<(usize, i64), String> {
    let scheduler = scheduler::text(loaded.scheduler().name).to_string_lossy();
    let bare = match name.split_once('.') {
        Some((of, _)) if of != scheduler => {
            return Err(format!("no scheduler here is called `{of}`: there is {scheduler}"));
        }
        Some((_, bare)) => bare,
        None => name,
    };
    let globals = scheduler::globals(loaded.scheduler());
    let known = |variable: &Variable| storage(variable).map(|_| variables::name(variable));
    let place = globals.iter().position(|variable| known(variable).as_deref() == Some(bare));
    let Some((place, ty)) = place.and_then(|place| Some((place, ty(&globals[place])?))) else {
        let names: Vec<_> = globals.iter().filter_map(known).collect();
        let names = if names.is_empty() { "none at all".to_owned() } else { names.join(", ") };
        return Err(format!("there is no tunable `{bare}` in {scheduler}; there is {names}"));
    };
    text::setting(bare, ty, value).map(|value| (place, value)).map_err(|error| error.to_string())
}

fn store(engine: &mut Engine, values: &[(usize, i64)]) -> Result<(), String> {
    let scheduler = &engine.scheduler;
    let places = values.iter().map(|(place, value)| {
        let variable = &scheduler.globals()[*place];
        (variable, scheduler.place(variable.offset), *value)
    });
    let places: Vec<_> = places.collect();
    if let Some((variable, ..)) = places.iter().find(|(it, place, _)| is_linked(it, *place)) {
        return Err(format!("the program itself supplies {}", variables::name(variable)));
    }
    places.into_iter().for_each(|(variable, place, value)| write(variable, place, value));
    Ok(())
}
