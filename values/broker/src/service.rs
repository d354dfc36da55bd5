//! The socket: connections in, requests to the desk, answers out. One thread, which waits for nobody in particular.

use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::path::Path;
use std::thread::JoinHandle;

use attune_values::enclosed;
use attune_values::socket::{Connection, Listener, Peer, Received};
use attune_values::wire::{Refusal, Reply, Request, VERSION};

use crate::desk::{Answer, Desk, Refused};
use crate::process::{self, Process};
use crate::store::Store;

/// Connections of one user, and in all. Those beyond are closed at once.
const CONNECTIONS_OF_USER: usize = 128;
const CONNECTIONS: usize = 1024;

/// A service that runs until this is dropped.
#[derive(Debug)]
pub struct Broker {
    stop: OwnedFd,
    thread: Option<JoinHandle<()>>,
}

impl Broker {
    /// Listens at `path`. Errors: the socket cannot be made, another engine listens there (`AddrInUse`).
    pub fn start(path: &Path, store: impl Store + 'static) -> io::Result<Broker> {
        process::raise_descriptor_limit();
        let listener = Listener::at(path)?;
        // SAFETY: plain numbers; the descriptor is new and ours.
        let stop = unsafe {
            let fd = libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK);
            if fd < 0 {
                return Err(io::Error::last_os_error());
            }
            OwnedFd::from_raw_fd(fd)
        };
        let stopped = stop.try_clone()?;
        let mut service = Service { desk: Desk::new(store), listener, clients: Vec::new() };
        let thread = std::thread::Builder::new()
            .name("attune-values".to_owned())
            .spawn(move || service.run(stopped.as_raw_fd()))?;
        Ok(Broker { stop, thread: Some(thread) })
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        let one = 1u64;
        // SAFETY: eight bytes, as an eventfd wants them; it cannot be full.
        unsafe { libc::write(self.stop.as_raw_fd(), (&raw const one).cast(), 8) };
        if let Some(thread) = self.thread.take() {
            // A panic there has been reported already.
            let _ = thread.join();
        }
    }
}

fn unable(error: impl ToString) -> Refused {
    Refused::new(Refusal::Unable, error.to_string())
}

struct Client {
    connection: Connection,
    peer: Peer,
    /// The kernel's word for who connected.
    process: Option<Process>,
    greeted: bool,
}

struct Service<S: Store> {
    desk: Desk<S>,
    listener: Listener,
    clients: Vec<Client>,
}

impl<S: Store> Service<S> {
    fn run(&mut self, stop: RawFd) {
        loop {
            let processes: Vec<(i32, RawFd)> =
                self.desk.processes().map(|(number, process)| (number, process.as_raw_fd())).collect();
            let clients = self.clients.iter().map(|client| client.connection.as_raw_fd());
            let mut waits: Vec<libc::pollfd> = [stop, self.listener.as_raw_fd()]
                .into_iter()
                .chain(processes.iter().map(|(_, fd)| *fd))
                .chain(clients)
                .map(|fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 })
                .collect();
            // SAFETY: a valid slice.
            let ready = unsafe { libc::poll(waits.as_mut_ptr(), waits.len() as libc::nfds_t, -1) };
            if ready < 0 {
                // Interrupted; memory for the question will be found again.
                continue;
            }
            let happened = |wait: &libc::pollfd| wait.revents != 0;
            let (fixed, rest) = waits.split_at(2);
            let (ends, requests) = rest.split_at(processes.len());
            if happened(&fixed[0]) {
                return;
            }
            for ((number, _), _) in processes.iter().zip(ends).filter(|(_, wait)| happened(wait)) {
                self.desk.forget(*number);
            }
            // From the end, so that removing one does not move those still to come.
            for (index, _) in requests.iter().enumerate().rev().filter(|(_, wait)| happened(wait)) {
                if !self.serve(index) {
                    let client = self.clients.swap_remove(index);
                    if client.greeted {
                        self.desk.farewell(client.peer.process);
                    }
                }
            }
            if happened(&fixed[1]) {
                self.accept();
            }
        }
    }

    fn accept(&mut self) {
        let connection = match self.listener.accept() {
            Ok(Some(connection)) => connection,
            Ok(None) => return,
            // No descriptors are left: let others end first.
            Err(_) => return std::thread::sleep(std::time::Duration::from_millis(20)),
        };
        let Ok(peer) = connection.peer() else { return };
        let theirs = self.clients.iter().filter(|client| client.peer.user == peer.user).count();
        if self.clients.len() < CONNECTIONS && (peer.user == 0 || theirs < CONNECTIONS_OF_USER) {
            let process = Process::peer(&connection).ok();
            self.clients.push(Client { connection, peer, process, greeted: false });
        }
    }

    /// One request. False: the connection is over.
    fn serve(&mut self, index: usize) -> bool {
        let request = match self.clients[index].connection.receive::<Request>() {
            Ok(Received::Message(request, _)) => request,
            Ok(Received::Nothing) => return true,
            Ok(Received::Garbled) => {
                let reply = Refused::new(Refusal::Garbled, "not a request of ours").into();
                return self.reply(index, &reply);
            }
            Ok(Received::Ended) | Err(_) => return false,
        };
        match self.answer(index, request) {
            Ok(Some(reply)) => self.reply(index, &reply),
            Ok(None) => true,
            Err(refused) => self.reply(index, &refused.into()),
        }
    }

    /// None: answered already.
    fn answer(&mut self, index: usize, request: Request) -> Answer<Option<Reply>> {
        let peer = self.clients[index].peer;
        match request {
            Request::Hello { version: VERSION } => return self.welcome(index).map(|()| None),
            Request::Hello { version } => {
                let message = format!("version {version} of the protocol; here it is {VERSION}");
                return Err(Refused::new(Refusal::Garbled, message));
            }
            Request::Hint { process, thread, values } => {
                self.desk.hint(peer.user, process, thread, &values)?
            }
            Request::Set { settings } => {
                let control = self.desk.control(peer.user)?;
                control.set(&settings).map_err(|why| Refused::new(Refusal::Unsuitable, why))?;
            }
            Request::Tunables => {
                let tunables = self.desk.control(peer.user)?.tunables();
                let text = serde_json::to_vec(&tunables).map_err(unable)?;
                return self.enclose(index, &text).map(|()| None);
            }
            Request::Look => {
                let text = self.desk.control(peer.user)?.look().map_err(unable)?;
                return self.enclose(index, &text).map(|()| None);
            }
            _ if !self.clients[index].greeted => {
                return Err(Refused::new(Refusal::Garbled, "hello comes first"));
            }
            Request::Declare { word, name } => self.desk.declare(peer.process, word, &name)?,
            Request::Bind { row, thread } => self.desk.bind(peer.process, row, thread)?,
            Request::Unbind { row } => self.desk.unbind(peer.process, row)?,
        }
        Ok(Some(Reply::Done))
    }

    fn welcome(&mut self, index: usize) -> Answer<()> {
        let client = &mut self.clients[index];
        let peer = client.peer;
        let unknown =
            || Refused::new(Refusal::Forbidden, "the kernel does not say who you are, or hello came twice");
        let process = client.process.take().ok_or_else(unknown)?;
        // The newest connection of a process counts.
        for other in self.clients.iter_mut().filter(|other| other.peer.process == peer.process) {
            other.greeted = false;
        }
        let reply = Reply::Welcome {
            scheduler: self.desk.store().scheduler().to_owned(),
            imports: self.desk.store().imports().to_vec(),
        };
        let page = self.desk.welcome(peer.process, peer.user, process)?;
        let sent = self.clients[index].connection.send(&reply, Some(page.as_fd()));
        self.clients[index].greeted = true;
        // Whoever does not take the answer will be found gone.
        drop(sent);
        Ok(())
    }

    fn enclose(&self, index: usize, text: &[u8]) -> Answer<()> {
        let memory = enclosed::enclose(text).map_err(unable)?;
        // Whoever does not take the answer will be found gone.
        let _ = self.clients[index].connection.send(&Reply::Enclosed, Some(memory.as_fd()));
        Ok(())
    }

    /// False: it cannot be delivered.
    fn reply(&self, index: usize, reply: &Reply) -> bool {
        self.clients[index].connection.send(reply, None).is_ok()
    }
}
