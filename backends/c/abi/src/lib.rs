//! The ABI of compiled schedulers: a mirror of `backends/c/runtime/attune_scheduler.h`, field by
//! field.
//!
//! Invariant: sizes and offsets equal the C compiler's (engines/threads/tests/abi.rs compares
//! them). The programs that load a compiled scheduler use it: the threads engine and the
//! conformance tests.

use std::ffi::{c_char, c_int, c_void};

/// What `attune_scheduler.abi` of a scheduler of this interface says.
pub const VERSION: u32 = 8;

/// Number of events and queries.
pub const EVENTS: usize = 25;

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
    QuantumExpired,
    Alarm,
    TimesliceLeft,
    CanSwitchTo = 21,
    Leaves = 23,
    Arrives = 24,
}

/// Whether a global is the scheduler's own or the application's.
pub const IMPORTED: u8 = 1;
/// The scheduler's own, for its user to set.
pub const TUNABLE: u8 = 2;
/// An import that a cluster supplies.
pub const SHARED: u8 = 4;

pub const TYPE_FLOAT: u32 = 1;
pub const TYPE_TIME: u32 = 2;

/// The part of a container that is of use outside of the runtime.
#[repr(C)]
pub struct Container {
    /// The thread at the removal point; null: it is empty.
    pub first: *mut Thread,
    _private: [*const c_void; 2],
    /// How many threads it holds.
    pub size: u32,
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
    pub pinned: u8,
    pub unused: u8,
    pub line: u32,
}

/// The head of an instance's state: a handler call and its answers, then what the runtime keeps.
#[repr(C)]
pub struct Instance {
    pub now: i64,
    pub cpu: u32,
    pub cpus: u32,
    pub dispatched: *mut Thread,
    pub slice: i64,
    pub value: i64,
    pub value_thread: *mut Thread,
    pub host: *const Host,
    pub stamp: u64,
    pub random_state: u64,
    pub divisions_by_zero: u64,
    pub clamped: u64,
    pub budget: u32,
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
    pub update: Option<Update>,
}

/// A handler has assigned to what a cluster supplies: the global's number, the operation (one of
/// `SET` to `REMAINDER`), the operand, of a float its bits.
pub type Update = extern "C" fn(engine: *mut c_void, global: u32, operation: u32, operand: i64);

pub const SET: u32 = 0;
pub const ADD: u32 = 1;
pub const MULTIPLY: u32 = 2;
pub const DIVIDE: u32 = 3;
pub const REMAINDER: u32 = 4;
/// Beside the operation: the variable is an int, the operand a float.
pub const BY_REAL: u32 = 8;

/// What the scheduler of a cluster's node is to the cluster.
#[repr(C)]
pub struct Node {
    pub cluster: *const c_char,
    pub description: *const c_char,
}

/// An import in a thread record or an instance's state: the link, and the bits of the value in
/// force while it is null.
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
    pub offset: usize,
    pub width: usize,
    pub storage: *mut c_void,
}

#[repr(C)]
pub struct ContainerInfo {
    pub name: *const c_char,
    pub offset: usize,
    pub length: u32,
    pub stride: u32,
}

pub type Handler = unsafe extern "C" fn(instance: *mut Instance, thread: *mut Thread);
pub type Visit = unsafe extern "C" fn(arg: *mut c_void, thread: *mut Thread) -> c_int;

#[repr(C)]
pub struct Scheduler {
    pub abi: u32,
    pub thread_size: u32,
    pub state_size: u32,
    pub may_be_split: u32,
    pub name: *const c_char,
    pub file: *const c_char,
    pub globals: *const Variable,
    pub attributes: *const Variable,
    pub global_count: u32,
    pub attribute_count: u32,
    pub containers: *const ContainerInfo,
    pub container_count: u32,
    pub cpus: u32,
    pub tells_time: u32,
    pub only: *mut Instance,
    pub attach: Option<unsafe extern "C" fn(instance: *mut Instance, host: *const Host)>,
    pub thread_init: Option<Handler>,
    pub thread_remove: Option<unsafe extern "C" fn(thread: *mut Thread)>,
    pub container_each:
        Option<unsafe extern "C" fn(container: *mut Container, visit: Visit, arg: *mut c_void)>,
    pub handler: [Option<Handler>; EVENTS],
    /// `switch_out` of a thread and then `schedule`, in one.
    pub change: Option<Handler>,
    /// Null if it is no node's.
    pub node: *const Node,
}
