//! How the kernel schedules a thread: its class and the class's numbers (`sched_setattr`).

use std::io;

use rustix::process::getpriority_process;

/// A scheduling class by the kernel's number; the kernel may have classes that are unknown here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Class(pub u32);

impl Class {
    /// SCHED_OTHER: the fair class. A thread that wakes up may preempt another.
    pub const NORMAL: Class = Class(0);
    pub const FIFO: Class = Class(1);
    pub const ROUND_ROBIN: Class = Class(2);
    /// As [`Class::NORMAL`], but a thread that wakes up waits until the CPU is given up.
    pub const BATCH: Class = Class(3);
    pub const IDLE: Class = Class(5);
    /// Reservations: a budget in every period.
    pub const DEADLINE: Class = Class(6);
    /// The scheduler that a BPF program is.
    pub const EXT: Class = Class(7);

    /// The calling thread's class.
    pub fn of_this_thread() -> io::Result<Class> {
        // SAFETY: asks for a number.
        let class = unsafe { libc::sched_getscheduler(0) };
        if class < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Class((class & !libc::SCHED_RESET_ON_FORK) as u32))
    }

    /// Gives the calling thread this class, with priority 0 and its nice value as it is: for the
    /// classes that know no more. Makes one system call and allocates nothing, so a child may call
    /// it after a fork.
    pub fn apply(self) -> io::Result<()> {
        // SAFETY: zeroes are a valid sched_param.
        let none: libc::sched_param = unsafe { std::mem::zeroed() };
        // SAFETY: reads one sched_param.
        match unsafe { libc::sched_setscheduler(0, self.0 as i32, &none) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// The fair class, which guarantees nothing: no program has asked for a guarantee yet.
    pub fn is_fair(self) -> bool {
        matches!(self, Class::NORMAL | Class::BATCH | Class::IDLE)
    }
}

/// The thread's core-scheduling cookie; 0: it has none. `InvalidInput`: the kernel has no core
/// scheduling. ENODEV: no CPUs share a core.
pub fn core_cookie(thread: u32) -> io::Result<u64> {
    let mut cookie = 0u64;
    // SAFETY: the kernel writes one number there.
    let result = unsafe {
        libc::prctl(
            libc::PR_SCHED_CORE,
            libc::PR_SCHED_CORE_GET,
            thread,
            libc::PR_SCHED_CORE_SCOPE_THREAD,
            &raw mut cookie,
        )
    };
    if result == 0 { Ok(cookie) } else { Err(io::Error::last_os_error()) }
}

/// Children of the thread begin in the fair class.
pub const RESET_ON_FORK: u64 = 1;
/// A reservation also gets bandwidth that is not reserved, or not used.
pub const RECLAIM: u64 = 2;

/// What `sched_setattr` sets and `sched_getattr` tells. Times are in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    pub class: Class,
    pub flags: u64,
    pub nice: i32,
    /// 1 to 99 in the real-time classes, else 0.
    pub priority: u32,
    /// The budget of a reservation; the slice that a thread of the fair class asks for.
    pub runtime: u64,
    pub deadline: u64,
    pub period: u64,
}

/// `struct sched_attr`, first version.
#[repr(C)]
#[derive(Default)]
struct Record {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
}

const SIZE: u32 = 48;
const _: () = assert!(size_of::<Record>() == SIZE as usize);

impl Attributes {
    /// The fair class, asking for slices of that length; 0: the kernel's own.
    pub fn fair(slice: u64) -> Attributes {
        Attributes { runtime: slice, ..Attributes::default() }
    }

    pub fn fifo(priority: u32) -> Attributes {
        Attributes { class: Class::FIFO, priority, ..Attributes::default() }
    }

    pub fn round_robin(priority: u32) -> Attributes {
        Attributes { class: Class::ROUND_ROBIN, priority, ..Attributes::default() }
    }

    /// `budget` of every `period`, in ns.
    pub fn reservation(budget: u64, period: u64) -> Attributes {
        Attributes {
            class: Class::DEADLINE,
            runtime: budget,
            deadline: period,
            period,
            ..Attributes::default()
        }
    }

    pub fn with_flags(self, flags: u64) -> Attributes {
        Attributes { flags, ..self }
    }

    /// The attributes that a thread has now; 0 is the calling thread.
    pub fn of(thread: u32) -> io::Result<Attributes> {
        let mut record = Record::default();
        // SAFETY: the kernel writes at most SIZE bytes, the size of the record.
        let result =
            unsafe { libc::syscall(libc::SYS_sched_getattr, thread, &raw mut record, SIZE, 0u32) };
        if result != 0 {
            return Err(io::Error::last_os_error());
        }
        let Record { policy, flags, nice, priority, runtime, deadline, period, .. } = record;
        Ok(Attributes { class: Class(policy), flags, nice, priority, runtime, deadline, period })
    }

    /// Gives them to a thread; 0 is the calling thread.
    pub fn apply_to(&self, thread: u32) -> io::Result<()> {
        let Attributes { class, flags, nice, priority, runtime, deadline, period } = *self;
        let policy = class.0;
        let record =
            Record { size: SIZE, policy, flags, nice, priority, runtime, deadline, period };
        // SAFETY: the kernel reads SIZE bytes, the size of the record.
        let result =
            unsafe { libc::syscall(libc::SYS_sched_setattr, thread, &raw const record, 0u32) };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}

/// The calling thread's nice value.
pub fn nice() -> i32 {
    getpriority_process(None).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_has_the_attributes_that_it_was_given() {
        std::thread::spawn(|| {
            let given = Attributes { class: Class::BATCH, nice: 3, ..Attributes::default() };
            given.apply_to(0).unwrap();
            let thread = crate::process::this_thread();
            let found = Attributes::of(thread).unwrap();
            assert_eq!((found.class, found.nice), (Class::BATCH, 3));
            assert_eq!((Class::of_this_thread().unwrap(), nice()), (Class::BATCH, 3));
            assert!(found.class.is_fair());
        })
        .join()
        .unwrap();
    }

    #[test]
    fn a_change_of_class_leaves_the_nice_value() {
        std::thread::spawn(|| {
            Attributes { nice: 5, ..Attributes::default() }.apply_to(0).unwrap();
            Class::BATCH.apply().unwrap();
            assert_eq!((Class::of_this_thread().unwrap(), nice()), (Class::BATCH, 5));
            Class::NORMAL.apply().unwrap();
            assert_eq!((Class::of_this_thread().unwrap(), nice()), (Class::NORMAL, 5));
        })
        .join()
        .unwrap();
    }

    #[test]
    fn the_kernel_refuses_a_reservation_longer_than_its_period() {
        let error = Attributes::reservation(2_000_000, 1_000_000).apply_to(0).unwrap_err();
        // Without privilege the kernel may look at that first.
        assert!(matches!(crate::errno(&error), Some(crate::Errno::INVAL | crate::Errno::PERM)));
    }

    #[test]
    fn a_thread_that_is_not_there_has_no_attributes() {
        assert_eq!(
            crate::errno(&Attributes::of(i32::MAX as u32).unwrap_err()),
            Some(crate::Errno::SRCH)
        );
    }
}
