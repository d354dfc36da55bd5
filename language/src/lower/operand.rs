//! What expressions, names and assignments stand for while they are lowered.

use crate::ir::*;
use crate::source::Span;

/// What an expression stands for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Operand {
    Number(ExprId),
    /// A thread's name, or the first of a container. Its check is absent: each use of the thread
    /// adds its own.
    Thread(ThreadExpr),
    /// A container named without a star.
    Container(ContainerRef),
    /// Reported already.
    Broken,
}

/// What a variable's name, with or without an index, stands for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Variable {
    Constant(Type, Value, Span),
    Place(Place, Type, Span),
    Container(ContainerRef),
    Thread(ThreadExpr),
}

/// Whether `*C.a` or `C.a` was written.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Star {
    Written,
    Absent,
}

/// The value of an assignment, as an expression.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Yields {
    /// It stands alone: its value is not used.
    Nothing,
    /// `x++`: what the variable held.
    Before,
    /// `++x`, `x = 1`: what it holds now.
    After,
}
