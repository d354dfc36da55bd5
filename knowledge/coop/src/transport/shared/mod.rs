//! Transport `shared`: the cooperating programs of a user pass the CPU to each other, by shared memory, on any kernel.
//!
//! # Who hands the CPU to whom
//!
//! Every CPU has one **baton**. Of the members on that CPU only its holder runs; the others wait in `ppoll`, so the kernel sees one
//! runnable thread and never has to choose. Whoever polls with the baton in hand decides who is next (the [policy]), passes the baton
//! and rings that member's [bell]; then it waits for its own. One yield is thus one switch of the kernel, from the one to the other: while
//! the CPU is busy members wait in class SCHED_BATCH, so that being woken does not preempt the one who rings.
//!
//! ```text
//!                      poll: chosen again, no switch
//!                            ┌───────┐
//!          ┌─────────┐ turn  │  ┌────▼────┐
//!   bell ─▶│ Waiting ├───────┴─▶│ Running │ holds the baton
//!          └──▲───▲──┘          └─┬─────┬─┘
//!    timer is │   │ poll: another │     │ poll: nothing to do
//!    due      │   └── is chosen ──┘     │
//!          ┌──┴───────┐                 │
//!          │ Sleeping │◀────────────────┘ baton free, or passed on
//!          └──────────┘
//! ```
//!
//! A free baton is taken by whoever wakes up and wants to run. A member that sleeps until its timer sets its own alarm: to the release
//! while the CPU is idle; `SLACK` later while it is busy, for then the holder passes the baton at the release and no alarm is
//! needed. When the CPU becomes idle and the first to be released has a late alarm, it is given the baton to set an exact one.
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
//! There is no lock in it, so nobody can die holding one. A slot is written by its owner; the baton moves by compare-and-swap from the
//! value that was seen, and counts its moves. A member makes itself visible (state, alarm) *before* it looks at the baton
//! again, the holder frees the baton *before* it looks at the members again: one of the two sees the other.
//!
//! # When a member fails
//!
//! Nobody believes more of the page than it can bear to be wrong. Every wait ends by itself.
//!
//! - **Dies**: its bell refuses; the slot is freed and the next one chosen. If it held the baton, see the next line.
//! - **Hangs, is stopped, blocks elsewhere**: a member whose timer is overdue by `SLACK` takes the baton when the holder should have
//!   polled that long ago; one with best-effort work does when the baton has not moved for `PATIENCE`. A member that was
//!   given the baton and never woke up is marked deaf, and not chosen again before it has woken up; then it has its turn, with or without the
//!   baton, for it may be that the kernel had no CPU for it until now. A holder that is robbed while it runs finds out when it polls,
//!   and waits for its turn like anybody.
//! - **Scribbles on the page**: indexes are checked, times are only compared, and who has waited for `LIMIT` runs without its
//!   turn. The worst that a hostile member gets is that all run as if they did not cooperate.
//! - **Somebody clears the directory**: whoever comes next makes a new page, and takes the bells. A member whose bell is gone finds out when it
//!   looks around, and joins the page that there is now.
//! - **Forks**: the child has no slot; its polls are those of transport `none`.
//!
//! # Several CPUs
//!
//! A member is pinned to its lane's CPU, at first the least crowded of those that it may use; it moves when another of them has two
//! members less. Each lane has its own order and its own virtual times. When a member leaves, its thread may run where it might before.
//!
//! Not done: nobody is forced to anything (no policing), and the kernel's own order of threads is what it is: beside programs of
//! its fair class that do not cooperate all members of a CPU together weigh as one thread.

mod bell;
mod cpu;
mod domain;
mod member;
mod page;
pub mod policy;
mod segment;
mod slots;

pub use domain::Domain;
pub use member::Shared;
pub use page::SLOTS;

use crate::time::Time;

/// A holder that polls this much later than it should loses the baton to whoever is overdue.
pub const SLACK: Time = 2_000_000;
/// A baton that has not moved for so long is taken by whoever has best-effort work.
pub const PATIENCE: Time = 50_000_000;
/// Who has waited for so long runs, with or without the baton.
pub const LIMIT: Time = 500_000_000;
