//! The processes behind the clients of an X server. The server says which process connected
//! (X-Resource); a property that a client sets on its windows is never asked.
//!
//! The server gives the numbers of a client that left to the next one that comes: whatever is known
//! is asked again each second, and forgotten as soon as a client comes or a window goes.

use std::collections::{BTreeMap, BTreeSet};

use x11rb::connection::Connection;
use x11rb::errors::{ConnectionError, ReplyError};
use x11rb::protocol::res::{ClientIdMask, ClientIdSpec, ConnectionExt as _};

use super::tree::Owners;
use crate::process::Process;

/// Clients that are remembered; beyond, the oldest answers are dropped.
const MOST_CLIENTS: usize = 1024;

pub struct Clients {
    owners: Owners,
    /// This monitor's own connections.
    own: BTreeSet<u32>,
    /// None: a client of another machine, or of a namespace that hides it.
    known: BTreeMap<u32, Option<Process>>,
}

impl Clients {
    pub fn new(owners: Owners, own: impl IntoIterator<Item = u32>) -> Clients {
        Clients { owners, own: own.into_iter().collect(), known: BTreeMap::new() }
    }

    pub fn is_own(&self, client: u32) -> bool {
        self.own.contains(&client)
    }

    pub fn forget(&mut self, client: u32) {
        self.known.remove(&client);
    }

    pub fn process(
        &mut self,
        connection: &impl Connection,
        client: u32,
    ) -> Result<Option<Process>, ConnectionError> {
        if self.is_own(client) || client == 0 {
            return Ok(None);
        }
        if !self.known.contains_key(&client) {
            if self.known.len() >= MOST_CLIENTS {
                self.known.clear();
            }
            self.ask(connection, &[client])?;
        }
        Ok(self.known.get(&client).copied().flatten())
    }

    /// Asks again for all of them, in one request.
    pub fn refresh(&mut self, connection: &impl Connection) -> Result<(), ConnectionError> {
        let known: Vec<u32> = self.known.keys().copied().collect();
        self.known.clear();
        self.ask(connection, &known)
    }

    fn ask(
        &mut self,
        connection: &impl Connection,
        clients: &[u32],
    ) -> Result<(), ConnectionError> {
        if clients.is_empty() {
            return Ok(());
        }
        let spec = |&client| ClientIdSpec { client, mask: ClientIdMask::LOCAL_CLIENT_PID };
        let specs: Vec<ClientIdSpec> = clients.iter().map(spec).collect();
        self.known.extend(clients.iter().map(|&client| (client, None)));
        let reply = match connection.res_query_client_ids(&specs)?.reply() {
            Ok(reply) => reply,
            Err(ReplyError::X11Error(_)) => return Ok(()),
            Err(ReplyError::ConnectionError(error)) => return Err(error),
        };
        for id in reply.ids {
            let pid = id.value.first().copied().filter(|&pid| pid > 0);
            let client = self.owners.of(id.spec.client);
            self.known.insert(client, pid.and_then(Process::now));
        }
        Ok(())
    }
}
