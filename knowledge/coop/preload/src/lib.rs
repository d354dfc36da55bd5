//! A library to preload (`attune coop run -- CMD`): where an event-driven program waits, it polls
//! cooperatively.
//!
//! Each of poll, ppoll, select, pselect, epoll_wait, epoll_pwait and epoll_pwait2 becomes two
//! steps: the cooperative wait ([`member`]), in which others may run, until a descriptor is ready
//! or the time is over, and it is our turn; and the call itself with a timeout of zero, whose
//! result is the kernel's own. The wait tells the transport all that it needs: a timeout is the
//! next timer, and ready descriptors are work.
//!
//! Only the main thread cooperates, since such programs have their loop there; a member may be
//! bound to one CPU, and other threads should move freely. Calls with invalid arguments go to the
//! kernel as they are, and so do all calls where joining failed.

mod mask;
mod member;

use std::ffi::c_int;
use std::ptr::{null, null_mut};

use libc::{epoll_event, fd_set, nfds_t, pollfd, sigset_t, timespec, timeval};
use mask::Masked;

/// Nanoseconds to wait; `u64::MAX`: without end.
type Timeout = u64;

/// A timeout of whole milliseconds, negative: without end.
fn milliseconds(timeout: c_int) -> Timeout {
    u64::try_from(timeout).map_or(Timeout::MAX, |ms| ms * 1_000_000)
}

/// None: the kernel refuses it.
///
/// # Safety
/// Null, or a timespec.
unsafe fn timespec_of(timeout: *const timespec) -> Option<Timeout> {
    // SAFETY: as the caller promises.
    let Some(time) = (unsafe { timeout.as_ref() }) else { return Some(Timeout::MAX) };
    let nanoseconds = u64::try_from(time.tv_nsec).ok().filter(|part| *part < 1_000_000_000)?;
    Some(u64::try_from(time.tv_sec).ok()?.saturating_mul(1_000_000_000).saturating_add(nanoseconds))
}

const NOW: timespec = timespec { tv_sec: 0, tv_nsec: 0 };

/// The kernel's own call. Not through libc, whose names are ours here. -1 with errno on failure, as
/// libc.
macro_rules! kernel {
    ($call:ident $(, $argument:expr)*) => { libc::syscall(libc::$call $(, $argument)*) as c_int };
}

/// Size of the kernel's signal set.
const SET: usize = 8;

unsafe fn ppoll_kernel(
    fds: *mut pollfd,
    count: nfds_t,
    timeout: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    // The kernel writes back what is left of the time.
    // SAFETY: as the caller's caller promises for ppoll.
    unsafe {
        let mut left = if timeout.is_null() { NOW } else { *timeout };
        let left = if timeout.is_null() { null_mut() } else { &raw mut left };
        kernel!(SYS_ppoll, fds, count, left, mask, SET)
    }
}

/// Delivers signals that are pending and that the mask lets through: -1 and EINTR then, else 0.
fn ppoll_now(mask: Option<&sigset_t>) -> c_int {
    let mask = mask.map_or(null(), std::ptr::from_ref);
    // SAFETY: no descriptors; the mask is null or a set.
    unsafe { ppoll_kernel(null_mut(), 0, &NOW, mask) }
}

/// poll reports closed descriptors and hang-ups unasked. The call that found nothing ready in them
/// does not: no wait may spin on them.
fn forget_what_is_not_asked(watched: &mut [pollfd]) {
    for descriptor in
        watched.iter_mut().filter(|descriptor| descriptor.revents & !descriptor.events != 0)
    {
        descriptor.fd = -1;
    }
}

/// Waits cooperatively, then asks the kernel without waiting: again, as long as it says that
/// nothing is ready and time is left.
fn wait_and_ask(
    watched: &mut [pollfd],
    timeout: Timeout,
    mask: Option<&sigset_t>,
    ask: impl Fn() -> c_int,
) -> Option<c_int> {
    let end = member::now().saturating_add(timeout);
    let mut masked = Masked::new(mask)?;
    loop {
        let left =
            if timeout == Timeout::MAX { timeout } else { end.saturating_sub(member::now()) };
        let waited = masked.wait(watched, left)?;
        let result = match waited {
            // Asked without time, epoll would not see to signals: the kernel delivers what the mask
            // lets through here, too.
            Ok(_) => match ask() {
                0 if masked.signal_came() => ppoll_now(mask),
                result => result,
            },
            Err(error) => {
                // SAFETY: errno is this thread's.
                unsafe { *libc::__errno_location() = error };
                -1
            }
        };
        if result != 0 || member::now() >= end {
            return Some(result);
        }
        forget_what_is_not_asked(watched);
    }
}

/// # Safety
/// As poll(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn poll(fds: *mut pollfd, count: nfds_t, timeout: c_int) -> c_int {
    let limit = milliseconds(timeout);
    let limit =
        timespec { tv_sec: (limit / 1_000_000_000) as _, tv_nsec: (limit % 1_000_000_000) as _ };
    // SAFETY: as the caller promises.
    unsafe { ppoll(fds, count, if timeout < 0 { null() } else { &raw const limit }, null()) }
}

/// # Safety
/// As ppoll(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ppoll(
    fds: *mut pollfd,
    count: nfds_t,
    timeout: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        let cooperative =
            member::may_wait().then(|| timespec_of(timeout)).flatten().and_then(|limit| {
                let mut watched = match count {
                    0 => Vec::new(),
                    _ if fds.is_null() => return None,
                    _ => std::slice::from_raw_parts(fds, count as usize).to_vec(),
                };
                wait_and_ask(&mut watched, limit, mask.as_ref(), || {
                    ppoll_kernel(fds, count, &NOW, mask)
                })
            });
        cooperative.unwrap_or_else(|| ppoll_kernel(fds, count, timeout, mask))
    }
}

unsafe fn epoll_kernel(
    epoll: c_int,
    events: *mut epoll_event,
    count: c_int,
    timeout: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    // SAFETY: as the caller's caller promises for epoll_pwait2.
    unsafe { kernel!(SYS_epoll_pwait2, epoll, events, count, timeout, mask, SET) }
}

/// # Safety
/// As epoll_wait(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn epoll_wait(
    epoll: c_int,
    events: *mut epoll_event,
    count: c_int,
    timeout: c_int,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { epoll_pwait(epoll, events, count, timeout, null()) }
}

/// # Safety
/// As epoll_pwait(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn epoll_pwait(
    epoll: c_int,
    events: *mut epoll_event,
    count: c_int,
    timeout: c_int,
    mask: *const sigset_t,
) -> c_int {
    let limit = milliseconds(timeout);
    let limit =
        timespec { tv_sec: (limit / 1_000_000_000) as _, tv_nsec: (limit % 1_000_000_000) as _ };
    // SAFETY: as the caller promises.
    unsafe {
        epoll_pwait2(
            epoll,
            events,
            count,
            if timeout < 0 { null() } else { &raw const limit },
            mask,
        )
    }
}

/// # Safety
/// As epoll_pwait2(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn epoll_pwait2(
    epoll: c_int,
    events: *mut epoll_event,
    count: c_int,
    timeout: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        let limit = if member::may_wait() && count > 0 { timespec_of(timeout) } else { None };
        let cooperative = limit.and_then(|limit| {
            let mut watched = [pollfd { fd: epoll, events: libc::POLLIN, revents: 0 }];
            wait_and_ask(&mut watched, limit, mask.as_ref(), || {
                epoll_kernel(epoll, events, count, &NOW, mask)
            })
        });
        cooperative.unwrap_or_else(|| epoll_kernel(epoll, events, count, timeout, mask))
    }
}

/// The three sets of select; null ones stay away.
type Sets = [*mut fd_set; 3];

const LONG: usize = libc::c_ulong::BITS as usize;

/// # Safety
/// Each set is null or has `count` bits, in whole words.
unsafe fn bits(set: *mut fd_set, count: usize) -> Vec<libc::c_ulong> {
    if set.is_null() {
        return Vec::new();
    }
    // SAFETY: as the caller promises.
    unsafe { std::slice::from_raw_parts(set.cast::<libc::c_ulong>(), count.div_ceil(LONG)) }
        .to_vec()
}

unsafe fn select_kernel(
    count: c_int,
    sets: Sets,
    timeout: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    let with_size = [mask as usize, SET];
    // SAFETY: as the caller's caller promises for pselect.
    unsafe {
        let mut left = if timeout.is_null() { NOW } else { *timeout };
        let left = if timeout.is_null() { null_mut() } else { &raw mut left };
        kernel!(SYS_pselect6, count, sets[0], sets[1], sets[2], left, with_size.as_ptr())
    }
}

/// # Safety
/// As pselect(2).
unsafe fn select_cooperatively(
    count: c_int,
    sets: Sets,
    limit: Option<Timeout>,
    mask: *const sigset_t,
) -> Option<c_int> {
    let number = usize::try_from(count).ok().filter(|_| member::may_wait())?;
    // SAFETY: as the caller promises.
    let wanted = sets.map(|set| unsafe { bits(set, number) });
    let events = [libc::POLLIN, libc::POLLOUT, libc::POLLPRI];
    let mut watched = Vec::new();
    for fd in 0..number {
        let is_in = |set: &[libc::c_ulong]| {
            set.get(fd / LONG).is_some_and(|word| word >> (fd % LONG) & 1 != 0)
        };
        let of_fd =
            (0..3).filter(|kind| is_in(&wanted[*kind])).fold(0, |all, kind| all | events[kind]);
        if of_fd != 0 {
            watched.push(pollfd { fd: fd as c_int, events: of_fd, revents: 0 });
        }
    }
    // SAFETY: as the caller promises.
    let ask = || unsafe {
        // The kernel leaves only what is ready: each time it is asked anew.
        for (set, wanted) in sets.iter().zip(&wanted).filter(|(set, _)| !set.is_null()) {
            set.cast::<libc::c_ulong>().copy_from_nonoverlapping(wanted.as_ptr(), wanted.len());
        }
        select_kernel(count, sets, &NOW, mask)
    };
    // SAFETY: as the caller promises.
    wait_and_ask(&mut watched, limit?, unsafe { mask.as_ref() }, ask)
}

/// # Safety
/// As pselect(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pselect(
    count: c_int,
    read: *mut fd_set,
    write: *mut fd_set,
    except: *mut fd_set,
    timeout: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    let sets = [read, write, except];
    // SAFETY: as the caller promises.
    unsafe {
        let limit = timespec_of(timeout);
        select_cooperatively(count, sets, limit, mask)
            .unwrap_or_else(|| select_kernel(count, sets, timeout, mask))
    }
}

/// # Safety
/// As select(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn select(
    count: c_int,
    read: *mut fd_set,
    write: *mut fd_set,
    except: *mut fd_set,
    timeout: *mut timeval,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        let Some(time) = timeout.as_mut() else {
            return pselect(count, read, write, except, null(), null());
        };
        let (began, sets) = (member::now(), [read, write, except]);
        let limit = timespec { tv_sec: time.tv_sec, tv_nsec: time.tv_usec.saturating_mul(1000) };
        let Some(result) = select_cooperatively(count, sets, timespec_of(&limit), null()) else {
            // As libc: the kernel knows microseconds beyond a second, and writes back what is left.
            return kernel!(SYS_select, count, read, write, except, timeout);
        };
        // Linux says what is left of the time.
        let whole = timespec_of(&limit).unwrap_or(0);
        let left = whole.saturating_sub(member::now() - began);
        (time.tv_sec, time.tv_usec) =
            ((left / 1_000_000_000) as _, (left % 1_000_000_000 / 1000) as _);
        result
    }
}
