//! A thread as the engine sees it, and its memory: one block that holds the engine's side and,
//! behind it, the scheduler's record.
//!
//! ```text
//!   | gap | Thread (this file)         | abi::Thread | attributes of the scheduler |
//!         ^ ThreadRef       | hot      ^ ThreadRef::record()
//!                           ^ two cache lines begin
//! ```
//!
//! Invariant: a [`ThreadRef`] is held only by structures that the engine clears before it frees the
//! thread: the table, the wait queue, the timers, the descriptors' waiters, `joiner`. Fields are
//! cells because several of these structures refer to a thread at a time, all on the OS thread of
//! the worker that has it. `waits_for`, `outcome`, `retakes`, `untimed` and the places in a queue
//! may change by the hand of another worker while the thread is in a queue, under the lock of
//! sync.rs. A thread that moves is in none of these structures but its home's table; `id`, `name`
//! and `at` may be read there, and `is_away` is its home's own.

use std::alloc::Layout;
use std::cell::{Cell, RefCell};
use std::ffi::{CStr, c_void};
use std::mem::offset_of;
use std::ops::Deref;
use std::ptr::{self, NonNull};
use std::sync::atomic::AtomicUsize;

use crate::instruments::Side;
use crate::stack::{Extent, GuardedStack};
use attune_abi as abi;

mod blocks;
mod times;
mod wait_queue;
mod waiter;

pub use blocks::BlockPool;
pub use times::Times;
pub use wait_queue::{RawMutex, WaitQueue, unlink};
pub use waiter::Waiter;

pub type ThreadId = u64;

/// Why a thread gives up the processor.
#[derive(Clone, Copy)]
pub enum Leave {
    Yield,
    YieldTo(ThreadRef),
    /// What it waits for has been set up already.
    Wait,
    Suspend,
    Exit,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum State {
    /// It may be dispatched unless it is suspended.
    Ready,
    Running,
    Waiting,
    /// It has ended and waits to be joined.
    Dead,
}

/// What a waiting thread waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum WaitsFor {
    Nothing,
    Time,
    Join(ThreadId),
    Mutex,
    Condition,
    Semaphore,
    /// The first of the descriptors, and how many there are.
    Descriptors(i32, usize),
    /// What it asked another worker to do; that worker's index.
    Worker(usize),
    /// The answer to the request of that number, from the cluster's manager.
    Answer(u64),
    /// A transfer of that file.
    File(i32),
    /// A call that a helper makes.
    Call,
}

/// Whether a thread is among the ready ones of its engine. Kept only where threads may move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listed {
    Not,
    /// It is counted, and stays.
    Pinned,
    /// It is in the list of those that may move.
    Movable,
}

/// What a new thread runs.
pub enum Body {
    C { start: extern "C-unwind" fn(*mut c_void) -> *mut c_void, argument: *mut c_void },
    Rust(Box<dyn FnOnce()>),
}

pub const NAME_SIZE: usize = 32;
/// Two cache lines, which processors fetch together.
const BLOCK_ALIGN: usize = 128;
/// Bytes at a thread's end that every switch touches. With the head of the record and a few
/// attributes they fill the two lines.
const HOT: usize = 24;

/// In the order of declaration: what every switch touches comes last, just before the record.
#[repr(C)]
pub struct Thread {
    pub id: ThreadId,
    pub waits_for: Cell<WaitsFor>,
    pub times: Times,
    /// The memory of its stack; none for the main program, and after the end.
    pub memory: Cell<Option<GuardedStack>>,

    /// NUL-terminated, so that a signal handler and C can read it.
    pub name: [u8; NAME_SIZE],
    /// Its stack, for the fault handler and debuggers; none for the main program.
    pub stack: Cell<Extent>,
    pub body: Cell<Option<Body>>,
    /// Its stack, for tools that watch memory.
    pub side: Side,

    pub result: Cell<*mut c_void>,
    pub panicked: Cell<bool>,
    pub detached: Cell<bool>,
    pub joiner: Cell<Option<ThreadRef>>,

    /// The worker that has it or, while it moves, that is to have it.
    pub at: AtomicUsize,
    /// The worker that created it, its home, has given it away.
    pub is_away: Cell<bool>,
    /// Reasons for which it stays on its worker at the moment.
    pub pins: Cell<u32>,
    /// It never leaves its worker: the program's first thread, and those of Rust.
    pub stays: Cell<bool>,
    /// Times that it went to another worker.
    pub moves: Cell<u32>,
    /// The last of the user's values for all threads that it has been given.
    pub hinted: Cell<u64>,
    /// Its place among the ready threads, see engine/ready.rs.
    pub listed: Cell<Listed>,
    pub ready_before: Cell<Option<ThreadRef>>,
    pub ready_behind: Cell<Option<ThreadRef>>,

    /// Places in the timer heap, see timers.rs.
    pub timer_places: [Cell<u32>; 2],
    /// It was signalled, and waits for the mutex now, so its wait's timeout means nothing.
    pub untimed: Cell<bool>,
    /// The queue it waits in, and its neighbours there.
    pub queue: Cell<*const WaitQueue>,
    pub queue_previous: Cell<Option<ThreadRef>>,
    pub queue_next: Cell<Option<ThreadRef>>,
    /// The mutex that a waiter for a condition takes when it is woken.
    pub retakes: Cell<*const RawMutex>,
    /// The descriptors it waits for, on its own stack.
    pub waiters: Cell<*const [Waiter]>,
    /// Per-thread imports that the engine owns: offset of the scheduler's link, and the storage.
    pub cells: RefCell<Vec<(usize, Box<Cell<u64>>)>>,
    record_size: usize,

    pub state: Cell<State>,
    pub suspended: Cell<bool>,
    /// A command suspends it when it yields next.
    pub suspend_next: Cell<bool>,
    /// The trace knows its name.
    pub is_told: Cell<bool>,
    /// How the last wait ended: 0 or an errno.
    pub outcome: Cell<i32>,
    /// Where it goes on, see handover.rs; 0 for the main program.
    pub sp: Cell<usize>,
    /// Times that it was chosen.
    pub chosen: Cell<u64>,
}

const _: () = assert!(size_of::<Thread>() - offset_of!(Thread, state) == HOT);

/// A reference to a living thread's block.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub struct ThreadRef(NonNull<Thread>);

impl Deref for ThreadRef {
    type Target = Thread;

    fn deref(&self) -> &Thread {
        // SAFETY: by the module's invariant the block lives as long as a ThreadRef to it is held.
        unsafe { self.0.as_ref() }
    }
}

impl ThreadRef {
    /// A thread with a zeroed record of `record_size` bytes, whose head holds its number.
    pub fn allocate(
        id: ThreadId,
        name: &CStr,
        userdata: *mut c_void,
        record_size: usize,
    ) -> ThreadRef {
        // SAFETY: the block is fresh.
        unsafe { ThreadRef::place(blocks::allocate(record_size), id, name, userdata, record_size) }
    }

    /// # Safety
    /// The block is as [`layout`] says, its record is zeroed, and nobody else has it.
    unsafe fn place(
        block: NonNull<u8>,
        id: ThreadId,
        name: &CStr,
        userdata: *mut c_void,
        record_size: usize,
    ) -> ThreadRef {
        let thread = Thread {
            id,
            name: cut(name),
            state: Cell::new(State::Ready),
            suspended: Cell::new(false),
            suspend_next: Cell::new(false),
            is_told: Cell::new(false),
            waits_for: Cell::new(WaitsFor::Nothing),
            times: Times::default(),
            outcome: Cell::new(0),
            memory: Cell::new(None),
            stack: Cell::new(Extent::NONE),
            body: Cell::new(None),
            side: Side::new(),
            result: Cell::new(ptr::null_mut()),
            panicked: Cell::new(false),
            detached: Cell::new(false),
            joiner: Cell::new(None),
            at: AtomicUsize::new(0),
            is_away: Cell::new(false),
            pins: Cell::new(0),
            stays: Cell::new(false),
            moves: Cell::new(0),
            hinted: Cell::new(0),
            listed: Cell::new(Listed::Not),
            ready_before: Cell::new(None),
            ready_behind: Cell::new(None),
            timer_places: Default::default(),
            untimed: Cell::new(false),
            queue: Cell::new(ptr::null()),
            queue_previous: Cell::new(None),
            queue_next: Cell::new(None),
            retakes: Cell::new(ptr::null()),
            waiters: Cell::new(&[]),
            cells: RefCell::default(),
            record_size,
            sp: Cell::new(0),
            chosen: Cell::new(0),
        };
        // SAFETY: the block is aligned and large enough for a Thread with a record behind it.
        unsafe {
            let place = block.byte_add(GAP).cast::<Thread>();
            place.write(thread);
            let thread = ThreadRef(place);
            (*thread.record()).id = id;
            (*thread.record()).userdata = userdata;
            thread
        }
    }

    /// Frees the block.
    ///
    /// # Safety
    /// No other reference to the thread is used afterwards, and nothing runs on its stack.
    pub unsafe fn free(self) {
        let record_size = self.record_size;
        // SAFETY: the caller gives up the thread.
        unsafe { blocks::free(self.end(), record_size) };
    }

    /// Ends what the block holds, and returns it.
    ///
    /// # Safety
    /// As of [`ThreadRef::free`].
    unsafe fn end(self) -> NonNull<u8> {
        // SAFETY: the caller gives up the thread, which lies so far behind the begin of its block.
        unsafe {
            self.0.drop_in_place();
            self.0.cast::<u8>().byte_sub(GAP)
        }
    }

    /// The scheduler's record, behind the engine's side.
    pub fn record(self) -> *mut abi::Thread {
        // SAFETY: the block reaches beyond this offset.
        unsafe { self.0.as_ptr().byte_add(RECORD_OFFSET).cast() }
    }

    /// The thread whose record this is.
    ///
    /// # Safety
    /// `record` came from [`ThreadRef::record`] of a living thread.
    pub unsafe fn from_record(record: NonNull<abi::Thread>) -> ThreadRef {
        // SAFETY: the engine's side lies at a fixed distance before the record.
        ThreadRef(unsafe { record.byte_sub(RECORD_OFFSET).cast() })
    }

    /// Where the two lines lie that every switch touches of the thread with this record.
    pub fn hot_part(record: *const abi::Thread) -> usize {
        record.addr().wrapping_sub(HOT)
    }

    /// From the pointers that C objects keep.
    ///
    /// # Safety
    /// `pointer` is null or came from [`ThreadRef::as_ptr`] of a living thread.
    pub unsafe fn from_ptr(pointer: *const Thread) -> Option<ThreadRef> {
        NonNull::new(pointer.cast_mut()).map(ThreadRef)
    }

    pub fn as_ptr(self) -> *const Thread {
        self.0.as_ptr()
    }

    /// Whether the scheduler has said `destroy`.
    pub fn is_destroyed(self) -> bool {
        // SAFETY: the record lives with the thread.
        unsafe { (*self.record()).destroyed != 0 }
    }

    pub fn userdata(self) -> *mut c_void {
        // SAFETY: the record lives with the thread; `userdata` is the engine's field.
        unsafe { (*self.record()).userdata }
    }

    pub fn set_userdata(self, userdata: *mut c_void) {
        // SAFETY: as above.
        unsafe { (*self.record()).userdata = userdata }
    }
}

impl Thread {
    /// Whether it may go to another worker when it is ready.
    pub fn may_move(&self) -> bool {
        self.pins.get() == 0 && !self.stays.get()
    }

    pub fn name(&self) -> &CStr {
        CStr::from_bytes_until_nul(&self.name).unwrap_or_default()
    }
}

pub const RECORD_OFFSET: usize = size_of::<Thread>();
/// From the block's begin, so that what is hot begins two lines.
const GAP: usize = (RECORD_OFFSET - HOT).next_multiple_of(BLOCK_ALIGN) + HOT - RECORD_OFFSET;

fn layout(record_size: usize) -> Layout {
    let record_size = record_size.max(size_of::<abi::Thread>());
    // A record's size is a u32, so the sum is far from overflowing.
    Layout::from_size_align(GAP + RECORD_OFFSET + record_size, BLOCK_ALIGN)
        .unwrap_or(Layout::new::<Thread>())
}

fn cut(name: &CStr) -> [u8; NAME_SIZE] {
    let mut bytes = [0; NAME_SIZE];
    let name = name.to_bytes();
    let length = name.len().min(NAME_SIZE - 1);
    bytes[..length].copy_from_slice(&name[..length]);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn record_and_thread_lead_to_each_other() {
        let thread = ThreadRef::allocate(
            7,
            c"a name that is much longer than it may be",
            ptr::null_mut(),
            200,
        );
        assert_eq!(thread.name().to_bytes().len(), NAME_SIZE - 1);
        // SAFETY: the record is the thread's, which is freed only here.
        unsafe {
            let record = NonNull::new(thread.record()).unwrap();
            assert_eq!(record.as_ref().id, 7);
            assert!(ThreadRef::from_record(record) == thread);
            thread.free();
        }
    }
}
