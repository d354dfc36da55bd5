//! Which scheduler runs: the one that ATTUNE_SCHED names, the one that the program's options name,
//! the one that is part of the program, or the built-in one.
//!
//! A scheduler that cannot be used ends the process with status 2 before any thread runs: the user
//! asked for that one, and another would only look like it. A privileged program ignores
//! ATTUNE_SCHED, which would let its caller run code with its rights.

use std::ffi::{CStr, CString, OsStr, OsString, c_char};
use std::io::{ErrorKind, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::{fmt, fs};

use crate::report;
use crate::scheduler::{Scheduler, text};
use attune_abi::{self as abi, Event};

unsafe extern "C" {
    #[link_name = "attune_scheduler_pth"]
    static BUILTIN: abi::Scheduler;
}

/// A scheduler that may be attached, any number of times and on any OS thread.
#[derive(Clone, Copy)]
pub struct Loaded(&'static abi::Scheduler);

// SAFETY: it is a constant, with all that it points to; what handlers change is in the instances.
unsafe impl Send for Loaded {}

impl Loaded {
    /// The one that is attached there.
    pub fn of(attached: &Scheduler) -> Loaded {
        Loaded(attached.addresses().0)
    }

    pub fn scheduler(self) -> &'static abi::Scheduler {
        self.0
    }

    /// Whether its text says what happens when a thread arrives from another instance.
    fn may_be_split(self) -> bool {
        self.0.may_be_split != 0 && self.0.handler[Event::Arrives as usize].is_some()
    }
}

/// A scheduler that has been compiled into the program.
#[repr(transparent)]
pub struct CompiledScheduler(abi::Scheduler);

// SAFETY: a constant, with all that it points to.
unsafe impl Sync for CompiledScheduler {}

impl fmt::Debug for CompiledScheduler {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.debug_tuple("CompiledScheduler").field(&text(self.0.name)).finish()
    }
}

/// Loads and checks; does not return if that fails.
pub fn load(from_options: Option<&CStr>, in_program: Option<&'static CompiledScheduler>) -> Loaded {
    let wanted = std::env::var_os("ATTUNE_SCHED").filter(|path| !path.is_empty());
    let path = choose("ATTUNE_SCHED", wanted, from_options, is_privileged());
    let loaded = match &path {
        Some(path) => open(path),
        None => match in_program {
            Some(CompiledScheduler(scheduler)) => Ok(scheduler),
            // SAFETY: a constant, linked into this library.
            None => Ok(unsafe { &BUILTIN }),
        },
    };
    let unnamed = in_program.map_or(c"the built-in scheduler", |_| c"the program's own scheduler");
    let shown = path.as_deref().unwrap_or(unnamed).to_string_lossy();
    let checked = loaded.and_then(|scheduler| check(scheduler).map(|()| scheduler));
    let checked = checked.map(Loaded);
    checked.unwrap_or_else(|problem| report::cannot_start(&format!("{shown}: {problem}")))
}

/// The cluster that the process is to join: the one that ATTUNE_CLUSTER names, or the program's
/// options.
pub fn cluster(from_options: Option<&CStr>) -> Option<String> {
    let wanted = std::env::var_os("ATTUNE_CLUSTER").filter(|name| !name.is_empty());
    choose("ATTUNE_CLUSTER", wanted, from_options, is_privileged())?.into_string().ok()
}

/// Whether threads may move between workers: the program says so, and its user does not forbid it.
/// Ends the process where the scheduler does not know moves.
pub fn moves(from_options: bool, loaded: Loaded) -> bool {
    let forbidden = match std::env::var_os("ATTUNE_MOVES").filter(|wanted| !wanted.is_empty()) {
        None => false,
        Some(wanted) if wanted == "0" => true,
        Some(wanted) => report::cannot_start(&format!(
            "ATTUNE_MOVES={}: it may be 0, which keeps each thread on its worker; only the program \
             itself can say that they may move",
            wanted.to_string_lossy()
        )),
    };
    let moves = from_options && !forbidden;
    if moves && !loaded.may_be_split() {
        let name = text(loaded.0.name).to_string_lossy();
        report::cannot_start(&format!(
            "this program lets threads move between its workers, and the scheduler {name} has no \
             `arrives` of its own: say in it what happens to a thread that arrives from another \
             instance, choose a scheduler that does (fair, round_robin), or start the program with \
             ATTUNE_MOVES=0"
        ));
    }
    moves
}

/// Where the user wants to see and change the scheduler.
pub fn control() -> Option<PathBuf> {
    place("ATTUNE_CONTROL")
}

/// The file to which the user wants the threads traced.
pub fn trace() -> Option<PathBuf> {
    place("ATTUNE_TRACE")
}

fn place(variable: &str) -> Option<PathBuf> {
    let wanted = std::env::var_os(variable).filter(|place| !place.is_empty());
    let place = choose(variable, wanted, None, is_privileged())?;
    Some(PathBuf::from(OsStr::from_bytes(place.to_bytes())))
}

/// What the variable of the environment says, or else the options.
fn choose(
    variable: &str,
    wanted: Option<OsString>,
    from_options: Option<&CStr>,
    privileged: bool,
) -> Option<CString> {
    let wanted = wanted.and_then(|path| CString::new(path.as_bytes()).ok());
    if privileged && wanted.is_some() {
        report::note(&format!(
            "{variable} is ignored: this program runs with more rights than its caller has"
        ));
    }
    wanted.filter(|_| !privileged).or_else(|| from_options.map(CString::from))
}

/// Whether the kernel started the program with rights that its caller lacks (set-uid, set-gid,
/// capabilities).
fn is_privileged() -> bool {
    // SAFETY: reads the auxiliary vector.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

fn open(path: &CStr) -> Result<&'static abi::Scheduler, String> {
    // dlopen looks for a name without a slash among the system's libraries; a scheduler is a file.
    let here = [c"./".to_bytes(), path.to_bytes()].concat();
    let here = CString::new(here).unwrap_or_default();
    let path = if path.to_bytes().contains(&b'/') { path } else { &here };
    refuse_other_files(Path::new(std::ffi::OsStr::from_bytes(path.to_bytes())))?;
    // SAFETY: running the file's code is what the user asks for; it is never unloaded.
    unsafe {
        let library = libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL);
        if library.is_null() {
            return Err(format!("cannot load it: {}", dl_error()));
        }
        let symbol = libc::dlsym(library, c"attune_scheduler".as_ptr());
        let missing = "this library is no compiled scheduler, it does not define \
                       `attune_scheduler`";
        let path = Path::new("FILE.sched");
        symbol
            .cast::<abi::Scheduler>()
            .as_ref()
            .ok_or_else(|| format!("{missing}; {}", how_to_compile(path)))
    }
}

/// Says what the user did where the dynamic linker would say "invalid ELF header".
fn refuse_other_files(path: &Path) -> Result<(), String> {
    let text = path.extension().is_some_and(|extension| extension == "sched");
    let wanted = if text { path } else { Path::new("FILE.sched") };
    let mut magic = [0; 4];
    let read = match fs::metadata(path) {
        Ok(file) if file.is_file() => {
            fs::File::open(path).and_then(|mut file| file.read_exact(&mut magic))
        }
        Ok(_) => Err(ErrorKind::InvalidInput.into()),
        Err(error) => Err(error),
    };
    let problem = match read {
        Ok(()) if magic == *b"\x7fELF" => return Ok(()),
        Err(error) if error.kind() == ErrorKind::NotFound => "there is no such file",
        // The dynamic linker says why it cannot read the file.
        Err(error) if error.kind() == ErrorKind::PermissionDenied => return Ok(()),
        _ if text => "this is the text of a scheduler, and the threads engine loads compiled ones",
        _ => "this is no compiled scheduler",
    };
    Err(format!("{problem}; {}", how_to_compile(wanted)))
}

fn how_to_compile(text: &Path) -> String {
    let shared_object = Path::new(text.file_name().unwrap_or_default()).with_extension("so");
    format!(
        "to make one: attune build {} --engine threads -o {}",
        text.display(),
        shared_object.display()
    )
}

fn dl_error() -> String {
    // SAFETY: dlerror returns a string that lives until the next dl call, or null.
    unsafe {
        let message: *const c_char = libc::dlerror();
        if message.is_null() {
            "unknown".into()
        } else {
            CStr::from_ptr(message).to_string_lossy().into()
        }
    }
}

/// Whether this engine can run the scheduler.
fn check(scheduler: &abi::Scheduler) -> Result<(), String> {
    // The rest of the struct means something only if the version does.
    if scheduler.abi != abi::VERSION {
        let (theirs, ours) = (scheduler.abi, abi::VERSION);
        return Err(format!(
            "it was compiled for version {theirs} of the scheduler interface, this library has \
                {ours}; compile it again"
        ));
    }
    if (scheduler.thread_size as usize) < size_of::<abi::Thread>() {
        return Err(format!("its thread record is too small ({} bytes)", scheduler.thread_size));
    }
    if (scheduler.state_size as usize) < size_of::<abi::Instance>() {
        return Err(format!("its state is too small ({} bytes)", scheduler.state_size));
    }
    if !scheduler.only.is_null() {
        return Err("it is made for firmware".into());
    }
    let has = |event: Event| scheduler.handler[event as usize].is_some();
    let mut missing = Vec::new();
    for (event, name) in [
        (Event::NewThread, "newthread"),
        (Event::Schedule, "schedule"),
        (Event::SwitchOut, "switch_out"),
    ] {
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
        assert_eq!(
            choose("ATTUNE_SCHED", Some("a.so".into()), Some(c"b.so"), false),
            Some(c"a.so".into())
        );
        assert_eq!(choose("ATTUNE_SCHED", None, Some(c"b.so"), false), Some(c"b.so".into()));
        assert_eq!(choose("ATTUNE_SCHED", None, None, false), None);
    }

    #[test]
    fn a_privileged_program_ignores_the_environment() {
        assert_eq!(
            choose("ATTUNE_SCHED", Some("a.so".into()), Some(c"b.so"), true),
            Some(c"b.so".into())
        );
        assert_eq!(choose("ATTUNE_SCHED", Some("a.so".into()), None, true), None);
    }
}
