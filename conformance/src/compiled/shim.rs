//! `conformance/shim/shim.c` as Rust sees it: what stands between a compiled scheduler and these
//! tests.
//!
//! Invariant: field by field the layout in that file.

use std::ffi::{c_char, c_int, c_void};

use attune_abi::{Instance, Thread};

const KEPT: usize = 4096;

#[repr(C)]
pub struct Alarm {
    pub thread: *mut Thread,
    pub at: i64,
}

#[repr(C)]
pub struct Preemption {
    pub cpu: i64,
    pub at: i64,
}

/// An assignment to what a cluster supplies, as [`attune_abi::Update`] tells it.
#[repr(C)]
pub struct Told {
    pub global: u32,
    pub operation: u32,
    pub operand: i64,
}

/// What `shim.c` keeps of the last call.
#[repr(C)]
pub struct Conformance {
    pub trapped: u32,
    pub check: u32,
    pub line: u32,
    pub column: u32,
    pub file: *const c_char,
    pub message: [c_char; 1024],
    pub alarms: u32,
    pub preempts: u32,
    pub alarm: [Alarm; KEPT],
    pub preempt: [Preemption; KEPT],
    pub updates: u64,
    pub update: [Told; KEPT],
}

pub type Attach =
    unsafe extern "C" fn(instance: *mut Instance, seed: u64, cpus: u32) -> *const Conformance;
pub type CallHandler =
    unsafe extern "C" fn(event: u32, instance: *mut Instance, thread: *mut Thread);
pub type Place = unsafe extern "C" fn() -> *mut c_void;
pub type Crash = unsafe extern "C" fn(signal: c_int);
