//! A small policy for tests: one queue, first in, first out, with an optional slice, which writes
//! down every call.

use std::collections::VecDeque;

use attune_language::engine::event::Event;

use crate::scheduler::{
    Call, CpuSet, Decision, Dispatch, ImportId, Scheduler, ThreadId, Time, Trap, Value,
};

#[derive(Default)]
pub struct Fifo {
    pub slice: Option<Time>,
    /// Handlers that it does not have.
    pub lacks: Vec<Event>,
    /// A woken thread preempts the CPU on which its handler runs, so much later.
    pub preempts: Option<Time>,
    /// Dispatches this thread whatever its state.
    pub insists: Option<ThreadId>,
    /// Never dispatches.
    pub lazy: bool,
    pub thread_imports: Vec<&'static str>,
    pub global_imports: Vec<&'static str>,
    /// `event(thread) cpu @time`, without schedule calls that found nothing.
    pub log: Vec<String>,
    /// What the application wrote: `name thread=value`.
    pub written: Vec<String>,
    pub values: Vec<(ThreadId, ImportId, Value)>,
    pub queue: VecDeque<ThreadId>,
    pub current: Vec<Option<ThreadId>>,
    pub affinity: Vec<CpuSet>,
    pub away: Vec<ThreadId>,
}

impl Fifo {
    pub fn with_slice(slice: Time) -> Fifo {
        Fifo { slice: Some(slice), ..Fifo::default() }
    }
}

impl Scheduler for Fifo {
    fn name(&self) -> &str {
        "test"
    }

    fn start(&mut self, cpus: u32, _: u64) {
        self.current = vec![None; cpus as usize];
        self.queue.clear();
        self.log.clear();
    }

    fn handles(&self, event: Event) -> bool {
        !event.is_query() && !self.lacks.contains(&event)
    }

    fn thread_created(&mut self, thread: ThreadId, affinity: &CpuSet) {
        self.affinity.resize(self.affinity.len().max(thread.index() + 1), CpuSet::EMPTY);
        self.affinity[thread.index()] = *affinity;
    }

    fn set_affinity(&mut self, thread: ThreadId, affinity: &CpuSet) {
        self.affinity[thread.index()] = *affinity;
    }

    fn thread_removed(&mut self, thread: ThreadId) {
        self.queue.retain(|&other| other != thread);
        self.away.retain(|&other| other != thread);
        for current in &mut self.current {
            current.take_if(|other| *other == thread);
        }
    }

    fn thread_leaves(&mut self, thread: ThreadId) -> Vec<i64> {
        let away = i64::from(self.away.contains(&thread));
        self.thread_removed(thread);
        vec![away]
    }

    fn thread_arrives(&mut self, thread: ThreadId, affinity: &CpuSet, attributes: &[i64]) {
        self.thread_created(thread, affinity);
        if attributes == [1] {
            self.away.push(thread);
        }
    }

    fn call(&mut self, call: &Call, decision: &mut Decision) -> Result<(), Trap> {
        let cpu = call.cpu as usize;
        if call.event != Event::Schedule {
            let about = call.thread.map_or(String::new(), |thread| format!("({thread})"));
            self.log.push(format!("{}{about} {cpu} @{}", call.event, call.now));
        }
        match (call.event, call.thread) {
            (Event::NewThread, Some(thread)) => self.queue.push_back(thread),
            (Event::Arrives, Some(thread)) if !self.away.contains(&thread) => {
                self.queue.push_back(thread);
            }
            (Event::EventRaised | Event::ResumeThread, Some(thread)) => {
                self.away.retain(|&other| other != thread);
                self.queue.push_back(thread);
                if let Some(later) = self.preempts {
                    decision.preempt.push((i64::from(call.cpu), call.now + later));
                }
            }
            (Event::SetWaiting | Event::SetDead | Event::SuspendThread, Some(thread)) => {
                self.queue.retain(|&other| other != thread);
                self.away.push(thread);
            }
            (Event::SetNextThread, Some(thread)) => {
                self.queue.retain(|&other| other != thread);
                self.queue.push_front(thread);
            }
            (Event::SwitchOut, Some(thread)) => {
                self.current[cpu] = None;
                if !self.away.contains(&thread) {
                    self.queue.push_back(thread);
                }
            }
            (Event::Schedule, _) if !self.lazy => {
                let allowed = |thread: &&ThreadId| self.affinity[thread.index()].contains(call.cpu);
                let next = self.insists.or_else(|| self.queue.iter().find(allowed).copied());
                if let Some(thread) = next {
                    self.queue.retain(|&other| other != thread);
                    self.current[cpu] = Some(thread);
                    decision.dispatch = Some(Dispatch { thread, slice: self.slice });
                    self.log.push(format!("dispatch({thread}) {cpu} @{}", call.now));
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn thread_import(&self, name: &str) -> Option<ImportId> {
        self.thread_imports
            .iter()
            .position(|import| *import == name)
            .map(|number| ImportId(number as u32))
    }

    fn global_import(&self, name: &str) -> Option<ImportId> {
        self.global_imports
            .iter()
            .position(|import| *import == name)
            .map(|number| ImportId(number as u32))
    }

    fn set_thread_import(&mut self, thread: ThreadId, import: ImportId, value: Value) {
        self.values.push((thread, import, value));
        self.written.push(format!("{} {thread}={value:?}", self.thread_imports[import.0 as usize]));
    }

    fn set_global_import(&mut self, import: ImportId, value: Value) {
        self.written.push(format!("{}={value:?}", self.global_imports[import.0 as usize]));
    }

    fn get_thread_import(&self, thread: ThreadId, import: ImportId) -> Value {
        let written = self.values.iter().rev().find(|(t, i, _)| (*t, *i) == (thread, import));
        written.map_or(Value::Int(0), |(_, _, value)| *value)
    }

    fn get_global_import(&self, _: ImportId) -> Value {
        Value::Int(0)
    }

    fn where_is(&self, thread: ThreadId) -> Option<String> {
        if self.away.contains(&thread) {
            Some("away".into())
        } else if self.queue.contains(&thread) {
            Some("queue".into())
        } else {
            self.current.contains(&Some(thread)).then(|| "current".into())
        }
    }
}
