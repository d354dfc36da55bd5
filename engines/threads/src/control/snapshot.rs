//! The program's threads at one moment, for `attune top`.

use std::collections::BTreeMap;

use attune_values::program::{Program, UserThread};

use super::hints::read;
use super::variables::{name, ty};
use super::{Answer, everywhere, tunables};
use crate::clock;
use crate::diagnosis;
use crate::engine::{Engine, worker};
use crate::thread::{State, ThreadRef};

pub fn take() -> Answer<Program> {
    let of_workers = everywhere(|engine| {
        let now = clock::now();
        let away = engine.threads.all_away().map(moving).collect::<Vec<_>>();
        let threads: Vec<_> =
            engine.threads.iter().map(|thread| describe(engine, thread, now)).collect();
        let scheduler = engine.scheduler.name().to_string_lossy().into_owned();
        let (io, why) = engine.descriptors.poller();
        let program = Program {
            process: std::process::id() as i32,
            scheduler,
            io: io.to_string_lossy().into_owned(),
            io_why: why.map(|why| why.to_string_lossy().into_owned()),
            at: now,
            tunables: tunables::all(&engine.scheduler),
            threads,
        };
        (program, away)
    })?;
    // There is a first worker. The others have threads of their own, and else the same.
    let mut all = of_workers.into_iter();
    let (mut first, mut away) = all.next().unwrap_or_default();
    for (other, also_away) in all {
        first.threads.extend(other.threads);
        away.extend(also_away);
    }
    // One that has gone to another worker meanwhile may have been told twice, and one that is on
    // its way was told by neither.
    first.threads.extend(away);
    first.threads.sort_by_key(|thread| thread.thread);
    first.threads.dedup_by_key(|thread| thread.thread);
    Ok(first)
}

/// A thread that its home has given away, if no worker has it.
fn moving(thread: ThreadRef) -> UserThread {
    UserThread {
        thread: thread.id,
        name: thread.name().to_string_lossy().into_owned(),
        worker: worker::with(thread).index + 1,
        state: "moving".to_owned(),
        container: "no container".to_owned(),
        run_ns: 0,
        ready_ns: 0,
        chosen: 0,
        values: BTreeMap::new(),
    }
}

fn describe(engine: &Engine, thread: ThreadRef, now: i64) -> UserThread {
    let scheduler = &engine.scheduler;
    let state = thread.state.get();
    // A thread that has ended leaves its userdata to the program.
    let attributes = if state == State::Dead { &[] } else { scheduler.attributes() };
    let values = attributes.iter().filter(|it| it.length == 0 && ty(it).is_some());
    let value = |it| (name(it), read(scheduler, it, thread));
    let suspended = thread.suspended.get();
    let (run_ns, ready_ns) = thread.times.until(now, state, suspended);
    UserThread {
        thread: thread.id,
        name: thread.name().to_string_lossy().into_owned(),
        worker: engine.worker().index + 1,
        state: diagnosis::state(thread),
        container: scheduler.container_of(thread),
        run_ns,
        ready_ns,
        chosen: thread.chosen.get(),
        values: values.map(value).collect(),
    }
}
