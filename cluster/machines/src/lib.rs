//! Lets managers on several machines share one master's state through etcd.
//!
//! ```text
//!   attune/NAME/state             the state, as the manager wrote it that changed it last
//!   attune/NAME/managers/NUMBER   a manager that is there; its lease ends unless it is renewed
//! ```
//!
//! etcd's client is asynchronous: it runs on a thread of its own ([`session`]), and the manager's
//! loop exchanges messages with that thread.
//!
//! Invariant: the state changes only by a transaction that names the revision which it replaces.

mod session;

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;

use attune_cluster::database::{Database, ManagerId, Told};
use attune_linux::event::Event;
pub use etcd_client::{Certificate, Identity};
use etcd_client::{ConnectOptions, TlsOptions};
use tokio::sync::mpsc::UnboundedSender;

/// How long a manager that leaves waits for etcd.
const FAREWELL: Duration = Duration::from_secs(3);

/// How to reach etcd.
#[derive(Clone, Debug, Default)]
pub struct Access {
    /// `http://HOST:PORT` or `https://HOST:PORT`, each a member of the same etcd.
    pub endpoints: Vec<String>,
    /// The authority that signed etcd's certificate; none: those that the system trusts.
    pub authority: Option<Certificate>,
    /// The manager's own certificate and its key.
    pub identity: Option<Identity>,
    /// Name and password.
    pub user: Option<(String, String)>,
}

impl Access {
    fn options(&self) -> ConnectOptions {
        let mut options = ConnectOptions::new()
            .with_connect_timeout(session::PATIENCE)
            // What is heard from a member that has lost the others is old.
            .with_require_leader(true);
        if self.endpoints.iter().any(|endpoint| endpoint.starts_with("https://")) {
            let mut tls = TlsOptions::new();
            tls = match &self.authority {
                Some(authority) => tls.ca_certificate(authority.clone()),
                None => tls.with_native_roots(),
            };
            if let Some(identity) = &self.identity {
                tls = tls.identity(identity.clone());
            }
            options = options.with_tls(tls);
        }
        if let Some((name, password)) = &self.user {
            options = options.with_user(name, password);
        }
        options
    }
}

enum Order {
    Put { number: u64, seen: u64, bytes: Vec<u8> },
    Leave { seen: u64, left: Sender<()> },
}

/// A manager's part in a cluster of that name in etcd.
pub struct Etcd {
    orders: UnboundedSender<Order>,
    told: Receiver<Told>,
    wakes: Event,
}

impl Etcd {
    /// Begins to look for etcd, and to keep the manager there.
    pub fn join(access: Access, cluster: &str, own: ManagerId) -> io::Result<Etcd> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (orders, ordered) = tokio::sync::mpsc::unbounded_channel();
        let (tell, told) = mpsc::channel();
        let wakes = Event::new()?;
        let teller = Teller { tell, wakes: wakes.share()? };
        let keys = session::Keys::of(cluster, own);
        std::thread::Builder::new()
            .name("etcd".to_owned())
            .spawn(move || runtime.block_on(session::run(&access, &keys, ordered, &teller)))?;
        Ok(Etcd { orders, told, wakes })
    }
}

impl Database for Etcd {
    fn wakes(&self) -> BorrowedFd<'_> {
        self.wakes.as_fd()
    }

    fn take(&mut self) -> Vec<Told> {
        self.wakes.clear();
        self.told.try_iter().collect()
    }

    fn put(&mut self, number: u64, seen: u64, bytes: Vec<u8>) {
        // The thread ends when this is dropped, or when the manager has left.
        let _ = self.orders.send(Order::Put { number, seen, bytes });
    }

    fn leave(&mut self, seen: u64) {
        let (left, has_left) = mpsc::channel();
        if self.orders.send(Order::Leave { seen, left }).is_ok() {
            // If etcd does not answer, the lease ends by itself.
            let _ = has_left.recv_timeout(FAREWELL);
        }
    }
}

/// The thread's way to the manager's loop.
struct Teller {
    tell: Sender<Told>,
    wakes: Event,
}

impl Teller {
    fn tell(&self, told: Told) {
        // A manager that has ended hears nothing.
        let _ = self.tell.send(told);
        self.wakes.set();
    }
}
