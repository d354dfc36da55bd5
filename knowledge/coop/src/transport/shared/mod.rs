//! Transport `shared`: the cooperating programs of a user pass the CPU to each other, by shared
//! memory, on any kernel.
//!
//! # How the CPU passes from member to member
//!
//! Every CPU has one **baton**. Among the members on that CPU only its holder runs; the others wait
//! in `ppoll`, so the kernel sees one runnable thread and never has to choose. A member that polls
//! with the baton in hand [decides](decision) which member is next, passes the baton and sends to
//! that member's [wake-up socket](wakeup); then it waits at its own. So one yield is one switch of
//! the kernel, from one member to the other: while the CPU is busy members wait in class
//! SCHED_BATCH, so that a woken member does not preempt the one that wakes it.
//!
//! ```text
//!                      poll: chosen again, no switch
//!                            ┌───────┐
//!          ┌─────────┐ turn  │  ┌────▼────┐
//!  woken ─▶│ Waiting ├───────┴─▶│ Running │ holds the baton
//!          └──▲───▲──┘          └─┬─────┬─┘
//!    timer is │   │ poll: another │     │ poll: nothing to do
//!    due      │   └── is chosen ──┘     │
//!          ┌──┴───────┐                 │
//!          │ Sleeping │◀────────────────┘ baton free, or passed on
//!          └──────────┘
//! ```
//!
//! A member that wakes up and wants to run takes a free baton. A member that sleeps until its timer
//! sets its own alarm: to the release while the CPU is idle; `SLACK` later while it is busy, since
//! then the holder passes the baton at the release and no alarm is needed. When the CPU becomes
//! idle and the member that is released first has a late alarm, it is given the baton to set an
//! exact one.
//!
//! # The page
//!
//! ```text
//! ┌ header: magic ┐
//! ├ lane 0 ─────── baton: moves<<16 | holder+1   until   floor ┤   64 bytes each, one per CPU
//! ├ ...                                                        ┤
//! ├ slot 0 ─────── owner  state  lane  group  weight           ┤  128 bytes each, one per member
//! │                timer  best_effort  virtual_time            │
//! │                alarm  polled  deaf                         │
//! └ ...                                                        ┘
//! ```
//!
//! There is no lock in it, so no member can die holding one. Its owner writes a slot; the baton
//! moves by compare-and-swap from the value that was seen, and counts its moves. A member makes
//! itself visible (state, alarm) *before* it looks at the baton again, the holder frees the baton
//! *before* it looks at the members again: one of the two sees the other.
//!
//! # When a member fails
//!
//! No member relies on the page being right. Every wait ends by itself.
//!
//! - **Dies**: its wake-up socket refuses; the slot is freed and the next member chosen. If it held
//!   the baton, see the next line.
//! - **Hangs, is stopped, blocks elsewhere**: a member whose timer is overdue by `SLACK` takes the
//!   baton when the holder should have polled that long ago; one with best-effort work does when
//!   the baton has not moved for `PATIENCE`. A member that was given the baton and never woke up is
//!   marked deaf, and not chosen again before it has woken up; then it has its turn, with or
//!   without the baton, since the kernel may have had no CPU for it until now. A holder that is
//!   robbed while it runs finds out when it polls, and waits for its turn like any other.
//! - **Scribbles on the page**: indexes are checked, times are only compared, and a member that has
//!   waited for `LIMIT` runs without its turn. The worst that a hostile member achieves is that all
//!   run as if they did not cooperate.
//! - **Clears the directory**: the next program that joins makes a new page, and takes the wake-up
//!   sockets. A member whose socket is gone finds out when it looks around, and joins the page that
//!   there is now.
//! - **Forks**: the child has no slot; its polls are those of transport `none`.
//!
//! # Several CPUs
//!
//! A member is pinned to its lane's CPU, at first the least crowded of those that it may use; it
//! moves when another of them has two members less. Each lane has its own order and its own virtual
//! times. When a member leaves, its thread may run where it might before.
//!
//! Not done: no member is forced to anything (no policing), and the kernel's own order of threads
//! stays: beside programs of its fair class that do not cooperate, all members of a CPU together
//! weigh as one thread.

pub mod decision;
mod member;
mod page;
mod segment;
mod session;
mod slots;
mod wakeup;

pub use member::Shared;
pub use page::SLOTS;
pub use session::Session;

use attune_linux::time::MILLISECOND;

use crate::time::Time;

/// A holder that polls this much later than it should loses the baton to a member that is overdue.
pub const SLACK: Time = 2 * MILLISECOND;
/// A member with best-effort work takes a baton that has not moved for so long.
pub const PATIENCE: Time = 50 * MILLISECOND;
/// A member that has waited for so long runs, with or without the baton.
pub const LIMIT: Time = 500 * MILLISECOND;
