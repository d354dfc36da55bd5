//! The request model: programs of nodes read and write what the master keeps, and wait for the
//! answer.
//!
//! Invariants: a request takes effect once and as a whole, however often it is sent; it takes
//! effect before its answer goes out, so that the store alone gives the order of all requests.

use attune_replica::Time;
use attune_replica::messages::{Answer, Ask};

use super::{Master, Unknown};

/// Answers that are kept for one node, which says with each request how many it does not need.
const MOST_ANSWERS: usize = 1 << 16;

impl Master {
    /// The request model: performs the writes once, however often they are asked.
    pub fn ask(&mut self, ask: &Ask, now: Time) -> Result<Answer, Unknown> {
        let cell = self.schema.shared_cell(ask.variable);
        let mut named = ask.writes.iter().map(|(written, _)| *written).chain([ask.variable]);
        if named.any(|named| usize::from(named) >= self.schema.shared.len()) {
            return Err(Unknown::Nonsense);
        }
        let Some(member) = self.nodes.get_mut(&ask.node) else { return Err(Unknown::Node) };
        member.heard = member.heard.max(now);
        let done = &mut member.done;
        if ask.unanswered > done.needs_from {
            done.needs_from = ask.unanswered;
            done.answers = done.answers.split_off(&ask.unanswered);
        }
        let value = match done.answers.get(&ask.number) {
            Some(&value) => value,
            // A repetition that comes after the node has said that it has its answer, or a node
            // that takes no answers.
            None if ask.number < done.needs_from || done.answers.len() >= MOST_ANSWERS => {
                return Err(Unknown::Nonsense);
            }
            // A read that is repeated may give a later value: it has not ended before.
            None if ask.writes.is_empty() => self.store.get(cell),
            None => {
                self.changes += 1;
                self.store.begin();
                for &(written, operation) in &ask.writes {
                    self.store.apply(self.schema.shared_cell(written), operation);
                }
                let value = self.store.get(cell);
                done.answers.insert(ask.number, value);
                value
            }
        };
        Ok(Answer { node: ask.node, number: ask.number, value })
    }
}
