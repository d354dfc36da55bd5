//! How `coop_poll` reaches the others: chosen when a program starts, behind one interface.
//!
//! | transport | reaches | chosen by |
//! |---|---|---|
//! | `kernel` | the whole machine, by a scheduler in Linux itself that listens (`schedulers/coop.sched`) | itself where one runs, or asking for it |
//! | `shared` | the cooperating programs of the same user, by shared memory; any kernel, no privileges | asking for it |
//! | `none` | nobody: the loop works, uncooperatively | what is left |
//!
//! `auto` takes what the environment variable ATTUNE_COOP says; without it `kernel` if such a scheduler runs when the program starts,
//! else `none`, also (with a message) where what it says cannot be had. Who asks for `kernel` by name waits for a scheduler: until
//! one comes the loop works as with `none`. It never takes `shared` by itself, because a
//! kernel that knows nothing of cooperation sees one runnable thread per CPU in place of many: beside programs that do not
//! cooperate, all together get what one thread gets. Whoever starts the programs knows whether that is so; the program does not.

pub mod kernel;
mod none;
pub mod shared;

use std::io;
use std::str::FromStr;

pub use none::Alone;

use crate::offer::{Answer, Offer};
use crate::time::{self, Clock, Monotonic, NEVER, Time};

/// See the module. A transport belongs to the thread that opened it.
pub trait Transport {
    fn name(&self) -> &'static str;

    /// Yields. Returns when it is the caller's turn; with nothing to do it sleeps until the offer's timer. Returns early, without the
    /// turn where there are turns, when one of the descriptors has what its `events` ask for: as `ppoll` it fills in `revents`.
    fn poll(&mut self, offer: &Offer, descriptors: &mut [libc::pollfd]) -> io::Result<Answer>;

    /// This is the first timer whose service has not begun: for those who may take the CPU before the next poll. To be told as a service begins
    /// and when it has ended.
    fn tell_timer(&mut self, _first: Time) {}

    /// What `until` of the last answer is now. It only falls.
    fn until(&self) -> Time;

    fn statistics(&self) -> Statistics;
}

/// A poll for loops that are not ours, which serve at once what is due when it returns, and do not say so.
pub fn poll_and_serve(
    transport: &mut dyn Transport,
    offer: &Offer,
    descriptors: &mut [libc::pollfd],
) -> io::Result<Answer> {
    let answer = transport.poll(offer, descriptors);
    if offer.timer <= Monotonic.now() {
        transport.tell_timer(NEVER);
    }
    answer
}

/// What a transport has done since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Calls of `poll`.
    pub polls: u64,
    /// Polls in which another program got the CPU; with `kernel`, in which it could have.
    pub yields: u64,
    /// Polls that found nothing to do, here or elsewhere.
    pub sleeps: u64,
    /// Times that the CPU was taken from a program that did not answer.
    pub takeovers: u64,
    /// Times that it went on without its turn, having waited too long.
    pub impatient: u64,
}

/// Which transport is wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Wanted {
    /// What ATTUNE_COOP says (`auto`, `none`, `kernel`, `shared`, `shared:DIRECTORY`), else `kernel` if a scheduler listens, else `none`.
    #[default]
    Auto,
    None,
    /// The scheduler of the machine, when there is one that listens.
    Kernel,
    /// Shared memory, with the programs that name the same domain.
    Shared(shared::Domain),
}

impl FromStr for Wanted {
    type Err = String;

    fn from_str(text: &str) -> Result<Wanted, String> {
        match text.split_once(':').unwrap_or((text, "")) {
            ("auto" | "", "") => Ok(Wanted::Auto),
            ("none", "") => Ok(Wanted::None),
            ("shared", "") => Ok(Wanted::Shared(shared::Domain::default())),
            ("shared", directory) => Ok(Wanted::Shared(shared::Domain::at(directory))),
            ("kernel", "") => Ok(Wanted::Kernel),
            _ => Err(format!(
                "no transport `{text}`; there are auto, none, kernel, shared and shared:DIRECTORY"
            )),
        }
    }
}

/// Opens a transport for the calling thread. An error names what was tried.
pub fn open(wanted: Wanted) -> io::Result<Box<dyn Transport>> {
    match wanted {
        Wanted::None => Ok(Box::new(Alone::default())),
        Wanted::Kernel => Ok(Box::new(kernel::Kernel::open()?)),
        Wanted::Shared(domain) => Ok(Box::new(shared::Shared::join(&domain)?)),
        Wanted::Auto => {
            let said = std::env::var("ATTUNE_COOP").unwrap_or_default();
            let refuse =
                |why| io::Error::new(io::ErrorKind::InvalidInput, format!("ATTUNE_COOP={said}: {why}"));
            match said.parse().map_err(refuse)? {
                Wanted::Auto if kernel::Kernel::is_there() => open(Wanted::Kernel),
                Wanted::Auto => Ok(Box::new(Alone::default())),
                // Whoever set the variable hears of it; the program works without.
                named => open(named).or_else(|error| {
                    eprintln!("attune: not cooperating: {error}");
                    Ok(Box::new(Alone::default()) as Box<dyn Transport>)
                }),
            }
        }
    }
}

/// Waits for the descriptors until `time`; how many are ready. `Interrupted`: a signal came.
pub(crate) fn wait(descriptors: &mut [libc::pollfd], now: Time, time: Time) -> io::Result<usize> {
    let timeout = time::timeout(now, time);
    let timeout = timeout.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: the slice says how many there are; the timeout lives until the end of the call.
    let ready =
        unsafe { libc::ppoll(descriptors.as_mut_ptr(), descriptors.len() as _, timeout, std::ptr::null()) };
    if ready >= 0 { Ok(ready as usize) } else { Err(io::Error::last_os_error()) }
}
