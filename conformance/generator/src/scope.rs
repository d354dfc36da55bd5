//! What a generated scheduler has declared, and what is in sight at a place in it.

use crate::fragment::Fragment;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ty {
    Int,
    Float,
    Time,
}

impl Ty {
    pub const ALL: [Ty; 3] = [Ty::Int, Ty::Float, Ty::Time];

    pub fn word(self) -> &'static str {
        match self {
            Ty::Int => "int",
            Ty::Float => "float",
            Ty::Time => "time",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    One,
    Array(usize),
    PerCpu,
}

#[derive(Clone, Debug)]
pub struct Variable {
    pub name: String,
    pub ty: Ty,
    pub shape: Shape,
    /// Handlers may assign it.
    pub assignable: bool,
    /// Local to the handler: a query may assign it.
    pub local: bool,
    /// Known to lie in `0..n`: counts a loop.
    pub below: Option<usize>,
}

#[derive(Clone, Debug)]
pub struct Attribute {
    pub name: String,
    pub ty: Ty,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Threadref,
    Queue,
    Stack,
    PQueue,
    PStack,
}

impl Kind {
    pub fn word(self) -> &'static str {
        match self {
            Kind::Threadref => "threadref",
            Kind::Queue => "queue",
            Kind::Stack => "stack",
            Kind::PQueue => "pqueue",
            Kind::PStack => "pstack",
        }
    }

    pub fn is_sorted(self) -> bool {
        matches!(self, Kind::PQueue | Kind::PStack)
    }
}

/// Whose threads a container is meant for: transfers stay inside a role, so that a scheduler runs
/// for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Current,
    Ready,
    /// Waiting, suspended.
    Parked,
}

#[derive(Clone, Debug)]
pub struct Holder {
    pub name: String,
    pub kind: Kind,
    pub shape: Shape,
    pub role: Role,
}

/// What a handler's body can use at some place.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    /// Thread names that may be read.
    pub threads: Vec<String>,
    pub locals: Vec<Variable>,
    /// Local containers that are filled just now, as written: `tmp`.
    pub filled: Vec<String>,
    /// Containers that a `foreach` around walks, as written.
    pub visited: Vec<String>,
    /// Inside so many loops.
    pub loops: usize,
    /// A `break` or `continue` has a loop.
    pub in_loop: bool,
    /// A query, an invariant: nothing but locals may change.
    pub pure: bool,
    /// An aspect or an event, which `return;` may leave.
    pub may_return: bool,
    /// Threads may be moved: not where the handler's own part does so right behind.
    pub may_move: bool,
}

/// Everything that is declared at scheduler level.
#[derive(Clone, Debug, Default)]
pub struct Declared {
    pub globals: Vec<Variable>,
    pub attributes: Vec<Attribute>,
    pub holders: Vec<Holder>,
    /// Builtins (`now`, `cpu`, `cpus`, `random`) that a declaration hides.
    pub hidden: Vec<String>,
}

/// The parts of one file.
#[derive(Clone, Debug, Default)]
pub struct File {
    pub name: String,
    pub header: String,
    pub members: Vec<Fragment>,
    pub footer: String,
}

impl File {
    pub fn fragment(&self) -> Fragment {
        let mut parts = vec![Fragment::from(self.header.as_str())];
        parts.extend(self.members.iter().cloned());
        parts.push(Fragment::from(self.footer.as_str()));
        Fragment::Sequence(parts)
    }
}
