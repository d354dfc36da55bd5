//! Exports the event loop, as the header declares it.
//!
//! A callback may use the loop's pointer while `attune_coop_run` runs: `run` has handed its own
//! reference to the callback and does not use it before the callback returns.

use std::ffi::{c_char, c_int, c_short, c_void};
use std::io::{self, Write};
use std::mem::ManuallyDrop;
use std::os::fd::FromRawFd;

use super::{failed, owned, status, text, wanted};
use slotmap::{Key, KeyData};

use crate::event_loop::{EventId, EventLoop, Executions, Readiness, When};
use crate::time::{Clock, Monotonic, Time};

type Callback = extern "C" fn(*mut EventLoop, u64, *mut c_void);
type DescriptorCallback = extern "C" fn(*mut EventLoop, u64, c_short, *mut c_void);

#[unsafe(no_mangle)]
pub unsafe extern "C" fn attune_coop_new(transport: *const c_char, group: u32) -> *mut EventLoop {
    // SAFETY: as the header demands.
    owned(unsafe { wanted(transport) }.and_then(|wanted| EventLoop::new(wanted, group)))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn attune_coop_free(event_loop: *mut EventLoop) {
    if !event_loop.is_null() {
        // SAFETY: made by attune_coop_new, and not used any more.
        drop(unsafe { Box::from_raw(event_loop) });
    }
}

/// An event as C knows it; never 0.
fn number(event: EventId) -> u64 {
    event.data().as_ffi()
}

fn known(number: u64) -> EventId {
    KeyData::from_ffi(number).into()
}

/// The event's number, or 0 with errno.
fn event(made: io::Result<EventId>) -> u64 {
    made.map_or_else(
        |error| {
            failed(&error);
            0
        },
        number,
    )
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn attune_coop_event_new(
    event_loop: *mut EventLoop,
    name: *const c_char,
    callback: Callback,
    data: *mut c_void,
) -> u64 {
    // SAFETY: as the header demands.
    let (event_loop, name) = unsafe { (&mut *event_loop, text(name)) };
    let call =
        move |event_loop: &mut EventLoop, event: EventId| callback(event_loop, number(event), data);
    event(name.map(|name| event_loop.event(name, call)))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn attune_coop_proxy_new(
    event_loop: *mut EventLoop,
    name: *const c_char,
) -> u64 {
    // SAFETY: as the header demands.
    let (event_loop, name) = unsafe { (&mut *event_loop, text(name)) };
    event(name.map(|name| event_loop.proxy(name)))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn attune_coop_descriptor_new(
    event_loop: *mut EventLoop,
    fd: c_int,
    events: c_short,
    importance: i64,
    name: *const c_char,
    callback: DescriptorCallback,
    data: *mut c_void,
) -> u64 {
    // SAFETY: as the header demands.
    let (event_loop, name) = unsafe { (&mut *event_loop, text(name)) };
    let wanted = Readiness {
        readable: events & libc::POLLIN != 0,
        writable: events & libc::POLLOUT != 0,
        error: false,
    };
    let call = move |event_loop: &mut EventLoop, event: EventId, ready: Readiness| {
        let bit = |set: bool, bit: c_short| if set { bit } else { 0 };
        let revents = bit(ready.readable, libc::POLLIN)
            | bit(ready.writable, libc::POLLOUT)
            | bit(ready.error, libc::POLLERR);
        callback(event_loop, number(event), revents, data);
    };
    event(name.and_then(|name| event_loop.descriptor(fd, wanted, importance, name, call)))
}

/// # Safety
/// The loop as the header demands.
unsafe fn submit(event_loop: *mut EventLoop, event: u64, when: When) -> c_int {
    // SAFETY: as the caller promises.
    let known = unsafe { &mut *event_loop }.submit(known(event), when);
    status(if known {
        Ok(())
    } else {
        Err(io::Error::new(io::ErrorKind::NotFound, format!("no event {event}")))
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn attune_coop_submit_timer(
    event_loop: *mut EventLoop,
    event: u64,
    release: Time,
) -> c_int {
    // SAFETY: as the header demands.
    unsafe { submit(event_loop, event, When::At(release)) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn attune_coop_submit_best_effort(
    event_loop: *mut EventLoop,
    event: u64,
    importance: i64,
    release: Time,
) -> c_int {
    // SAFETY: as the header demands.
    unsafe { submit(event_loop, event, When::BestEffort { importance, release }) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn attune_coop_cancel(event_loop: *mut EventLoop, event: u64) {
    // SAFETY: as the header demands.
    unsafe { &mut *event_loop }.cancel(known(event));
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn attune_coop_remove(event_loop: *mut EventLoop, event: u64) {
    // SAFETY: as the header demands.
    unsafe { &mut *event_loop }.remove(known(event));
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn attune_coop_run(event_loop: *mut EventLoop) -> c_int {
    // SAFETY: as the header demands.
    status(unsafe { &mut *event_loop }.run())
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn attune_coop_stop(event_loop: *mut EventLoop) {
    // SAFETY: as the header demands.
    unsafe { &mut *event_loop }.stop();
}

#[unsafe(no_mangle)]
pub extern "C" fn attune_coop_now() -> Time {
    Monotonic.now()
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn attune_coop_until(event_loop: *const EventLoop) -> Time {
    // SAFETY: as the header demands.
    unsafe { &*event_loop }.until()
}

#[repr(C)]
pub struct CExecutions {
    count: u64,
    total: Time,
    worst: Time,
    worst_at: Time,
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn attune_coop_trace(
    event_loop: *const EventLoop,
    name: *const c_char,
    executions: *mut CExecutions,
) -> c_int {
    // SAFETY: as the header demands.
    let (event_loop, name) = unsafe { (&*event_loop, text(name)) };
    let find = |name: &str| {
        let none =
            || io::Error::new(io::ErrorKind::NotFound, format!("no callback named {name} has run"));
        event_loop.trace().get(name).ok_or_else(none)
    };
    status(name.and_then(find).map(|Executions { count, total, worst, worst_at }| {
        // SAFETY: as the header demands.
        unsafe { executions.write(CExecutions { count, total, worst, worst_at }) };
    }))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn attune_coop_print_trace(event_loop: *const EventLoop, fd: c_int) -> c_int {
    // SAFETY: the descriptor is the caller's, and stays open.
    let mut file = ManuallyDrop::new(unsafe { std::fs::File::from_raw_fd(fd) });
    // SAFETY: as the header demands.
    status(file.write_all(unsafe { &*event_loop }.trace().to_string().as_bytes()))
}
