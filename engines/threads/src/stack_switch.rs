//! Leaves one stack and goes on with another, as a function call sees it.
//!
//! ```text
//!   saved sp -> | what a function must preserve (`SAVED`) | where it goes on | frames ..
//! ```
//!
//! Invariant: a saved stack pointer is used once, by the switch that goes on there.

use std::arch::naked_asm;

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
compile_error!("threads need a switch of stacks for this processor: see stack_switch.rs");

/// What a stack that has not run yet begins with.
pub type First = extern "C" fn(argument: usize) -> !;

/// Words of a saved stack: x86-64 has r15, r14, r13, r12, rbx, rbp and the return address;
/// debuggers read them (gdb/attune.py).
#[cfg(target_arch = "x86_64")]
const SAVED: usize = 7;
/// AArch64 has x29, x30, x19 to x28, d8 to d15.
#[cfg(target_arch = "aarch64")]
const SAVED: usize = 20;

/// Where a switch begins `first(argument)` on a stack that ends at `end`.
///
/// # Safety
/// Below `end` lies a stack of at least 200 bytes on which nothing runs.
pub unsafe fn prepare(end: usize, first: First, argument: usize) -> usize {
    let mut words = [0usize; SAVED];
    #[cfg(target_arch = "x86_64")]
    {
        // r12, rbx, and where it goes on.
        (words[3], words[4], words[6]) = (argument, first as usize, begin as *const () as usize);
    }
    #[cfg(target_arch = "aarch64")]
    {
        // x30, x19, x20.
        (words[1], words[2], words[3]) = (begin as *const () as usize, argument, first as usize);
    }
    // `begin` runs with the stack pointer behind the words, which is a multiple of 16.
    let at = (end & !15) - 16 - size_of_val(&words);
    // SAFETY: the caller's.
    unsafe { (at as *mut [usize; SAVED]).write(words) };
    at
}

/// Saves what a function must preserve, and the stack pointer at the first argument's place.
#[cfg(target_arch = "x86_64")]
macro_rules! save {
    () => {
        "push rbp
        push rbx
        push r12
        push r13
        push r14
        push r15
        mov [rdi], rsp"
    };
}

/// Goes on where the stack pointer was saved.
#[cfg(target_arch = "x86_64")]
macro_rules! go_on {
    () => {
        "pop r15
        pop r14
        pop r13
        pop r12
        pop rbx
        pop rbp
        ret"
    };
}

/// Saves where the caller goes on in `save`, and goes on where `to` was saved.
///
/// # Safety
/// `to` comes from [`prepare`] or an earlier switch, and nothing has gone on there since.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
pub unsafe extern "C" fn switch(save: *mut usize, to: usize) {
    naked_asm!(save!(), "mov rsp, rsi", go_on!())
}

/// Saves where the caller goes on in `save`, calls `choose(argument)` on the stack that was saved
/// as `on`, which stays saved, and goes on where that says.
///
/// # Safety
/// `on` is as `to` of [`switch`] and has room for the call, and so is what `choose` returns.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
pub unsafe extern "C" fn switch_by<T>(
    save: *mut usize,
    on: usize,
    choose: extern "C" fn(&'static T) -> usize,
    argument: &'static T,
) {
    // A saved stack pointer is 8 more than a multiple of 16; a call needs a multiple.
    naked_asm!(save!(), "lea rsp, [rsi - 8]", "mov rdi, rcx", "call rdx", "mov rsp, rax", go_on!(),)
}

/// The oldest frame of a stack; its zero in rbp ends chains of frames.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
unsafe extern "C" fn begin() {
    naked_asm!("xor ebp, ebp", "mov rdi, r12", "call rbx", "ud2")
}

#[cfg(target_arch = "aarch64")]
macro_rules! save {
    () => {
        "stp x29, x30, [sp, #-160]!
        stp x19, x20, [sp, #16]
        stp x21, x22, [sp, #32]
        stp x23, x24, [sp, #48]
        stp x25, x26, [sp, #64]
        stp x27, x28, [sp, #80]
        stp d8, d9, [sp, #96]
        stp d10, d11, [sp, #112]
        stp d12, d13, [sp, #128]
        stp d14, d15, [sp, #144]
        mov x9, sp
        str x9, [x0]"
    };
}

#[cfg(target_arch = "aarch64")]
macro_rules! go_on {
    () => {
        "ldp x19, x20, [sp, #16]
        ldp x21, x22, [sp, #32]
        ldp x23, x24, [sp, #48]
        ldp x25, x26, [sp, #64]
        ldp x27, x28, [sp, #80]
        ldp d8, d9, [sp, #96]
        ldp d10, d11, [sp, #112]
        ldp d12, d13, [sp, #128]
        ldp d14, d15, [sp, #144]
        ldp x29, x30, [sp], #160
        ret"
    };
}

/// As above.
///
/// # Safety
/// As above.
#[cfg(target_arch = "aarch64")]
#[unsafe(naked)]
pub unsafe extern "C" fn switch(save: *mut usize, to: usize) {
    naked_asm!(save!(), "mov sp, x1", go_on!())
}

/// As above.
///
/// # Safety
/// As above.
#[cfg(target_arch = "aarch64")]
#[unsafe(naked)]
pub unsafe extern "C" fn switch_by<T>(
    save: *mut usize,
    on: usize,
    choose: extern "C" fn(&'static T) -> usize,
    argument: &'static T,
) {
    naked_asm!(save!(), "mov sp, x1", "mov x0, x3", "blr x2", "mov sp, x0", go_on!())
}

#[cfg(target_arch = "aarch64")]
#[unsafe(naked)]
unsafe extern "C" fn begin() {
    naked_asm!("mov x29, xzr", "mov x0, x19", "blr x20", "brk #1")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// Two stacks that hand a number to and fro.
    struct Pair {
        here: Cell<usize>,
        there: Cell<usize>,
        number: Cell<u64>,
    }

    extern "C" fn doubles(pair: usize) -> ! {
        // SAFETY: the test's pair, which outlives the stack.
        let pair = unsafe { &*(pair as *const Pair) };
        let mut real = 0.5f64;
        loop {
            real *= 2.0;
            pair.number.set(pair.number.get() * 2 + real as u64);
            // SAFETY: the test has just left, and waits there.
            unsafe { switch(pair.there.as_ptr(), pair.here.get()) };
        }
    }

    #[test]
    fn two_stacks_take_turns_and_keep_what_is_theirs() {
        let mut stack = vec![0u128; 4096];
        let pair = Pair { here: Cell::new(0), there: Cell::new(0), number: Cell::new(1) };
        let end = stack.as_mut_ptr_range().end as usize;
        // SAFETY: 64 KiB that nothing uses.
        pair.there.set(unsafe { prepare(end, doubles, &raw const pair as usize) });
        let mut expected = 1;
        for turn in 0..10 {
            // SAFETY: the other stack has not begun, or has left.
            unsafe { switch(pair.here.as_ptr(), pair.there.get()) };
            expected = expected * 2 + (1 << turn);
            assert_eq!(pair.number.get(), expected);
        }
    }

    /// A stack that asks on the test's own one where to go on, and how often it has asked.
    struct Asking {
        here: Cell<usize>,
        there: Cell<usize>,
        asked: Cell<u64>,
        seen: Cell<u64>,
    }

    extern "C" fn answer(asking: &'static Asking) -> usize {
        let asked = asking.asked.get() + 1;
        asking.asked.set(asked);
        if asked < 3 { asking.there.get() } else { asking.here.get() }
    }

    extern "C" fn asks(asking: usize) -> ! {
        // SAFETY: the test's, which lives for ever.
        let asking = unsafe { &*(asking as *const Asking) };
        let mut real = 1.0f64;
        loop {
            asking.seen.set(asking.seen.get() + real as u64);
            real *= 10.0;
            // SAFETY: the test waits `here`, with room on its stack.
            unsafe { switch_by(asking.there.as_ptr(), asking.here.get(), answer, asking) };
        }
    }

    #[test]
    fn who_goes_on_is_chosen_on_a_stack_that_stays_as_it_was() {
        let asking = Box::leak(Box::new(Asking {
            here: Cell::new(0),
            there: Cell::new(0),
            asked: Cell::new(0),
            seen: Cell::new(0),
        }));
        let mut stack = vec![0u128; 4096];
        let end = stack.as_mut_ptr_range().end as usize;
        // SAFETY: 64 KiB that nothing uses.
        asking.there.set(unsafe { prepare(end, asks, &raw const *asking as usize) });
        for (asked, seen) in [(3, 111), (4, 1111)] {
            // SAFETY: the other stack has not begun, or has left.
            unsafe { switch(asking.here.as_ptr(), asking.there.get()) };
            assert_eq!((asking.asked.get(), asking.seen.get()), (asked, seen));
        }
    }
}
