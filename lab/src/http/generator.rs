//! The load generator: sends requests, each on a connection of its own, and takes the replies as
//! fast as they come. It is one thread with epoll, and wants a core to itself, for it never sleeps.
//!
//! Open loop: each request is due at its time. Closed loop: so many clients, each asking again when
//! it has its answer. A response time runs from the moment a request was *due* (so that a generator
//! that falls behind cannot flatter the server) to the last byte of its reply. Every reply is
//! checked: status, length, end of connection; of every `VERIFY_EVERY`th the whole body, byte by
//! byte. The others' bodies are dropped in the kernel (MSG_TRUNC), so that the generator can outrun
//! the server.

use std::io::{Error, ErrorKind, Result};
use std::net::SocketAddrV4;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

use attune_linux::epoll::{Epoll, Readiness};
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SendFlags, SocketFlags, SocketType};

use super::schedule::{Arrival, Target};

/// One reply in so many is compared byte by byte; a prime, so that no pattern of requests falls in
/// step.
pub const VERIFY_EVERY: usize = 17;

/// What became of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Complete and as expected, this many nanoseconds after it was due.
    Answered(u64),
    /// A reply that is not the file: wrong status, length or bytes.
    Wrong,
    /// The connection broke, was refused, or closed early.
    Broken,
    /// No complete reply when the run ended.
    Unanswered,
}

/// A run, request by request, in the order of the arrivals.
#[derive(Debug)]
pub struct Outcome {
    pub fates: Vec<Fate>,
    /// Nanoseconds from the start to the last answer.
    pub took: u64,
    /// How late the generator itself sent, nanoseconds: median and 99th percentile over all
    /// requests.
    pub lateness: (u64, u64),
    /// Replies compared byte by byte.
    pub verified: usize,
    /// The first thing that went wrong, in words.
    pub complaint: Option<String>,
}

/// When requests are due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loop {
    /// Requests go out at their arrivals' times.
    Open,
    /// As soon as one of so many clients is free, in the arrivals' order; their times mean nothing.
    Closed(usize),
}

/// Sends `arrivals` to `server` and waits for the replies; gives up when none has come, and none
/// was due, for `patience`.
pub fn run(
    server: SocketAddrV4,
    targets: &[Target],
    arrivals: &[Arrival],
    kind: Loop,
    patience: Duration,
) -> Result<Outcome> {
    let mut generator = Generator::new(server, targets, arrivals, kind)?;
    let patience = patience.as_nanos() as u64;
    while generator.left > 0 && generator.now() < generator.last_progress + patience {
        generator.launch_due();
        generator.collect()?;
    }
    Ok(generator.outcome())
}

/// What tells that a reply has come, or the connection's end.
const REPLY: Readiness = Readiness::IN.union(Readiness::RDHUP);

/// One request under way.
struct Exchange {
    socket: OwnedFd,
    arrival: usize,
    sent: bool,
    /// Start of the reply, until its head is complete; the whole reply where it is verified.
    start: Vec<u8>,
    /// Bytes still to come, once the head is known.
    left: Option<usize>,
}

struct Generator<'a> {
    server: SocketAddrV4,
    targets: &'a [Target],
    requests: Vec<Vec<u8>>,
    arrivals: &'a [Arrival],
    /// When each was due, as far as they have been sent.
    due: Vec<u64>,
    kind: Loop,
    epoll: Epoll,
    begin: Instant,
    next: usize,
    left: usize,
    last_progress: u64,
    exchanges: Vec<Option<Exchange>>,
    /// Scratch: connections and what they are ready for.
    events: Vec<(usize, Readiness)>,
    free: Vec<usize>,
    buffer: Vec<u8>,
    outcome: Outcome,
    delays: Vec<u64>,
}

impl<'a> Generator<'a> {
    fn new(
        server: SocketAddrV4,
        targets: &'a [Target],
        arrivals: &'a [Arrival],
        kind: Loop,
    ) -> Result<Self> {
        let request = |target: &Target| {
            format!("GET {} HTTP/1.1\r\nHost: {server}\r\nConnection: close\r\n\r\n", target.path)
                .into_bytes()
        };
        Ok(Generator {
            server,
            requests: targets.iter().map(request).collect(),
            targets,
            arrivals,
            due: Vec::with_capacity(arrivals.len()),
            kind,
            epoll: Epoll::new()?,
            begin: Instant::now(),
            next: 0,
            left: arrivals.len(),
            last_progress: 0,
            exchanges: Vec::new(),
            events: Vec::new(),
            free: Vec::new(),
            buffer: vec![0; 256 * 1024],
            outcome: Outcome {
                fates: vec![Fate::Unanswered; arrivals.len()],
                took: 0,
                lateness: (0, 0),
                verified: 0,
                complaint: None,
            },
            delays: Vec::with_capacity(arrivals.len()),
        })
    }

    fn now(&self) -> u64 {
        self.begin.elapsed().as_nanos() as u64
    }

    /// Sends what is due; a few at a time, so that replies are taken in between.
    fn launch_due(&mut self) {
        for _ in 0..16 {
            let now = self.now();
            let Some(arrival) = self.arrivals.get(self.next) else { return };
            let due = match self.kind {
                Loop::Open if arrival.at <= now => arrival.at,
                Loop::Closed(clients)
                    if self.next - (self.arrivals.len() - self.left) < clients =>
                {
                    now
                }
                Loop::Open | Loop::Closed(_) => return,
            };
            self.due.push(due);
            self.delays.push(now - due);
            self.last_progress = now;
            let arrival = self.next;
            self.next += 1;
            if let Err(error) = self.launch(arrival) {
                self.finish(arrival, Fate::Broken, || format!("connecting: {error}"));
            }
        }
    }

    fn launch(&mut self, arrival: usize) -> Result<()> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket = net::socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)?;
        match net::connect(&socket, &self.server) {
            Ok(()) | Err(Errno::INPROGRESS) => {}
            Err(error) => return Err(error.into()),
        }
        let index = self.free.pop().unwrap_or_else(|| {
            self.exchanges.push(None);
            self.exchanges.len() - 1
        });
        let mut exchange = Exchange { socket, arrival, sent: false, start: Vec::new(), left: None };
        // Over loopback the connection is usually there at once.
        let sent = send(&mut exchange, &self.requests[self.arrivals[arrival].target as usize]);
        let more = if exchange.sent { Readiness::empty() } else { Readiness::OUT };
        let added = self.epoll.add(exchange.socket.as_raw_fd(), index as u64, REPLY | more);
        sent.and(added)?;
        self.exchanges[index] = Some(exchange);
        Ok(())
    }

    fn collect(&mut self) -> Result<()> {
        let mut events = std::mem::take(&mut self.events);
        self.epoll.collect(|index, ready| events.push((index as usize, ready)))?;
        for (index, ready) in events.drain(..) {
            let Some(mut exchange) = self.exchanges.get_mut(index).and_then(Option::take) else {
                continue;
            };
            match self.advance(&mut exchange, index, ready) {
                None => self.exchanges[index] = Some(exchange),
                Some((fate, complaint)) => {
                    self.free.push(index);
                    self.finish(exchange.arrival, fate, || complaint);
                }
            }
        }
        self.events = events;
        Ok(())
    }

    /// Does what is possible on one connection. Some: it is over.
    fn advance(
        &mut self,
        exchange: &mut Exchange,
        index: usize,
        ready: Readiness,
    ) -> Option<(Fate, String)> {
        let broken = |error: Error| Some((Fate::Broken, error.to_string()));
        let may_send = Readiness::OUT | Readiness::ERR | Readiness::HUP;
        if !exchange.sent && ready.intersects(may_send) {
            let target = self.arrivals[exchange.arrival].target as usize;
            if let Err(error) = send(exchange, &self.requests[target]) {
                return broken(error);
            }
            let socket = exchange.socket.as_raw_fd();
            if exchange.sent
                && let Err(error) = self.epoll.modify(socket, index as u64, REPLY)
            {
                return broken(error);
            }
        }
        if ready == Readiness::OUT {
            return None;
        }
        loop {
            match self.receive(exchange) {
                Ok(0) => return Some(self.closed(exchange)),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return None,
                Err(error) => return broken(error),
            }
            if exchange.left.is_none()
                && let Err(complaint) = self.read_head(exchange)
            {
                return Some((Fate::Wrong, complaint));
            }
        }
    }

    fn verifies(&self, exchange: &Exchange) -> bool {
        exchange.arrival.is_multiple_of(VERIFY_EVERY)
    }

    fn receive(&mut self, exchange: &mut Exchange) -> Result<usize> {
        let keep = exchange.left.is_none() || self.verifies(exchange);
        // Without copying, as much as there is; the first time just enough for the head, so that
        // the rest need not be copied.
        let (flags, most) = match (keep, exchange.left.is_none()) {
            (false, _) => (libc::MSG_TRUNC, 1 << 30),
            (true, true) => (0, 512),
            (true, false) => (0, self.buffer.len()),
        };
        // SAFETY: with MSG_TRUNC nothing is written to the buffer (TCP discards), else at most its
        // length.
        let got = unsafe {
            libc::recv(exchange.socket.as_raw_fd(), self.buffer.as_mut_ptr().cast(), most, flags)
        };
        if got < 0 {
            return Err(Error::last_os_error());
        }
        let got = got as usize;
        if keep {
            exchange.start.extend_from_slice(&self.buffer[..got]);
        }
        if let Some(left) = &mut exchange.left {
            if got > *left {
                return Err(Error::other("the reply is longer than it said"));
            }
            *left -= got;
        }
        Ok(got)
    }

    /// Once the head is complete: what remains of the body. Err: it is not what this file's reply
    /// should be.
    fn read_head(&self, exchange: &mut Exchange) -> std::result::Result<(), String> {
        let Some(end) = exchange.start.windows(4).position(|bytes| bytes == b"\r\n\r\n") else {
            return if exchange.start.len() > 4096 {
                Err("no end of the head".to_owned())
            } else {
                Ok(())
            };
        };
        let size = self.target(exchange).body.len();
        let head = String::from_utf8_lossy(&exchange.start[..end]).to_ascii_lowercase();
        let length =
            head.lines().find_map(|line| line.strip_prefix("content-length:")).map(str::trim);
        if !head.starts_with("http/1.1 200 ") || length != Some(size.to_string().as_str()) {
            return Err(format!(
                "for {}: {}",
                self.target(exchange).path,
                head.lines().next().unwrap_or_default()
            ));
        }
        let body = exchange.start.len() - end - 4;
        exchange.left = Some(size.checked_sub(body).ok_or("the reply is longer than it said")?);
        exchange.start.drain(..end + 4);
        Ok(())
    }

    /// The server has closed: the reply must be complete and, where it is compared, the file's
    /// bytes.
    fn closed(&mut self, exchange: &Exchange) -> (Fate, String) {
        if exchange.left != Some(0) {
            let path = &self.target(exchange).path;
            return (
                Fate::Broken,
                format!("{path}: closed with {:?} bytes to come", exchange.left),
            );
        }
        if self.verifies(exchange) {
            self.outcome.verified += 1;
            if exchange.start != self.target(exchange).body {
                return (Fate::Wrong, format!("{}: wrong bytes", self.target(exchange).path));
            }
        }
        let now = self.now();
        self.outcome.took = now;
        self.last_progress = now;
        (Fate::Answered(now - self.due[exchange.arrival]), String::new())
    }

    fn target(&self, exchange: &Exchange) -> &'a Target {
        &self.targets[self.arrivals[exchange.arrival].target as usize]
    }

    fn finish(&mut self, arrival: usize, fate: Fate, complaint: impl FnOnce() -> String) {
        self.left -= 1;
        self.outcome.fates[arrival] = fate;
        if !matches!(fate, Fate::Answered(_)) && self.outcome.complaint.is_none() {
            self.outcome.complaint = Some(complaint());
        }
    }

    fn outcome(mut self) -> Outcome {
        self.delays.sort_unstable();
        let at = |share: f64| {
            self.delays.get((self.delays.len() as f64 * share) as usize).copied().unwrap_or(0)
        };
        self.outcome.lateness = (at(0.5), at(0.99));
        if self.left > 0 && self.outcome.complaint.is_none() {
            self.outcome.complaint =
                Some(format!("{} requests without an answer in time", self.left));
        }
        self.outcome
    }
}

/// A request fits into the socket's empty buffer: it is sent as a whole or not at all.
fn send(exchange: &mut Exchange, request: &[u8]) -> Result<()> {
    match net::send(&exchange.socket, request, SendFlags::NOSIGNAL) {
        Ok(_) => exchange.sent = true,
        Err(Errno::AGAIN | Errno::NOTCONN | Errno::INPROGRESS) => {}
        Err(error) => return Err(error.into()),
    }
    Ok(())
}
