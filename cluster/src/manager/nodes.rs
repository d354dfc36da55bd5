//! What a manager does for nodes: takes what they say, tells them what is new, lets them arrive and
//! depart.

use attune_cluster_local::packets::{ToManager, ToNode};
use attune_linux::time;
use attune_replica::messages::{Hello, NodeId};
use attune_simulator::interpreter::Failure;
use attune_simulator::scheduler::Time;

use super::absent::Identity;
use super::{Happening, Manager, PACE};
use crate::master::Unknown;

impl Manager {
    pub(super) fn take(&mut self, index: usize, message: Option<ToManager>) -> Result<(), Failure> {
        let now = self.now();
        if let Some(message) = &message {
            self.note(index, message);
        }
        match message {
            Some(ToManager::Hello(hello, run)) => self.arrive(index, hello, run, now)?,
            Some(ToManager::Report(report)) => {
                let result = self.speaks_for(index, report.node);
                let result = result.and_then(|()| self.master.receive(&report, now));
                if report.batch.is_some() {
                    self.clients[index].hurry();
                }
                self.answered(index, result);
            }
            Some(ToManager::Ask(ask)) => {
                let result = self.speaks_for(index, ask.node);
                let result = result.and_then(|()| self.master.ask(&ask, now));
                let result = result.map(|answer| self.clients[index].answer(answer));
                self.answered(index, result);
            }
            None => self.drop(index),
        }
        Ok(())
    }

    fn arrive(
        &mut self,
        index: usize,
        mut hello: Hello,
        run: u64,
        now: Time,
    ) -> Result<(), Failure> {
        let process = self.clients[index].peer.process;
        // Another run gave its numbers to others.
        hello.former =
            hello.former.filter(|&former| run == self.run && self.may_have_been(former, process));
        // A former self can only be one that has gone, one whose end was not seen yet, or one that
        // the manager waits for.
        if let Some(former) = hello.former {
            if self.processes.awaits(former).is_some_and(|it| it.identity.number != process) {
                self.drop(index);
                return Ok(());
            }
            let own = self.clients.iter().position(|client| client.node == Some(former));
            if let Some(own) = own {
                if self.clients[own].peer.process != process {
                    self.drop(index);
                    return Ok(());
                }
                self.clients[own].gone = true;
                self.bury_one(own)?;
            }
        }
        let known = self.clients[index].node;
        match self.master.arrive(&hello, now)? {
            Ok(welcome) => {
                let node = welcome.node;
                if known.is_some_and(|known| known != node) {
                    // One connection, one node.
                    self.master.depart(node, now)?;
                    self.drop(index);
                    return Ok(());
                }
                if known.is_none() {
                    self.clients[index].is_node(node);
                    self.is_owner(node, Identity::of(process));
                    self.happened.push(if self.processes.came(node) {
                        Happening::Returned { node, process }
                    } else {
                        Happening::Arrived { node, family: hello.family, process }
                    });
                }
                self.clients[index].tell(ToNode::Welcome(welcome, self.run));
            }
            Err(refusal) => {
                let reason = refusal.to_string();
                self.clients[index].tell(ToNode::Refused(reason.clone()));
                self.happened.push(Happening::Refused { process, reason });
            }
        }
        Ok(())
    }

    /// A node speaks for itself.
    fn speaks_for(&self, index: usize, node: NodeId) -> Result<(), Unknown> {
        match self.clients[index].node {
            Some(own) if own == node => Ok(()),
            Some(_) => Err(Unknown::Nonsense),
            None => Err(Unknown::Node),
        }
    }

    fn answered(&mut self, index: usize, result: Result<(), Unknown>) {
        match result {
            Ok(()) => {}
            Err(Unknown::Node) => self.clients[index].tell(ToNode::Unknown),
            Err(Unknown::Nonsense) => self.drop(index),
        }
    }

    fn drop(&mut self, index: usize) {
        let client = &mut self.clients[index];
        client.gone = true;
        self.happened.push(Happening::Dropped { process: client.peer.process });
    }

    /// Tells every node what is new to it.
    pub(super) fn spread(&mut self) {
        let now = time::now();
        self.paced = false;
        for index in 0..self.clients.len() {
            let Some(node) = self.clients[index].node else { continue };
            if self.stuck || !self.clients[index].takes_news() {
                continue;
            }
            if !self.clients[index].may_hear(now) {
                self.paced = true;
                continue;
            }
            let again = std::mem::take(&mut self.clients[index].again);
            if let Some(news) = self.master.news(node, again) {
                self.clients[index].tell_news(news, now + PACE);
            }
        }
    }

    /// Lets those depart that have gone.
    pub(super) fn bury(&mut self) -> Result<(), Failure> {
        for index in 0..self.clients.len() {
            // What it said last has to be kept first.
            if self.clients[index].gone && self.clients[index].unkept.is_empty() {
                self.bury_one(index)?;
            }
        }
        self.clients.retain(|client| !client.gone || !client.unkept.is_empty());
        Ok(())
    }

    pub(super) fn bury_one(&mut self, index: usize) -> Result<(), Failure> {
        let client = &mut self.clients[index];
        let process = client.peer.process;
        if let Some(node) = client.node.take() {
            self.is_urgent();
            let client = &mut self.clients[index];
            if let (Some(identity), Some(process)) = (client.identity, client.process.take()) {
                self.processes.departed(node, identity, process);
            }
            self.depart_all(vec![(node, process)])?;
        }
        Ok(())
    }
}
