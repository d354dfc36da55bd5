//! How many events a second the machine alone handles, under a round robin in Rust that costs next
//! to nothing: `cargo run --release -p attune-simulator --example machine_speed [THREADS]`.

use std::collections::VecDeque;
use std::time::Instant;

use attune_language::engine::event::Event;
use attune_simulator::scheduler::{Call, CpuSet, Decision, Dispatch, Scheduler, ThreadId, Trap};
use attune_simulator::{Options, Workload, simulate};

#[derive(Default)]
struct RoundRobin {
    queue: VecDeque<ThreadId>,
    blocked: Vec<bool>,
}

impl Scheduler for RoundRobin {
    fn name(&self) -> &str {
        "round_robin"
    }
    fn start(&mut self, _: u32, _: u64) {}
    fn handles(&self, event: Event) -> bool {
        !event.is_query()
    }
    fn thread_created(&mut self, thread: ThreadId, _: &CpuSet) {
        self.blocked.resize(self.blocked.len().max(thread.index() + 1), false);
        self.blocked[thread.index()] = false;
    }
    fn set_affinity(&mut self, _: ThreadId, _: &CpuSet) {}
    fn thread_removed(&mut self, _: ThreadId) {}
    fn thread_leaves(&mut self, thread: ThreadId) -> Vec<i64> {
        self.thread_removed(thread);
        Vec::new()
    }

    fn thread_arrives(&mut self, thread: ThreadId, affinity: &CpuSet, _: &[i64]) {
        self.thread_created(thread, affinity);
    }

    fn call(&mut self, call: &Call, decision: &mut Decision) -> Result<(), Trap> {
        match (call.event, call.thread) {
            (Event::NewThread | Event::EventRaised, Some(thread)) => {
                self.blocked[thread.index()] = false;
                self.queue.push_back(thread);
            }
            (Event::SetWaiting | Event::SetDead, Some(thread)) => {
                self.blocked[thread.index()] = true
            }
            (Event::SwitchOut, Some(thread)) if !self.blocked[thread.index()] => {
                self.queue.push_back(thread)
            }
            (Event::Schedule, _) => {
                let slice = Some(1_000_000);
                decision.dispatch = self.queue.pop_front().map(|thread| Dispatch { thread, slice });
            }
            _ => {}
        }
        Ok(())
    }
    fn where_is(&self, _: ThreadId) -> Option<String> {
        None
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let threads = std::env::args().nth(1).unwrap_or("100".into());
    let text = format!(
        r#"
        duration = "1000s"
        [[thread]]
        name = "t"
        count = {threads}
        repeat = "forever"
        do = [{{ compute = "uniform(0.1ms, 3ms)" }}, {{ sleep = "uniform(1ms, 100ms)" }}]
        "#
    );
    let workload = Workload::from_toml(&text, "speed")?;
    let before = Instant::now();
    let outcome = simulate(&mut RoundRobin::default(), &workload, &Options::default())?;
    let seconds = before.elapsed().as_secs_f64();
    println!(
        "{} events, {} handler calls in {seconds:.2} s: {:.2} million events a second, {:.0} ns \
            each",
        outcome.events(),
        outcome.calls(),
        outcome.events() as f64 / seconds / 1e6,
        seconds * 1e9 / outcome.events() as f64
    );
    Ok(())
}
