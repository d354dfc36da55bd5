//! Asks the processor for memory before it is used, without waiting for it.
//!
//! Among thousands of threads, what a switch needs of the next one is not in the cache. Any address
//! is allowed: where nothing lies, nothing is fetched.

/// Bytes of a line of the cache.
const LINE: usize = 64;

/// The line of that address and the one behind it.
#[inline]
pub fn two_lines(address: usize) {
    line(address);
    line(address.wrapping_add(LINE));
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn line(address: usize) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: a hint, which never faults.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(address as *const i8) };
}

#[cfg(target_arch = "aarch64")]
#[inline]
fn line(address: usize) {
    // SAFETY: as above.
    unsafe {
        std::arch::asm!(
            "prfm pldl1keep, [{}]",
            in(reg) address,
            options(nostack, readonly, preserves_flags)
        );
    }
}
