//! What threads do, as flat programs: every reader of workloads compiles to these operations, the
//! machine runs them.
//!
//! Invariants: all programs of a workload lie in one list and end in [`Operation::End`] or a jump;
//! jumps stay inside their program; every number of a variable, channel, lock, ... is below the
//! length of its list in the workload.

use super::expression::Expression;
use crate::scheduler::CpuSet;

/// Index into [`super::Workload::operations`].
pub type Address = u32;

#[derive(Clone, Debug)]
pub enum Operation {
    /// Needs the CPU for so long.
    Compute(Expression),
    /// Blocks for so long.
    Sleep(Expression),
    /// The same, shown as input or output.
    Io(Expression),
    /// Blocks until that time; does not block if it has come.
    SleepUntil(Expression),

    Set(Variable, Expression),
    /// All right sides are taken before the first is stored.
    SetAll(Box<[(Variable, Expression)]>),
    Jump(Address),
    JumpUnless(Expression, Address),

    /// A piece of work begins whose response time counts; without a release time it counts from
    /// now.
    JobBegin {
        release: Option<Expression>,
        deadline: Option<Expression>,
    },
    JobEnd,
    /// Advances the release time in the variable by a period; `skip` leaves out the releases that
    /// have gone by.
    NextRelease {
        release: u16,
        period: Expression,
        skip: bool,
    },

    Wait(u16),
    Signal(u16, Expression),
    Send {
        channel: u16,
        value: Expression,
    },
    Receive {
        channel: u16,
        into: Option<Variable>,
    },
    /// Sends, and blocks until somebody replies to the message.
    Call {
        channel: u16,
        value: Expression,
        into: Option<Variable>,
    },
    /// Answers the message that was received last.
    Reply(Expression),
    /// Passes the message that was received last on, with its sender and sending time.
    Forward(u16),

    /// Reads or updates a variable that the nodes of a cluster share; blocks until the value is
    /// there.
    Update {
        variable: u16,
        change: Option<(SharedChange, Expression)>,
        into: Option<Variable>,
    },

    Lock(u16),
    Unlock(u16),
    /// Unlocks, blocks until notified, locks again. Without a lock it only blocks.
    Await {
        condition: u16,
        lock: Option<u16>,
    },
    Notify(u16),
    NotifyAll(u16),
    Barrier(u16),

    Yield,
    YieldTo(Target),
    /// None: itself.
    Suspend(Option<Target>),
    Resume(Target),
    /// Blocks until woken; a wake that came before is not lost.
    Park,
    Wake(Target),
    Kill(Target),

    Spawn {
        template: u16,
        count: Expression,
        arguments: Box<[(Variable, Expression)]>,
    },
    /// Blocks until all threads that it spawned have ended.
    Join,
    Affinity(Box<CpuSet>),
    End,
}

/// What a thread does to a shared variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SharedChange {
    Add,
    Set,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variable {
    Thread(u16),
    Global(u16),
}

/// A thread, by its name and its number among those of that name.
#[derive(Clone, Debug)]
pub struct Target {
    pub template: u16,
    pub index: Expression,
}
