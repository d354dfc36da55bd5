//! The contract between the machine and whatever chooses its threads: a [`Scheduler`] is told what
//! happens, one [`Call`] at a time, and answers with a [`Decision`].
//!
//! Invariants: thread ids are small, with few gaps (a slot is used again only after
//! `thread_removed`); a call never re-enters the policy; `Call::now` never goes back. Times are
//! nanoseconds of virtual time from the start of the run.

use std::fmt;

use attune_language::engine::event::Event;
pub use attune_language::ir::Value;

/// Nanoseconds of virtual time, as an instant since the start of the run or as a duration.
pub type Time = i64;

/// A thread, by the number of its slot: small, used again after the thread is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ThreadId(pub u32);

impl ThreadId {
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for ThreadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// An import of the policy, as found by name before the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ImportId(pub u32);

/// One call of a handler: what happened, to which thread, when and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    pub event: Event,
    /// The thread that the event is about. Always given for `switch_out`, whether the handler names
    /// it or not.
    pub thread: Option<ThreadId>,
    pub now: Time,
    /// The CPU that the handler runs on, below `cpus`.
    pub cpu: u32,
    pub cpus: u32,
}

/// `dispatch thread for slice`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dispatch {
    pub thread: ThreadId,
    /// None: until the thread stops by itself or is preempted.
    pub slice: Option<Time>,
}

/// What the policy answers to one call. The machine clears it before the call and keeps its memory
/// between calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// The answer of `schedule`; None leaves the CPU idle.
    pub dispatch: Option<Dispatch>,
    /// `alarm t at T`, in the order in which they were set; T <= 0 cancels.
    pub alarms: Vec<(ThreadId, Time)>,
    /// `preempt c at T`, in order; 0 where no time is said, which like every time that is past
    /// means at once. A number that is no CPU of the machine is ignored.
    pub preempt: Vec<(i64, Time)>,
    /// The answer of a query that returns a number or a time.
    pub value: Option<i64>,
    /// The answer of a query that returns a thread; None is no thread.
    pub value_thread: Option<ThreadId>,
}

impl Decision {
    pub fn clear(&mut self) {
        self.dispatch = None;
        self.alarms.clear();
        self.preempt.clear();
        self.value = None;
        self.value_thread = None;
    }
}

/// A place in the policy's source, from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub file: String,
    pub line: u32,
    pub column: u32,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// A run-time check of the policy failed: the run ends. The message says what was tried and what
/// was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trap {
    pub message: String,
    pub place: Option<Place>,
}

/// A scheduler, ready to run.
pub trait Scheduler {
    /// The scheduler's name, for reports.
    fn name(&self) -> &str;

    /// Begins a run: forgets all threads, gives every global its initial value, seeds `random`.
    /// Does not run `init`.
    fn start(&mut self, cpus: u32, seed: u64);

    /// Whether there is a handler for the event. Does not change during a run.
    fn handles(&self, event: Event) -> bool;

    /// A thread exists from now on, in no container; its attributes have their initial values.
    /// `newthread` follows, possibly after some imports were set.
    fn thread_created(&mut self, thread: ThreadId, affinity: &CpuSet);

    /// The CPUs that the thread may run on have changed.
    fn set_affinity(&mut self, thread: ThreadId, affinity: &CpuSet);

    /// The thread is no more: takes it out of whatever container it still sits in.
    fn thread_removed(&mut self, thread: ThreadId);

    /// The thread goes to another instance: takes it out of whatever container it sits in and
    /// forgets it, after `leaves`. Returns its attributes, which [`Scheduler::thread_arrives`]
    /// wants.
    fn thread_leaves(&mut self, thread: ThreadId) -> Vec<i64>;

    /// A thread comes from another instance of the same policy, in no container; `arrives` follows.
    fn thread_arrives(&mut self, thread: ThreadId, affinity: &CpuSet, attributes: &[i64]);

    /// Runs the handler for `call.event`; does nothing if there is none.
    fn call(&mut self, call: &Call, decision: &mut Decision) -> Result<(), Trap>;

    /// The per-thread import (`threadimports`) of that name. Here and below the defaults are those
    /// of a scheduler without imports.
    fn thread_import(&self, _name: &str) -> Option<ImportId> {
        None
    }

    /// The global import (`imports`) of that name.
    fn global_import(&self, _name: &str) -> Option<ImportId> {
        None
    }

    /// The application writes a per-thread import; `import` came from [`Scheduler::thread_import`].
    fn set_thread_import(&mut self, _thread: ThreadId, _import: ImportId, _value: Value) {}

    /// The application writes a global import; `import` came from [`Scheduler::global_import`].
    fn set_global_import(&mut self, _import: ImportId, _value: Value) {}

    /// What the per-thread import holds now: the policy may have written it.
    fn get_thread_import(&self, _thread: ThreadId, _import: ImportId) -> Value {
        Value::Int(0)
    }

    /// What the global import holds now.
    fn get_global_import(&self, _import: ImportId) -> Value {
        Value::Int(0)
    }

    /// The name of the container that the thread sits in (`RQ`, `wait[3]`), for messages.
    fn where_is(&self, thread: ThreadId) -> Option<String>;
}

/// The most CPUs that a machine may have.
pub const MAX_CPUS: u32 = 1024;

/// A set of CPUs: bit `c` of the words says whether CPU `c` is in it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct CpuSet {
    words: [u64; (MAX_CPUS / 64) as usize],
}

impl CpuSet {
    pub const EMPTY: CpuSet = CpuSet { words: [0; (MAX_CPUS / 64) as usize] };
    pub const ALL: CpuSet = CpuSet { words: [u64::MAX; (MAX_CPUS / 64) as usize] };

    pub fn contains(&self, cpu: u32) -> bool {
        self.words.get((cpu / 64) as usize).is_some_and(|word| word >> (cpu % 64) & 1 == 1)
    }

    /// Adds a CPU; one beyond [`MAX_CPUS`] is no CPU, and the set stays as it is.
    pub fn insert(&mut self, cpu: u32) {
        if let Some(word) = self.words.get_mut((cpu / 64) as usize) {
            *word |= 1 << (cpu % 64);
        }
    }

    pub fn remove(&mut self, cpu: u32) {
        if let Some(word) = self.words.get_mut((cpu / 64) as usize) {
            *word &= !(1 << (cpu % 64));
        }
    }

    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|&word| word == 0)
    }

    /// The lowest CPU of the set that is `from` or above.
    pub fn next_from(&self, from: u32) -> Option<u32> {
        let first = (from / 64) as usize;
        let mut mask = u64::MAX << (from % 64);
        for (index, word) in self.words.iter().enumerate().skip(first) {
            let rest = word & mask;
            if rest != 0 {
                return Some(index as u32 * 64 + rest.trailing_zeros());
            }
            mask = u64::MAX;
        }
        None
    }

    /// The CPUs of the set, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        std::iter::successors(self.next_from(0), |&cpu| self.next_from(cpu + 1))
    }
}

impl FromIterator<u32> for CpuSet {
    fn from_iter<I: IntoIterator<Item = u32>>(cpus: I) -> CpuSet {
        let mut set = CpuSet::EMPTY;
        cpus.into_iter().for_each(|cpu| set.insert(cpu));
        set
    }
}

impl fmt::Debug for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == CpuSet::ALL {
            f.write_str("all")
        } else {
            f.debug_set().entries(self.iter()).finish()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cpu_set_lists_its_cpus_in_order_across_words() {
        let set: CpuSet = [1023, 0, 63, 64, 5000].into_iter().collect();
        assert_eq!(set.iter().collect::<Vec<_>>(), [0, 63, 64, 1023]);
        assert!(set.contains(64) && !set.contains(65) && !set.contains(5000));
        assert_eq!(set.next_from(65), Some(1023));
        assert_eq!(CpuSet::ALL.iter().count(), 1024);
    }
}
