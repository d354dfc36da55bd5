//! Lists of hints, of which some are given in each round, so that other clients are served in
//! between.

use std::os::fd::OwnedFd;

use attune_linux::time;
use attune_values::enclosed;
use attune_values::wire::{self, Hint, Refusal};

use super::requests::enclosed;
use super::{Service, unable};
use crate::ready::Ready;
use crate::refused::{Answer, Refused};
use crate::store::Store;

/// Hints of a list that are given in one round.
const HINTS_AT_ONCE: usize = 64;

/// A list of hints, some of which are given in each round.
pub struct List {
    pub client: u64,
    hints: std::vec::IntoIter<Hint>,
    given: usize,
    refused: Vec<wire::Refused>,
}

impl<S: Store> Service<S> {
    /// Takes a list of hints. Its client is not heard until they are given.
    pub(super) fn begin_list(&mut self, number: u64, list: Option<OwnedFd>) -> Answer<()> {
        let peer = self.clients.get(&number).map(|client| client.peer);
        let has_one = |list: &List| {
            self.clients.get(&list.client).map(|it| it.peer.user) == peer.map(|it| it.user)
        };
        if !peer.is_some_and(|peer| peer.preferred) && self.lists.iter().any(has_one) {
            let message = "another list of hints of this user is at work: wait for its answer";
            return Err(Refused::new(Refusal::Full, message));
        }
        let hints = enclosed::read_hints(list).map_err(|it| Refused::new(Refusal::Garbled, it))?;
        self.watch_no_more(Ready::Client(number));
        let (hints, refused) = (hints.into_iter(), Vec::new());
        self.lists.push_back(List { client: number, hints, given: 0, refused });
        Ok(())
    }

    /// Gives some hints of each list whose user is served now.
    pub(super) fn work_on_lists(&mut self) {
        for _ in 0..self.lists.len() {
            let Some(mut list) = self.lists.pop_front() else { return };
            let Some(client) = self.clients.get(&list.client) else { continue };
            let peer = client.peer;
            if self.served_from(peer.user) > time::now() {
                self.lists.push_back(list);
                continue;
            }
            // To find a process by its number in a container takes a look at all there are.
            let at_once = if peer.foreign { 1 } else { HINTS_AT_ONCE };
            let mut before = None;
            for hint in list.hints.by_ref().take(at_once) {
                let given = peer.means(hint).and_then(|hint| {
                    match before.replace(hint.process) == Some(hint.process) {
                        true => self.registry.hint_also(peer.user, &hint),
                        false => self.registry.hint(peer.user, &hint),
                    }
                });
                if let Err(Refused(why, message)) = given {
                    before = None;
                    list.refused.push(wire::Refused { index: list.given, why, message });
                }
                list.given += 1;
            }
            self.changed.get_or_insert_with(time::now);
            if list.hints.len() > 0 {
                self.lists.push_back(list);
            } else {
                self.end_list(&list);
            }
            self.charge(peer.user);
        }
    }

    pub(super) fn end_list(&mut self, list: &List) {
        let text = serde_json::to_vec(&list.refused).map_err(unable);
        let sent = match text.and_then(|text| enclosed(&text)) {
            Ok((reply, memory)) => self.reply(list.client, &reply, memory),
            Err(refused) => self.reply(list.client, &refused.into(), None),
        };
        match sent {
            true => self.watch(Ready::Client(list.client)),
            false => self.leave(list.client),
        }
    }
}
