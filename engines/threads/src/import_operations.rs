//! Imports, for both interfaces: what a program registers holds on every worker. Errors stand in
//! `include/attune.h`.

use std::ffi::{CStr, c_void};

use attune_values::Width;

use crate::engine::modes;
use crate::errno::{Errno, Result};
use crate::process::with;
use crate::remote;
use crate::thread::ThreadId;

pub fn register(name: &CStr, variable: *mut c_void, width: Width) -> Result<()> {
    remote::everywhere(|engine| engine.bindings.register(&engine.scheduler, name, variable, width))
}

pub fn register_thread(name: &CStr, offset: usize, width: Width) -> Result<()> {
    remote::everywhere(|engine| {
        engine.bindings.register_thread(&engine.scheduler, &engine.threads, name, offset, width)
    })
}

pub fn unregister(name: &CStr) -> Result<()> {
    remote::everywhere(|engine| {
        engine.bindings.unregister(&engine.scheduler, &engine.threads, name)
    })
}

/// Storage for a global import, the same for all workers.
pub fn import(name: &CStr, width: Width) -> Result<*mut c_void> {
    let mut storage = None;
    remote::everywhere(|engine| match storage {
        None => {
            storage = Some(engine.bindings.import(&engine.scheduler, name, width)?);
            Ok(())
        }
        Some(storage) => engine.bindings.register(&engine.scheduler, name, storage, width),
    })?;
    storage.ok_or(Errno(libc::ENOENT))
}

pub fn thread_import(thread: ThreadId, name: &CStr, width: Width) -> Result<*mut c_void> {
    // The thread takes its storage along to other workers. The first worker hears of it first, and
    // decides; where this one knows of it already, the others do or are about to.
    if modes::moves()
        && !with(|engine| engine.bindings.owns_thread_import(&engine.scheduler, name, width))??
    {
        remote::everywhere(|engine| {
            engine.bindings.own_thread_import(&engine.scheduler, &engine.threads, name, width)
        })?;
    }
    remote::on(thread, |engine| {
        let thread = engine.living_thread(thread)?;
        engine.bindings.thread_import(&engine.scheduler, thread, name, width)
    })?
}
