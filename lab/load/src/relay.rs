//! Threads of which each starts the next one and ends, on two stacks in turn. No start and no end
//! maps memory: among thousands of ready threads, one that holds the lock of the memory map may
//! wait long for its turn, and so do all that want the lock.

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::{io, ptr};

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};

const STACK: usize = 64 << 10;
const STACKS: usize = 2;

/// What each thread of a relay does. It calls [`Relay::next`] and returns, or never returns.
type Leg = dyn Fn(&'static Relay) + Sync;

/// Invariant: the thread that runs uses stack `starts - 1`, modulo 2; the other one's last thread
/// has ended, or has started this one and ends.
pub struct Relay {
    pub number: usize,
    leg: &'static Leg,
    /// Threads that have been started.
    starts: AtomicU64,
    /// What the next one begins with.
    baton: AtomicU64,
    stacks: [Stack; STACKS],
}

struct Stack {
    lowest: *mut c_void,
    /// The last thread (`pthread_t`) that has begun there.
    thread: AtomicU64,
}

// SAFETY: only the thread that the owner starts there uses the memory.
unsafe impl Sync for Stack {}

impl Relay {
    /// So many, none of which has started. They and their stacks last.
    pub fn several(count: usize, leg: &'static Leg) -> io::Result<&'static [Relay]> {
        let length = (count * STACKS * STACK).max(STACK);
        let (access, kind) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
        // SAFETY: a new mapping, which nobody else knows.
        let memory = unsafe { mmap_anonymous(ptr::null_mut(), length, access, kind)? };
        let stack = |index: usize| Stack {
            // SAFETY: the mapping has so many of them.
            lowest: unsafe { memory.byte_add(index * STACK) },
            thread: AtomicU64::new(0),
        };
        let relay = |number| Relay {
            number,
            leg,
            starts: AtomicU64::new(0),
            baton: AtomicU64::new(0),
            stacks: [stack(number * STACKS), stack(number * STACKS + 1)],
        };
        Ok(Vec::leak((0..count).map(relay).collect()))
    }

    /// Starts the first thread; or, called by the one that runs, the next one.
    pub fn next(&'static self, baton: u64) -> io::Result<()> {
        let starts = self.starts.load(SeqCst);
        let stack = &self.stacks[starts as usize % STACKS];
        if starts >= STACKS as u64 {
            // SAFETY: the last thread that began there; nobody else waits for it.
            unsafe { libc::pthread_join(stack.thread.load(SeqCst), ptr::null_mut()) };
        }
        self.baton.store(baton, SeqCst);
        self.starts.store(starts + 1, SeqCst);
        // SAFETY: attributes that are set up first; the stack is nobody's, by the invariant.
        let error = unsafe {
            let mut attributes = MaybeUninit::uninit();
            libc::pthread_attr_init(attributes.as_mut_ptr());
            libc::pthread_attr_setstack(attributes.as_mut_ptr(), stack.lowest, STACK);
            let mut thread = MaybeUninit::uninit();
            let own = ptr::from_ref(self).cast_mut().cast();
            libc::pthread_create(thread.as_mut_ptr(), attributes.as_ptr(), begin, own)
        };
        if error == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(error)) }
    }

    /// What the thread that runs begins with.
    pub fn baton(&self) -> u64 {
        self.baton.load(SeqCst)
    }
}

extern "C" fn begin(relay: *mut c_void) -> *mut c_void {
    // SAFETY: `next` has passed a reference that lasts.
    let relay: &'static Relay = unsafe { &*relay.cast::<Relay>() };
    let own = (relay.starts.load(SeqCst) - 1) as usize % STACKS;
    // SAFETY: asks for a number.
    relay.stacks[own].thread.store(unsafe { libc::pthread_self() }, SeqCst);
    (relay.leg)(relay);
    ptr::null_mut()
}
