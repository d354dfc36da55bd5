//! The engine of a cluster's node: when it listens to the manager, what commands do to threads, and
//! threads that wait for an answer.

use attune_language::ir::Value;
use attune_replica::Operation;
use attune_replica::messages::Shared;

use super::{Engine, Pending};
use crate::clock;
use crate::cluster::{Cluster, Command};
use crate::errno::{Errno, Result};
use crate::thread::{State, ThreadId, ThreadRef, WaitsFor};

/// A thread that asks the owner of a shared variable.
pub struct Asking {
    thread: ThreadId,
    /// It has come, and the thread has not taken it yet.
    answer: Option<Value>,
}

impl Engine {
    /// The node that this process is. ENOTCONN: it is none.
    pub fn cluster(&mut self) -> Result<&mut Cluster> {
        self.scheduler.cluster_mut().ok_or(Errno(libc::ENOTCONN))
    }

    /// The running thread asks the owner of a shared variable, and is about to wait.
    pub fn ask(
        &mut self,
        variable: Shared,
        writes: Vec<(Shared, Operation)>,
        deadline: i64,
    ) -> Result<u64> {
        let cluster = self.cluster()?;
        let number = cluster.ask(variable, writes, clock::now());
        let descriptor = cluster.descriptor();
        self.descriptors.watch(descriptor);
        self.asking.insert(number, Asking { thread: self.current.id, answer: None });
        self.prepare_wait(WaitsFor::Answer(number), deadline);
        Ok(number)
    }

    /// What the running thread has waited for; None: it has not come, and is not waited for any
    /// more.
    pub fn take_answer(&mut self, number: u64) -> Option<Value> {
        let answer = self.asking.remove(&number)?.answer;
        if let (None, Ok(cluster)) = (answer, self.cluster()) {
            cluster.abandon(number);
        }
        answer
    }

    /// Lets the node hear and speak, follows commands, and wakes threads whose answers have come.
    /// True: `schedule` may choose otherwise.
    pub(super) fn exchange(&mut self, now: i64) -> bool {
        let Some(cluster) = self.scheduler.cluster_mut() else { return false };
        let hears = self.descriptors.take_rung();
        let heard = cluster.exchange(now, hears);
        let descriptor = cluster.descriptor();
        self.descriptors.watch(descriptor);
        for (number, answer) in heard.answers {
            let Some(asking) = self.asking.get_mut(&number) else { continue };
            asking.answer = Some(answer);
            let thread = self.threads.get(asking.thread);
            // One whose time is up has been woken already.
            let waits = |it: &ThreadRef| it.waits_for.get() == WaitsFor::Answer(number);
            if let Some(thread) = thread.filter(waits) {
                self.end_wait(thread, 0);
                self.pending.push_back(Pending::Ready(thread));
            }
        }
        for command in heard.commands {
            match command {
                // One that is suspended already needs nothing, and a scheduler may know no
                // suspending.
                Command::Suspend(threads) => self.each(threads, |engine, thread| {
                    let _ = engine.suspend_other(thread);
                }),
                // One that the program has resumed meanwhile needs nothing.
                Command::Resume(threads) => self.each(threads, |engine, thread| {
                    let _ = engine.resume(thread);
                }),
            }
        }
        heard.news
    }

    fn each(&mut self, threads: Vec<ThreadId>, mut act: impl FnMut(&mut Engine, ThreadRef)) {
        for id in threads {
            if let Ok(thread) = self.living_thread(id) {
                act(self, thread);
            }
        }
    }

    /// Whether some thread could run if handlers read other values, by command, or by an answer.
    pub(super) fn news_may_help(&self) -> bool {
        let ready = || self.threads.iter().any(|thread| thread.state.get() == State::Ready);
        let Some(cluster) = self.scheduler.cluster() else { return false };
        !self.asking.is_empty() || cluster.holds_threads() || ready()
    }
}
