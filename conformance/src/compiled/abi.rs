//! `backends/c/runtime/attune_scheduler.h` as Rust sees it, and the shim's part.
//!
//! Invariant: field by field the layout of the header of ABI [`ABI`].

use std::ffi::{c_char, c_int, c_void};

pub const ABI: u32 = 1;
pub const EVENTS: usize = 23;

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

/// Seen through [`Table::container_each`] only.
pub enum Container {}

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

/// How an import stands in a thread record.
#[repr(C)]
pub struct Import {
    pub link: *mut c_void,
    /// An i64 or a double's bits.
    pub value: i64,
}

pub const INT: u32 = 0;
pub const FLOAT: u32 = 1;

pub const WIDTH_I64: u32 = 3;
pub const WIDTH_F64: u32 = 9;

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

pub type Visit = unsafe extern "C" fn(*mut c_void, *mut Thread) -> c_int;

#[repr(C)]
pub struct Table {
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
    pub attach: unsafe extern "C" fn(*const c_void),
    pub thread_init: unsafe extern "C" fn(*mut Call, *mut Thread),
    pub thread_remove: unsafe extern "C" fn(*mut Thread),
    pub container_each: unsafe extern "C" fn(*mut Container, Visit, *mut c_void),
    pub handler: [Option<unsafe extern "C" fn(*mut Call, *mut Thread)>; EVENTS],
    pub divisions_by_zero: *const u64,
    pub clamped: *const u64,
}

const KEPT: usize = 4096;

#[repr(C)]
pub struct Alarm {
    pub thread: *mut Thread,
    pub at: i64,
}

/// What `shim.c` keeps of the last call.
#[repr(C)]
pub struct Conformance {
    pub trapped: u32,
    pub check: u32,
    pub line: u32,
    pub column: u32,
    pub file: *const c_char,
    pub message: *const c_char,
    pub alarms: u32,
    pub preempts: u32,
    pub alarm: [Alarm; KEPT],
    pub preempt: [i64; KEPT],
}

pub type Attach = unsafe extern "C" fn(seed: u64, cpus: u32) -> *const Conformance;
pub type CallHandler = unsafe extern "C" fn(event: u32, call: *mut Call, thread: *mut Thread);
pub type Crash = unsafe extern "C" fn(signal: c_int);
