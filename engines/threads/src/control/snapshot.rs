//! The program's threads at one moment, for `attune top`.

use attune_values::program::{Program, UserThread};

use super::hints::read;
use super::variables::{name, ty};
use super::{Answer, everywhere, tunables};
use crate::clock;
use crate::diagnosis;
use crate::engine::Engine;
use crate::thread::{State, ThreadRef};

pub fn take() -> Answer<Program> {
    let of_workers = everywhere(|engine| {
        let now = clock::now();
        let threads: Vec<_> =
            engine.threads.iter().map(|thread| describe(engine, thread, now)).collect();
        let scheduler = engine.scheduler.name().to_string_lossy().into_owned();
        let (io, why) = engine.descriptors.poller();
        Program {
            process: std::process::id() as i32,
            scheduler,
            io: io.to_string_lossy().into_owned(),
            io_why: why.map(|why| why.to_string_lossy().into_owned()),
            at: now,
            tunables: tunables::all(&engine.scheduler),
            threads,
        }
    })?;
    // There is a first worker. The others have threads of their own, and else the same.
    let mut all = of_workers.into_iter();
    let mut first = all.next().unwrap_or_default();
    all.for_each(|other| first.threads.extend(other.threads));
    first.threads.sort_by_key(|thread| thread.thread);
    Ok(first)
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
        chosen: thread.times.chosen(),
        values: values.map(value).collect(),
    }
}
