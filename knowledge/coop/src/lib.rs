//! Cooperative polling: a program tells the scheduler when it must run next, and gets the CPU then.
//!
//! An application that knows its next release time is the best source for a scheduler, and no
//! interface of Linux asks for it. [`EventLoop`] knows it anyway: it holds timer events and
//! best-effort events in order. Before it would sleep, and whenever its time is up, it polls:
//! [`Transport::poll`] takes an [`Offer`] (the next timer, and the importance of the work that
//! could be done meanwhile) and gives an [`Answer`] (the time to poll again, and the importance of
//! the others' work in the group). In exchange for polling in time a program's own timers are on
//! time. (Krasic, Saubhasik, Sinha, Goel: Fair and timely scheduling via cooperative polling,
//! EuroSys 2009.)
//!
//! ```
//! use attune_coop::{EventLoop, Wanted, When};
//! let mut events = EventLoop::new(Wanted::Auto, 0)?;
//! let (mut next, mut decoded) = (events.now(), 0);
//! let show = events.event("show", move |events, show| {
//!     next += 40_000_000; // a frame every 40 ms, beside any load
//!     events.submit(show, When::At(next));
//! });
//! let decode = events.event("decode", move |events, decode| {
//!     decoded += 1; // less important the further ahead it is
//!     match decoded {
//!         100 => events.stop(),
//!         _ => assert!(events.submit(decode, When::best_effort(decoded))),
//!     }
//! });
//! events.submit(show, When::At(next));
//! events.submit(decode, When::best_effort(0));
//! events.run()?;
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! Times are nanoseconds of CLOCK_MONOTONIC ([`time`]). The [`transport`], chosen when the program
//! starts, decides which programs are reached, and how. The same as a C library:
//! `include/attune_coop.h`.

mod c_api;
pub mod event_loop;
mod foreign;
mod offer;
pub mod probe;
pub mod time;
pub mod transport;

pub use event_loop::{EventId, EventLoop, Executions, Readiness, Trace, When};
pub use foreign::ForeignLoop;
pub use offer::{Answer, Importance, NOTHING, Offer};
pub use time::{Clock, Monotonic, NEVER, Time};
pub use transport::{Statistics, Transport, Wanted, open, shared};
