//! Bindings of imports: the application's variables under the scheduler's names.
//!
//! The scheduler holds a link for each import: the address of the variable, null while the default
//! is in force, and its width. A thread import has a link in every thread's record; it leads into
//! the thread's userdata (registered by offset) or to storage that the engine owns.

use std::cell::Cell;
use std::ffi::{CStr, c_void};
use std::ptr;

use attune_values::Width;

use crate::errno::{Errno, Result};
use crate::report;
use crate::scheduler::Scheduler;
use crate::thread::ThreadRef;
use crate::thread_table::ThreadTable;
use attune_abi::{IMPORTED, Import, TYPE_FLOAT, Variable};

/// What to do about a name that the scheduler lacks.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unknown {
    /// Say so and fail.
    Error,
    /// Say so and go on.
    Warn,
    Ignore,
}

/// Where a thread import's variables are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Source {
    /// In the userdata, at this offset.
    Userdata(usize),
    /// In `Thread::cells`, for threads that asked.
    Engine,
}

struct ThreadBinding {
    variable: &'static Variable,
    source: Source,
}

pub struct ImportBindings {
    unknown: Unknown,
    thread_bindings: Vec<ThreadBinding>,
}

impl ImportBindings {
    pub fn new(decides: bool, ignore_unknown: bool) -> ImportBindings {
        let unknown = match std::env::var("ATTUNE_UNKNOWN_IMPORTS").as_deref() {
            // The first worker hears of a name first, and decides.
            _ if !decides => Unknown::Ignore,
            Ok("error") => Unknown::Error,
            Ok("warn") => Unknown::Warn,
            Ok("ignore") => Unknown::Ignore,
            Ok(other) => {
                report::note(&format!(
                    "ATTUNE_UNKNOWN_IMPORTS={other}: it may be error, warn or ignore"
                ));
                Unknown::Error
            }
            Err(_) if ignore_unknown => Unknown::Ignore,
            Err(_) => Unknown::Error,
        };
        ImportBindings { unknown, thread_bindings: Vec::new() }
    }

    /// Binds a global import to the application's variable. ENOENT, EINVAL.
    pub fn register(
        &mut self,
        scheduler: &Scheduler,
        name: &CStr,
        variable: *mut c_void,
        width: Width,
    ) -> Result<()> {
        let Some(import) = self.find(scheduler, name, Scope::Global)? else { return Ok(()) };
        bind(scheduler, import, variable, width)
    }

    /// Binds a thread import to an offset in the userdata of all threads, present and future.
    /// ENOENT, EINVAL.
    pub fn register_thread(
        &mut self,
        scheduler: &Scheduler,
        threads: &ThreadTable,
        name: &CStr,
        offset: usize,
        width: Width,
    ) -> Result<()> {
        let Some(import) = self.find(scheduler, name, Scope::Thread)? else { return Ok(()) };
        self.set_source(scheduler, import, Source::Userdata(offset), width);
        for thread in threads.iter() {
            bind_thread(import, Source::Userdata(offset), thread);
        }
        Ok(())
    }

    /// The default holds again. ENOENT; EINVAL: nothing is registered.
    pub fn unregister(
        &mut self,
        scheduler: &Scheduler,
        threads: &ThreadTable,
        name: &CStr,
    ) -> Result<()> {
        if let Some(import) = search(scheduler.globals(), name) {
            if !Scope::is_usable(import) {
                return Err(Errno(libc::EINVAL));
            }
            // SAFETY: the state holds an import there, and no handler runs.
            let link = unsafe { &mut (*global_import(scheduler, import)).link };
            let linked = !std::mem::replace(link, ptr::null_mut()).is_null();
            return if linked { Ok(()) } else { Err(Errno(libc::EINVAL)) };
        }
        let import = search(scheduler.attributes(), name).ok_or(Errno(libc::ENOENT))?;
        let place =
            self.thread_bindings.iter().position(|binding| ptr::eq(binding.variable, import));
        self.thread_bindings.swap_remove(place.ok_or(Errno(libc::EINVAL))?);
        for thread in threads.iter() {
            set_cell(import, thread, ptr::null_mut());
            thread.cells.borrow_mut().retain(|(offset, _)| *offset != import.offset);
        }
        Ok(())
    }

    /// Storage that the engine owns for a global import. ENOENT, EINVAL.
    pub fn import(
        &mut self,
        scheduler: &Scheduler,
        name: &CStr,
        width: Width,
    ) -> Result<*mut c_void> {
        let import = self.find_known(scheduler, name, Scope::Global)?;
        // SAFETY: the state holds an import there.
        let in_force = unsafe { &raw const (*global_import(scheduler, import)).value };
        let cell = owned(narrow(in_force, import.ty, width));
        let storage = Box::leak(cell).as_ptr().cast();
        bind(scheduler, import, storage, width).map(|()| storage)
    }

    /// The engine owns the storage of a thread import, for the threads that ask for some. ENOENT,
    /// EINVAL, EBUSY.
    pub fn own_thread_import(
        &mut self,
        scheduler: &Scheduler,
        threads: &ThreadTable,
        name: &CStr,
        width: Width,
    ) -> Result<()> {
        let import = self.find_known(scheduler, name, Scope::Thread)?;
        if !self.is_owned(scheduler, import, width)? {
            self.set_source(scheduler, import, Source::Engine, width);
            // One may have asked on another worker, before it came.
            threads.iter().for_each(|thread| bind_thread(import, Source::Engine, thread));
        }
        Ok(())
    }

    /// Whether [`ImportBindings::own_thread_import`] has been called here. ENOENT, EINVAL, EBUSY.
    pub fn owns_thread_import(
        &self,
        scheduler: &Scheduler,
        name: &CStr,
        width: Width,
    ) -> Result<bool> {
        let import = self.find_known(scheduler, name, Scope::Thread)?;
        self.is_owned(scheduler, import, width)
    }

    /// Whether the engine owns the thread import's storage already. EBUSY: it is registered
    /// otherwise.
    fn is_owned(&self, scheduler: &Scheduler, import: &Variable, width: Width) -> Result<bool> {
        match self.thread_bindings.iter().find(|binding| ptr::eq(binding.variable, import)) {
            Some(binding)
                if binding.source != Source::Engine
                    // SAFETY: the state holds a width there.
                    || unsafe { *scheduler.place::<u32>(import.width) } != width as u32 =>
            {
                Err(Errno(libc::EBUSY))
            }
            binding => Ok(binding.is_some()),
        }
    }

    /// Storage that the engine owns for one thread's import, made at the first call.
    /// ENOENT, EINVAL, EBUSY.
    pub fn thread_import(
        &mut self,
        scheduler: &Scheduler,
        thread: ThreadRef,
        name: &CStr,
        width: Width,
    ) -> Result<*mut c_void> {
        let import = self.find_known(scheduler, name, Scope::Thread)?;
        if !self.is_owned(scheduler, import, width)? {
            self.set_source(scheduler, import, Source::Engine, width);
        }
        let mut cells = thread.cells.borrow_mut();
        let place =
            cells.iter().position(|(offset, _)| *offset == import.offset).unwrap_or_else(|| {
                // SAFETY: an import's part of the record holds an int64_t or a double behind the
                // link.
                let in_force = unsafe { &raw const (*import_of(import, thread)).value };
                cells.push((import.offset, owned(narrow(in_force, import.ty, width))));
                cells.len() - 1
            });
        let storage = cells[place].1.as_ptr().cast();
        set_cell(import, thread, storage);
        Ok(storage)
    }

    /// Binds all thread imports of a new thread, or of one whose userdata has changed.
    pub fn bind_thread_imports(&self, thread: ThreadRef) {
        for binding in &self.thread_bindings {
            bind_thread(binding.variable, binding.source, thread);
        }
    }

    /// Binds all thread imports of a thread that comes from another worker, whose bindings may be
    /// older or newer than these.
    pub fn bind_again(&self, scheduler: &Scheduler, thread: ThreadRef) {
        let imports = scheduler.attributes().iter();
        for import in imports.filter(|it| it.imported == IMPORTED && Scope::is_usable(it)) {
            match self.thread_bindings.iter().find(|it| ptr::eq(it.variable, import)) {
                Some(binding) => bind_thread(import, binding.source, thread),
                None => set_cell(import, thread, ptr::null_mut()),
            }
        }
    }

    /// Whether the program supplies this import of all threads or of some.
    pub fn supplies(&self, import: &Variable) -> bool {
        self.thread_bindings.iter().any(|binding| ptr::eq(binding.variable, import))
    }

    fn set_source(
        &mut self,
        scheduler: &Scheduler,
        import: &'static Variable,
        source: Source,
        width: Width,
    ) {
        self.thread_bindings.retain(|link| !ptr::eq(link.variable, import));
        self.thread_bindings.push(ThreadBinding { variable: import, source });
        // SAFETY: `find` has seen that the state holds a width there.
        unsafe { *scheduler.place::<u32>(import.width) = width as u32 };
    }

    /// None: unknown, and that does not matter.
    fn find(
        &self,
        scheduler: &Scheduler,
        name: &CStr,
        scope: Scope,
    ) -> Result<Option<&'static Variable>> {
        let (wanted, other) = scope.tables(scheduler);
        if let Some(import) = search(wanted, name) {
            return if Scope::is_usable(import) {
                Ok(Some(import))
            } else {
                Err(Errno(libc::EINVAL))
            };
        }
        let shown = name.to_string_lossy();
        let scheduler_name = scheduler.name().to_string_lossy();
        if search(other, name).is_some() {
            let is = scope.other();
            report::note(&format!("`{shown}` is {is} in the scheduler {scheduler_name}"));
            return Err(Errno(libc::EINVAL));
        }
        if self.unknown != Unknown::Ignore {
            let known = names(wanted);
            let hint =
                if known.is_empty() { "it has none".into() } else { format!("it has {known}") };
            report::note(&format!(
                "the scheduler {scheduler_name} has no {} `{shown}`; {hint}",
                scope.name()
            ));
        }
        if self.unknown == Unknown::Error { Err(Errno(libc::ENOENT)) } else { Ok(None) }
    }

    /// As `find`, for callers that need storage: an unknown name is always an error.
    fn find_known(
        &self,
        scheduler: &Scheduler,
        name: &CStr,
        scope: Scope,
    ) -> Result<&'static Variable> {
        self.find(scheduler, name, scope)?.ok_or(Errno(libc::ENOENT))
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Scope {
    Global,
    Thread,
}

impl Scope {
    /// Where imports of this sort are, and where those of the other.
    fn tables(self, scheduler: &Scheduler) -> (&'static [Variable], &'static [Variable]) {
        match self {
            Scope::Global => (scheduler.globals(), scheduler.attributes()),
            Scope::Thread => (scheduler.attributes(), scheduler.globals()),
        }
    }

    fn is_usable(import: &Variable) -> bool {
        import.width != 0
    }

    fn name(self) -> &'static str {
        if self == Scope::Global { "import" } else { "thread import" }
    }

    fn other(self) -> &'static str {
        if self == Scope::Global {
            "a thread import, not an import,"
        } else {
            "an import, not a thread import,"
        }
    }
}

fn search(variables: &'static [Variable], name: &CStr) -> Option<&'static Variable> {
    variables.iter().find(|variable| variable.imported == IMPORTED && spelling(variable) == name)
}

fn names(variables: &[Variable]) -> String {
    let usable = variables
        .iter()
        .filter(|variable| variable.imported == IMPORTED && Scope::is_usable(variable));
    let names: Vec<_> = usable.map(|variable| spelling(variable).to_string_lossy()).collect();
    names.join(", ")
}

fn spelling(variable: &Variable) -> &CStr {
    // SAFETY: names in a scheduler are static strings.
    unsafe { CStr::from_ptr(variable.name) }
}

fn bind(
    scheduler: &Scheduler,
    import: &Variable,
    variable: *mut c_void,
    width: Width,
) -> Result<()> {
    if variable.is_null() {
        return Err(Errno(libc::EINVAL));
    }
    // SAFETY: the state holds an import and its width there; handlers alone read them.
    unsafe {
        *scheduler.place::<u32>(import.width) = width as u32;
        (*global_import(scheduler, import)).link = variable;
    }
    Ok(())
}

fn bind_thread(import: &Variable, source: Source, thread: ThreadRef) {
    match source {
        Source::Userdata(offset) => {
            let userdata = thread.userdata();
            let variable =
                if userdata.is_null() { userdata } else { userdata.wrapping_byte_add(offset) };
            set_cell(import, thread, variable);
        }
        Source::Engine => {
            let cells = thread.cells.borrow();
            let cell = cells.iter().find(|(offset, _)| *offset == import.offset);
            set_cell(
                import,
                thread,
                cell.map_or(ptr::null_mut(), |(_, cell)| cell.as_ptr().cast()),
            );
        }
    }
}

fn set_cell(import: &Variable, thread: ThreadRef, variable: *mut c_void) {
    // SAFETY: see import_of.
    unsafe { (*import_of(import, thread)).link = variable }
}

/// The scheduler's table says that an import lies at this offset of the state.
fn global_import(scheduler: &Scheduler, import: &Variable) -> *mut Import {
    scheduler.place(import.offset)
}

/// The scheduler's table says that an import's part lies at this offset of every record.
fn import_of(import: &Variable, thread: ThreadRef) -> *mut Import {
    thread.record().wrapping_byte_add(import.offset).cast()
}

fn owned(bits: u64) -> Box<Cell<u64>> {
    Box::new(Cell::new(bits))
}

/// The bits of the value in force, an int64_t or a double, in storage of that width; 0 where the
/// scheduler does not tell it.
fn narrow(in_force: *const u64, ty: u32, width: Width) -> u64 {
    // SAFETY: null, or a place in the scheduler's globals or in a thread's record.
    let Some(bits) = (unsafe { in_force.as_ref() }) else { return 0 };
    let kind = if ty == TYPE_FLOAT { Width::F64 } else { Width::I64 };
    u64::from_ne_bytes(width.store(kind.load(&bits.to_ne_bytes()).value).value)
}
