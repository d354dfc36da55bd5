//! The ABI of compiled schedulers: a mirror of `backends/c/runtime/attune_scheduler.h`, field by field.
//!
//! Invariant: sizes and offsets equal the C compiler's (engines/threads/tests/abi.rs compares them). Whoever loads a compiled scheduler
//! uses it: the threads engine, and the conformance tests.

use std::ffi::{c_char, c_int, c_void};

/// What `attune_scheduler.abi` of a scheduler of this interface says.
pub const VERSION: u32 = 2;

/// Number of events and queries.
pub const EVENTS: usize = 23;

/// A handler's place in [`Scheduler::handler`]; the order is part of the ABI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Event {
    Init,
    NewThread,
    Schedule,
    SwitchOut,
    EventRaised,
    SetNextThread,
    SetWaiting,
    SetDead,
    SuspendThread,
    ResumeThread,
    /// Quantum expiry, before it, needs preemption, which no engine that loads shared objects has.
    Alarm = 11,
    CanSwitchTo = 21,
}

/// Whether a global is the scheduler's own or the application's.
pub const IMPORTED: u8 = 1;

pub const TYPE_FLOAT: u32 = 1;

#[repr(C)]
pub struct Container {
    _private: [u8; 0],
}

/// The head of a thread record; `thread_size` says how long the whole is.
#[repr(C)]
pub struct Thread {
    pub id: u64,
    pub userdata: *mut c_void,
    pub container: *mut Container,
    pub prev: *mut Thread,
    pub next: *mut Thread,
    pub parent: *mut Thread,
    pub key: i64,
    pub stamp: u64,
    pub height: u8,
    pub destroyed: u8,
    pub unused: u16,
    pub line: u32,
}

/// A handler call and its answers.
#[repr(C)]
pub struct Call {
    pub now: i64,
    pub cpu: u32,
    pub cpus: u32,
    pub dispatched: *mut Thread,
    pub slice: i64,
    pub value: i64,
    pub value_thread: *mut Thread,
}

#[repr(C)]
pub struct Trap {
    pub check: u32,
    pub line: u32,
    pub column: u32,
    pub file: *const c_char,
    pub message: *const c_char,
}

#[repr(C)]
pub struct Host {
    pub engine: *mut c_void,
    pub trap: extern "C" fn(engine: *mut c_void, trap: *const Trap),
    pub alarm: extern "C" fn(engine: *mut c_void, thread: *mut Thread, at: i64),
    pub preempt: extern "C" fn(engine: *mut c_void, cpu: i64, at: i64),
    pub seed: u64,
    pub cpus: u32,
}

/// An import in a thread record: the link, and the bits of the value in force while it is null.
#[repr(C)]
pub struct Import {
    pub link: *mut c_void,
    pub value: u64,
}

#[repr(C)]
pub struct Variable {
    pub name: *const c_char,
    pub ty: u32,
    pub imported: u8,
    pub length: u32,
    pub storage: *mut c_void,
    pub offset: usize,
    pub link: *mut *mut c_void,
    pub width: *mut u32,
}

#[repr(C)]
pub struct ContainerInfo {
    pub name: *const c_char,
    pub container: *mut Container,
    pub length: u32,
    pub stride: u32,
}

pub type Handler = unsafe extern "C" fn(call: *mut Call, thread: *mut Thread);
pub type Visit = unsafe extern "C" fn(arg: *mut c_void, thread: *mut Thread) -> c_int;

#[repr(C)]
pub struct Scheduler {
    pub abi: u32,
    pub thread_size: u32,
    pub name: *const c_char,
    pub file: *const c_char,
    pub globals: *const Variable,
    pub attributes: *const Variable,
    pub global_count: u32,
    pub attribute_count: u32,
    pub containers: *const ContainerInfo,
    pub container_count: u32,
    pub cpus: u32,
    pub attach: Option<unsafe extern "C" fn(host: *const Host)>,
    pub thread_init: Option<unsafe extern "C" fn(call: *mut Call, thread: *mut Thread)>,
    pub thread_remove: Option<unsafe extern "C" fn(thread: *mut Thread)>,
    pub container_each:
        Option<unsafe extern "C" fn(container: *mut Container, visit: Visit, arg: *mut c_void)>,
    pub handler: [Option<Handler>; EVENTS],
    pub divisions_by_zero: *const u64,
    pub clamped: *const u64,
}
