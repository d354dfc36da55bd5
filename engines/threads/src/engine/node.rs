//! The engine of a cluster's node: when it listens to the manager, and what commands do to threads.

use super::Engine;
use crate::cluster::Command;
use crate::thread::{State, ThreadId, ThreadRef};

impl Engine {
    /// Lets the node hear and speak, and follows commands. True: `schedule` may choose otherwise.
    pub(super) fn exchange(&mut self, now: i64) -> bool {
        let Some(cluster) = self.scheduler.cluster_mut() else { return false };
        let mut commands = Vec::new();
        let news = cluster.exchange(now, &mut commands);
        let descriptor = cluster.descriptor();
        self.descriptors.watch(descriptor);
        for command in commands {
            match command {
                Command::Suspend(threads) => self.each(threads, Engine::suspend_by_command),
                // One that the program has resumed meanwhile needs nothing.
                Command::Resume(threads) => self.each(threads, |engine, thread| {
                    thread.suspend_next.set(false);
                    let _ = engine.resume(thread);
                }),
            }
        }
        news
    }

    fn each(&mut self, threads: Vec<ThreadId>, mut act: impl FnMut(&mut Engine, ThreadRef)) {
        for id in threads {
            if let Ok(thread) = self.living_thread(id) {
                act(self, thread);
            }
        }
    }

    fn suspend_by_command(&mut self, thread: ThreadRef) {
        if thread.state.get() == State::Running {
            // It suspends itself when it yields next.
            thread.suspend_next.set(self.may_suspend(thread).is_ok());
        } else {
            // It is suspended already, or the scheduler knows no suspending.
            let _ = self.suspend_other(thread);
        }
    }

    /// Whether some thread could run if handlers read other values, or by command.
    pub(super) fn news_may_help(&self) -> bool {
        let ready = || self.threads.iter().any(|thread| thread.state.get() == State::Ready);
        self.scheduler.cluster().is_some_and(|cluster| cluster.holds_threads() || ready())
    }
}
