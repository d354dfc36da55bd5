//! Stack overflow: a fault in the guard of the running thread's stack is told by name before the
//! process dies of it.
//!
//! The handler runs on an alternate stack, touches nothing but constants and the running thread's
//! name, and lets every other fault go where it went before. It never repairs anything.

use std::cell::UnsafeCell;
use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::Ordering::Relaxed;

use crate::engine::worker;
use crate::errno::{Result, check};
use crate::stack::Extent;
use crate::thread::ThreadRef;

static BEFORE: Before = Before(UnsafeCell::new(MaybeUninit::zeroed()));

/// The action that was in force before ours.
struct Before(UnsafeCell<MaybeUninit<libc::sigaction>>);

// SAFETY: written once, before the handler is installed; only read afterwards.
unsafe impl Sync for Before {}

const ALTERNATE_SIZE: usize = 64 * 1024;

/// Installs the handler for the process.
pub fn watch() -> Result<()> {
    // SAFETY: plain system calls on valid structures.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_fault as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        check(libc::sigaction(libc::SIGSEGV, &action, (*BEFORE.0.get()).as_mut_ptr()))?;
        Ok(())
    }
}

/// Gives the calling OS thread a stack on which the handler runs.
pub fn prepare() -> Result<()> {
    // SAFETY: plain system calls on valid structures.
    unsafe {
        let mut current: libc::stack_t = std::mem::zeroed();
        check(libc::sigaltstack(ptr::null(), &mut current))?;
        if current.ss_flags & libc::SS_DISABLE != 0 {
            let memory = Box::leak(vec![0u8; ALTERNATE_SIZE].into_boxed_slice());
            let alternate = libc::stack_t {
                ss_sp: memory.as_mut_ptr().cast(),
                ss_flags: 0,
                ss_size: ALTERNATE_SIZE,
            };
            check(libc::sigaltstack(&alternate, ptr::null_mut()))?;
        }
        Ok(())
    }
}

extern "C" fn on_fault(_: c_int, info: *mut libc::siginfo_t, _: *mut c_void) {
    // SAFETY: the kernel passes a valid siginfo; the running thread's block lives while it runs.
    unsafe {
        let address = (*info).si_addr() as usize;
        let running = worker::known().map(|worker| worker.running.load(Relaxed));
        if let Some(thread) = running.and_then(|running| ThreadRef::from_ptr(running))
            && thread.stack.get().is_guard(address)
        {
            say(thread, thread.stack.get());
            let mut default: libc::sigaction = std::mem::zeroed();
            default.sa_sigaction = libc::SIG_DFL;
            libc::sigaction(libc::SIGSEGV, &default, ptr::null_mut());
        } else {
            // Not ours: the access happens again and meets the handler that was installed before.
            libc::sigaction(libc::SIGSEGV, (*BEFORE.0.get()).as_ptr(), ptr::null_mut());
        }
    }
}

/// Writes the message with nothing but write(2).
fn say(thread: ThreadRef, stack: Extent) {
    let (mut number, mut size) = ([0; 20], [0; 20]);
    let pieces: [&[u8]; 7] = [
        b"attune: thread ",
        decimal(thread.id, &mut number),
        b" \"",
        thread.name().to_bytes(),
        b"\" overflowed its stack of ",
        decimal(stack.usable() as u64, &mut size),
        b" bytes; a larger one is set in its attributes or in the options\n",
    ];
    for piece in pieces {
        // SAFETY: the piece is readable. There is nothing to do about a stderr that does not take
        // it.
        unsafe { libc::write(2, piece.as_ptr().cast(), piece.len()) };
    }
}

/// Decimal digits of `n`, in the end of `buffer`.
fn decimal(mut n: u64, buffer: &mut [u8; 20]) -> &[u8] {
    let mut start = buffer.len();
    loop {
        start -= 1;
        buffer[start] = b'0' + (n % 10) as u8;
        n /= 10;
        if n == 0 {
            return &buffer[start..];
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn decimal_digits() {
        assert_eq!(super::decimal(0, &mut [0; 20]), b"0");
        assert_eq!(super::decimal(u64::MAX, &mut [0; 20]), u64::MAX.to_string().as_bytes());
    }
}
