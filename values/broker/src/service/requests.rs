//! What clients ask, and what they are answered.

use std::os::fd::{AsFd, OwnedFd};

use attune_linux::time;
use attune_values::enclosed;
use attune_values::socket::Received;
use attune_values::wire::{Refusal, Reply, Request, VERSION};

use super::{Service, unable};
use crate::refused::{Answer, Refused};
use crate::store::Store;

impl<S: Store> Service<S> {
    /// Serves one request. False: the connection is over.
    pub(super) fn serve(&mut self, number: u64) -> bool {
        let Some(client) = self.clients.get_mut(&number) else { return false };
        let (request, descriptor) = match client.connection.receive::<Request>() {
            Ok(Received::Message(request, descriptor)) => (request, descriptor),
            Ok(Received::Nothing) => return true,
            Ok(Received::Garbled) => {
                let reply =
                    Refused::new(Refusal::Garbled, "this is no request that is known here").into();
                return self.reply(number, &reply, None);
            }
            Ok(Received::Ended) | Err(_) => return false,
        };
        if let Some(why) = client.turned_away.take() {
            self.turned_away.retain(|other| *other != number);
            self.reply(number, &Refused::new(Refusal::Full, why).into(), None);
            return false;
        }
        let control =
            matches!(request, Request::Set { .. } | Request::Tunables | Request::Snapshot);
        let answer = self.answer(number, request, descriptor);
        // What is refused changes nothing, however often it is asked.
        if answer.is_ok() && !control {
            self.changed.get_or_insert_with(time::now);
        }
        match answer {
            Ok(Some((reply, memory))) => self.reply(number, &reply, memory),
            Ok(None) => true,
            Err(refused) => self.reply(number, &refused.into(), None),
        }
    }

    /// Answers one request, with the descriptor that goes along; None: the answer comes later.
    pub(super) fn answer(
        &mut self,
        number: u64,
        request: Request,
        descriptor: Option<OwnedFd>,
    ) -> Answer<Option<(Reply, Option<OwnedFd>)>> {
        let Some(peer) = self.clients.get(&number).map(|client| client.peer) else {
            return Ok(None);
        };
        match request {
            Request::Hello { version: VERSION } => return self.welcome(number).map(Some),
            Request::Table { version: VERSION, columns } => {
                return self.table(number, descriptor, &columns).map(|reply| Some((reply, None)));
            }
            Request::Hello { version } | Request::Table { version, .. } => {
                let message = format!("version {version} of the protocol; here it is {VERSION}");
                return Err(Refused::new(Refusal::Garbled, message));
            }
            Request::Hint(hint) => self.registry.hint(peer.user, &peer.means(hint)?)?,
            Request::Hints => return self.begin_list(number, descriptor).map(|()| None),
            Request::Set { settings } => {
                let control = self.registry.control(peer.user)?;
                control.set(&settings).map_err(|why| Refused::new(Refusal::Unsuitable, why))?;
            }
            Request::Tunables => {
                let tunables = self.registry.control(peer.user)?.tunables();
                return enclosed(&serde_json::to_vec(&tunables).map_err(unable)?).map(Some);
            }
            Request::Snapshot => {
                let text = self.registry.control(peer.user)?.snapshot().map_err(unable)?;
                return enclosed(&text).map(Some);
            }
            // The newest connection of a process counts.
            _ if self.supplying.get(&peer.process) != Some(&number) => {
                return Err(Refused::new(Refusal::Garbled, "hello comes first"));
            }
            Request::Declare { word, name } => self.registry.declare(peer.process, word, &name)?,
            Request::Bind { row, thread } => {
                let thread = peer.thread(peer.process, thread)?;
                self.registry.bind(peer.process, row, thread)?
            }
            Request::Unbind { row } => self.registry.unbind(peer.process, row)?,
        }
        Ok(Some((Reply::Done, None)))
    }

    pub(super) fn table(
        &mut self,
        number: u64,
        map: Option<OwnedFd>,
        columns: &[Option<String>],
    ) -> Answer<Reply> {
        let unknown = || Refused::new(Refusal::Garbled, "the connection is over");
        let client = self.clients.get_mut(&number).ok_or_else(unknown)?;
        if client.table.is_some() {
            let message = "this connection supplies a table already: open another one";
            return Err(Refused::new(Refusal::Garbled, message));
        }
        let missing = || Refused::new(Refusal::Garbled, "the table's descriptor is missing");
        let map = map.ok_or_else(missing)?;
        let (table, columns) = self.registry.open_table(client.peer.user, map, columns)?;
        client.table = Some(table);
        let scheduler = self.registry.store().scheduler().to_owned();
        Ok(Reply::Reads { scheduler, columns })
    }

    pub(super) fn welcome(&mut self, number: u64) -> Answer<(Reply, Option<OwnedFd>)> {
        let unknown = || {
            Refused::new(
                Refusal::Forbidden,
                "the kernel does not say which process you are (it needs Linux 6.5), or hello came \
                 twice",
            )
        };
        let client = self.clients.get_mut(&number).ok_or_else(unknown)?;
        let (peer, process) = (client.peer, client.process.take().ok_or_else(unknown)?);
        let page = self.registry.welcome(peer.process, peer.user, process)?;
        let page = page.try_clone_to_owned().map_err(unable)?;
        client.greeted = true;
        // From now on it holds one of the slots. A connection of the process that held it before
        // needs the place: else one process could have any number of connections.
        let seated = std::mem::take(&mut client.seated);
        let before = self.supplying.insert(peer.process, number);
        match before.and_then(|before| self.clients.get_mut(&before)) {
            Some(before) => before.seated = seated,
            None if seated => self.places.give_back(peer.user),
            None => {}
        }
        let reply = Reply::Welcome {
            scheduler: self.registry.store().scheduler().to_owned(),
            imports: self.registry.store().imports().to_vec(),
        };
        Ok((reply, Some(page)))
    }

    /// Sends a reply. False: it cannot be delivered.
    pub(super) fn reply(&self, number: u64, reply: &Reply, memory: Option<OwnedFd>) -> bool {
        let memory = memory.as_ref().map(AsFd::as_fd);
        self.clients
            .get(&number)
            .is_some_and(|client| client.connection.send(reply, memory).is_ok())
    }
}

pub(super) fn enclosed(text: &[u8]) -> Answer<(Reply, Option<OwnedFd>)> {
    let memory = enclosed::enclose(text).map_err(unable)?;
    Ok((Reply::Enclosed, Some(memory)))
}
