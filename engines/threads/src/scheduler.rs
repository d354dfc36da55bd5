//! The loaded scheduler: calls to its handlers, its answers, its errors, its containers' names.
//!
//! Invariant: handlers are called one at a time, and only from here. What a handler asks for
//! (alarms, to choose again) is noted while it runs, and the engine looks at it after it returned.

use std::cell::{Cell, RefCell};
use std::ffi::{CStr, c_char, c_void};
use std::ptr::{self, NonNull};

use crate::clock::NEVER;
use crate::cluster::{Cluster, Tables};
use crate::report;
use crate::thread::ThreadRef;
use attune_abi::{self as abi, Event};

/// What handlers have asked for. The scheduler holds its address, so it never moves.
struct Requests {
    alarms: RefCell<Vec<(ThreadRef, i64)>>,
    /// Whether there are any, at the price of one load.
    has_alarms: Cell<bool>,
    /// When `schedule` is to be called again at the latest, by `preempt`.
    chooses_again_at: Cell<i64>,
    /// What handlers have assigned to imports that a cluster supplies: global, operation, operand.
    updates: RefCell<Vec<(u32, u32, i64)>>,
}

pub struct Scheduler {
    abi: &'static abi::Scheduler,
    /// The state of the one instance: it lives as long as the process.
    instance: NonNull<abi::Instance>,
    requests: &'static Requests,
    calls: u64,
    /// The node that this process is, if it is one.
    cluster: Option<Box<Cluster>>,
}

impl Scheduler {
    /// Attaches a scheduler that load.rs has checked: containers empty, globals at their initial
    /// values.
    pub fn attach(scheduler: &'static abi::Scheduler, seed: u64) -> Scheduler {
        let requests: &'static Requests = Box::leak(Box::new(Requests {
            alarms: RefCell::default(),
            has_alarms: Cell::new(false),
            chooses_again_at: Cell::new(NEVER),
            updates: RefCell::default(),
        }));
        let host = Box::leak(Box::new(abi::Host {
            engine: ptr::from_ref(requests).cast_mut().cast(),
            trap,
            alarm,
            preempt,
            seed,
            cpus: 1,
            update: Some(update),
        }));
        let words = (scheduler.state_size as usize).div_ceil(size_of::<u64>());
        let instance = NonNull::from(Box::leak(vec![0u64; words].into_boxed_slice())).cast();
        if let Some(attach) = scheduler.attach {
            // SAFETY: the state is zeroed and as large as the scheduler says; it and the host live
            // for ever.
            unsafe { attach(instance.as_ptr(), host) };
        }
        let mut scheduler =
            Scheduler { abi: scheduler, instance, requests, calls: 0, cluster: None };
        let call = scheduler.call();
        (call.cpu, call.cpus, call.slice) = (0, 1, -1);
        scheduler
    }

    /// What the instance is told, and what it answers.
    #[inline]
    fn call(&mut self) -> &mut abi::Instance {
        // SAFETY: the state lives for ever, and no handler runs.
        unsafe { self.instance.as_mut() }
    }

    /// A place in the state of the instance, as the scheduler's tables give it.
    pub fn place<T>(&self, offset: usize) -> *mut T {
        self.instance.as_ptr().wrapping_byte_add(offset).cast()
    }

    /// Makes this process a node of the cluster of that name. Err: why it cannot be one.
    pub fn join(&mut self, cluster: &str) -> Result<(), String> {
        let tables = Tables {
            scheduler: self.abi,
            globals: self.globals(),
            containers: slice(self.abi.containers, self.abi.container_count),
            state: &|offset| self.place(offset),
        };
        self.cluster = Some(Box::new(Cluster::join(cluster, &tables)?));
        Ok(())
    }

    pub fn cluster(&self) -> Option<&Cluster> {
        self.cluster.as_deref()
    }

    pub fn cluster_mut(&mut self) -> Option<&mut Cluster> {
        self.cluster.as_deref_mut()
    }

    pub fn has(&self, event: Event) -> bool {
        self.abi.handler[event as usize].is_some()
    }

    /// Calls the handler, if there is one. `thread` is what it is about.
    #[inline]
    pub fn raise(&mut self, event: Event, thread: Option<ThreadRef>, now: i64) {
        if let Some(handler) = self.abi.handler[event as usize] {
            self.calls += 1;
            self.call().now = now;
            let record = thread.map_or(ptr::null_mut(), ThreadRef::record);
            if self.cluster.is_some() {
                return self.raise_in_cluster(handler, record, now);
            }
            // SAFETY: the record is that of a living thread that the scheduler knows, or null where
            // the event has none.
            unsafe { handler(self.instance.as_ptr(), record) };
        }
    }

    #[cold]
    fn raise_in_cluster(&mut self, handler: abi::Handler, record: *mut abi::Thread, now: i64) {
        if let Some(cluster) = &mut self.cluster {
            cluster.before_handler(now);
        }
        // SAFETY: as of `raise`.
        unsafe { handler(self.instance.as_ptr(), record) };
        if let Some(cluster) = &mut self.cluster {
            cluster.after_handler(&mut self.requests.updates.borrow_mut());
        }
    }

    /// Whether its handlers read the time.
    pub fn tells_time(&self) -> bool {
        self.abi.tells_time != 0
    }

    /// Asks the scheduler for the next thread.
    #[inline]
    pub fn schedule(&mut self, now: i64) -> Option<ThreadRef> {
        self.call().dispatched = ptr::null_mut();
        self.call().slice = -1;
        self.raise(Event::Schedule, None, now);
        self.dispatched()
    }

    /// Tells that a thread stops, and asks for the next one.
    #[inline]
    pub fn change(&mut self, stops: ThreadRef, now: i64) -> Option<ThreadRef> {
        let Some(change) = self.abi.change else {
            self.raise(Event::SwitchOut, Some(stops), now);
            return self.schedule(now);
        };
        self.calls += 2;
        let call = self.call();
        call.now = now;
        call.dispatched = ptr::null_mut();
        call.slice = -1;
        // SAFETY: as of `raise`; a node's scheduler has no such function.
        unsafe { change(self.instance.as_ptr(), stops.record()) };
        self.dispatched()
    }

    fn dispatched(&mut self) -> Option<ThreadRef> {
        // SAFETY: a scheduler dispatches from its containers, and these hold records of living
        // threads only.
        NonNull::new(self.call().dispatched).map(|record| unsafe { ThreadRef::from_record(record) })
    }

    /// For how long `schedule` has dispatched the thread; negative: it has not said.
    #[inline]
    pub fn slice(&mut self) -> i64 {
        self.call().slice
    }

    /// When the scheduler wants to choose again, by `preempt`; NEVER: when the thread stops.
    #[inline]
    pub fn chooses_again_at(&self) -> i64 {
        self.requests.chooses_again_at.get()
    }

    #[inline]
    pub fn forget_preempt(&self) {
        self.requests.chooses_again_at.set(NEVER);
    }

    /// Asks a yes-or-no query; true where the scheduler does not answer it.
    pub fn allows(&mut self, query: Event, thread: ThreadRef, now: i64) -> bool {
        self.ask(query, Some(thread), 1, now) != 0
    }

    /// Asks a query for a number; `default` where the scheduler does not answer it.
    pub fn ask(&mut self, query: Event, thread: Option<ThreadRef>, default: i64, now: i64) -> i64 {
        self.call().value = default;
        self.raise(query, thread, now);
        self.call().value
    }

    /// Gives the attributes of a new thread their initial values.
    pub fn init_thread(&mut self, thread: ThreadRef, now: i64) {
        self.call().now = now;
        if let Some(init) = self.abi.thread_init {
            // SAFETY: a fresh record whose head is set.
            unsafe { init(self.instance.as_ptr(), thread.record()) };
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
        self.requests.has_alarms.get()
    }

    /// The alarms that handlers have asked for, in their order; a time of 0 or less cancels.
    pub fn take_alarms(&mut self) -> Vec<(ThreadRef, i64)> {
        self.requests.has_alarms.set(false);
        self.requests.alarms.take()
    }

    /// The thread that leaves the container of this one next, and the record of the one behind it;
    /// in a sorted container that is any other thread's, or null.
    #[inline]
    pub fn next_in_line(&self, thread: ThreadRef) -> Option<(ThreadRef, *const abi::Thread)> {
        // SAFETY: the record is alive, and a container holds records of living threads.
        unsafe {
            let container = (*thread.record()).container.as_ref()?;
            let first = NonNull::new(container.first)?;
            Some((ThreadRef::from_record(first), first.as_ref().next))
        }
    }

    /// The constant and the state, for those who look from outside.
    pub fn addresses(&self) -> (&'static abi::Scheduler, *mut abi::Instance) {
        (self.abi, self.instance.as_ptr())
    }

    pub fn name(&self) -> &'static CStr {
        text(self.abi.name)
    }

    pub fn record_size(&self) -> usize {
        self.abi.thread_size as usize
    }

    pub fn globals(&self) -> &'static [abi::Variable] {
        globals(self.abi)
    }

    pub fn attributes(&self) -> &'static [abi::Variable] {
        attributes(self.abi)
    }

    pub fn handler_calls(&self) -> u64 {
        self.calls
    }

    pub fn divisions_by_zero(&self) -> u64 {
        // SAFETY: the state lives for ever.
        unsafe { self.instance.as_ref() }.divisions_by_zero
    }

    pub fn clamped(&self) -> u64 {
        // SAFETY: the state lives for ever.
        unsafe { self.instance.as_ref() }.clamped
    }

    /// The name of the container that holds the thread: `ready`, `waiting[3]`, or `no container`.
    pub fn container_of(&self, thread: ThreadRef) -> String {
        // SAFETY: the record is alive.
        let container = unsafe { (*thread.record()).container };
        if container.is_null() {
            return "no container".into();
        }
        let offset = (container as usize).wrapping_sub(self.place::<u8>(0) as usize);
        container_at(self.abi, offset).unwrap_or_else(|| "a local container".into())
    }
}

/// The name of the container that lies at this offset in each instance.
pub fn container_at(scheduler: &abi::Scheduler, offset: usize) -> Option<String> {
    let containers = slice(scheduler.containers, scheduler.container_count);
    containers.iter().find_map(|info| {
        let distance = offset.wrapping_sub(info.offset);
        let name = text(info.name).to_string_lossy();
        if info.length == 0 && distance == 0 {
            return Some(name.into_owned());
        }
        let stride = info.stride.max(1) as usize;
        let is_one = distance / stride < info.length as usize && distance.is_multiple_of(stride);
        is_one.then(|| format!("{name}[{}]", distance / stride))
    })
}

/// A name in a scheduler.
pub fn text(text: *const c_char) -> &'static CStr {
    if text.is_null() {
        return c"?";
    }
    // SAFETY: names in a scheduler are static strings.
    unsafe { CStr::from_ptr(text) }
}

pub fn globals(scheduler: &abi::Scheduler) -> &'static [abi::Variable] {
    slice(scheduler.globals, scheduler.global_count)
}

pub fn attributes(scheduler: &abi::Scheduler) -> &'static [abi::Variable] {
    slice(scheduler.attributes, scheduler.attribute_count)
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

extern "C" fn alarm(requests: *mut c_void, thread: *mut abi::Thread, at: i64) {
    // SAFETY: `requests` is the one given in attach, the record one of a living thread.
    unsafe {
        if let (Some(requests), Some(record)) =
            (requests.cast::<Requests>().as_ref(), NonNull::new(thread))
        {
            requests.alarms.borrow_mut().push((ThreadRef::from_record(record), at));
            requests.has_alarms.set(true);
        }
    }
}

extern "C" fn update(requests: *mut c_void, global: u32, operation: u32, operand: i64) {
    // SAFETY: `requests` is the one given in attach.
    if let Some(requests) = unsafe { requests.cast::<Requests>().as_ref() } {
        requests.updates.borrow_mut().push((global, operation, operand));
    }
}

/// An instance here has one CPU, so a policy can ask for no other. The running thread gives way at
/// its next safe point, if the program has opted into preemption.
extern "C" fn preempt(requests: *mut c_void, cpu: i64, at: i64) {
    // SAFETY: `requests` is the one given in attach.
    if let (Some(requests), 0) = (unsafe { requests.cast::<Requests>().as_ref() }, cpu) {
        requests.chooses_again_at.set(requests.chooses_again_at.get().min(at));
    }
}
