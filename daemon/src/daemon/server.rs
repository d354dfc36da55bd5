//! Serves the daemon's socket. The daemon does so inside its round and never waits for a client: it
//! drops one that sends no line or reads no answer.

use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use attune_linux::socket;
use serde_json::Value;

/// Clients at a time, and bytes of a request.
const CLIENTS: usize = 32;
const LONGEST: usize = 4096;

pub struct Server {
    path: PathBuf,
    listener: UnixListener,
    clients: Vec<Client>,
}

struct Client {
    stream: UnixStream,
    user: u32,
    read: Vec<u8>,
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
        Ok(Server { path: path.to_owned(), listener, clients: Vec::new() })
    }

    /// Answers the requests that have come.
    pub fn serve(&mut self, mut answer: impl FnMut(u32, &str) -> Value) {
        while self.clients.len() < CLIENTS {
            let Ok((stream, _)) = self.listener.accept() else { break };
            let peer = socket::credentials(&stream);
            if let (Ok(peer), Ok(())) = (peer, stream.set_nonblocking(true)) {
                self.clients.push(Client { stream, user: peer.user, read: Vec::new() });
            }
        }
        self.clients.retain_mut(|client| client.serve(&mut answer));
    }
}

impl Client {
    /// Serves one client. False: its connection is over.
    fn serve(&mut self, answer: &mut impl FnMut(u32, &str) -> Value) -> bool {
        let mut bytes = [0; 1024];
        let open = match self.stream.read(&mut bytes) {
            Ok(length) => {
                self.read.extend(&bytes[..length]);
                length > 0
            }
            Err(error) => matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted),
        };
        while let Some(end) = self.read.iter().position(|&byte| byte == b'\n') {
            let line: Vec<u8> = self.read.drain(..=end).collect();
            let reply = format!("{}\n", answer(self.user, String::from_utf8_lossy(&line).trim()));
            if self.stream.write_all(reply.as_bytes()).is_err() {
                return false;
            }
        }
        open && self.read.len() < LONGEST
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
