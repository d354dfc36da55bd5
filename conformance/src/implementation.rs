//! What a scheduler was made into, as the comparison with the interpreter sees it:
//! [`crate::compiled`] C in this process, or [`crate::replayed`] BPF in the kernel.

use std::collections::HashMap;

use attune_kernel::Found;
use attune_language::engine::event::Event;
use attune_replica::{Change, Operation};
use attune_simulator::scheduler::{Call, CpuSet, Decision, ThreadId, Value};

/// A variable's value as 64 bits: an i64, or a double's bits.
pub type Bits = i64;

/// Code that was made from a scheduler, attached and running.
pub trait Implementation {
    fn handles(&self, event: Event) -> bool;
    fn create(&mut self, instance: u32, thread: ThreadId, now: i64) -> Option<Trap>;
    /// The thread has left its instance, and sits in no container from now on.
    fn leave(&mut self, thread: ThreadId);
    /// Nothing where code knows no affinity: such cases pin no thread.
    fn set_affinity(&mut self, _thread: ThreadId, _affinity: &CpuSet) {}
    fn remove(&mut self, thread: ThreadId);
    fn call(&mut self, instance: u32, call: &Call, decision: &mut Decision) -> Option<Trap>;
    /// `import` counts the imports among the attributes.
    fn write_thread_import(&mut self, thread: ThreadId, import: usize, value: Value);
    fn write_global_import(&mut self, name: &str, value: Value);
    /// A node has heard of its cluster at that time; handlers are called at `now` next.
    fn hear(&mut self, heard_at: Option<i64>, now: i64);
    /// What handlers have done to the variables that a cluster supplies.
    fn written(&self) -> Written;
    /// The cluster takes that.
    fn take_written(&mut self);
    /// Whether the thread sits in a container.
    fn is_stored(&mut self, thread: ThreadId) -> bool;
    fn state(&self, instance: u32) -> State;
    /// The thread's attributes, by name.
    fn attributes_of(&mut self, thread: ThreadId) -> HashMap<String, Bits>;
}

/// What handlers of a node have written.
#[derive(Clone, Debug)]
pub enum Written {
    /// In the last call, one by one: the numbers of globals, and what was done to them.
    Each(Vec<(u32, Operation)>),
    /// By global, since the cluster took it.
    Merged(Vec<Change>),
}

/// A failed check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trap {
    /// It crashed or did not end: the signal is in `check`.
    pub crashed: bool,
    pub check: u32,
    pub file: String,
    pub line: u32,
    pub column: u32,
    pub message: String,
    /// What the check found, if the handler went on behind it. Otherwise the state is still as it
    /// was then.
    pub found: Option<Found>,
}

/// The state of everything that a scheduler shows.
#[derive(Clone, Debug, Default)]
pub struct State {
    /// By name, elements in order.
    pub containers: HashMap<String, Vec<Vec<ThreadId>>>,
    pub globals: HashMap<String, Vec<Bits>>,
    pub divisions_by_zero: u64,
}

/// A value from outside as the bits of a variable of that type.
pub fn bits(float: bool, value: Value) -> Bits {
    match (float, value) {
        (true, Value::Float(value)) => value.to_bits() as i64,
        (true, Value::Int(value)) => (value as f64).to_bits() as i64,
        (false, Value::Int(value)) => value,
        (false, Value::Float(value)) => value as i64,
    }
}
