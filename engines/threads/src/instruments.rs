//! What tools that watch a program's memory are told of stacks and switches: AddressSanitizer,
//! ThreadSanitizer and Valgrind.
//!
//! The sanitizers are there when the program was compiled with them (`-fsanitize=address` or
//! `thread`); their functions are found when the engine starts. Without them a
//! switch through the loop asks four times whether there is one: a load and a branch each.
//!
//! - AddressSanitizer keeps the bounds of the stack that runs, and a stack of copies ("fake stack")
//!   per stack, in which it finds uses after return.
//! - ThreadSanitizer sees each thread as one of its own. A switch orders what two threads of a
//!   worker do, since they can only switch inside a call. The lock of sync.rs and the inboxes of
//!   workers order what threads of several workers do; [`released`] and [`acquired`] say so, since
//!   our own code is not compiled with the sanitizer and so unseen.
//! - Valgrind takes a jump to another known stack for what it is, whatever the distance.
//!
//! Invariant: on each OS thread [`Side::leaves`] and [`Side::arrived`] come in pairs, nothing runs
//! between them but the switch of stacks.

use std::cell::Cell;
use std::ffi::{CStr, c_uint, c_void};
use std::mem::transmute_copy;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// AddressSanitizer's functions, as in `sanitizer/common_interface_defs.h` and
/// `asan_interface.h`.
#[derive(Clone, Copy)]
struct AddressSanitizer {
    start_switch: extern "C" fn(*mut *mut c_void, *const c_void, usize),
    finish_switch: extern "C" fn(*mut c_void, *mut *const c_void, *mut usize),
    unpoison: extern "C" fn(*const c_void, usize),
}

/// ThreadSanitizer's functions, as in `sanitizer/tsan_interface.h`.
#[derive(Clone, Copy)]
struct ThreadSanitizer {
    current_fiber: extern "C" fn() -> *mut c_void,
    create_fiber: extern "C" fn(c_uint) -> *mut c_void,
    destroy_fiber: extern "C" fn(*mut c_void),
    switch_to_fiber: extern "C" fn(*mut c_void, c_uint),
    acquire: extern "C" fn(*const c_void),
    release: extern "C" fn(*const c_void),
}

#[derive(Clone, Copy, Default)]
struct Tools {
    address: Option<AddressSanitizer>,
    thread: Option<ThreadSanitizer>,
}

static TOOLS: OnceLock<Tools> = OnceLock::new();
/// Whether there is any of them.
static WATCHED: AtomicBool = AtomicBool::new(false);

/// Looks which of them this program has.
pub fn find() {
    // SAFETY: the names are those of functions with these signatures.
    let tools = unsafe { Tools { address: address(), thread: thread() } };
    WATCHED.store(tools.address.is_some() || tools.thread.is_some(), Relaxed);
    // The engine starts once in a process; a second find would say the same.
    let _ = TOOLS.set(tools);
}

/// Whether they are told of switches.
pub fn are_there() -> bool {
    WATCHED.load(Relaxed)
}

#[inline]
fn watched() -> Option<&'static Tools> {
    if WATCHED.load(Relaxed) { TOOLS.get() } else { None }
}

/// # Safety
/// As of [`function`].
unsafe fn address() -> Option<AddressSanitizer> {
    // SAFETY: the caller's.
    unsafe {
        Some(AddressSanitizer {
            start_switch: function(c"__sanitizer_start_switch_fiber")?,
            finish_switch: function(c"__sanitizer_finish_switch_fiber")?,
            unpoison: function(c"__asan_unpoison_memory_region")?,
        })
    }
}

/// # Safety
/// As of [`function`].
unsafe fn thread() -> Option<ThreadSanitizer> {
    // SAFETY: the caller's.
    unsafe {
        Some(ThreadSanitizer {
            current_fiber: function(c"__tsan_get_current_fiber")?,
            create_fiber: function(c"__tsan_create_fiber")?,
            destroy_fiber: function(c"__tsan_destroy_fiber")?,
            switch_to_fiber: function(c"__tsan_switch_to_fiber")?,
            acquire: function(c"__tsan_acquire")?,
            release: function(c"__tsan_release")?,
        })
    }
}

/// A function of the program or of what it has loaded.
///
/// # Safety
/// `F` is the type of the function of that name.
pub unsafe fn function<F: Copy>(name: &CStr) -> Option<F> {
    // SAFETY: a question about what is loaded; a pointer to a function is no larger than `F`.
    unsafe {
        let found = libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr());
        (!found.is_null()).then(|| transmute_copy(&found))
    }
}

/// What the tools know a stack by: a thread's, or the one that an OS thread came with.
pub struct Side {
    fake_stack: Cell<*mut c_void>,
    fiber: Cell<*mut c_void>,
    lowest: Cell<*const c_void>,
    size: Cell<usize>,
}

impl Side {
    pub const fn new() -> Side {
        Side {
            fake_stack: Cell::new(ptr::null_mut()),
            fiber: Cell::new(ptr::null_mut()),
            lowest: Cell::new(ptr::null()),
            size: Cell::new(0),
        }
    }

    /// The stack of a new thread: its lowest byte, and how many there are.
    pub fn has_stack(&self, lowest: usize, size: usize) {
        let Some(tools) = watched() else { return };
        self.lowest.set(lowest as *const c_void);
        self.size.set(size);
        if let Some(thread) = tools.thread {
            self.fiber.set((thread.create_fiber)(0));
        }
    }

    /// This side is about to give the processor to the other one, `for_good` when its thread ends.
    #[inline]
    pub fn leaves<'a>(&self, other: impl FnOnce() -> &'a Side, for_good: bool) {
        if let Some(tools) = watched() {
            self.tell_leave(tools, other(), for_good);
        }
    }

    /// This side has the processor, which the other one gave up.
    #[inline]
    pub fn arrived<'a>(&self, from: impl FnOnce() -> &'a Side) {
        if let Some(tools) = watched() {
            self.tell_arrival(tools, from());
        }
    }

    /// The thread has ended, and another one may get its stack.
    pub fn ends(&self) {
        let Some(tools) = watched() else { return };
        if let Some(address) = tools.address {
            // A thread that called attune_exit has left its frames as they were.
            (address.unpoison)(self.lowest.get(), self.size.get());
        }
        let fiber = self.fiber.replace(ptr::null_mut());
        if let Some(thread) = tools.thread.filter(|_| !fiber.is_null()) {
            (thread.destroy_fiber)(fiber);
        }
    }

    #[cold]
    fn tell_leave(&self, tools: &Tools, other: &Side, for_good: bool) {
        if let Some(address) = tools.address {
            let keep = if for_good { ptr::null_mut() } else { self.fake_stack.as_ptr() };
            (address.start_switch)(keep, other.lowest.get(), other.size.get());
        }
        if let Some(thread) = tools.thread {
            if self.fiber.get().is_null() {
                self.fiber.set((thread.current_fiber)());
            }
            (thread.switch_to_fiber)(other.fiber.get(), 0);
        }
    }

    #[cold]
    fn tell_arrival(&self, tools: &Tools, from: &Side) {
        if let Some(address) = tools.address {
            let (mut lowest, mut size) = (ptr::null(), 0);
            (address.finish_switch)(self.fake_stack.get(), &mut lowest, &mut size);
            from.lowest.set(lowest);
            from.size.set(size);
        }
    }
}

/// What this OS thread did until now comes before what another one does after [`acquired`].
#[inline]
pub fn released<T>(object: &T) {
    if let Some(thread) = watched().and_then(|tools| tools.thread) {
        (thread.release)(ptr::from_ref(object).cast());
    }
}

#[inline]
pub fn acquired<T>(object: &T) {
    if let Some(thread) = watched().and_then(|tools| tools.thread) {
        (thread.acquire)(ptr::from_ref(object).cast());
    }
}

/// A stack's number at Valgrind; 0 where there is none.
#[derive(Clone, Copy)]
pub struct Registered(usize);

/// Tells Valgrind of a stack, `limit` its lowest byte.
pub fn register_stack(limit: usize, end: usize) -> Registered {
    Registered(valgrind::ask([valgrind::STACK_REGISTER, limit, end - 1]))
}

/// Whether the program runs under Valgrind.
pub fn under_valgrind() -> bool {
    valgrind::ask([valgrind::RUNNING, 0, 0]) != 0
}

pub fn forget_stack(Registered(number): Registered) {
    valgrind::ask([valgrind::STACK_DEREGISTER, number, 0]);
}

/// Client requests, as in `valgrind/valgrind.h`: instructions that do nothing on a processor, and
/// that Valgrind knows.
mod valgrind {
    pub const RUNNING: usize = 0x1001;
    pub const STACK_REGISTER: usize = 0x1501;
    pub const STACK_DEREGISTER: usize = 0x1502;

    #[cfg(target_arch = "x86_64")]
    pub fn ask([request, first, second]: [usize; 3]) -> usize {
        let words = [request, first, second, 0, 0, 0];
        let mut answer = 0;
        // SAFETY: four rotations that together leave rdi as it is, and an exchange of rbx with
        // itself. Valgrind reads `words` and writes rdx.
        unsafe {
            std::arch::asm!(
                "rol rdi, 3",
                "rol rdi, 13",
                "rol rdi, 61",
                "rol rdi, 51",
                "xchg rbx, rbx",
                inout("rdx") answer,
                in("rax") words.as_ptr(),
                options(nostack),
            );
        }
        answer
    }

    #[cfg(not(target_arch = "x86_64"))]
    pub fn ask(_: [usize; 3]) -> usize {
        0
    }
}
