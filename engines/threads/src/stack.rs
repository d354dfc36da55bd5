//! Stacks of threads, with guard pages below them, and the pool that keeps stacks for new threads.
//!
//! ```text
//!   limit                                      base
//!     | guard: no access | usable, grows downwards | colour |
//! ```
//!
//! All stacks lie at the same place of a page, so their upper ends would compete for the same few
//! sets of the cache; a varying number of bytes is left free above each (its colour).
//!
//! A guard that is a mapping of its own costs two of the some 65 000 that a process may have. So
//! only the first guards are; the others are light where the kernel has that (Linux 6.13), and
//! stacks beside each other are one mapping then. Why not all: gdb's `generate-core-file` stops at
//! a light guard, and loses the rest of the mapping.
//!
//! Invariant: the guard is [`GUARD`] bytes, more than any probed frame skips, so an overflow faults
//! inside it. Units: bytes. Memory is touched, and so becomes resident, only as deep as a thread
//! has used its stack.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::errno::{Errno, Result};
use crate::instruments::{self, Registered};

pub const DEFAULT_SIZE: usize = 256 * 1024;
/// So many free stacks keep their memory also when nothing else is to be done.
const KEEP_MEMORY: usize = 4096;
/// To lend the memory of so many takes some 25 us.
const LEND_SOME: usize = 16;
const MINIMUM: usize = 16 * 1024;
const MAXIMUM: usize = 1 << 40;
const GUARD: usize = 64 * 1024;
/// Colours go round within half a page, so that a shallow stack still touches one page.
const COLOURS: usize = 2048;
const COLOUR_STEP: usize = 192;

/// A mapped stack; unmapped when dropped.
pub struct GuardedStack {
    base: usize,
    /// From the guard to the end of the mapping.
    size: usize,
    colour: usize,
    registered: Registered,
}

impl GuardedStack {
    fn map(size: usize, colour: usize) -> Result<GuardedStack> {
        let whole = size + GUARD;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_STACK;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a fresh private mapping; nobody else knows its address.
        let limit = unsafe { libc::mmap(std::ptr::null_mut(), whole, access, flags, -1, 0) };
        if limit == libc::MAP_FAILED {
            return Err(Errno(libc::EAGAIN));
        }
        let base = limit as usize + whole - colour;
        let registered = instruments::register_stack(limit as usize + GUARD, base);
        let stack = GuardedStack { base, size, colour, registered };
        let light = STACKS.fetch_add(1, Relaxed) >= MAPPED_GUARDS;
        // SAFETY: the guard is the lower end of the mapping above, which nobody uses yet.
        let guarded = unsafe { light && guard_light(limit) || guard_mapped(limit) };
        if guarded { Ok(stack) } else { Err(Errno(libc::EAGAIN)) }
    }

    pub fn extent(&self) -> Extent {
        Extent { limit: self.limit(), base: self.base }
    }

    /// The lowest byte of the guard.
    fn limit(&self) -> usize {
        self.base + self.colour - self.size - GUARD
    }

    /// The kernel may take the memory when it runs short. What is written from now on stays.
    fn lend_memory(&self) {
        let usable = (self.limit() + GUARD) as *mut libc::c_void;
        // SAFETY: nothing runs on the stack, and what was on it means nothing. The kernel refuses
        // memory that is locked, which then stays.
        unsafe { libc::madvise(usable, self.size, libc::MADV_FREE) };
    }
}

/// Stacks that there are.
static STACKS: AtomicUsize = AtomicUsize::new(0);
/// So many stacks have guards that are mappings.
const MAPPED_GUARDS: usize = 4096;

/// Of Linux 6.13; libc has no name for it.
const MADV_GUARD_INSTALL: libc::c_int = 102;

/// Access to the guard faults from now on. False: the kernel cannot do that, or not in memory that
/// is locked.
///
/// # Safety
///
/// [`GUARD`] bytes from `limit` on are mapped and unused.
unsafe fn guard_light(limit: *mut libc::c_void) -> bool {
    // SAFETY: as said.
    unsafe { libc::madvise(limit, GUARD, MADV_GUARD_INSTALL) == 0 }
}

/// The same by a mapping of its own.
///
/// # Safety
///
/// As above.
unsafe fn guard_mapped(limit: *mut libc::c_void) -> bool {
    // SAFETY: as said.
    unsafe { libc::mprotect(limit, GUARD, libc::PROT_NONE) == 0 }
}

/// Where a stack lies, guard included.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Extent {
    limit: usize,
    base: usize,
}

impl Extent {
    /// No stack of ours.
    pub const NONE: Extent = Extent { limit: 0, base: 0 };

    /// Whether an access to `address` ran over the end of the stack.
    pub fn is_guard(self, address: usize) -> bool {
        self.limit != 0 && (self.limit..self.limit + GUARD).contains(&address)
    }

    /// The lowest byte that may be used.
    pub fn lowest(self) -> usize {
        self.limit + GUARD
    }

    pub fn usable(self) -> usize {
        self.base - self.lowest()
    }

    /// The end, from which it grows downwards.
    pub fn base(self) -> usize {
        self.base
    }
}

impl Drop for GuardedStack {
    fn drop(&mut self) {
        STACKS.fetch_sub(1, Relaxed);
        instruments::forget_stack(self.registered);
        // SAFETY: the mapping is ours alone and nothing runs on it any more.
        unsafe { libc::munmap(self.limit() as *mut libc::c_void, self.size + GUARD) };
    }
}

/// Free stacks of the default size, kept up to a number. To map a stack, and to find a new page for
/// it, takes many times as long as all else that a new thread needs. So as many are kept as there
/// were at once, unless the program says how many.
///
/// Invariant: the kernel may take the memory of the first `lent` free stacks, which are the last to
/// be used again.
pub struct StackPool {
    default_size: usize,
    capacity: usize,
    free: Vec<GuardedStack>,
    lent: usize,
    mapped: u64,
    next_colour: usize,
}

impl StackPool {
    /// `default_size` of 0 means the default, `capacity` (in stacks) of 0 that all are kept.
    pub fn new(default_size: usize, capacity: usize) -> Result<StackPool> {
        let default_size = usable(if default_size == 0 { DEFAULT_SIZE } else { default_size })?;
        let capacity = if capacity == 0 { usize::MAX } else { capacity };
        Ok(StackPool {
            default_size,
            capacity,
            free: Vec::new(),
            lent: 0,
            mapped: 0,
            next_colour: 0,
        })
    }

    /// A stack of about `size` bytes, in whole pages less its colour; 0 means the default size.
    /// EAGAIN: no address space or too many mappings. EINVAL: larger than any address space.
    pub fn take(&mut self, size: usize) -> Result<GuardedStack> {
        let size = if size == 0 { self.default_size } else { usable(size)? };
        if size == self.default_size
            && let Some(stack) = self.free.pop()
        {
            self.lent = self.lent.min(self.free.len());
            return Ok(stack);
        }
        let stack = GuardedStack::map(size, self.next_colour)?;
        self.next_colour = (self.next_colour + COLOUR_STEP) % COLOURS;
        self.mapped += (size + GUARD) as u64;
        Ok(stack)
    }

    pub fn give_back(&mut self, stack: GuardedStack) {
        if stack.size == self.default_size && self.free.len() < self.capacity {
            self.free.push(stack);
        } else {
            self.mapped -= (stack.size + GUARD) as u64;
        }
    }

    /// While nothing else is to be done: lends the kernel the memory of a few stacks. False: it has
    /// that of all but [`KEEP_MEMORY`].
    pub fn lend_some_memory(&mut self) -> bool {
        let surplus = self.free.len().saturating_sub(KEEP_MEMORY);
        let some = self.lent..surplus.min(self.lent + LEND_SOME);
        self.free.get(some.clone()).unwrap_or_default().iter().for_each(GuardedStack::lend_memory);
        self.lent = self.lent.max(some.end);
        !some.is_empty()
    }

    /// Address space of all stacks, free ones and guards included.
    pub fn mapped_bytes(&self) -> u64 {
        self.mapped
    }
}

/// A stack size in whole pages.
fn usable(size: usize) -> Result<usize> {
    if size > MAXIMUM {
        return Err(Errno(libc::EINVAL));
    }
    // SAFETY: asks for a constant of the system.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
    Ok(size.max(MINIMUM).next_multiple_of(page))
}

#[cfg(test)]
mod tests {
    use std::sync::{Mutex, MutexGuard, PoisonError};

    use super::*;

    /// Tests with thousands of stacks, of which others count the mappings, run one at a time.
    fn alone() -> MutexGuard<'static, ()> {
        static ALONE: Mutex<()> = Mutex::new(());
        ALONE.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[test]
    fn sizes_are_rounded_to_pages_and_bounded() {
        assert_eq!(usable(1), Ok(MINIMUM));
        assert_eq!(usable(MINIMUM + 1).unwrap() % 4096, 0);
        assert!(usable(MINIMUM + 1).unwrap() > MINIMUM);
        assert_eq!(usable(usize::MAX), Err(Errno(libc::EINVAL)));
    }

    #[test]
    fn the_guard_lies_just_below_the_usable_part() {
        let stack = GuardedStack::map(MINIMUM, 0).unwrap();
        let lowest = stack.base - MINIMUM;
        let extent = stack.extent();
        assert_eq!(extent.usable(), MINIMUM);
        assert!(!extent.is_guard(lowest));
        assert!(extent.is_guard(lowest - 1));
        assert!(extent.is_guard(lowest - GUARD));
        assert!(!extent.is_guard(lowest - GUARD - 1));
        // SAFETY: the lowest usable byte is mapped and ours.
        unsafe { *(lowest as *mut u8) = 1 };
    }

    /// Those that begin between these addresses: other tests map and unmap elsewhere meanwhile.
    fn mappings_between(lowest: usize, highest: usize) -> usize {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let begins = |line: &str| usize::from_str_radix(line.split('-').next()?, 16).ok();
        maps.lines().filter_map(begins).filter(|at| (lowest..highest).contains(at)).count()
    }

    fn mappings_of(stacks: &[GuardedStack]) -> usize {
        let lowest = stacks.iter().map(|it| it.limit()).min().unwrap();
        let highest = stacks.iter().map(|it| it.base).max().unwrap();
        mappings_between(lowest, highest)
    }

    #[test]
    fn guards_of_many_stacks_are_no_mappings_where_the_kernel_can_do_without() {
        let _alone = alone();
        let map = |count| -> Vec<_> {
            (0..count).map(|_| GuardedStack::map(MINIMUM, 0).unwrap()).collect()
        };
        let first = map(MAPPED_GUARDS);
        let before = mappings_of(&first);
        assert!(before >= MAPPED_GUARDS, "{before}");
        let more = map(500);
        let new = mappings_of(&more);
        let limit = more[0].limit() as *mut libc::c_void;
        // SAFETY: nobody uses this guard, which is one already.
        if unsafe { guard_light(limit) } {
            assert!(new < 250, "{new}");
        } else {
            assert!(new >= 500, "{new}");
        }
        drop(first);
    }

    #[test]
    fn a_returned_stack_is_used_again() {
        let mut pool = StackPool::new(0, 1).unwrap();
        let (a, b) = (pool.take(0).unwrap(), pool.take(0).unwrap());
        let base = a.base;
        let both = pool.mapped_bytes();
        pool.give_back(a);
        pool.give_back(b);
        assert_eq!(pool.mapped_bytes() * 2, both);
        assert_eq!(pool.take(0).unwrap().base, base);
    }

    /// Whether the kernel, when it runs short of memory, drops what is written there.
    fn is_dropped(written: *mut u8) -> bool {
        let page = (written as usize & !4095) as *mut libc::c_void;
        // SAFETY: nothing uses the page but this function; to page out keeps what it holds, but for
        // memory that is lent.
        (0..100).any(|_| unsafe {
            libc::madvise(page, 4096, libc::MADV_PAGEOUT);
            written.read_volatile() == 0
        })
    }

    #[test]
    fn as_many_stacks_are_kept_as_there_were_but_not_the_memory_of_all() {
        let _alone = alone();
        let mut pool = StackPool::new(MINIMUM, 0).unwrap();
        let count = KEEP_MEMORY + LEND_SOME + 1;
        let stacks: Vec<_> = (0..count).map(|_| pool.take(0).unwrap()).collect();
        let written = [0, LEND_SOME, count - 1].map(|index| (stacks[index].base - 64) as *mut u8);
        // SAFETY: the stacks' highest bytes, which nobody uses.
        written.iter().for_each(|place| unsafe { **place = 1 });
        let mapped = pool.mapped_bytes();
        stacks.into_iter().for_each(|stack| pool.give_back(stack));
        assert_eq!(pool.mapped_bytes(), mapped);
        assert!(pool.lend_some_memory() && pool.lend_some_memory() && !pool.lend_some_memory());
        assert_eq!(written.map(is_dropped), [true, true, false]);
        let again: Vec<_> = (0..count).map(|_| pool.take(0).unwrap()).collect();
        assert_eq!((pool.mapped_bytes(), pool.lent), (mapped, 0));
        again.into_iter().for_each(|stack| pool.give_back(stack));
        assert!(pool.lend_some_memory());
    }
}
