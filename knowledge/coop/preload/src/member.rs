//! Membership of the process: joined at the main thread's first wait, not inherited by children.
//!
//! A member may be bound to a CPU and be in another class than before. A child of fork gets back
//! what its parent had before it joined; so does a program that a member starts, told by the
//! environment variable [`BEFORE`]. Each of them joins for itself, if it waits.

use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicBool, Ordering};

use attune_coop::{Clock, ForeignLoop, Monotonic, Wanted, shared, transport};
use attune_linux::affinity::Cpus;
use attune_linux::process;
use attune_linux::scheduling::Class;
use attune_linux::time;
use libc::pollfd;

/// The CPUs that the thread might use before it joined, as the kernel writes them, and its class:
/// for programs that a member starts.
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
    process::is_main_thread() && WAITING.try_with(|waiting| !waiting.get()).unwrap_or(false)
}

/// Waits until a descriptor is ready, the time is over or a signal has come (Err, EINTR), and it is
/// our turn. None: not a member.
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
                // The kernel's own call will return its error.
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
        // A user who preloads this wants the program to cooperate.
        None if transport::kernel::Kernel::is_there() => Wanted::Kernel,
        None => Wanted::Shared(shared::Session::default()),
    };
    match ForeignLoop::new(wanted, 0) {
        Ok(joined) => {
            if let Some(before) = before {
                before.leave_to_children();
            }
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
    cpus: Cpus,
    class: Class,
}

static mut RESTORED_IN_CHILDREN: Option<Before> = None;

impl Before {
    /// Reads the thread's CPUs and class; None: the kernel does not say.
    fn read() -> Option<Before> {
        Some(Before { cpus: Cpus::of_this_thread().ok()?, class: Class::of_this_thread().ok()? })
    }

    /// Leaves this to children: those of fork, and those that are other programs.
    fn leave_to_children(&self) {
        let text = format!("{}:{}", self.class.0, self.cpus);
        let text = std::ffi::CString::new(text).unwrap_or_default();
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
        Some(Before { cpus: cpus.parse().ok()?, class: Class(class.parse().ok()?) })
    }

    /// The thread stays as it is where the kernel does not grant this.
    fn restore(&self) {
        let _ = self.cpus.apply();
        if matches!(self.class, Class::NORMAL | Class::BATCH) {
            let _ = self.class.apply();
        }
        time::set_timer_slack(None);
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
