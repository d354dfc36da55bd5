//! Which scheduler runs: the one that ATTUNE_SCHED names, the one that the program's options name, or the built-in one.
//!
//! A scheduler that cannot be used ends the process with status 2 before any thread runs: running on with another
//! one would answer a question that nobody asked. A privileged program ignores ATTUNE_SCHED, for whoever started it
//! would otherwise run their code with its rights.

use std::ffi::{CStr, CString, OsString, c_char};
use std::os::unix::ffi::OsStrExt;

use crate::report;
use attune_abi::{self as abi, Event};

unsafe extern "C" {
    #[link_name = "attune_builtin_scheduler"]
    static BUILTIN: abi::Scheduler;
}

/// Loads and checks; does not return if that fails.
pub fn load(from_options: Option<&CStr>) -> &'static abi::Scheduler {
    let wish = std::env::var_os("ATTUNE_SCHED").filter(|path| !path.is_empty());
    let path = choose(wish, from_options, is_privileged());
    let loaded = match &path {
        Some(path) => open(path),
        // SAFETY: a constant, linked into this library.
        None => Ok(unsafe { &BUILTIN }),
    };
    let shown = path.as_deref().unwrap_or(c"the built-in scheduler").to_string_lossy();
    let checked = loaded.and_then(|scheduler| check(scheduler).map(|()| scheduler));
    checked.unwrap_or_else(|problem| report::cannot_start(&format!("{shown}: {problem}")))
}

/// The path to load, None for the built-in scheduler.
fn choose(wish: Option<OsString>, from_options: Option<&CStr>, privileged: bool) -> Option<CString> {
    let wish = wish.and_then(|path| CString::new(path.as_bytes()).ok());
    if privileged && wish.is_some() {
        report::note("ATTUNE_SCHED is ignored: this program runs with more rights than whoever started it");
    }
    wish.filter(|_| !privileged).or_else(|| from_options.map(CString::from))
}

/// Whether the kernel started the program with rights that its caller lacks (set-uid, set-gid, capabilities).
fn is_privileged() -> bool {
    // SAFETY: reads the auxiliary vector.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

fn open(path: &CStr) -> Result<&'static abi::Scheduler, String> {
    // dlopen looks for a name without a slash among the system's libraries; a scheduler is a file.
    let here = [c"./".to_bytes(), path.to_bytes()].concat();
    let here = CString::new(here).unwrap_or_default();
    let path = if path.to_bytes().contains(&b'/') { path } else { &here };
    // SAFETY: running the file's code is what the user asks for; it is never unloaded.
    unsafe {
        let library = libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL);
        if library.is_null() {
            return Err(format!("cannot load it: {}", dl_error()));
        }
        let symbol = libc::dlsym(library, c"attune_scheduler".as_ptr());
        let hint = "it is no compiled scheduler: it does not define `attune_scheduler`; \
                    make one with `attune build FILE.sched --engine threads -o FILE.so`";
        symbol.cast::<abi::Scheduler>().as_ref().ok_or_else(|| hint.to_string())
    }
}

fn dl_error() -> String {
    // SAFETY: dlerror returns a string that lives until the next dl call, or null.
    unsafe {
        let message: *const c_char = libc::dlerror();
        if message.is_null() { "unknown".into() } else { CStr::from_ptr(message).to_string_lossy().into() }
    }
}

/// Whether this engine can run the scheduler.
fn check(scheduler: &abi::Scheduler) -> Result<(), String> {
    // The rest of the struct means something only if the version does.
    if scheduler.abi != abi::VERSION {
        let (theirs, ours) = (scheduler.abi, abi::VERSION);
        return Err(format!(
            "it was compiled for version {theirs} of the scheduler interface, this library has {ours}; compile it again"
        ));
    }
    if (scheduler.thread_size as usize) < size_of::<abi::Thread>() {
        return Err(format!("its thread record is too small ({} bytes)", scheduler.thread_size));
    }
    let has = |event: Event| scheduler.handler[event as usize].is_some();
    let mut missing = Vec::new();
    for (event, name) in
        [(Event::NewThread, "newthread"), (Event::Schedule, "schedule"), (Event::SwitchOut, "switch_out")]
    {
        if !has(event) {
            missing.push(name);
        }
    }
    if !has(Event::EventRaised) && !has(Event::ResumeThread) {
        missing.push("event_raised (or resume_thread)");
    }
    if missing.is_empty() {
        Ok(())
    } else {
        Err(format!("the threads engine needs handlers that it lacks: {}", missing.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_comes_before_the_options() {
        assert_eq!(choose(Some("a.so".into()), Some(c"b.so"), false), Some(c"a.so".into()));
        assert_eq!(choose(None, Some(c"b.so"), false), Some(c"b.so".into()));
        assert_eq!(choose(None, None, false), None);
    }

    #[test]
    fn a_privileged_program_ignores_the_environment() {
        assert_eq!(choose(Some("a.so".into()), Some(c"b.so"), true), Some(c"b.so".into()));
        assert_eq!(choose(Some("a.so".into()), None, true), None);
    }
}
