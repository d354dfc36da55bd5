//! The broker's handle: its thread runs as long as this is there.

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use attune_linux::epoll::{Epoll, Readiness};
use attune_linux::event::Event;
use attune_linux::places::Places;
use attune_linux::process;
use attune_values::socket::Listener;

use crate::doors::Doors;
use crate::kept::Kept;
use crate::limits;
use crate::ready::Ready;
use crate::registry::Registry;
use crate::service::Service;
use crate::store::Store;

/// A service that runs until this is dropped.
#[derive(Debug)]
pub struct Broker {
    stop: Event,
    /// Clients of the engine before that have not come yet.
    missing: Arc<AtomicUsize>,
    thread: Option<JoinHandle<()>>,
}

impl Broker {
    /// Listens at `path`. Errors: the socket cannot be made, another engine listens there
    /// (`AddrInUse`).
    pub fn start(path: &Path, store: impl Store + 'static) -> io::Result<Broker> {
        Broker::keeping(None, path, store)
    }

    /// The same, with a file for what the next engine needs ([`Kept`]). What is there already
    /// counts from the start.
    pub fn keeping(
        kept: Option<&Path>,
        path: &Path,
        store: impl Store + 'static,
    ) -> io::Result<Broker> {
        let sizes = limits::within(process::raise_descriptor_limit(limits::WANTED));
        let listener = Listener::at(path)?;
        let (stop, epoll) = (Event::new()?, Epoll::new()?);
        epoll.add(stop.as_fd().as_raw_fd(), Ready::Stop.key(), Readiness::IN)?;
        let before = kept.map(Kept::read).unwrap_or_default();
        let missing = Arc::new(AtomicUsize::new(before.clients.len()));
        let mut registry = Registry::new(store, sizes.processes);
        before.hints.iter().for_each(|hint| registry.hint_again(hint));
        let places = Places::new(sizes.connections, "connections");
        let kept = kept.map(Path::to_owned);
        let doors = Doors::new(listener, path, sizes.doors);
        let mut service =
            Service::new(registry, doors, epoll, places, kept, before.clients, missing.clone());
        let thread = std::thread::Builder::new()
            .name("attune-values".to_owned())
            .spawn(move || service.run())?;
        Ok(Broker { stop, missing, thread: Some(thread) })
    }

    /// Waits until the clients of the engine before have come, those that still live, but no longer
    /// than that.
    pub fn wait_for_clients(&self, at_most: Duration) {
        let end = Instant::now() + at_most;
        while self.missing.load(Ordering::Acquire) > 0 && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        self.stop.set();
        if let Some(thread) = self.thread.take() {
            // A panic there has been reported already.
            let _ = thread.join();
        }
    }
}
