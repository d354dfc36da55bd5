//! Exports polling without our event loop, as the header declares it.

use std::cell::RefCell;
use std::ffi::{c_char, c_int, c_uint};
use std::io;

use attune_linux::poll::pollfd;

use super::{failed, owned, status, wanted};
use crate::foreign::ForeignLoop;
use crate::offer::Offer;
use crate::time::{NEVER, Time};
use crate::transport::{self, Transport, Wanted};

/// A transport behind a thin pointer.
pub struct Poller(Box<dyn Transport>);

#[repr(C)]
pub struct COffer {
    group: u32,
    timer: Time,
    best_effort: i64,
}

#[repr(C)]
pub struct CAnswer {
    turn: c_int,
    until: Time,
    others: i64,
}

#[repr(C)]
pub struct CStatistics {
    polls: u64,
    yields: u64,
    sleeps: u64,
    takeovers: u64,
    impatient: u64,
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn attune_coop_join(transport: *const c_char) -> *mut Poller {
    // SAFETY: as the header demands.
    owned(unsafe { wanted(transport) }.and_then(transport::open).map(Poller))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn attune_coop_leave(poller: *mut Poller) {
    if !poller.is_null() {
        // SAFETY: made by attune_coop_join, and not used any more.
        drop(unsafe { Box::from_raw(poller) });
    }
}

/// # Safety
/// `count` descriptors lie there; null with 0.
unsafe fn slice<'a>(descriptors: *mut pollfd, count: usize) -> &'a mut [pollfd] {
    if descriptors.is_null() || count == 0 {
        return &mut [];
    }
    // SAFETY: as the caller promises.
    unsafe { std::slice::from_raw_parts_mut(descriptors, count) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn attune_coop_poll(
    poller: *mut Poller,
    offer: *const COffer,
    descriptors: *mut pollfd,
    count: libc::nfds_t,
    answer: *mut CAnswer,
) -> c_int {
    // SAFETY: as the header demands.
    let (poller, offer, descriptors) =
        unsafe { (&mut *poller, &*offer, slice(descriptors, count as usize)) };
    let offer = Offer { group: offer.group, timer: offer.timer, best_effort: offer.best_effort };
    status(transport::poll_and_serve(&mut *poller.0, &offer, descriptors).map(|said| {
        let said = CAnswer { turn: said.turn.into(), until: said.until, others: said.others };
        // SAFETY: as the header demands.
        unsafe { answer.write(said) };
    }))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn attune_coop_poll_until(poller: *const Poller) -> Time {
    // SAFETY: as the header demands.
    unsafe { &*poller }.0.until()
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn attune_coop_poll_statistics(
    poller: *const Poller,
    statistics: *mut CStatistics,
) {
    // SAFETY: as the header demands.
    let done = unsafe { &*poller }.0.statistics();
    let done = CStatistics {
        polls: done.polls,
        yields: done.yields,
        sleeps: done.sleeps,
        takeovers: done.takeovers,
        impatient: done.impatient,
    };
    // SAFETY: as the header demands.
    unsafe { statistics.write(done) };
}

thread_local! {
    /// The calling thread's, made by its first call.
    static FOREIGN: RefCell<Option<ForeignLoop>> = const { RefCell::new(None) };
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn attune_coop_poll_descriptors(
    descriptors: *mut pollfd,
    count: c_uint,
    timeout_ms: c_int,
) -> c_int {
    // SAFETY: as the header demands.
    let descriptors = unsafe { slice(descriptors, count as usize) };
    let timeout = u64::try_from(timeout_ms).map_or(NEVER, |ms| ms * 1_000_000);
    let poll = |foreign: &mut Option<ForeignLoop>| -> io::Result<usize> {
        if foreign.is_none() {
            *foreign = Some(ForeignLoop::new(Wanted::Auto, 0)?);
        }
        foreign.as_mut().map_or(Ok(0), |foreign| foreign.poll(descriptors, timeout))
    };
    match FOREIGN.with_borrow_mut(poll) {
        Ok(ready) => ready as c_int,
        Err(error) => {
            failed(&error);
            -1
        }
    }
}
