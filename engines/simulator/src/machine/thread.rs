//! A thread of the machine.
//!
//! ```text
//!   Unborn --newthread--> Ready --dispatch--> Running --set_dead--> Free
//!                          ^  ^---switch_out-----|
//!                          |                     | set_waiting
//!                          +---event_raised-- Waiting
//! ```
//! `suspended` lies across Ready and Waiting: a suspended thread may become ready, but is
//! dispatched only when resumed.

use crate::scheduler::Time;
use crate::workload::distribution::Random;
use crate::workload::program::{Address, Variable};

/// What an operation leaves the thread doing.
pub enum Flow {
    /// It goes on with its next operation, if it still runs.
    Next,
    /// It needs the CPU for this long first.
    Computes(Time),
    /// It waits, yielded or ended.
    Stopped,
}

/// A thread that may have ended meanwhile: its slot, and the serial number that the slot must still
/// have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reference {
    pub slot: u32,
    pub serial: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It exists, and its start has not come.
    Unborn,
    Ready,
    Running,
    Waiting,
    /// The slot is free.
    Free,
}

/// What a waiting thread waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    Nothing,
    Time,
    Io,
    Semaphore(u16),
    Channel(u16),
    Reply(u16),
    /// The value of a variable that nodes share.
    Shared(u16),
    Lock(u16),
    Condition {
        condition: u16,
        lock: Option<u16>,
    },
    Barrier(u16),
    Wake,
    Children,
}

/// What goes through a channel.
#[derive(Clone, Copy, Debug)]
pub struct Message {
    pub value: f64,
    pub sent: Time,
    pub caller: Option<Caller>,
}

/// What waits for the reply to a message.
#[derive(Clone, Copy, Debug)]
pub enum Caller {
    Thread(Reference),
    /// A call of another node, by the cluster's number.
    Elsewhere(u64),
}

/// No CPU: the thread has not run yet.
pub const NOWHERE: u32 = u32::MAX;

pub struct Thread {
    pub state: State,
    pub suspended: bool,
    /// Stands for the world outside: runs without a CPU, unknown to the policy.
    pub outside: bool,
    /// The CPU on which it runs or ran last, or [`NOWHERE`].
    pub cpu: u32,
    /// The CPU that the machine chose for it last, in its instance, or [`NOWHERE`].
    pub seat: u32,
    pub instance: u32,
    pub template: u16,
    pub group: u16,
    /// Its number among those of its template.
    pub index: u32,
    /// Its number among all threads ever.
    pub serial: u32,
    /// Times that it was dispatched, wrapping: two stays on a CPU at one instant can be told apart.
    pub stays: u32,
    pub next: Address,
    /// Computing still to do before the next operation.
    pub remaining: Time,
    pub ready_since: Time,
    pub wait: Wait,
    /// Where what it waits for is put.
    pub into: Option<Variable>,
    /// A wake that came before it was waited for.
    pub woken: bool,
    pub message: Option<Message>,
    pub job: Option<Job>,
    /// Its weight while it runs or is ready, else 0; counted only between several instances, like
    /// all that follows.
    pub load: i64,
    /// What it should have received less what it did receive.
    pub lag: Time,
    /// Progress made since the last period.
    pub service: Time,
    /// Time since the last period in which it ran or was ready, up to `runnable_from` if it does
    /// so now.
    pub runnable: Time,
    pub runnable_from: Time,
    pub parent: Option<Reference>,
    pub children: u32,
    pub locks_held: u32,
    pub random: Random,
}

#[derive(Clone, Copy, Debug)]
pub struct Job {
    pub release: Time,
    pub deadline: Option<Time>,
}

impl Thread {
    pub fn can_run(&self) -> bool {
        self.state == State::Ready && !self.suspended
    }

    pub fn alive(&self) -> bool {
        !matches!(self.state, State::Unborn | State::Free)
    }

    /// Says the state in words, for messages.
    pub fn describe_state(&self) -> &'static str {
        match self.state {
            State::Unborn => "has not started",
            State::Free => "has ended",
            State::Running => "runs already",
            State::Waiting if self.suspended => "is suspended and waits",
            State::Waiting => "is waiting",
            State::Ready if self.suspended => "is suspended",
            State::Ready => "is ready",
        }
    }
}
