//! What the driver drives ([`Subject`]), by which [`Step`]s, and why a run ends.

use attune_language::engine::event::Event;
use attune_simulator::scheduler::{Call, CpuSet, Decision, ThreadId, Value};

use crate::random::Random;

/// One turn of chance: what happens, to which thread, and how much of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    pub what: u32,
    pub who: u32,
    pub amount: u32,
}

pub fn steps(seed: u64, count: usize) -> Vec<Step> {
    let mut random = Random::new(seed);
    let mut step = || Step {
        what: random.draw() as u32,
        who: random.draw() as u32,
        amount: random.draw() as u32,
    };
    (0..count).map(|_| step()).collect()
}

/// What the engine that the driver stands for can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Copies of the scheduler, each with CPUs and threads of its own. Threads move between them.
    pub instances: u32,
    /// Each instance has so many.
    pub cpus: u32,
    /// Threads may be allowed on some CPUs only.
    pub pinning: bool,
    /// Slices expire, `preempt` is obeyed.
    pub preemptive: bool,
    /// A thread may be taken away whatever it does, as the kernel can.
    pub killing: bool,
    pub max_threads: u32,
    /// The application has registered the imports, and writes them.
    pub imports: bool,
}

/// Runs the scheduler: an engine, or several side by side.
pub trait Subject {
    fn handles(&self, event: Event) -> bool;
    /// How many imports there are: per thread, global.
    fn imports(&self) -> (usize, usize);
    /// A thread begins, in that instance.
    fn create(
        &mut self,
        instance: u32,
        thread: ThreadId,
        affinity: &CpuSet,
        now: i64,
    ) -> Result<(), Ending>;
    /// The thread, which has left its instance, belongs to that one from now on, and sits in no
    /// container.
    fn move_thread(&mut self, thread: ThreadId, to: u32, affinity: &CpuSet);
    fn set_affinity(&mut self, thread: ThreadId, affinity: &CpuSet);
    fn remove(&mut self, thread: ThreadId);
    fn write_thread_import(&mut self, thread: ThreadId, import: usize, value: Value);
    fn write_global_import(&mut self, import: usize, value: Value);
    fn call(&mut self, instance: u32, call: &Call, decision: &mut Decision) -> Result<(), Ending>;
    /// Whether the thread sits in a container.
    fn is_stored(&self, thread: ThreadId) -> bool;
    /// Everything has come to rest: the subject may look at itself.
    fn settled(&mut self) -> Result<(), Ending>;
}

/// Why a run ended before its steps did.
#[derive(Clone, Debug, PartialEq)]
pub enum Ending {
    /// A check failed: its number, and the message.
    Trapped { check: Option<u32>, message: String },
    /// The scheduler decided what no engine accepts.
    Refused(String),
    /// Two engines differ.
    Differs(String),
}
