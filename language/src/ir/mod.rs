//! The typed IR: the contract between the front end, the analyses, the interpreter and the back
//! ends.
//!
//! # Meaning
//!
//! - **An expression has no effect.** It reads, and it may trap (a failed [`Check`]) or count a
//!   division by zero. Effects are statements; lowering has already fixed their order. Only
//!   [`ExprKind::And`] and [`ExprKind::Or`] skip an operand, and at most one operand of any other
//!   expression can trap or count: evaluating operands in any order gives the same result and the
//!   same first trap. Where the source has two that can, the first is kept in a temporary by
//!   [`ExprKind::Let`]. A [`CheckKind::NamedUse`] counts for this rule only in a handler that
//!   destroys threads: elsewhere it cannot fail.
//! - **A truth value** is an `int` or a `time` that is not zero: conditions and the operands of
//!   [`UnaryOp::Not`], [`ExprKind::And`] and [`ExprKind::Or`] are never floats.
//! - **A check is a place.** Whatever can fail at run time has an entry in [`Program::checks`]. The
//!   interpreter performs every check; back ends omit those that the analysis proved.
//! - **Containers** are shared by all handlers, per CPU, arrays, or local to one handler
//!   ([`Container::scope`]). Every thread sits in at most one; between handlers, in exactly one.
//! - **Times** are nanoseconds in an `i64`. [`Type::Int`] and [`Type::Time`] have the same form and
//!   the same operations; [`Type::Float`] is an IEEE double. [`ExprKind::Convert`] is explicit: the
//!   operands of a binary operation are both floats or both integers (`int` or `time`).
//! - **Globals marked as imports** are read once, when the handler starts, and written through.
//! - **An import with a range** ([`Terms`]) is read as the nearest number in its range, as a sort
//!   key too, and an assignment stores the nearest.
//!
//! Invariant: every id in a program indexes an arena of the same program; every expression belongs
//! to one statement.

mod check;
mod display;
mod distributed;
mod terms;
mod update;
mod value;
pub mod visit;

pub use check::{Check, CheckKind, Verdict, Verdicts};
pub use distributed::{Membership, NodeProperty, Remote};
pub use terms::{Supplier, Terms};
pub use update::Update;
pub use value::Value;

use crate::engine::event::Event;
use crate::source::{SourceId, Span};
use la_arena::{Arena, Idx};

pub type AttributeId = Idx<Attribute>;
pub type GlobalId = Idx<Global>;
pub type ContainerId = Idx<Container>;
pub type LocalId = Idx<Local>;
pub type NameId = Idx<Name>;
pub type ExprId = Idx<Expr>;
pub type CheckId = Idx<Check>;

/// A scheduler that passed the front end.
#[derive(Clone, Debug, Default)]
pub struct Program {
    pub name: String,
    /// The file that names it; its bases are other files.
    pub source: SourceId,
    /// A partial scheduler is a base for others; engines refuse it.
    pub partial: bool,
    /// It, or a base of it other than `lifecycle`, says what happens when a thread arrives from
    /// another instance: an engine may run several instances of it.
    pub may_be_split: bool,
    pub attributes: Arena<Attribute>,
    pub globals: Arena<Global>,
    pub containers: Arena<Container>,
    pub locals: Arena<Local>,
    pub names: Arena<Name>,
    pub exprs: Arena<Expr>,
    pub checks: Arena<Check>,
    /// Initial values that are no constants; runs once, before `init`.
    pub prologue: Routine,
    /// Initial values of attributes that are no constants; runs for each thread before `newthread`,
    /// with the new thread as its parameter.
    pub thread_prologue: Routine,
    /// At most one for each event.
    pub handlers: Vec<Handler>,
    pub invariants: Vec<Invariant>,
    /// Places of verbatim text, which ties the scheduler to engines that compile C.
    pub verbatim: Vec<Span>,
    pub membership: Membership,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    Int,
    Float,
    Time,
}

/// A variable that every thread has.
#[derive(Clone, Debug)]
pub struct Attribute {
    pub name: String,
    pub ty: Type,
    /// The initial value; for an import the default that holds until the application registers the
    /// name.
    pub initial: Value,
    pub import: bool,
    pub terms: Terms,
    pub span: Span,
}

/// A variable of the scheduler.
#[derive(Clone, Debug)]
pub struct Global {
    pub name: String,
    pub ty: Type,
    pub storage: Storage,
    pub extent: Extent,
    /// The value of every element. [`Program::prologue`] assigns values that must be computed.
    pub initial: Value,
    pub terms: Terms,
    pub span: Span,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Storage {
    Data,
    /// Never assigned; lowering replaces its scalar uses by the value.
    Const,
    /// Never assigned by handlers; may be changed from outside between handlers.
    Tunable,
    /// A variable of the application.
    Import,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    One,
    /// At least one element.
    Array(u32),
    /// One instance a CPU. Without an index: this CPU's; the index is a CPU's number.
    PerCpu,
}

#[derive(Clone, Debug)]
pub struct Container {
    pub name: String,
    pub kind: ContainerKind,
    /// Present exactly for sorted kinds.
    pub sort: Option<Sort>,
    pub extent: Extent,
    pub scope: Scope,
    pub span: Span,
}

impl Container {
    /// Whether handlers of all CPUs put threads there. Inside `schedule` it then reads as holding
    /// only the threads that may run on this CPU.
    pub fn is_shared(&self) -> bool {
        self.scope == Scope::Scheduler && self.extent != Extent::PerCpu
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ContainerKind {
    /// At most one thread.
    Threadref,
    /// First in, first out.
    Queue,
    /// Last in, first out.
    Stack,
    /// Sorted; equal keys first in, first out.
    PQueue,
    /// Sorted; equal keys last in, first out.
    PStack,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sort {
    pub by: AttributeId,
    /// Which key comes first.
    pub first: First,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum First {
    Highest,
    /// `reverse` or `increasing`.
    Lowest,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    Scheduler,
    /// Declared inside this handler; must be empty when it ends.
    Handler(Event),
}

/// A scalar or an array of scalars of one routine.
#[derive(Clone, Debug)]
pub struct Local {
    pub name: String,
    pub ty: Type,
    pub length: Option<u32>,
    /// Introduced by lowering: has no name in the source.
    pub temporary: bool,
    pub span: Span,
}

/// A name for one thread: a parameter or a `foreach` variable.
#[derive(Clone, Debug)]
pub struct Name {
    pub name: String,
    /// The handler must not move it.
    pub fixed: bool,
    pub span: Span,
}

/// Statements with the variables that they declare.
#[derive(Clone, Debug, Default)]
pub struct Routine {
    /// The parameter, also where the source leaves it out of `switch_out`: then None.
    pub parameter: Option<NameId>,
    /// In the order of their declaration, temporaries included.
    pub locals: Vec<LocalId>,
    /// Containers that the routine declares.
    pub containers: Vec<ContainerId>,
    pub body: Block,
}

#[derive(Clone, Debug)]
pub struct Handler {
    pub event: Event,
    /// `before` parts, the handler's own body, `after` parts, in the order in which they run.
    /// `return` and `dispatch` leave one part. Their [`Routine::parameter`] may differ in name but
    /// is the same thread.
    pub parts: Vec<Part>,
    /// `newthread` and `arrives`: at the end the parameter sits in a container or was destroyed.
    pub stored: Option<CheckId>,
    /// Local containers of all parts: empty at the end. Checked after `stored`, in this order.
    pub emptied: Vec<(ContainerId, CheckId)>,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub struct Part {
    pub role: Role,
    pub routine: Routine,
    pub span: Span,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Before,
    Own,
    After,
}

/// Runs after each statement that changed the container, in a debug build. Has no effect.
#[derive(Clone, Debug)]
pub struct Invariant {
    pub container: ContainerId,
    pub routine: Routine,
    /// Fails when the routine returns zero.
    pub check: CheckId,
    pub span: Span,
}

#[derive(Clone, Debug, Default)]
pub struct Block {
    pub statements: Vec<Statement>,
}

#[derive(Clone, Debug)]
pub struct Statement {
    pub kind: StatementKind,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub enum StatementKind {
    /// The value is evaluated first, then the place's index and check.
    Assign {
        place: Place,
        value: ExprId,
    },
    /// All elements of a local array to zero, where its declaration stands.
    Clear(LocalId),
    Random {
        into: LocalId,
        bound: ExprId,
    },
    /// Text of the target language as a statement.
    Verbatim {
        text: String,
    },
    /// Text of the target language as an expression.
    VerbatimValue {
        into: LocalId,
        text: String,
    },
    /// Both checks come before any change. The destination is checked only where it is a
    /// `threadref`, and holds if it is empty or holds the moved thread itself.
    Transfer {
        source: ThreadExpr,
        destination: ContainerRef,
        destination_check: Option<CheckId>,
    },
    /// `schedule` only. Fixes the decision and leaves the part.
    Dispatch {
        thread: ThreadExpr,
        slice: Option<ExprId>,
    },
    Destroy {
        thread: ThreadExpr,
    },
    Alarm {
        thread: ThreadExpr,
        at: ExprId,
    },
    Preempt {
        cpu: ExprId,
        /// None: at once.
        at: Option<ExprId>,
    },
    If {
        condition: ExprId,
        then: Block,
        otherwise: Block,
    },
    Loop(Box<Loop>),
    Foreach {
        name: NameId,
        container: ContainerRef,
        body: Block,
    },
    Break,
    Continue,
    /// Leaves the part.
    Return(Option<Returned>),
}

/// `while`, `do` and `for`:
///
/// ```text
/// TestFirst:  loop { bound; prelude; if !condition break; body; (continue comes here) step }
/// TestLast:   loop { bound; body; (continue comes here) step; prelude; if !condition break }
/// ```
#[derive(Clone, Debug)]
pub struct Loop {
    pub test: Test,
    /// Effects of the condition, moved out of it.
    pub prelude: Block,
    pub condition: ExprId,
    pub body: Block,
    pub step: Block,
    /// The handler's budget of iterations.
    pub bound: CheckId,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Test {
    First,
    Last,
}

#[derive(Clone, Copy, Debug)]
pub enum Returned {
    Number(ExprId),
    /// The thread, or none if the container is empty (its check is absent).
    Thread(ThreadExpr),
}

/// Which thread is meant.
#[derive(Clone, Copy, Debug)]
pub struct ThreadExpr {
    pub kind: ThreadKind,
    /// That there is such a thread: the container is not empty, the named thread was not destroyed.
    /// Absent where the absence of a thread is a value (comparisons, returned threads).
    pub check: Option<CheckId>,
    pub span: Span,
}

#[derive(Clone, Copy, Debug)]
pub enum ThreadKind {
    Name(NameId),
    First(ContainerRef),
}

#[derive(Clone, Copy, Debug)]
pub struct ContainerRef {
    pub container: ContainerId,
    pub index: Option<Index>,
    pub span: Span,
}

/// An element of an array, or a CPU's instance of a per-CPU variable.
#[derive(Clone, Copy, Debug)]
pub struct Index {
    pub at: ExprId,
    pub check: CheckId,
}

/// What can be read and assigned.
#[derive(Clone, Copy, Debug)]
pub enum Place {
    Local(LocalId, Option<Index>),
    Global(GlobalId, Option<Index>),
    /// Assigning the sort key of the container in which the thread sits re-inserts it.
    Attribute(ThreadExpr, AttributeId),
}

#[derive(Clone, Debug)]
pub struct Expr {
    pub kind: ExprKind,
    pub ty: Type,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub enum ExprKind {
    Constant(Value),
    Read(Place),
    /// Number of threads.
    Size(ContainerRef),
    /// Whether both name the same thread, or both none.
    Same(ThreadExpr, ThreadExpr),
    Now,
    Cpu,
    Cpus,
    Unary(UnaryOp, ExprId),
    Binary(BinaryOp, ExprId, ExprId),
    And(ExprId, ExprId),
    Or(ExprId, ExprId),
    /// Evaluates `value` into the temporary, then `body`, which is the value and the only reader of
    /// the temporary. In C: `(temporary = value, body)`.
    Let {
        temporary: LocalId,
        value: ExprId,
        body: ExprId,
    },
    /// To the expression's own type.
    Convert(ExprId),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnaryOp {
    Negate,
    Not,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BinaryOp {
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
}

impl BinaryOp {
    pub fn is_arithmetic(self) -> bool {
        use BinaryOp::{Add, Divide, Multiply, Remainder, Subtract};
        matches!(self, Add | Subtract | Multiply | Divide | Remainder)
    }

    /// The comparison that holds where this one does not; others are themselves.
    pub fn negated(self) -> BinaryOp {
        match self {
            BinaryOp::Equal => BinaryOp::NotEqual,
            BinaryOp::NotEqual => BinaryOp::Equal,
            BinaryOp::Less => BinaryOp::GreaterEqual,
            BinaryOp::GreaterEqual => BinaryOp::Less,
            BinaryOp::Greater => BinaryOp::LessEqual,
            BinaryOp::LessEqual => BinaryOp::Greater,
            other => other,
        }
    }

    /// The comparison that says the same with its sides exchanged; others are themselves.
    pub fn mirrored(self) -> BinaryOp {
        match self {
            BinaryOp::Less => BinaryOp::Greater,
            BinaryOp::Greater => BinaryOp::Less,
            BinaryOp::LessEqual => BinaryOp::GreaterEqual,
            BinaryOp::GreaterEqual => BinaryOp::LessEqual,
            other => other,
        }
    }
}

/// Iterations that `while`, `do` and `for` may take together in one handler call.
pub const LOOP_BUDGET: u32 = 1 << 20;

impl Program {
    /// Whether its containers hold nodes instead of threads.
    pub fn is_master(&self) -> bool {
        !self.membership.families.is_empty()
    }

    /// What the source calls the handler of an event.
    pub fn handler_name(&self, event: Event) -> &'static str {
        match event {
            Event::NewThread if self.is_master() => "arrival",
            Event::SetDead if self.is_master() => "departure",
            event => event.name(),
        }
    }

    pub fn handler(&self, event: Event) -> Option<&Handler> {
        self.handlers.iter().find(|handler| handler.event == event)
    }
}
