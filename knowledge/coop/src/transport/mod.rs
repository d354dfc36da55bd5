//! How `coop_poll` reaches the other programs: chosen when a program starts, behind one interface.
//!
//! | transport | reaches | chosen |
//! |---|---|---|
//! | `kernel` | the whole machine, by `coop.sched` in Linux | where it runs, or by name |
//! | `shared` | the user's cooperating programs, by shared memory on any kernel | by name |
//! | `none` | no other program: the loop works, uncooperatively | else |
//!
//! `auto` takes the transport that the environment variable ATTUNE_COOP names. Without the variable
//! it takes `kernel` if such a scheduler runs when the program starts, else `none`. Where the named
//! transport cannot be had it takes `none`, with a message. A program that asks for `kernel` by
//! name waits for a scheduler: until one comes the loop works as with `none`.
//!
//! `auto` never takes `shared` by itself. A kernel that knows nothing of cooperation sees one
//! runnable thread per CPU in place of many: beside programs that do not cooperate, all members
//! together get the share of one thread. The user who starts the programs knows whether there are
//! such programs; a program does not.

pub mod kernel;
mod none;
pub mod shared;

use std::io;
use std::str::FromStr;

use attune_linux::poll;
pub use attune_linux::poll::pollfd;

pub use none::Alone;

use crate::offer::{Answer, Offer};
use crate::time::{Clock, Monotonic, NEVER, Time};

/// See the module. A transport belongs to the thread that opened it.
pub trait Transport {
    fn name(&self) -> &'static str;

    /// Yields. Returns when it is the caller's turn; with nothing to do it sleeps until the offer's
    /// timer. Returns early, without the turn where there are turns, when one of the descriptors
    /// has what its `events` ask for: as `ppoll` it fills in `revents`.
    fn poll(&mut self, offer: &Offer, descriptors: &mut [pollfd]) -> io::Result<Answer>;

    /// Publishes the first timer whose service has not begun, for schedulers that may take the CPU
    /// before the next poll. The loop calls it as a service begins and when it has ended.
    fn tell_timer(&mut self, _first: Time) {}

    /// The last answer's `until`, as it is now. It only falls.
    fn until(&self) -> Time;

    fn statistics(&self) -> Statistics;
}

/// A poll for loops that are not ours: they serve at once all timers that are due when it returns,
/// and do not say so.
pub fn poll_and_serve(
    transport: &mut dyn Transport,
    offer: &Offer,
    descriptors: &mut [pollfd],
) -> io::Result<Answer> {
    let answer = transport.poll(offer, descriptors);
    if offer.timer <= Monotonic.now() {
        transport.tell_timer(NEVER);
    }
    answer
}

/// Counts since a transport was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Calls of `poll`.
    pub polls: u64,
    /// Polls in which another program got the CPU; with `kernel`, in which it could have.
    pub yields: u64,
    /// Polls that found nothing to do, here or in other programs.
    pub sleeps: u64,
    /// Times that the CPU was taken from a program that did not answer.
    pub takeovers: u64,
    /// Times that it went on without its turn, having waited too long.
    pub impatient: u64,
}

/// Which transport is wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Wanted {
    /// The one that ATTUNE_COOP names (`auto`, `none`, `kernel`, `shared`, `shared:DIRECTORY`),
    /// else `kernel` if a scheduler listens, else `none`.
    #[default]
    Auto,
    None,
    /// The scheduler of the machine, when there is one that listens.
    Kernel,
    /// Shared memory, with the programs that name the same session.
    Shared(shared::Session),
}

impl FromStr for Wanted {
    type Err = String;

    fn from_str(text: &str) -> Result<Wanted, String> {
        match text.split_once(':').unwrap_or((text, "")) {
            ("auto" | "", "") => Ok(Wanted::Auto),
            ("none", "") => Ok(Wanted::None),
            ("shared", "") => Ok(Wanted::Shared(shared::Session::default())),
            ("shared", directory) => Ok(Wanted::Shared(shared::Session::at(directory))),
            ("kernel", "") => Ok(Wanted::Kernel),
            _ => Err(format!(
                "no transport `{text}`; there are auto, none, kernel, shared and shared:DIRECTORY"
            )),
        }
    }
}

/// Opens a transport for the calling thread. An error names the transport.
pub fn open(wanted: Wanted) -> io::Result<Box<dyn Transport>> {
    match wanted {
        Wanted::None => Ok(Box::new(Alone::default())),
        Wanted::Kernel => Ok(Box::new(kernel::Kernel::open()?)),
        Wanted::Shared(session) => Ok(Box::new(shared::Shared::join(&session)?)),
        Wanted::Auto => {
            let said = std::env::var("ATTUNE_COOP").unwrap_or_default();
            let refuse = |why| {
                io::Error::new(io::ErrorKind::InvalidInput, format!("ATTUNE_COOP={said}: {why}"))
            };
            match said.parse().map_err(refuse)? {
                Wanted::Auto if kernel::Kernel::is_there() => open(Wanted::Kernel),
                Wanted::Auto => Ok(Box::new(Alone::default())),
                // The user who set the variable reads it; the program works without.
                named => open(named).or_else(|error| {
                    eprintln!("attune: not cooperating: {error}");
                    Ok(Box::new(Alone::default()) as Box<dyn Transport>)
                }),
            }
        }
    }
}

/// Waits for the descriptors until `time`; returns how many are ready. `Interrupted`: a signal
/// came.
pub(crate) fn wait(descriptors: &mut [pollfd], now: Time, time: Time) -> io::Result<usize> {
    poll::wait(descriptors, if time == NEVER { NEVER } else { time.saturating_sub(now) })
}
