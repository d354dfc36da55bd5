//! Starting, threads, numbers.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::mem::{MaybeUninit, offset_of};
use std::ptr;

use super::{posix, status};
use crate::clock;
use crate::engine::{New, modes, worker};
use crate::errno::{self, Errno};
use crate::io;
use crate::load::CompiledScheduler;
use crate::operations::{self, Place};
use crate::preemption;
use crate::process::{self, Settings, here, leave, with};
use crate::remote;
use crate::statistics::{self, Statistics};
use crate::thread::{Body, Leave, ThreadId};

/// `ATTUNE_LEAST_LOADED`.
const LEAST_LOADED: c_int = -1;

/// `struct attune_options`.
#[repr(C)]
pub struct Options {
    size: usize,
    scheduler: *const c_char,
    stack_size: usize,
    stack_cache: usize,
    ignore_unknown_imports: c_int,
    seed: u64,
    cluster: *const c_char,
    workers: c_uint,
    preempt: c_int,
    moves: c_int,
    scheduler_in_program: *const CompiledScheduler,
}

/// The size of the options before members were added behind `moves`.
const FIRST_SIZE: usize = offset_of!(Options, scheduler_in_program);

/// `struct attune_attributes`.
#[repr(C)]
pub struct Attributes {
    name: *const c_char,
    stack_size: usize,
    userdata: *mut c_void,
    detached: c_int,
    worker: c_int,
    pinned: c_int,
}

#[unsafe(no_mangle)]
unsafe extern "C" fn attune_init(options: *const Options) -> c_int {
    status(|| {
        if options.is_null() {
            return process::start(Settings::default());
        }
        // SAFETY: options whose `size` says how much of them there is.
        let size = unsafe { (*options).size };
        if size != size_of::<Options>() && size != FIRST_SIZE {
            return Err(Errno(libc::EINVAL));
        }
        let mut all = MaybeUninit::<Options>::zeroed();
        // SAFETY: so many bytes of them are there; zero is the default of what is not.
        let options = unsafe {
            ptr::copy_nonoverlapping(options.cast::<u8>(), all.as_mut_ptr().cast(), size);
            all.assume_init_ref()
        };
        process::start(Settings {
            scheduler: text(options.scheduler),
            // SAFETY: null, or a constant of the program.
            scheduler_in_program: unsafe { options.scheduler_in_program.as_ref() },
            stack_size: options.stack_size,
            stack_cache: options.stack_cache,
            ignore_unknown_imports: options.ignore_unknown_imports != 0,
            seed: options.seed,
            cluster: text(options.cluster),
            workers: options.workers as usize,
            preempt: options.preempt != 0,
            moves: options.moves != 0,
        })
    })
}

#[unsafe(no_mangle)]
extern "C" fn attune_scheduler_name() -> *const c_char {
    posix(ptr::null(), || with(|engine| engine.scheduler.name().as_ptr()))
}

#[unsafe(no_mangle)]
extern "C" fn attune_now() -> i64 {
    clock::now()
}

#[unsafe(no_mangle)]
unsafe extern "C" fn attune_create(
    thread: *mut ThreadId,
    attributes: *const Attributes,
    start: Option<extern "C-unwind" fn(*mut c_void) -> *mut c_void>,
    argument: *mut c_void,
) -> c_int {
    status(|| {
        let start = start.ok_or(Errno(libc::EINVAL))?;
        // SAFETY: null or valid attributes.
        let attributes = unsafe { attributes.as_ref() };
        let name = attributes.and_then(|attributes| text(attributes.name)).unwrap_or(c"thread");
        let stack_size = attributes.map_or(0, |attributes| attributes.stack_size);
        let userdata = attributes.map_or(ptr::null_mut(), |attributes| attributes.userdata);
        let detached = attributes.is_some_and(|attributes| attributes.detached != 0);
        let pinned = attributes.is_some_and(|attributes| attributes.pinned != 0);
        let place = match attributes.map_or(0, |attributes| attributes.worker) {
            0 => Place::Here,
            LEAST_LOADED => Place::LeastLoaded,
            number => Place::Worker(usize::try_from(number - 1).unwrap_or(usize::MAX)),
        };
        let body = Body::C { start, argument };
        let new = New { name, stack_size, userdata, detached, pinned, body };
        let id = operations::create(new, place)?;
        if !thread.is_null() {
            // SAFETY: a place for the number.
            unsafe { thread.write(id) };
        }
        // Only now: it may run elsewhere at once.
        operations::offer()
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn attune_join(thread: ThreadId, result: *mut *mut c_void) -> c_int {
    status(|| {
        let value = operations::join(thread)?;
        if !result.is_null() {
            // SAFETY: a place for the result.
            unsafe { result.write(value) };
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn attune_detach(thread: ThreadId) -> c_int {
    status(|| operations::detach(thread))
}

#[unsafe(no_mangle)]
extern "C" fn attune_exit(result: *mut c_void) -> ! {
    // Whether this is a thread at all, process::exit finds out.
    let _ = with(|engine| engine.current().result.set(result));
    process::exit()
}

#[unsafe(no_mangle)]
extern "C" fn attune_self() -> ThreadId {
    posix(0, || with(|engine| engine.current().id))
}

#[unsafe(no_mangle)]
extern "C" fn attune_workers() -> c_int {
    posix(-1, || here().map(|_| worker::all().len() as c_int))
}

#[unsafe(no_mangle)]
extern "C" fn attune_worker() -> c_int {
    posix(-1, || here().map(|worker| worker.index as c_int + 1))
}

#[unsafe(no_mangle)]
extern "C" fn attune_pin() -> c_int {
    status(operations::pin)
}

#[unsafe(no_mangle)]
extern "C" fn attune_unpin() -> c_int {
    status(operations::unpin)
}

#[unsafe(no_mangle)]
extern "C" fn attune_errno() -> *mut c_int {
    errno::place()
}

#[unsafe(no_mangle)]
extern "C" fn attune_name(thread: ThreadId) -> *const c_char {
    posix(ptr::null(), || {
        let address = remote::on(thread, |engine| {
            let thread = engine.thread(thread)?;
            // The name lies in the thread's block, so it lives as long as the thread is known.
            // SAFETY: the block is alive.
            Ok(unsafe { (*thread.as_ptr()).name().as_ptr() })
        });
        address?
    })
}

#[unsafe(no_mangle)]
extern "C" fn attune_yield() -> c_int {
    status(|| leave(Leave::Yield))
}

#[unsafe(no_mangle)]
extern "C" fn attune_yield_to(thread: ThreadId) -> c_int {
    status(|| operations::yield_to(thread))
}

#[unsafe(no_mangle)]
extern "C" fn attune_check() -> c_int {
    if modes::any() { opted_check() } else { 0 }
}

/// Apart, so that programs that have not opted in do not pay for the registers that it needs.
#[inline(never)]
fn opted_check() -> c_int {
    status(preemption::check)
}

#[unsafe(no_mangle)]
extern "C" fn attune_timeslice_left() -> i64 {
    posix(-1, preemption::slice_left)
}

#[unsafe(no_mangle)]
extern "C" fn attune_suspend(thread: ThreadId) -> c_int {
    status(|| operations::suspend(thread))
}

#[unsafe(no_mangle)]
extern "C" fn attune_resume(thread: ThreadId) -> c_int {
    status(|| operations::resume(thread))
}

#[unsafe(no_mangle)]
extern "C" fn attune_sleep_until(time: i64) -> c_int {
    status(|| io::sleep_until(time))
}

#[unsafe(no_mangle)]
extern "C" fn attune_sleep_for(nanoseconds: i64) -> c_int {
    status(|| io::sleep_until(clock::deadline(nanoseconds)))
}

#[unsafe(no_mangle)]
extern "C" fn attune_userdata(thread: ThreadId) -> *mut c_void {
    posix(ptr::null_mut(), || remote::on(thread, |engine| Ok(engine.thread(thread)?.userdata()))?)
}

#[unsafe(no_mangle)]
extern "C" fn attune_set_userdata(thread: ThreadId, userdata: *mut c_void) -> c_int {
    status(|| operations::set_userdata(thread, userdata))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn attune_stats(statistics: *mut Statistics, size: usize) -> c_int {
    status(|| {
        if size != size_of::<Statistics>() || statistics.is_null() {
            return Err(Errno(libc::EINVAL));
        }
        let numbers = statistics::collect()?;
        // SAFETY: not null, and as large as said.
        unsafe { statistics.write(numbers) };
        Ok(())
    })
}

/// None: NULL.
pub fn text<'a>(text: *const c_char) -> Option<&'a CStr> {
    // SAFETY: null or a string, as the header says.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) })
}
