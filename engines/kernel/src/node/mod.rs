//! A node of a cluster on the kernel engine: a thread of the loader's process holds the connection
//! to the cluster's manager, and exchanges what is shared with the handlers in the kernel.
//!
//! - [`exchange`] is the list of numbers, exchanged between two handlers (`bpf/node.h`);
//! - [`copy`] is the node's copy between the connection and that list.
//!
//! Invariant: no handler waits for this thread, and the node departs when the loader's process or
//! the [`Member`] ends.

mod copy;
mod exchange;

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use attune_cluster_local::connection::Connection;
use attune_cluster_local::packets;
use attune_linux::event::Event;
use attune_linux::{poll, time};
use attune_replica::{Replica, Time};
use libbpf_rs::{MapCore, RingBuffer, RingBufferBuilder};

use crate::loaded::Loaded;
use copy::Copy;
use exchange::Exchange;

/// The kernel and the loader exchange no more often than that: a handler that writes always wakes
/// the loader once in this time. Nanoseconds.
const SHORTEST: Time = 1_000_000;
/// How often the loader looks at what others see of the node and no handler tells it of.
const LOOK: Time = 10_000_000;
/// The node looks for a manager for so long before it says that there is none.
const COMES: Time = 300_000_000;
/// At its end the node waits for so long at most until the manager has counted what it wrote.
const COUNTS: Time = 1_000_000_000;

/// What becomes of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// A manager has taken it into its cluster.
    Joined,
    /// There is no manager.
    Absent,
    /// The manager does not take it: why.
    Refused(String),
    /// It can go on no more: why.
    Lost(String),
}

/// A scheduler's part in a cluster; it departs when this is dropped.
pub struct Member {
    stop: Event,
    started: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Member {
    pub(crate) fn join(
        loaded: Arc<Loaded>,
        path: PathBuf,
        told: impl FnMut(Told) + Send + 'static,
    ) -> io::Result<Member> {
        let node = loaded.image.description.node.as_ref().ok_or(io::ErrorKind::NotFound)?;
        let described = packets::description_of(&node.description);
        let (schema, family) = described.ok_or_else(|| {
            io::Error::other("the object was made by another version of attune; build it again")
        })?;
        let connection = Connection::new(Arc::new(schema), family, path);
        let exchange = Exchange::new(loaded)?;
        let copy = Copy::new(exchange, connection.replica())
            .ok_or_else(|| io::Error::other("the object lacks what its cluster shares"))?;
        let stop = Event::new()?;
        let started = Arc::new(AtomicBool::new(connection.replica().has_started()));
        let (stops, starts) = (stop.share()?, started.clone());
        let serve = move || {
            // It must be used by the thread that has made it.
            let served = match written(copy.object()) {
                Ok(written) => {
                    let mut node =
                        Node { connection, copy, written, told, alone: None, said: None };
                    let served = node.serve(&stops, &starts);
                    served.map_err(|error| (node.told, error))
                }
                Err(error) => Err((told, io::Error::other(error))),
            };
            if let Err((mut told, error)) = served {
                told(Told::Lost(error.to_string()));
            }
        };
        let thread = std::thread::Builder::new().name("attune-node".to_owned()).spawn(serve)?;
        Ok(Member { stop, started, thread: Some(thread) })
    }

    /// Whether as many nodes have come as the families expect.
    pub fn has_started(&self) -> bool {
        self.started.load(Ordering::Relaxed)
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.stop.set();
        // A panic of the thread was told already.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Readable when handlers have written.
fn written(object: &libbpf_rs::Object) -> libbpf_rs::Result<RingBuffer<'static>> {
    let map = object.maps().find(|map| map.name() == "attune_written_here");
    let map = map.ok_or_else(|| io::Error::other("the object lacks attune_written_here"))?;
    let mut builder = RingBufferBuilder::new();
    builder.add(&map, |_| 0)?;
    builder.build()
}

struct Node<F> {
    connection: Connection,
    copy: Copy,
    written: RingBuffer<'static>,
    told: F,
    /// Since when there is no manager.
    alone: Option<Time>,
    /// What was said last.
    said: Option<Told>,
}

impl<F: FnMut(Told)> Node<F> {
    fn serve(&mut self, stop: &Event, started: &AtomicBool) -> io::Result<()> {
        // Its first values go along with its hello.
        let mut stale = self.copy.exchange(&mut self.connection, now())?;
        while !poll::is_readable(stop)? {
            let now = now();
            stale |= self.hear(now);
            let written = poll::wait(&mut [poll::readable(self.written.epoll_fd())], 0)? > 0;
            stale |= written || self.copy.has_changed();
            if stale {
                // What is told from here on is told anew.
                self.written.consume().map_err(io::Error::other)?;
                stale = self.copy.exchange(&mut self.connection, now)?;
                stale |= self.hear(now);
            }
            started.store(self.connection.replica().has_started(), Ordering::Relaxed);
            self.tell(now);
            self.wait(stop, now, stale)?;
        }
        self.leave()
    }

    /// True: handlers should see what was heard.
    fn hear(&mut self, now: Time) -> bool {
        let heard = self.connection.exchange(now);
        for (property, operation) in heard.orders {
            self.copy.obey(property, operation);
        }
        heard.news
    }

    fn tell(&mut self, now: Time) {
        match self.connection.descriptor() {
            Some(_) => self.alone = None,
            None => _ = self.alone.get_or_insert(now),
        }
        let refused = self.connection.take_refusal().map(Told::Refused);
        let news = match refused {
            None if self.connection.replica().node().is_some() => Some(Told::Joined),
            None if self.is_alone(now) => Some(Told::Absent),
            refused => refused,
        };
        if news.is_some() && news != self.said {
            self.said = news.clone();
            news.into_iter().for_each(&mut self.told);
        }
    }

    /// There is no manager, and none has refused the node.
    fn is_alone(&self, now: Time) -> bool {
        let refused = matches!(self.said, Some(Told::Refused(_)));
        !refused && self.alone.is_some_and(|since| now - since > COMES)
    }

    /// Until something can be exchanged again.
    fn wait(&mut self, stop: &Event, since: Time, soon: bool) -> io::Result<()> {
        time::sleep_until((since + SHORTEST) as _);
        if soon {
            return Ok(());
        }
        let now = now();
        let looks = self.copy.is_seen().then_some(now + LOOK);
        // The manager says something four times a second; the rest is for one that does not.
        let until = looks.into_iter().chain(self.connection.next()).min().unwrap_or(now + COUNTS);
        let descriptors = [Some(stop.as_fd().as_raw_fd()), Some(self.written.epoll_fd())];
        let descriptors = descriptors.into_iter().chain([self.connection.descriptor()]);
        let mut descriptors: Vec<_> = descriptors.flatten().map(poll::readable).collect();
        match poll::wait(&mut descriptors, (until - now).max(0) as _) {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => Err(error),
            _ => Ok(()),
        }
    }

    /// What handlers have written is told before the node departs, if the manager is there.
    fn leave(&mut self) -> io::Result<()> {
        let until = now() + COUNTS;
        self.copy.exchange(&mut self.connection, now())?;
        let settled = |replica: &Replica| replica.node().is_none() || replica.is_settled();
        loop {
            self.hear(now());
            if settled(self.connection.replica()) || now() > until {
                return Ok(());
            }
            let socket = self.connection.descriptor().map(poll::readable);
            let mut socket: Vec<_> = socket.into_iter().collect();
            let _ = poll::wait(&mut socket, SHORTEST as _);
        }
    }
}

fn now() -> Time {
    time::now() as Time
}
