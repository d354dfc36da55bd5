//! What the grammar demands of a tree beyond its shape: numbers that can be held, and variables
//! where only those can stand.
//!
//! The parser reads these more freely, so that its messages can say what is wrong instead of what
//! was expected.

use super::ast::*;
use super::{SyntaxKind, SyntaxNode};
use crate::diagnostic::{Code, Diagnostic, codes::syntax as codes};
use crate::source::{SourceId, Span};

/// What is wrong with a tree, in its order: at most `limit` diagnostics.
pub(super) fn validate(source: SourceId, root: &SyntaxNode, limit: usize) -> Vec<Diagnostic> {
    let mut validator = Validator { source, diagnostics: Vec::new() };
    for node in root.descendants() {
        if validator.diagnostics.len() >= limit {
            break;
        }
        validator.node(node);
    }
    validator.diagnostics
}

struct Validator {
    source: SourceId,
    diagnostics: Vec<Diagnostic>,
}

impl Validator {
    fn node(&mut self, node: SyntaxNode) {
        match node.kind() {
            SyntaxKind::LITERAL => self.each(node, Self::literal),
            SyntaxKind::THREAD_SECTION => self.each(node, Self::thread_section),
            SyntaxKind::DECLARATION => self.each(node, Self::declaration),
            SyntaxKind::DECLARATOR => self.each(node, Self::declarator),
            SyntaxKind::ASSIGN_EXPR => {
                self.each(node, |it, node: AssignExpr| it.assignable(node.target()))
            }
            SyntaxKind::POSTFIX_EXPR => {
                self.each(node, |it, node: PostfixExpr| it.assignable(node.operand()))
            }
            SyntaxKind::PREFIX_EXPR => self.each(node, |it, node: PrefixExpr| {
                if matches!(node.op(), Some(PrefixOp::Increment | PrefixOp::Decrement)) {
                    it.assignable(node.operand());
                }
            }),
            SyntaxKind::CALL_EXPR => {
                self.each(node, |it, node: CallExpr| it.callable(node.function()))
            }
            SyntaxKind::SIZE_EXPR => {
                self.each(node, |it, node: SizeExpr| it.container(node.container()))
            }
            SyntaxKind::DISPATCH_STMT => {
                self.each(node, |it, node: DispatchStmt| it.container(node.container()))
            }
            SyntaxKind::DESTROY_STMT => {
                self.each(node, |it, node: DestroyStmt| it.container(node.container()))
            }
            SyntaxKind::FOREACH_STMT => {
                self.each(node, |it, node: ForeachStmt| it.container(node.container()))
            }
            SyntaxKind::ALARM_STMT => {
                self.each(node, |it, node: AlarmStmt| it.container(node.thread()))
            }
            SyntaxKind::TRANSFER_STMT => self.each(node, |it, node: TransferStmt| {
                it.container(node.source());
                it.container(node.destination());
            }),
            _ => {}
        }
    }

    fn each<N: AstNode>(&mut self, node: SyntaxNode, check: impl FnOnce(&mut Self, N)) {
        if let Some(node) = N::cast(node) {
            check(self, node);
        }
    }

    fn report(
        &mut self,
        code: Code,
        span: Span,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        self.diagnostics.push(Diagnostic::new(code, span, message).hint(hint));
    }

    fn literal(&mut self, literal: Literal) {
        let span = literal.span(self.source);
        let text = literal.syntax().text().to_string();
        let has_leading_zero =
            text.len() > 1 && text.starts_with('0') && text.bytes().all(|b| b.is_ascii_digit());
        match literal.decode() {
            Err((LiteralError::OutOfRange, _)) => {
                let hint =
                    format!("the largest integer is {}; the longest time is 2562047h", i64::MAX);
                self.report(
                    codes::NUMBER_OUT_OF_RANGE,
                    span,
                    "this number does not fit 64 bits",
                    hint,
                );
            }
            Err((LiteralError::Infinite, _)) => {
                let hint = "the largest float is about 1.8e308";
                self.report(
                    codes::NUMBER_OUT_OF_RANGE,
                    span,
                    "this number does not fit a float",
                    hint,
                );
            }
            Err((LiteralError::TooFine, _)) => {
                let hint = "times are whole numbers of nanoseconds";
                self.report(
                    codes::MALFORMED_NUMBER,
                    span,
                    "this time is finer than a nanosecond",
                    hint,
                );
            }
            Err((LiteralError::NotANumber, _)) => {
                let units = UNITS.map(|(name, _)| name).join(", ");
                let hint = format!("units of time are {units}: `20ms`, `1.5s`");
                self.report(codes::MALFORMED_NUMBER, span, "this is no number and no time", hint);
            }
            Ok(_) if has_leading_zero => {
                let hint = format!(
                    "write `{}`",
                    match text.trim_start_matches('0') {
                        "" => "0",
                        digits => digits,
                    }
                );
                self.report(
                    codes::LEADING_ZERO,
                    span,
                    "this number is read as decimal, unlike in C",
                    hint,
                );
            }
            Ok(_) => {}
        }
    }

    fn thread_section(&mut self, section: ThreadSection) {
        for declaration in section.declarations() {
            if let Some((_, word)) = declaration.storage().next() {
                let span = Span::new(self.source, word.text_range());
                let message = format!("an attribute cannot be `{}`", word.text());
                let hint =
                    "each thread has its own attributes; constants belong into `data { .. }`";
                self.report(codes::NOT_AN_ATTRIBUTE, span, message, hint);
            }
            let Some(ty) = declaration.ty() else { continue };
            if let Some(kind) = ty.kind().filter(|kind| kind.is_container()) {
                let message = format!("an attribute cannot be a {}", kind.name());
                let hint =
                    "attributes are int, float or time; containers belong into `data { .. }`";
                self.report(codes::NOT_AN_ATTRIBUTE, ty.span(self.source), message, hint);
            }
        }
    }

    fn declaration(&mut self, declaration: Declaration) {
        let mut seen = Vec::new();
        for (storage, word) in declaration.storage() {
            if seen.contains(&storage) {
                let span = Span::new(self.source, word.text_range());
                self.report(
                    codes::REPEATED_WORD,
                    span,
                    format!("`{}` is said twice", word.text()),
                    "once is enough",
                );
            }
            seen.push(storage);
        }
    }

    fn declarator(&mut self, declarator: Declarator) {
        if let (Some(_), Some(initial)) = (declarator.array(), declarator.initial()) {
            let hint = "its elements begin as 0; give them their values in `event init`";
            let span = initial.span(self.source);
            self.report(
                codes::ARRAY_INITIALIZER,
                span,
                "an array cannot be given a value here",
                hint,
            );
        }
    }

    fn assignable(&mut self, target: Option<Expr>) {
        let Some(target) = target else { return };
        let inner = target.clone().without_parens();
        if !matches!(inner, None | Some(Expr::Name(_) | Expr::Index(_) | Expr::Field(_))) {
            let hint =
                "variables, elements of arrays and attributes can be assigned to; `==` compares";
            self.report(
                codes::NOT_ASSIGNABLE,
                target.span(self.source),
                "this cannot be assigned to",
                hint,
            );
        }
    }

    fn callable(&mut self, function: Option<Expr>) {
        if let Some(function) = function.filter(|function| !matches!(function, Expr::Name(_))) {
            let hint = "only functions of the language can be called, by their name: `random(10)`";
            self.report(
                codes::NOT_CALLABLE,
                function.span(self.source),
                "this cannot be called",
                hint,
            );
        }
    }

    /// A place where only a container, or the name of a thread, can stand.
    fn container(&mut self, expr: Option<Expr>) {
        let Some(expr) = expr.filter(|expr| !is_variable(expr)) else { return };
        let hint = match &expr {
            Expr::First(first) => match first.container() {
                Some(container) => {
                    format!(
                        "write `{}`: its first thread is meant anyway",
                        container.syntax().text()
                    )
                }
                None => "write the container's name".to_string(),
            },
            _ => "name a container or a thread: `RQ`, `RQ[cpu]`, `t`".to_string(),
        };
        self.report(
            codes::NOT_A_CONTAINER,
            expr.span(self.source),
            "this names no container and no thread",
            hint,
        );
    }
}

/// `v`, `v[..]`, and either of them behind `GLOBAL.` or a node's name.
fn is_variable(expr: &Expr) -> bool {
    match expr {
        Expr::Name(_) => true,
        Expr::Field(field) => matches!(field.base(), None | Some(Expr::Name(_))),
        Expr::Index(index) => match index.base() {
            Some(Expr::Field(field)) => matches!(field.base(), None | Some(Expr::Name(_))),
            base => matches!(base, None | Some(Expr::Name(_))),
        },
        _ => false,
    }
}
