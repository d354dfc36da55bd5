//! Cooperative polling: a program tells the scheduler when it must run next, and gets the CPU then.
//!
//! An application that knows its next release time is the best source there is for a scheduler, and no interface of Linux asks
//! for it. [`EventLoop`] knows it anyway: it holds timer events and best-effort events in order. Before it would sleep, and whenever
//! its time is up, it polls: [`Transport::poll`] takes an [`Offer`] (when is my next timer, how important is what I could do
//! meanwhile) and gives an [`Answer`] (poll again by then; so much matters what the others in your group have). In exchange for
//! polling in time a program's own timers are on time. (Krasic, Saubhasik, Sinha, Goel: Fair and timely scheduling via cooperative
//! polling, EuroSys 2009.)
//!
//! ```
//! use attune_coop::{EventLoop, Wanted, When};
//! let mut events = EventLoop::new(Wanted::Auto, 0)?;
//! let (mut next, mut decoded) = (events.now(), 0);
//! let show = events.event("show", move |events, show| {
//!     next += 40_000_000; // a frame every 40 ms, whoever else computes
//!     events.submit(show, When::At(next));
//! });
//! let decode = events.event("decode", move |events, decode| {
//!     decoded += 1; // less important the further ahead it is
//!     if decoded < 100 { events.submit(decode, When::best_effort(decoded)); } else { events.stop(); }
//! });
//! events.submit(show, When::At(next));
//! events.submit(decode, When::best_effort(0));
//! events.run()?;
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! Times are nanoseconds of CLOCK_MONOTONIC ([`time`]). Which programs are reached, and how, is the [`transport`]'s business and is
//! chosen when the program starts. The same as a C library: `include/attune_coop.h`.

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
