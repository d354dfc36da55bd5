//! The loaded scheduler: calls to its handlers, its answers, its errors, its containers' names.
//!
//! Invariant: handlers are called one at a time and from nowhere but here. What a handler asks of the engine
//! while it runs (alarms) is put down and picked up after it has returned.

use std::cell::RefCell;
use std::ffi::{CStr, c_char, c_void};
use std::ptr::{self, NonNull};

use crate::report;
use crate::thread::ThreadRef;
use attune_abi::{self as abi, Event};

/// What the scheduler's requests go to. Its address is given to the scheduler, so it never moves.
struct Desk {
    alarms: RefCell<Vec<(ThreadRef, i64)>>,
}

pub struct Scheduler {
    abi: &'static abi::Scheduler,
    call: abi::Call,
    desk: &'static Desk,
    calls: u64,
}

impl Scheduler {
    /// Attaches a scheduler that load.rs has checked: containers empty, globals at their initial values.
    pub fn attach(scheduler: &'static abi::Scheduler, seed: u64) -> Scheduler {
        let desk: &'static Desk = Box::leak(Box::new(Desk { alarms: RefCell::default() }));
        let host = Box::leak(Box::new(abi::Host {
            engine: ptr::from_ref(desk).cast_mut().cast(),
            trap,
            alarm,
            preempt,
            seed,
            cpus: 1,
        }));
        if let Some(attach) = scheduler.attach {
            // SAFETY: the host lives for ever.
            unsafe { attach(host) };
        }
        let call = abi::Call {
            now: 0,
            cpu: 0,
            cpus: 1,
            dispatched: ptr::null_mut(),
            slice: -1,
            value: 0,
            value_thread: ptr::null_mut(),
        };
        Scheduler { abi: scheduler, call, desk, calls: 0 }
    }

    pub fn has(&self, event: Event) -> bool {
        self.abi.handler[event as usize].is_some()
    }

    /// Calls the handler, if there is one. `thread` is what it is about.
    #[inline]
    pub fn raise(&mut self, event: Event, thread: Option<ThreadRef>, now: i64) {
        if let Some(handler) = self.abi.handler[event as usize] {
            self.calls += 1;
            self.call.now = now;
            let record = thread.map_or(ptr::null_mut(), ThreadRef::record);
            // SAFETY: the record is that of a living thread that the scheduler knows, or null where the event has none.
            unsafe { handler(&mut self.call, record) };
        }
    }

    /// Asks the scheduler for the next thread.
    #[inline]
    pub fn schedule(&mut self, now: i64) -> Option<ThreadRef> {
        self.call.dispatched = ptr::null_mut();
        self.call.slice = -1;
        self.raise(Event::Schedule, None, now);
        // SAFETY: a scheduler dispatches from its containers, and these hold records of living threads only.
        NonNull::new(self.call.dispatched).map(|record| unsafe { ThreadRef::from_record(record) })
    }

    /// Asks a yes-or-no query; true where the scheduler does not answer it.
    pub fn allows(&mut self, query: Event, thread: ThreadRef, now: i64) -> bool {
        self.call.value = 1;
        self.raise(query, Some(thread), now);
        self.call.value != 0
    }

    /// Gives the attributes of a new thread their initial values.
    pub fn init_thread(&mut self, thread: ThreadRef, now: i64) {
        self.call.now = now;
        if let Some(init) = self.abi.thread_init {
            // SAFETY: a fresh record whose head is set.
            unsafe { init(&mut self.call, thread.record()) };
        }
    }

    /// Takes a dead thread from wherever the handlers left it.
    pub fn remove(&mut self, thread: ThreadRef) {
        // SAFETY: the record is alive.
        let in_container = unsafe { !(*thread.record()).container.is_null() };
        if let Some(remove) = self.abi.thread_remove.filter(|_| in_container) {
            // SAFETY: as above.
            unsafe { remove(thread.record()) };
        }
    }

    #[inline]
    pub fn wants_alarms(&self) -> bool {
        !self.desk.alarms.borrow().is_empty()
    }

    /// The alarms that handlers have asked for, in their order; a time of 0 or less cancels.
    pub fn take_alarms(&mut self) -> Vec<(ThreadRef, i64)> {
        self.desk.alarms.take()
    }

    pub fn name(&self) -> &'static CStr {
        text(self.abi.name)
    }

    pub fn record_size(&self) -> usize {
        self.abi.thread_size as usize
    }

    pub fn globals(&self) -> &'static [abi::Variable] {
        slice(self.abi.globals, self.abi.global_count)
    }

    pub fn attributes(&self) -> &'static [abi::Variable] {
        slice(self.abi.attributes, self.abi.attribute_count)
    }

    pub fn handler_calls(&self) -> u64 {
        self.calls
    }

    pub fn divisions_by_zero(&self) -> u64 {
        count(self.abi.divisions_by_zero)
    }

    pub fn clamped(&self) -> u64 {
        count(self.abi.clamped)
    }

    /// The name of the container that holds the thread: `ready`, `waiting[3]`, or `no container`.
    pub fn container_of(&self, thread: ThreadRef) -> String {
        // SAFETY: the record is alive.
        let container = unsafe { (*thread.record()).container };
        if container.is_null() {
            return "no container".into();
        }
        for info in slice(self.abi.containers, self.abi.container_count) {
            let distance = (container as usize).wrapping_sub(info.container as usize);
            let name = text(info.name).to_string_lossy();
            if info.length == 0 && distance == 0 {
                return name.into_owned();
            }
            let stride = info.stride.max(1) as usize;
            if distance / stride < info.length as usize && distance.is_multiple_of(stride) {
                return format!("{name}[{}]", distance / stride);
            }
        }
        "a local container".into()
    }
}

/// A counter that the scheduler keeps, 0 if it has none.
fn count(counter: *const u64) -> u64 {
    // SAFETY: null or a static of the scheduler.
    unsafe { counter.as_ref() }.map_or(0, |count| *count)
}

fn text(text: *const c_char) -> &'static CStr {
    if text.is_null() {
        return c"?";
    }
    // SAFETY: names in a scheduler are static strings.
    unsafe { CStr::from_ptr(text) }
}

fn slice<T>(first: *const T, count: u32) -> &'static [T] {
    if first.is_null() || count == 0 {
        return &[];
    }
    // SAFETY: the scheduler says how long its static tables are.
    unsafe { std::slice::from_raw_parts(first, count as usize) }
}

extern "C" fn trap(_: *mut c_void, trap: *const abi::Trap) {
    // SAFETY: the scheduler passes a complete trap.
    let message = unsafe { trap.as_ref() }.map_or(c"a check failed", |trap| text(trap.message));
    report::scheduler_failed(&message.to_string_lossy());
}

extern "C" fn alarm(desk: *mut c_void, thread: *mut abi::Thread, at: i64) {
    // SAFETY: `desk` is the one given in attach, the record one of a living thread.
    unsafe {
        if let (Some(desk), Some(record)) = (desk.cast::<Desk>().as_ref(), NonNull::new(thread)) {
            desk.alarms.borrow_mut().push((ThreadRef::from_record(record), at));
        }
    }
}

/// Threads here give up the processor of their own accord, and `schedule` runs whenever one does: there is nothing
/// that could be asked to choose again earlier.
extern "C" fn preempt(_: *mut c_void, _: i64, _: i64) {}
