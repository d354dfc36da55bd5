//! Building a shared object from generated C and the shim, and loading it.

use std::ffi::{CString, c_char, c_void};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

use attune_abi as abi;
use attune_replica::Change;

use super::shim::{Attach, CallHandler, Crash, Place};

const SHIM: &str = include_str!("../../shim/shim.c");

/// Why there is no library.
#[derive(Debug)]
pub enum BuildError {
    /// The compiler refused the text: what it said.
    Compiler(String),
    /// The compiler, or the folder for its output, is missing.
    System(String),
}

/// A compiled scheduler in this process. Its variables are its own: two libraries never share them.
pub struct Library {
    handle: *mut c_void,
    pub table: &'static abi::Scheduler,
    pub thread_remove: unsafe extern "C" fn(*mut abi::Thread),
    pub container_each: unsafe extern "C" fn(*mut abi::Container, abi::Visit, *mut c_void),
    pub attach: Attach,
    pub call: CallHandler,
    pub crash: Crash,
    /// A node's, if its engine merges what handlers write.
    pub merged: Option<Merged>,
}

/// Where such a node keeps what is written, and when it has heard of its cluster.
#[derive(Clone, Copy)]
pub struct Merged {
    pub written: *mut Change,
    pub heard_at: *mut i64,
}

// A library is used by the thread that holds it; nothing in it belongs to the one that loaded it.
unsafe impl Send for Library {}

static NUMBER: AtomicU64 = AtomicU64::new(0);

impl Library {
    /// Compiles the text with `cc`, with room for so many CPUs, and loads it. Leaves no file
    /// behind.
    pub fn build(text: &str, cpus: u32, optimised: bool) -> Result<Library, BuildError> {
        let system = |error: std::io::Error| BuildError::System(error.to_string());
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir()
            .join(format!("attune-conformance-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&folder).map_err(system)?;
        let built =
            compile(text, cpus, optimised, &folder).and_then(|object| Library::load(&object));
        // What cannot be removed lies in the system's temporary folder.
        let _ = std::fs::remove_dir_all(&folder);
        built
    }

    fn load(object: &Path) -> Result<Library, BuildError> {
        let path = CString::new(object.as_os_str().as_encoded_bytes())
            .map_err(|_| BuildError::System("a path with a zero byte".into()))?;
        // Safety: loading runs the object's initialisers; generated C has none.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if handle.is_null() {
            return Err(BuildError::System(load_error()));
        }
        let symbol = |name: &std::ffi::CStr| {
            // Safety: the handle is a loaded object.
            let found = unsafe { libc::dlsym(handle, name.as_ptr()) };
            if found.is_null() { Err(BuildError::System(load_error())) } else { Ok(found) }
        };
        let (table, attach) = (symbol(c"attune_scheduler")?, symbol(c"conformance_attach")?);
        let (call, crash) = (symbol(c"conformance_call")?, symbol(c"conformance_crash")?);
        // Safety: the generated text declares the symbol with this type; the table lives as long as
        // the object is loaded, and every holder of the reference holds the library.
        let table = unsafe { &*table.cast::<abi::Scheduler>() };
        if table.abi != abi::VERSION {
            return Err(BuildError::System(format!("the object has ABI {}", table.abi)));
        }
        let (Some(thread_remove), Some(container_each)) =
            (table.thread_remove, table.container_each)
        else {
            return Err(BuildError::System("the object's table lacks functions".into()));
        };
        // Safety: the shim declares these symbols with these types.
        let (attach, call, crash) = unsafe {
            (
                std::mem::transmute::<*mut c_void, Attach>(attach),
                std::mem::transmute::<*mut c_void, CallHandler>(call),
                std::mem::transmute::<*mut c_void, Crash>(crash),
            )
        };
        let place = |name| {
            symbol(name).ok().map(|function| {
                // Safety: the shim declares both with this type.
                unsafe { std::mem::transmute::<*mut c_void, Place>(function)() }
            })
        };
        let merged = place(c"conformance_written").zip(place(c"conformance_heard_at"));
        let merged = merged.map(|(written, heard_at)| Merged {
            written: written.cast(),
            heard_at: heard_at.cast(),
        });
        Ok(Library { handle, table, thread_remove, container_each, attach, call, crash, merged })
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        // Safety: nothing of the object is used after its library is gone.
        unsafe { libc::dlclose(self.handle) };
    }
}

fn compile(text: &str, cpus: u32, optimised: bool, folder: &Path) -> Result<PathBuf, BuildError> {
    let (source, object) = (folder.join("scheduler.c"), folder.join("scheduler.so"));
    std::fs::write(&source, format!("#define _GNU_SOURCE\n{text}\n#line 1 \"shim.c\"\n{SHIM}"))
        .map_err(|error| BuildError::System(error.to_string()))?;
    let output = Command::new("cc")
        .args(["-std=c11", if optimised { "-O2" } else { "-O0" }, "-w", "-shared", "-fPIC"])
        .arg(format!("-DATTUNE_CPUS={cpus}"))
        .arg("-o")
        .arg(&object)
        .arg(&source)
        .output()
        .map_err(|error| BuildError::System(format!("cc: {error}")))?;
    match output.status.success() {
        true => Ok(object),
        false => Err(BuildError::Compiler(String::from_utf8_lossy(&output.stderr).into_owned())),
    }
}

fn load_error() -> String {
    // Safety: dlerror gives a string of its own, or null.
    let message: *const c_char = unsafe { libc::dlerror() };
    if message.is_null() {
        return "unknown error".into();
    }
    // Safety: not null, ends in zero.
    unsafe { std::ffi::CStr::from_ptr(message) }.to_string_lossy().into_owned()
}
