//! Membership of the process: joined at the main thread's first wait, not inherited by children.
//!
//! A member may be bound to a CPU and be in another class than before. A child of fork gets back what its parent had before it joined; so does
//! a program that a member starts, told by the environment variable [`BEFORE`]. Each of them joins for itself, if it waits.

use std::cell::{Cell, RefCell};
use std::mem::zeroed;
use std::sync::atomic::{AtomicBool, Ordering};

use attune_coop::{Clock, ForeignLoop, Monotonic, Wanted, shared, transport};
use libc::{cpu_set_t, pollfd};

/// Which CPUs the thread might use before it joined, in hexadecimal, and its class: for programs that a member starts.
const BEFORE: &std::ffi::CStr = c"ATTUNE_COOP_BEFORE";

enum Membership {
    NotYet,
    Joined(ForeignLoop),
    /// It failed, and was said.
    Refused,
}

thread_local! {
    static MEMBER: RefCell<(u32, Membership)> = const { RefCell::new((0, Membership::NotYet)) };
    /// The cooperative wait itself waits.
    static WAITING: Cell<bool> = const { Cell::new(false) };
}

static AT_FORK: AtomicBool = AtomicBool::new(false);

pub fn now() -> u64 {
    Monotonic.now()
}

/// Whether a call of this thread, now, is a cooperative one.
pub fn may_wait() -> bool {
    // SAFETY: asks for numbers.
    let main = unsafe { libc::gettid() == libc::getpid() };
    main && WAITING.try_with(|waiting| !waiting.get()).unwrap_or(false)
}

/// Waits until a descriptor is ready, the time is over or a signal has come (Err, EINTR), and it is our turn. None: not a member.
pub fn wait(watched: &mut [pollfd], timeout: u64) -> Option<Result<usize, i32>> {
    WAITING.set(true);
    let result = MEMBER.with_borrow_mut(|(process, membership)| {
        if *process != std::process::id() {
            // The parent's; its descriptors are closed here.
            *membership = join();
            *process = std::process::id();
        }
        let Membership::Joined(member) = membership else { return None };
        match member.poll(watched, timeout) {
            Ok(ready) => Some(Ok(ready)),
            Err(error) => match error.raw_os_error() {
                Some(libc::EINTR) => Some(Err(libc::EINTR)),
                // What the kernel says to that, it says itself.
                _ => None,
            },
        }
    });
    WAITING.set(false);
    result
}

fn join() -> Membership {
    let before = Before::read();
    let wanted = match std::env::var_os("ATTUNE_COOP").filter(|said| !said.is_empty()) {
        Some(_) => Wanted::Auto,
        // Whoever preloads this wants it to cooperate.
        None if transport::kernel::Kernel::is_there() => Wanted::Kernel,
        None => Wanted::Shared(shared::Domain::default()),
    };
    match ForeignLoop::new(wanted, 0) {
        Ok(joined) => {
            before.leave_word();
            Membership::Joined(joined)
        }
        Err(error) => {
            eprintln!("attune: not cooperating: {error}");
            Membership::Refused
        }
    }
}

/// How the kernel scheduled the thread before it joined.
#[derive(Clone, Copy)]
struct Before {
    cpus: cpu_set_t,
    class: i32,
}

const WORDS: usize = size_of::<cpu_set_t>() / 8;

static mut RESTORED_IN_CHILDREN: Option<Before> = None;

impl Before {
    fn read() -> Before {
        // SAFETY: plain data; its size is passed.
        unsafe {
            let mut cpus: cpu_set_t = zeroed();
            libc::sched_getaffinity(0, size_of_val(&cpus), &mut cpus);
            Before { cpus, class: libc::sched_getscheduler(0) }
        }
    }

    fn words(&self) -> [u64; WORDS] {
        // SAFETY: a set of CPUs is so many words.
        unsafe { std::mem::transmute_copy(&self.cpus) }
    }

    /// For children: those of fork, and those that are other programs.
    fn leave_word(&self) {
        let cpus: Vec<String> = self.words().iter().map(|word| format!("{word:x}")).collect();
        let text = std::ffi::CString::new(format!("{}:{}", self.class, cpus.join(","))).unwrap_or_default();
        // SAFETY: the main thread writes both, outside of any fork; setenv copies the text.
        unsafe {
            RESTORED_IN_CHILDREN = Some(*self);
            libc::setenv(BEFORE.as_ptr(), text.as_ptr(), 1);
            if !AT_FORK.swap(true, Ordering::Relaxed) {
                libc::pthread_atfork(None, None, Some(in_child));
            }
        }
    }

    fn parse(text: &str) -> Option<Before> {
        let (class, cpus) = text.split_once(':')?;
        let mut words = [0u64; WORDS];
        for (word, text) in words.iter_mut().zip(cpus.split(',')) {
            *word = u64::from_str_radix(text, 16).ok()?;
        }
        // SAFETY: every word is a valid part of a set of CPUs.
        Some(Before { cpus: unsafe { std::mem::transmute_copy(&words) }, class: class.parse().ok()? })
    }

    /// What the kernel does not grant stays as it is.
    fn restore(&self) {
        // SAFETY: plain data; its size is passed. The priority is 0 in both classes that a member may have.
        unsafe {
            libc::sched_setaffinity(0, size_of_val(&self.cpus), &self.cpus);
            if matches!(self.class, libc::SCHED_OTHER | libc::SCHED_BATCH) {
                libc::sched_setscheduler(0, self.class, &zeroed());
            }
            libc::prctl(libc::PR_SET_TIMERSLACK, 0);
        }
    }
}

extern "C" fn in_child() {
    // SAFETY: the only thread of the child reads what its parent wrote before it forked.
    if let Some(before) = unsafe { RESTORED_IN_CHILDREN } {
        before.restore();
    }
}

/// Runs when the library is loaded: in a program that a member has started.
extern "C" fn loaded() {
    // SAFETY: no other thread is there yet; the text is copied before the environment changes.
    unsafe {
        let said = libc::getenv(BEFORE.as_ptr());
        if said.is_null() {
            return;
        }
        let text = std::ffi::CStr::from_ptr(said).to_string_lossy().into_owned();
        libc::unsetenv(BEFORE.as_ptr());
        if let Some(before) = Before::parse(&text) {
            before.restore();
        }
    }
}

#[used]
#[unsafe(link_section = ".init_array")]
static LOADED: extern "C" fn() = loaded;
