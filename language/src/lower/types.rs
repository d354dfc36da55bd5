//! What operators make of their operands' types, and conversions.
//!
//! Invariant: the operands of every binary expression built here are both floats or both integers
//! (`int` or `time`). Between `int` and `time` nothing has to be converted: both are 64-bit
//! integers.

use super::{Lowering, constant};
use crate::diagnostic::{Diagnostic, codes};
use crate::ir::*;
use crate::source::Span;
use crate::syntax::ast;

/// The IR's operator; none for `&&` and `||`, which are expressions of their own.
pub(super) fn operator(op: ast::BinaryOp) -> Option<BinaryOp> {
    Some(match op {
        ast::BinaryOp::Add => BinaryOp::Add,
        ast::BinaryOp::Subtract => BinaryOp::Subtract,
        ast::BinaryOp::Multiply => BinaryOp::Multiply,
        ast::BinaryOp::Divide => BinaryOp::Divide,
        ast::BinaryOp::Remainder => BinaryOp::Remainder,
        ast::BinaryOp::Equal => BinaryOp::Equal,
        ast::BinaryOp::NotEqual => BinaryOp::NotEqual,
        ast::BinaryOp::Less => BinaryOp::Less,
        ast::BinaryOp::Greater => BinaryOp::Greater,
        ast::BinaryOp::LessEqual => BinaryOp::LessEqual,
        ast::BinaryOp::GreaterEqual => BinaryOp::GreaterEqual,
        ast::BinaryOp::And | ast::BinaryOp::Or => return None,
    })
}

pub(super) fn is_comparison(op: BinaryOp) -> bool {
    use BinaryOp::*;
    matches!(op, Equal | NotEqual | Less | Greater | LessEqual | GreaterEqual)
}

pub(super) fn type_name(ty: Type) -> &'static str {
    match ty {
        Type::Int => "int",
        Type::Float => "float",
        Type::Time => "time",
    }
}

/// How an operator computes: in which form, and of which type the result is.
struct Rule {
    floats: bool,
    result: Type,
    /// A plain number is taken as nanoseconds.
    mixes: bool,
}

/// None for the product of two times.
fn rule(op: BinaryOp, left: Type, right: Type) -> Option<Rule> {
    use Type::*;
    let times = [left, right].iter().filter(|&&ty| ty == Time).count();
    let float = left == Float || right == Float;
    let (floats, result, mixes) = match op {
        BinaryOp::Multiply if times == 2 => return None,
        BinaryOp::Multiply if times == 1 => (float, Time, false),
        BinaryOp::Divide if times == 2 => (false, Int, false),
        BinaryOp::Divide if left == Time => (float, Time, false),
        BinaryOp::Divide if right == Time => (float, if float { Float } else { Int }, true),
        BinaryOp::Add | BinaryOp::Subtract | BinaryOp::Remainder if times > 0 => {
            (false, Time, times == 1)
        }
        _ if is_comparison(op) => (float, Int, times == 1),
        _ => (float, if float { Float } else { Int }, false),
    };
    Some(Rule { floats, result, mixes })
}

impl Lowering {
    /// `left OP right`; `left` has been read before the effects of `right`.
    pub(super) fn arithmetic(
        &mut self,
        op: BinaryOp,
        left: ExprId,
        right: ExprId,
        span: Span,
    ) -> Option<ExprId> {
        let (left_ty, right_ty) = (self.ty(left), self.ty(right));
        let Some(rule) = rule(op, left_ty, right_ty) else {
            self.report(
                Diagnostic::new(
                    codes::types::TIME_PRODUCT,
                    span,
                    "the product of two times is no time",
                )
                .label("time * time")
                .hint("count one of them in a unit first: `a * (b / 1ms)`"),
            );
            return None;
        };
        if rule.mixes {
            let plain = if left_ty == Type::Time { right } else { left };
            self.warn_plain_number(plain, "is used with");
        }
        let divides = matches!(op, BinaryOp::Divide | BinaryOp::Remainder);
        if divides && self.constant(right).is_some_and(constant::is_zero) {
            let result = if op == BinaryOp::Divide { "gives 0" } else { "gives the left operand" };
            let at = self.program.exprs[right].span;
            self.report(
                Diagnostic::new(
                    codes::types::DIVISION_BY_ZERO,
                    at,
                    format!("division by zero, which {result}"),
                )
                .label("always zero")
                .hint("arithmetic never fails, but this is seldom meant"),
            );
        }
        let form = if rule.floats { Type::Float } else { Type::Int };
        Some(self.in_order(left, right, span, |this, left, right| {
            let (left, right) = (this.convert(left, form), this.convert(right, form));
            let result = if rule.floats && !is_comparison(op) { Type::Float } else { rule.result };
            let value = this.operation(op, left, right, result, span);
            this.convert(value, rule.result)
        }))
    }

    fn operation(
        &mut self,
        op: BinaryOp,
        left: ExprId,
        right: ExprId,
        ty: Type,
        span: Span,
    ) -> ExprId {
        let folded = match (self.constant(left), self.constant(right)) {
            (Some(left), Some(right)) => constant::binary(op, left, right),
            _ => None,
        };
        let kind = folded.map_or(ExprKind::Binary(op, left, right), ExprKind::Constant);
        self.expr(kind, ty, span)
    }

    pub(super) fn unary(&mut self, op: UnaryOp, operand: ExprId, span: Span) -> ExprId {
        let ty = if op == UnaryOp::Not { Type::Int } else { self.ty(operand) };
        let folded = self.constant(operand).map(|value| constant::unary(op, value));
        let kind = folded.map_or(ExprKind::Unary(op, operand), ExprKind::Constant);
        self.expr(kind, ty, span)
    }

    /// The value in the type's form. Between `int` and `time` it stays as it is.
    pub(super) fn convert(&mut self, value: ExprId, to: Type) -> ExprId {
        let from = self.ty(value);
        if (from == Type::Float) == (to == Type::Float) {
            return value;
        }
        let span = self.program.exprs[value].span;
        let folded = self.constant(value).map(|value| constant::convert(value, to));
        let kind = folded.map_or(ExprKind::Convert(value), ExprKind::Constant);
        self.expr(kind, to, span)
    }

    /// The value as it is stored in a variable of that type, or used where that type is needed.
    pub(super) fn store(&mut self, value: ExprId, to: Type) -> ExprId {
        if to == Type::Time && self.ty(value) != Type::Time {
            self.warn_plain_number(value, "becomes");
        }
        self.convert(value, to)
    }

    /// An int or a time that is not zero exactly where the number is not.
    pub(super) fn truth(&mut self, value: ExprId) -> ExprId {
        if self.ty(value) != Type::Float {
            return value;
        }
        let span = self.program.exprs[value].span;
        let zero = self.expr(ExprKind::Constant(Value::Float(0.0)), Type::Float, span);
        self.operation(BinaryOp::NotEqual, value, zero, Type::Int, span)
    }

    /// A truth value as 0 or 1.
    pub(super) fn as_bit(&mut self, truth: ExprId) -> ExprId {
        let is_bit = match &self.program.exprs[truth].kind {
            ExprKind::Same(..)
            | ExprKind::And(..)
            | ExprKind::Or(..)
            | ExprKind::Unary(UnaryOp::Not, _) => true,
            ExprKind::Binary(op, ..) => is_comparison(*op),
            _ => false,
        };
        if is_bit {
            return truth;
        }
        let span = self.program.exprs[truth].span;
        let zero = self.expr(ExprKind::Constant(Value::Int(0)), Type::Int, span);
        self.operation(BinaryOp::NotEqual, truth, zero, Type::Int, span)
    }

    /// The literal 0 is no time and no number, but both.
    fn warn_plain_number(&mut self, number: ExprId, how: &str) {
        let value = self.constant(number);
        if value.is_some_and(constant::is_zero) {
            return;
        }
        let span = self.program.exprs[number].span;
        let hint = match value {
            Some(Value::Int(value)) => {
                format!("say the unit: `{value}ns`, `{value}us`, `{value}ms` or `{value}s`")
            }
            _ => "declare it as a `time`, or multiply it by its unit: `n * 1ms`".to_string(),
        };
        let message = format!("a plain number that {how} a time is taken as nanoseconds");
        self.report(
            Diagnostic::new(codes::types::TIME_AND_NUMBER, span, message)
                .label(format!("{}, no time", type_name(self.ty(number))))
                .hint(hint),
        );
    }
}
