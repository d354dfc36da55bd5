//! The socket on which a program's user sees and changes its scheduler: `attune top`, `set` and
//! `hint`, in the messages that the kernel engine understands too (`attune_values::wire`).
//!
//! It is there where `ATTUNE_CONTROL` names its place. An OS thread of its own serves it, with all
//! signals blocked. It asks each worker by a message, which the worker follows when it next
//! switches threads, so nothing here runs beside a handler or a thread of that worker.
//!
//! Invariant: only the user whom the program runs as, and root, get an answer.

mod hints;
mod snapshot;
mod tunables;
mod variables;

pub use hints::{Hint, catch_up, read};

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use attune_linux::{poll, process, signal, time};
use attune_values::enclosed;
use attune_values::socket::{Connection, Listener, Received};
use attune_values::wire::{self, Refusal, Reply, Request};

use crate::engine::Engine;
use crate::engine::worker::{self, Call, Message, Worker};
use crate::load::Loaded;
use crate::thread::ThreadId;

/// How long a worker may take until it switches threads.
const PATIENCE: Duration = Duration::from_secs(2);
/// Connections at a time; one more is closed at once.
const CLIENTS: usize = 16;

/// Why a request is not followed.
struct Refused(Refusal, String);

type Answer<T> = Result<T, Refused>;

/// Listens there from now on. Errors: the socket cannot be made, or somebody listens there.
pub fn start(place: &Path, loaded: Loaded) -> io::Result<()> {
    let listener = Listener::at(place)?;
    let mut service = Service { listener, clients: Vec::new(), loaded };
    let thread = thread::Builder::new().name("attune-control".to_owned());
    signal::while_blocked(|| thread.spawn(move || service.run())).map(|_| ())
}

struct Service {
    listener: Listener,
    clients: Vec<Connection>,
    loaded: Loaded,
}

impl Service {
    fn run(&mut self) {
        loop {
            let clients = self.clients.iter().map(|client| client.as_fd().as_raw_fd());
            let all = clients.chain([self.listener.as_fd().as_raw_fd()]);
            let mut waits: Vec<_> = all.map(poll::readable).collect();
            if poll::wait(&mut waits, time::NEVER).is_err() {
                continue;
            }
            let mut came = waits.iter().map(|wait| wait.revents != 0);
            let mut clients = std::mem::take(&mut self.clients);
            clients.retain(|client| !came.next().unwrap_or(false) || self.serve(client));
            self.clients = clients;
            if came.next().unwrap_or(false) {
                self.accept();
            }
        }
    }

    fn accept(&mut self) {
        match self.listener.accept() {
            Ok(Some(client)) if self.clients.len() < CLIENTS => self.clients.push(client),
            Ok(_) => {}
            // The program has no descriptor left: it may close some.
            Err(_) => thread::sleep(Duration::from_millis(20)),
        }
    }

    /// Serves one request. False: the connection is over.
    fn serve(&self, client: &Connection) -> bool {
        let answer = match client.receive::<Request>() {
            Ok(Received::Message(request, list)) => self.answer(client, request, list),
            Ok(Received::Nothing) => return true,
            Ok(Received::Garbled) => {
                Err(Refused(Refusal::Garbled, "this is no request that is known here".into()))
            }
            Ok(Received::Ended) | Err(_) => return false,
        };
        let sent = match answer {
            Ok(None) => client.send(&Reply::Done, None),
            Ok(Some(text)) => enclosed::enclose(&text)
                .and_then(|memory| client.send(&Reply::Enclosed, Some(memory.as_fd()))),
            Err(Refused(why, message)) => client.send(&Reply::Refused { why, message }, None),
        };
        sent.is_ok()
    }

    /// The text to be enclosed, if there is one.
    fn answer(
        &self,
        client: &Connection,
        request: Request,
        list: Option<OwnedFd>,
    ) -> Answer<Option<Vec<u8>>> {
        let user = client.peer().map(|peer| peer.user).unwrap_or(u32::MAX);
        if user != 0 && user != process::effective_user() {
            let message = "the program runs as another user";
            return Err(Refused(Refusal::Forbidden, message.into()));
        }
        match request {
            Request::Tunables => {
                let tunables = on(worker::first(), |engine| tunables::all(&engine.scheduler))?;
                return json(&tunables).map(Some);
            }
            Request::Snapshot => return json(&snapshot::take()?).map(Some),
            Request::Set { settings } => tunables::set(self.loaded, &settings)?,
            Request::Hint(hint) => hints::hint(self.loaded, &hint)?,
            Request::Hints => return json(&self.hints(list)?).map(Some),
            _ => {
                let message = "a program takes values of its own threads only: it registers them";
                return Err(Refused(Refusal::Garbled, message.into()));
            }
        }
        Ok(None)
    }

    /// Follows a list of hints; those that it refuses.
    fn hints(&self, list: Option<OwnedFd>) -> Answer<Vec<wire::Refused>> {
        let hints = enclosed::read_hints(list).map_err(|why| Refused(Refusal::Garbled, why))?;
        let mut refused = Vec::new();
        for (index, hint) in hints.iter().enumerate() {
            match hints::hint(self.loaded, hint) {
                Ok(()) => {}
                // Each of the others would wait as long.
                Err(unable @ Refused(Refusal::Unable, _)) => return Err(unable),
                Err(Refused(why, message)) => refused.push(wire::Refused { index, why, message }),
            }
        }
        Ok(refused)
    }
}

fn json(value: &impl serde::Serialize) -> Answer<Vec<u8>> {
    serde_json::to_vec(value).map_err(|error| Refused(Refusal::Unable, error.to_string()))
}

/// Runs `f` on the engine of that worker. Refused: it does not switch threads; `f` runs when it
/// does.
fn on<T: Send + 'static>(
    worker: &'static Worker,
    f: impl FnOnce(&mut Engine) -> T + Send + 'static,
) -> Answer<T> {
    receive(worker, &send(worker, f), Instant::now() + PATIENCE)
}

/// The same on each worker at a time.
fn everywhere<T: Send + 'static>(
    f: impl Fn(&mut Engine) -> T + Clone + Send + 'static,
) -> Answer<Vec<T>> {
    let workers = worker::all().iter();
    let asked: Vec<_> = workers.map(|&worker| (worker, send(worker, f.clone()))).collect();
    let end = Instant::now() + PATIENCE;
    asked.iter().map(|(worker, answers)| receive(worker, answers, end)).collect()
}

/// The same on the worker that has the thread; its home is asked first.
fn about<T: Send + 'static>(
    thread: ThreadId,
    home: &'static Worker,
    f: impl FnOnce(&mut Engine) -> T + Send + 'static,
) -> Answer<T> {
    let (call, answers) = call(f);
    home.post(Message::About(thread, call));
    receive(home, &answers, Instant::now() + PATIENCE)
}

fn send<T: Send + 'static>(
    worker: &'static Worker,
    f: impl FnOnce(&mut Engine) -> T + Send + 'static,
) -> Receiver<T> {
    let (call, answers) = call(f);
    worker.post(Message::Call(call));
    answers
}

/// A call for an engine, and where its result comes out.
fn call<T: Send + 'static>(
    f: impl FnOnce(&mut Engine) -> T + Send + 'static,
) -> (Call, Receiver<T>) {
    let (answer, answers) = mpsc::channel();
    let call = Box::new(move |engine: &mut Engine| {
        // Nobody may wait for it any more.
        let _ = answer.send(f(engine));
    });
    (call, answers)
}

fn receive<T>(worker: &Worker, answers: &Receiver<T>, end: Instant) -> Answer<T> {
    answers.recv_timeout(end.saturating_duration_since(Instant::now())).map_err(|_| {
        let message = format!(
            "worker {} has not switched threads for {} s: a thread computes there without calling \
             the library. What was asked happens when it calls",
            worker.index + 1,
            PATIENCE.as_secs()
        );
        Refused(Refusal::Unable, message)
    })
}
