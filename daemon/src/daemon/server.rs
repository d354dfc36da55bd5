//! Serves the daemon's socket. The daemon does so inside its round and never waits for a client: it
//! drops one that sends no line or reads no answer. In each round it answers one line of each, so a
//! client that asks much waits for itself alone.

use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use attune_linux::places::{Limits, Places};
use attune_linux::socket;
use attune_linux::time::{self, SECOND, Time};
use serde_json::{Value, json};

/// Clients at a time.
const LIMITS: Limits = Limits { of_user: 16, of_all: 128, kept_free: 16 };
/// Bytes of a request.
const LONGEST: usize = 4096;
/// A client that asks nothing for so long gives its place up.
const IDLE: Time = 60 * SECOND;
/// New connections in one round.
const COMERS: usize = 64;

pub struct Server {
    path: PathBuf,
    listener: UnixListener,
    places: Places,
    clients: Vec<Client>,
}

struct Client {
    stream: UnixStream,
    user: u32,
    read: Vec<u8>,
    /// When it asked last.
    asked: Time,
}

impl Server {
    /// Every user may connect; the kernel says which user asks. The socket of a killed daemon is
    /// replaced, that of a living one is not.
    pub fn listen(path: &Path) -> io::Result<Server> {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(while_doing("making its folder"))?;
        }
        if path.exists() {
            if UnixStream::connect(path).is_ok() {
                return Err(io::Error::new(ErrorKind::AddrInUse, "another attuned listens there"));
            }
            std::fs::remove_file(path).map_err(while_doing("removing what is left there"))?;
        }
        let listener = UnixListener::bind(path)?;
        listener.set_nonblocking(true)?;
        let everybody = std::fs::Permissions::from_mode(0o666);
        std::fs::set_permissions(path, everybody).map_err(while_doing("opening it to all"))?;
        let places = Places::new(LIMITS, "connections");
        Ok(Server { path: path.to_owned(), listener, places, clients: Vec::new() })
    }

    /// Answers the requests that have come.
    pub fn serve(&mut self, mut answer: impl FnMut(u32, &str) -> Value) {
        let now = time::now();
        for _ in 0..COMERS {
            let Ok((stream, _)) = self.listener.accept() else { break };
            let peer = socket::credentials(&stream);
            if let (Ok(peer), Ok(())) = (peer, stream.set_nonblocking(true)) {
                self.seat(Client { stream, user: peer.user, read: Vec::new(), asked: now });
            }
        }
        let places = &mut self.places;
        self.clients.retain_mut(|client| {
            let stays = client.serve(now, &mut answer);
            if !stays {
                places.give_back(client.user);
            }
            stays
        });
    }

    fn seat(&mut self, mut client: Client) {
        match self.places.take(client.user, client.user == 0) {
            Ok(()) => self.clients.push(client),
            Err(why) => {
                // It may not read it.
                let _ = client.reply(&json!({ "ok": false, "error": why }));
            }
        }
    }
}

impl Client {
    /// Serves one client. False: its connection is over.
    fn serve(&mut self, now: Time, answer: &mut impl FnMut(u32, &str) -> Value) -> bool {
        let open = self.read.contains(&b'\n') || self.receive();
        if let Some(end) = self.read.iter().position(|&byte| byte == b'\n') {
            self.asked = now;
            let line: Vec<u8> = self.read.drain(..=end).collect();
            let reply = answer(self.user, String::from_utf8_lossy(&line).trim());
            return self.reply(&reply).is_ok();
        }
        open && self.read.len() < LONGEST && now - self.asked < IDLE
    }

    /// Reads what has come. False: no more will.
    fn receive(&mut self) -> bool {
        let mut bytes = [0; 1024];
        match self.stream.read(&mut bytes) {
            Ok(length) => {
                self.read.extend(&bytes[..length]);
                length > 0
            }
            Err(error) => matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted),
        }
    }

    fn reply(&mut self, reply: &Value) -> io::Result<()> {
        self.stream.write_all(format!("{reply}\n").as_bytes())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Another program may have removed it already.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Says at which step of listening an error happened.
fn while_doing(step: &str) -> impl Fn(io::Error) -> io::Error {
    move |error| io::Error::new(error.kind(), format!("{step}: {error}"))
}
