//! Carries the protocol of the core over links that delay, lose and cut, and decides when a node
//! and the master speak.
//!
//! A node speaks when it has something to say, at most once in the link's pace; what has no answer
//! is said again, and a heartbeat goes out where nothing else does.

use attune_simulator::scheduler::Time;

use super::event::{Down, Up, What};
use super::state::{Cluster, Result, Talk};
use crate::master::Unknown;

impl Cluster<'_> {
    /// Sends what a member has to say; `timer`: its timer has gone off.
    pub fn node_talks(&mut self, number: usize, timer: bool) {
        let (now, link) = (self.now, self.workload.link);
        let member = &mut self.members[number];
        if timer {
            // A timer that was set anew has a later entry in the queue.
            if member.talk.timer != now {
                return;
            }
            member.talk.timer = Time::MAX;
        }
        let Some(part) = &mut member.part else { return };
        let replica = part.scheduler().replica_mut();
        let since = now.saturating_sub(member.talk.said);
        let mut next = member.talk.said.saturating_add(link.heartbeat);
        let mut says = Vec::new();
        if let Some(hello) = replica.hello() {
            if since >= link.resend {
                says.push(Up::Hello(hello));
            } else {
                next = member.talk.said.saturating_add(link.resend);
            }
        } else {
            let unsettled = !replica.is_settled();
            let again = since >= link.heartbeat || unsettled && since >= link.resend;
            if again || since >= link.pace {
                says.extend(replica.report(again).map(Up::Report));
                let asked = if again { 0 } else { member.talk.asked };
                for ask in replica.asks(asked + 1) {
                    member.talk.asked = member.talk.asked.max(ask.number);
                    says.push(Up::Ask(ask));
                }
            } else if replica.has_news() || replica.asks(member.talk.asked + 1).next().is_some() {
                next = next.min(member.talk.said.saturating_add(link.pace));
            }
            if unsettled {
                next = next.min(member.talk.said.saturating_add(link.resend));
            }
        }
        if !says.is_empty() {
            member.talk.said = now;
            let wait = if replica.is_settled() { link.heartbeat } else { link.resend };
            next = now.saturating_add(wait);
        }
        let next = next.max(now + 1);
        if next < member.talk.timer {
            member.talk.timer = next;
            self.queue.push(next, What::NodeTalks(number));
        }
        for up in says {
            if let Some(at) = self.carried(number) {
                self.queue.push(at, What::ToMaster(number, up));
            }
        }
    }

    /// When a message on the link of a member arrives; none if it is lost.
    fn carried(&mut self, number: usize) -> Option<Time> {
        let link = self.workload.link;
        self.figures.messages += 1;
        let cut = self.now < self.members[number].cut_until;
        let lost = link.loss > 0.0 && self.random.f64() < link.loss;
        if cut || lost {
            self.figures.lost += 1;
            return None;
        }
        let jitter = if link.jitter > 0 { self.random.i64(0..=link.jitter) } else { 0 };
        Some(self.now + link.delay + jitter)
    }

    pub fn hear_node(&mut self, number: usize, up: Up) -> Result<()> {
        let answer = match up {
            Up::Hello(hello) => {
                let arrived = self.master.arrive(&hello, self.now);
                let welcome = self
                    .master_failed(arrived)?
                    .map_err(|refusal| attune_simulator::Diagnostic::new(refusal.to_string()))?;
                if self.members[number].part.is_none() {
                    // It crashed while its hello was on the way: its connection is gone.
                    self.joined.insert(welcome.node, number);
                    self.queue.push(self.now, What::Noticed(welcome.node));
                } else if self.joined.insert(welcome.node, number).is_none() {
                    self.figures.arrivals += 1;
                }
                Some(Down::Welcome(welcome))
            }
            Up::Report(report) => match self.master.receive(&report, self.now) {
                Ok(()) => None,
                Err(Unknown::Node) => Some(Down::Stranger),
                Err(Unknown::Nonsense) => return Err(nonsense()),
            },
            Up::Ask(ask) => match self.master.ask(&ask, self.now) {
                Ok(answer) => Some(Down::Answer(answer)),
                Err(Unknown::Node) => Some(Down::Stranger),
                // A repetition that was overtaken by the word that it is not needed.
                Err(Unknown::Nonsense) => None,
            },
        };
        if let Some(down) = answer
            && let Some(at) = self.carried(number)
        {
            self.queue.push(at, What::ToNode(number, down));
        }
        self.master_changed();
        Ok(())
    }

    pub fn hear_master(&mut self, number: usize, down: Down) -> Result<()> {
        let own = self.members[number].own(self.now);
        let Some(part) = &mut self.members[number].part else { return Ok(()) };
        let node = part.scheduler();
        match down {
            Down::Welcome(welcome) => node.welcome(&welcome, own),
            Down::News(news) => node.receive(&news, own),
            Down::Stranger => {
                if node.replica().node().is_some_and(|node| !self.joined.contains_key(&node)) {
                    node.replica_mut().forgotten(self.next_key);
                    self.next_key += 1;
                    self.members[number].talk = Talk::default();
                }
            }
            Down::Answer(answer) => {
                let value = node.replica_mut().answer(&answer);
                let reading = self.readings.remove(&(number, answer.number));
                if let (Some(value), Some(reading)) = (value, reading) {
                    part.answer(reading, Some(value.as_float()), own)
                        .map_err(|error| self.named(number, error))?;
                }
                return self.acted(number);
            }
        }
        let Some(part) = &mut self.members[number].part else { return Ok(()) };
        part.ask_again(own).map_err(|error| self.named(number, error))?;
        self.acted(number)
    }

    /// Something may have changed that the master has to tell.
    pub fn master_changed(&mut self) {
        let next = self.master_talk.said.saturating_add(self.workload.link.pace).max(self.now);
        self.set_master_timer(next);
    }

    fn set_master_timer(&mut self, next: Time) {
        if next < self.master_talk.timer {
            self.master_talk.timer = next;
            self.queue.push(next, What::MasterTalks);
        }
    }

    /// The master tells every node what it does not know.
    pub fn master_talks(&mut self) -> Result<()> {
        let (now, link) = (self.now, self.workload.link);
        if self.master_talk.timer != now {
            return Ok(());
        }
        self.master_talk.timer = Time::MAX;
        self.master_talk.said = now;
        self.give_up()?;
        let mut next = Time::MAX;
        let nodes: Vec<_> = self.master.nodes().map(|(node, _)| node).collect();
        for node in nodes {
            let Some(&number) = self.joined.get(&node) else { continue };
            let told = self.members[number].talk.told;
            let since = now.saturating_sub(told);
            let up_to_date = self.master.is_up_to_date(node);
            let again = since >= link.heartbeat || !up_to_date && since >= link.resend;
            let mut told = told;
            if let Some(news) = self.master.news(node, again) {
                told = now;
                self.members[number].talk.told = now;
                if let Some(at) = self.carried(number) {
                    self.queue.push(at, What::ToNode(number, Down::News(news)));
                }
            }
            let settled = self.master.is_up_to_date(node);
            let wait = if settled { link.heartbeat } else { link.resend };
            next = next.min(told.saturating_add(wait));
        }
        if next < Time::MAX {
            self.set_master_timer(next.max(now + 1));
        }
        Ok(())
    }

    /// Nodes that have been silent for too long depart.
    fn give_up(&mut self) -> Result<()> {
        let Some(patience) = self.workload.link.patience else { return Ok(()) };
        let nodes: Vec<_> = self.master.nodes().map(|(node, _)| node).collect();
        for node in nodes {
            let heard = self.master.heard(node).unwrap_or(self.now);
            if self.now.saturating_sub(heard) > patience {
                self.figures.given_up += 1;
                self.gone(node)?;
            }
        }
        Ok(())
    }
}

fn nonsense() -> attune_simulator::Diagnostic {
    attune_simulator::Diagnostic::new(
        "a node's report broke the protocol: its batches have a gap, or name what is not there",
    )
}
