//! Beginning and ending a trace while the program runs.

use std::path::Path;

use crate::clock;
use crate::engine::worker;
use crate::errno::Result;
use crate::io;
use crate::load::Loaded;
use crate::process::with;
use crate::remote;
use crate::trace::Change;

/// How long a thread that ends a trace sleeps before it looks again. Nanoseconds.
const LOOK_AGAIN: i64 = 1_000_000;

pub fn begin(path: &Path) -> Result<()> {
    let loaded = with(|engine| Loaded::of(&engine.scheduler))?;
    let change = Change::take()?;
    let start = clock::now();
    let mut pens = change.begin(path, worker::all().len(), loaded)?.into_iter();
    remote::everywhere(|engine| {
        if let Some(pen) = pens.next() {
            engine.begin_trace(pen, start);
        }
        Ok(())
    })
}

/// Returns when the file is complete. Other threads run meanwhile.
pub fn end() -> Result<()> {
    with(|_| ())?;
    let change = Change::take()?;
    change.may_end()?;
    remote::everywhere(|engine| {
        engine.end_trace();
        Ok(())
    })?;
    loop {
        if let Some(outcome) = change.outcome() {
            return outcome;
        }
        io::sleep_until(clock::now() + LOOK_AGAIN)?;
    }
}
