//! The daemon's socket. It serves inside the daemon's round and never waits for anybody: a client that sends no line, or reads no
//! answer, is dropped.

use std::io::{self, ErrorKind, Read, Write};
use std::mem::size_of;
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

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
    /// Everybody may connect; who asks is the kernel's word. A socket that a killed daemon left is replaced, a living one's is not.
    pub fn listen(path: &Path) -> io::Result<Server> {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        if path.exists() {
            if UnixStream::connect(path).is_ok() {
                return Err(io::Error::new(ErrorKind::AddrInUse, "another attuned listens there"));
            }
            std::fs::remove_file(path)?;
        }
        let listener = UnixListener::bind(path)?;
        listener.set_nonblocking(true)?;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o666))?;
        Ok(Server { path: path.to_owned(), listener, clients: Vec::new() })
    }

    /// Answers what has come.
    pub fn serve(&mut self, mut answer: impl FnMut(u32, &str) -> Value) {
        while self.clients.len() < CLIENTS {
            let Ok((stream, _)) = self.listener.accept() else { break };
            let user = user_of(&stream);
            if let (Some(user), Ok(())) = (user, stream.set_nonblocking(true)) {
                self.clients.push(Client { stream, user, read: Vec::new() });
            }
        }
        self.clients.retain_mut(|client| client.serve(&mut answer));
    }
}

impl Client {
    /// False when it is done with.
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
        // Somebody may have removed it already.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Who is at the other end.
fn user_of(stream: &UnixStream) -> Option<u32> {
    let mut peer = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut length = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes into `peer`.
    let result = unsafe {
        libc::getsockopt(
            stream.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut peer).cast(),
            &raw mut length,
        )
    };
    (result == 0).then_some(peer.uid)
}
