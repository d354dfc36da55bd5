//! The clients outside all nodes: a machine without threads to schedule.

use attune_language::engine::event::Event;
use attune_simulator::scheduler::{Call, CpuSet, Decision, Scheduler, ThreadId, Trap};

/// The scheduler of the world outside, which has no CPU to give.
pub struct World;

impl Scheduler for World {
    fn name(&self) -> &str {
        "world"
    }
    fn start(&mut self, _: u32, _: u64) {}
    fn handles(&self, _: Event) -> bool {
        false
    }
    fn thread_created(&mut self, _: ThreadId, _: &CpuSet) {}
    fn set_affinity(&mut self, _: ThreadId, _: &CpuSet) {}
    fn thread_removed(&mut self, _: ThreadId) {}
    fn thread_leaves(&mut self, _: ThreadId) -> Vec<i64> {
        Vec::new()
    }
    fn thread_arrives(&mut self, _: ThreadId, _: &CpuSet, _: &[i64]) {}
    fn call(&mut self, _: &Call, _: &mut Decision) -> std::result::Result<(), Trap> {
        Ok(())
    }
    fn where_is(&self, _: ThreadId) -> Option<String> {
        None
    }
}
