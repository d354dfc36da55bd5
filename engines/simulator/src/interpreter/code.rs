//! The compact form of a scheduler that the interpreter runs: the IR with every name resolved to a
//! slot.
//!
//! Slots: a scalar of the scheduler, an element of an array and a CPU's instance of a `percpu`
//! variable are one slot each, laid out one after the other; likewise containers. Locals and thread
//! names have a slot each in the whole program, since no handler calls another. Values are 64 bits:
//! an `i64`, or a double's bits.

use attune_language::engine::event::Event;
use attune_language::ir::{AttributeId, CheckId, GlobalId};

use super::containers::Discipline;

pub(super) struct Code {
    pub handlers: Vec<Option<Handler>>,
    pub prologue: Routine,
    pub thread_prologue: Routine,
    pub invariants: Vec<Invariant>,
    pub globals: Vec<i64>,
    pub containers: Vec<ContainerSlot>,
    /// What a new thread's attributes hold.
    pub attributes: Vec<i64>,
    pub locals: u32,
    pub names: u32,
}

/// What a container's slot is, whose threads it sorts by what, and what it is called in the
/// program.
#[derive(Clone, Copy)]
pub(super) struct ContainerSlot {
    pub discipline: Discipline,
    pub key: Option<Key>,
    /// One for all CPUs: filtered by affinity in `schedule`.
    pub shared: bool,
    /// Raw index of the container in the program, and which of its elements this is.
    pub container: u32,
    pub element: u32,
}

#[derive(Clone, Copy)]
pub(super) struct Key {
    pub attribute: u32,
    /// The least and the greatest key.
    pub range: (i64, i64),
    pub order: KeyOrder,
}

/// How an attribute's bits become a key of which the smallest comes first.
#[derive(Clone, Copy)]
pub(super) enum KeyOrder {
    LowestInt,
    HighestInt,
    LowestFloat,
    HighestFloat,
}

pub(super) struct Handler {
    pub event: Event,
    pub parts: Vec<Routine>,
    pub stored: Option<CheckId>,
    pub emptied: Vec<(u32, CheckId)>,
}

#[derive(Default)]
pub(super) struct Routine {
    pub parameter: Option<u32>,
    /// Slots that are zero when the routine starts.
    pub locals: std::ops::Range<u32>,
    pub body: Vec<Statement>,
}

pub(super) struct Invariant {
    /// Slots of the container that it watches.
    pub containers: std::ops::Range<u32>,
    pub routine: Routine,
    pub check: CheckId,
}

pub(super) enum Statement {
    SetLocal(u32, Expr),
    SetLocalAt(Box<Indexed>, Expr),
    SetGlobal(u32, Expr),
    /// This CPU's instance.
    SetGlobalHere(u32, Expr),
    SetGlobalAt(Box<Indexed>, Expr),
    SetAttribute(Thread, u32, Expr),
    /// Assigns something that a cluster shares, and notes the operation.
    Share(Box<Share>),
    Clear(std::ops::Range<u32>),
    Random(u32, Expr),
    Transfer(Box<Transfer>),
    Dispatch(Thread, Option<Expr>),
    Destroy(Thread),
    Alarm(Thread, Expr),
    Preempt(Expr, Option<Expr>),
    If(Box<If>),
    Loop(Box<Loop>),
    Foreach(Box<Foreach>),
    Break,
    Continue,
    Return,
    ReturnNumber(Expr),
    ReturnThread(Thread),
    /// Runs the invariants of what the statement changed.
    Watched(Box<Statement>),
    /// Notes that the statement of that number was reached.
    Noted(u32, Box<Statement>),
}

pub(super) struct Share {
    pub place: SharePlace,
    pub value: ShareValue,
    pub float: bool,
}

pub(super) enum SharePlace {
    Global { slot: u32, id: GlobalId },
    Attribute { thread: Thread, id: AttributeId },
}

/// An operation on what the place holds is evaluated in its parts, so that its operand is known.
pub(super) enum ShareValue {
    Any(Expr),
    Operation {
        old: Expr,
        temporary: Option<u32>,
        operator: Operator,
        operand: Expr,
        /// The place is an int, and the operation one of floats.
        mixed: bool,
    },
}

pub(super) struct Transfer {
    pub source: Thread,
    pub destination: Container,
    pub destination_check: Option<CheckId>,
}

pub(super) struct If {
    pub condition: Expr,
    pub then: Vec<Statement>,
    pub otherwise: Vec<Statement>,
}

pub(super) struct Loop {
    pub test_first: bool,
    pub prelude: Vec<Statement>,
    pub condition: Expr,
    pub body: Vec<Statement>,
    pub step: Vec<Statement>,
    pub bound: CheckId,
}

pub(super) struct Foreach {
    pub name: u32,
    pub container: Container,
    pub body: Vec<Statement>,
}

/// A thread, and the check that there is one.
pub(super) struct Thread {
    pub which: Which,
    pub check: Option<CheckId>,
}

pub(super) enum Which {
    Named(u32),
    First(Container),
}

pub(super) enum Container {
    One(u32),
    /// This CPU's instance.
    Here(u32),
    At(Box<Indexed>),
}

pub(super) struct Indexed {
    pub base: u32,
    pub length: u32,
    pub at: Expr,
    pub check: CheckId,
}

pub(super) enum Expr {
    Constant(i64),
    Local(u32),
    LocalAt(Box<Indexed>),
    Global(u32),
    GlobalHere(u32),
    GlobalAt(Box<Indexed>),
    Attribute(Box<Thread>, u32),
    Size(Container),
    Same(Box<(Thread, Thread)>),
    Now,
    Cpu,
    Cpus,
    /// The nearest number from the first to the second.
    Fitted(Box<Expr>, i64, i64),
    Negate(Box<Expr>),
    NegateFloat(Box<Expr>),
    Not(Box<Expr>),
    Binary(Operator, Box<(Expr, Expr)>),
    And(Box<(Expr, Expr)>),
    Or(Box<(Expr, Expr)>),
    Let(u32, Box<(Expr, Expr)>),
    IntToFloat(Box<Expr>),
    FloatToInt(Box<Expr>),
    /// Notes that the expression of that number was reached.
    Noted(u32, Box<Expr>),
}

#[derive(Clone, Copy)]
pub(super) enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    Equal,
    NotEqual,
    Less,
    Greater,
    LessEqual,
    GreaterEqual,
    AddFloat,
    SubtractFloat,
    MultiplyFloat,
    DivideFloat,
    RemainderFloat,
    EqualFloat,
    NotEqualFloat,
    LessFloat,
    GreaterFloat,
    LessEqualFloat,
    GreaterEqualFloat,
}
