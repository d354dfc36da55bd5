//! Expressions: from syntax to values without effects. Effects become statements, in the order of
//! the source.

use super::operand::{Operand, Star, Yields};
use super::{Lowering, types};
use crate::diagnostic::{Diagnostic, codes, suggest};
use crate::ir::*;
use crate::source::Span;
use crate::syntax::ast::{self, AstNode, Expr as Syntax, LiteralValue, PostfixOp, PrefixOp};

/// The words that the language gives a meaning to where no declaration does.
pub(super) const BUILTINS: [&str; 4] = ["now", "cpu", "cpus", "random"];

impl Lowering {
    /// A number. `wanted` is the type that it will be converted to, if that is known: verbatim text
    /// has it.
    pub(super) fn number(
        &mut self,
        syntax: Option<Syntax>,
        wanted: Option<Type>,
    ) -> Option<ExprId> {
        let syntax = syntax?;
        let span = self.span(&syntax);
        match self.operand(&syntax, wanted) {
            Operand::Number(value) => Some(value),
            Operand::Container(container) => {
                self.container_as_number(container, span);
                None
            }
            Operand::Thread(thread) => {
                self.thread_as_number(thread, span);
                None
            }
            Operand::Broken => None,
        }
    }

    /// A truth value: an int or a time.
    pub(super) fn condition(&mut self, syntax: Option<Syntax>) -> Option<ExprId> {
        if let Some(Syntax::Assign(assign)) = &syntax
            && assign.op().is_none()
        {
            let span = self.span(assign);
            self.report(
                Diagnostic::new(
                    codes::types::ASSIGNMENT_AS_CONDITION,
                    span,
                    "this assigns; it does not compare",
                )
                .label("the condition is the value assigned")
                .hint(
                    "write `==` to compare, or put parentheses around an assignment that is meant",
                ),
            );
        }
        let value = self.number(syntax, None)?;
        Some(self.truth(value))
    }

    pub(super) fn operand(&mut self, syntax: &Syntax, wanted: Option<Type>) -> Operand {
        let number = |value: Option<ExprId>| value.map_or(Operand::Broken, Operand::Number);
        match syntax {
            Syntax::Literal(literal) => Operand::Number(self.literal(literal)),
            Syntax::Paren(paren) => match paren.inner() {
                Some(inner) => self.operand(&inner, wanted),
                None => Operand::Broken,
            },
            Syntax::Name(_) | Syntax::Index(_) => self.variable_operand(syntax),
            Syntax::Field(field) => self.field_operand(field),
            Syntax::First(first) => self.first_operand(first),
            Syntax::Size(size) => number(self.size(size)),
            Syntax::Call(call) => number(self.call(call)),
            Syntax::Prefix(prefix) => number(self.prefix(prefix, wanted)),
            Syntax::Postfix(postfix) => {
                let by = match postfix.op() {
                    Some(PostfixOp::Decrement) => BinaryOp::Subtract,
                    _ => BinaryOp::Add,
                };
                number(self.step(postfix.operand(), by, Yields::Before, self.span(postfix)))
            }
            Syntax::Binary(binary) => number(self.binary(binary, wanted)),
            Syntax::Assign(assign) => number(self.assignment(assign, Yields::After)),
            Syntax::Is(is) => number(self.is_of_family(is)),
            Syntax::Verbatim(verbatim) => {
                let span = self.span(verbatim);
                let into = self.temporary(wanted.unwrap_or(Type::Int), span);
                self.program.verbatim.push(span);
                self.emit(StatementKind::VerbatimValue { into, text: verbatim.text() }, span);
                Operand::Number(self.read_local(into, span))
            }
        }
    }

    fn literal(&mut self, literal: &ast::Literal) -> ExprId {
        let (value, ty) = match literal.value() {
            LiteralValue::Int(value) => (Value::Int(value), Type::Int),
            LiteralValue::Bool(value) => (Value::Int(value.into()), Type::Int),
            LiteralValue::Time(value) => (Value::Int(value), Type::Time),
            LiteralValue::Float(value) => (Value::Float(value), Type::Float),
        };
        let span = self.span(literal);
        self.expr(ExprKind::Constant(value), ty, span)
    }

    fn variable_operand(&mut self, syntax: &Syntax) -> Operand {
        if let Syntax::Name(name) = syntax
            && self.scopes.find(&name.text()).is_none()
            && let Some(builtin) = self.builtin(name)
        {
            return Operand::Number(builtin);
        }
        self.variable(syntax).map_or(Operand::Broken, |variable| self.read_variable(variable))
    }

    fn builtin(&mut self, name: &ast::NameExpr) -> Option<ExprId> {
        let (kind, ty) = match name.text().as_str() {
            "now" => (ExprKind::Now, Type::Time),
            "cpu" => (ExprKind::Cpu, Type::Int),
            "cpus" => (ExprKind::Cpus, Type::Int),
            _ => return None,
        };
        let span = self.span(name);
        Some(self.expr(kind, ty, span))
    }

    fn field_operand(&mut self, field: &ast::FieldExpr) -> Operand {
        if self.is_qualified(field) {
            let variable = self.variable(&Syntax::Field(field.clone()));
            return variable.map_or(Operand::Broken, |variable| self.read_variable(variable));
        }
        self.attribute_operand(field.base(), field.field(), Star::Absent, self.span(field))
    }

    /// `*C` is a thread, `*C.a` the attribute of a thread.
    fn first_operand(&mut self, first: &ast::FirstExpr) -> Operand {
        let span = self.span(first);
        match first.container().and_then(Syntax::without_parens) {
            Some(Syntax::Field(field)) if !self.is_qualified(&field) => {
                self.attribute_operand(field.base(), field.field(), Star::Written, span)
            }
            Some(container) => match self.container(&container) {
                Some(container) => Operand::Thread(ThreadExpr {
                    kind: ThreadKind::First(container),
                    check: None,
                    span,
                }),
                None => Operand::Broken,
            },
            None => Operand::Broken,
        }
    }

    fn attribute_operand(
        &mut self,
        base: Option<Syntax>,
        field: Option<ast::Name>,
        star: Star,
        span: Span,
    ) -> Operand {
        match self.attribute_place(base, field, star, span) {
            Some((place, ty)) => Operand::Number(self.expr(ExprKind::Read(place), ty, span)),
            None => Operand::Broken,
        }
    }

    fn size(&mut self, size: &ast::SizeExpr) -> Option<ExprId> {
        let (container, span) = (size.container()?, self.span(size));
        if let Some(number) = self.node_container_size(&container, span) {
            return number;
        }
        let container = self.container(&container)?;
        Some(self.expr(ExprKind::Size(container), Type::Int, span))
    }

    fn call(&mut self, call: &ast::CallExpr) -> Option<ExprId> {
        let span = self.span(call);
        let function = call.function()?;
        let function_span = self.span(&function);
        let arguments: Vec<Syntax> = call.arguments().collect();
        let name = function.syntax().text().to_string();
        if let ("age", [of]) = (name.as_str(), arguments.as_slice()) {
            return self.age(of, span);
        }
        if name != "random" {
            let mut diagnostic = Diagnostic::new(
                codes::names::UNKNOWN_FUNCTION,
                function_span,
                format!("there is no function `{name}`"),
            )
            .label("called here");
            diagnostic = match suggest(&name, ["random"]) {
                Some(_) => diagnostic.hint("did you mean `random`?"),
                None => diagnostic.hint(
                    "the only function is `random(n)`; a function of the target language is \
                     called in verbatim text: `(* f(1) *)`",
                ),
            };
            self.report(diagnostic);
            return None;
        }
        let [bound] = <[Syntax; 1]>::try_from(arguments)
            .map_err(|arguments| {
                let found = arguments.len();
                self.report(
                    Diagnostic::new(
                        codes::types::ARGUMENTS,
                        span,
                        format!("`random` takes one argument, {found} are given"),
                    )
                    .label("called here")
                    .hint("`random(n)` is a number from 0 to n-1"),
                );
            })
            .ok()?;
        let bound = self.number(Some(bound), Some(Type::Int))?;
        let ty = if self.ty(bound) == Type::Time { Type::Time } else { Type::Int };
        let bound = self.convert(bound, ty);
        let into = self.temporary(ty, span);
        self.emit(StatementKind::Random { into, bound }, span);
        Some(self.read_local(into, span))
    }

    fn prefix(&mut self, prefix: &ast::PrefixExpr, wanted: Option<Type>) -> Option<ExprId> {
        let span = self.span(prefix);
        match prefix.op()? {
            PrefixOp::Increment => self.step(prefix.operand(), BinaryOp::Add, Yields::After, span),
            PrefixOp::Decrement => {
                self.step(prefix.operand(), BinaryOp::Subtract, Yields::After, span)
            }
            PrefixOp::Negate => {
                let operand = self.number(prefix.operand(), wanted)?;
                Some(self.unary(UnaryOp::Negate, operand, span))
            }
            PrefixOp::Not => {
                let operand = self.condition(prefix.operand())?;
                Some(self.unary(UnaryOp::Not, operand, span))
            }
        }
    }

    fn binary(&mut self, binary: &ast::BinaryExpr, wanted: Option<Type>) -> Option<ExprId> {
        let span = self.span(binary);
        let op = match binary.op()? {
            ast::BinaryOp::And => return self.short_circuit(binary, Circuit::And),
            ast::BinaryOp::Or => return self.short_circuit(binary, Circuit::Or),
            op => types::operator(op)?,
        };
        let comparison = types::is_comparison(op);
        let wanted = wanted.filter(|_| !comparison);
        let (left_syntax, right_syntax) = (binary.left()?, binary.right()?);
        let left = self.operand(&left_syntax, wanted);
        let mark = self.out.len();
        let right = self.operand(&right_syntax, wanted);
        let (left_span, right_span) = (self.span(&left_syntax), self.span(&right_syntax));
        match (left, right) {
            (Operand::Broken, _) | (_, Operand::Broken) => None,
            (Operand::Number(left), Operand::Number(right)) => {
                let left = self.anchor(left, mark);
                self.arithmetic(op, left, right, span)
            }
            _ if matches!(op, BinaryOp::Equal | BinaryOp::NotEqual) => {
                let left = self.compared(left, left_span);
                let right = self.compared(right, right_span);
                let (left, right) = (left?, right?);
                let left = self.anchor_thread(left, mark);
                Some(self.same(op, left, right, span))
            }
            _ => {
                for (operand, span) in [(left, left_span), (right, right_span)] {
                    match operand {
                        Operand::Container(container) => self.container_as_number(container, span),
                        Operand::Thread(thread) => self.thread_as_number(thread, span),
                        Operand::Number(_) | Operand::Broken => {}
                    }
                }
                None
            }
        }
    }

    /// One side of a comparison of threads.
    fn compared(&mut self, operand: Operand, span: Span) -> Option<ThreadExpr> {
        match operand {
            Operand::Thread(thread) => Some(thread),
            Operand::Container(container) if self.is_threadref(container) => {
                Some(ThreadExpr { kind: ThreadKind::First(container), check: None, span })
            }
            Operand::Container(container) => {
                let name = self.container_name(container);
                self.report(
                    Diagnostic::new(
                        codes::types::CONTAINER_AS_NUMBER,
                        span,
                        format!("`{name}` is a container and cannot be compared"),
                    )
                    .label("a container")
                    .hint(format!(
                        "`*{name}` is its first thread, `|{name}|` the number of its threads"
                    )),
                );
                None
            }
            Operand::Number(_) => {
                self.report(
                    Diagnostic::new(
                        codes::types::THREAD_AND_NUMBER,
                        span,
                        "a thread is compared with a number",
                    )
                    .label("a number")
                    .hint(
                        "compare a variable of the thread, `t.x`, or ask whether a `threadref` \
                         C is empty: `|C| == 0`",
                    ),
                );
                None
            }
            Operand::Broken => None,
        }
    }

    fn same(&mut self, op: BinaryOp, left: ThreadExpr, right: ThreadExpr, span: Span) -> ExprId {
        let same = match left.kind {
            ThreadKind::First(container)
                if self.thread_may_trap(&left) && self.thread_may_trap(&right) =>
            {
                self.same_in_order(container, left.span, right, span)
            }
            _ => self.expr(ExprKind::Same(left, right), Type::Int, span),
        };
        if op == BinaryOp::NotEqual { self.unary(UnaryOp::Not, same, span) } else { same }
    }

    /// Both sides index arrays. The left index is tested first, by asking for the size of that
    /// container.
    fn same_in_order(
        &mut self,
        left: ContainerRef,
        left_span: Span,
        right: ThreadExpr,
        span: Span,
    ) -> ExprId {
        let (left, kept) = self.keep_index(left);
        let tested = self.copy_container(left);
        let value = self.expr(ExprKind::Size(tested), Type::Int, left_span);
        let temporary = self.temporary(Type::Int, left_span);
        let left = ThreadExpr { kind: ThreadKind::First(left), check: None, span: left_span };
        let body = self.expr(ExprKind::Same(left, right), Type::Int, span);
        let body = self.expr(ExprKind::Let { temporary, value, body }, Type::Int, span);
        match kept {
            Some((temporary, value)) => {
                self.expr(ExprKind::Let { temporary, value, body }, Type::Int, span)
            }
            None => body,
        }
    }

    /// `&&` and `||`. A right side with effects is evaluated under an `if`.
    fn short_circuit(&mut self, binary: &ast::BinaryExpr, circuit: Circuit) -> Option<ExprId> {
        let span = self.span(binary);
        let left = self.condition(binary.left());
        let asked = binary.left();
        let (effects, right) = self.knowing(asked.as_ref(), circuit == Circuit::And, |this| {
            this.in_block(|this| this.condition(binary.right()))
        });
        let (left, right) = (left?, right?);
        if effects.statements.is_empty() {
            let kind = match circuit {
                Circuit::And => ExprKind::And(left, right),
                Circuit::Or => ExprKind::Or(left, right),
            };
            return Some(self.expr(kind, Type::Int, span));
        }
        let result = self.temporary(Type::Int, span);
        let assign = |value| StatementKind::Assign { place: Place::Local(result, None), value };
        let mut evaluate = effects;
        let truth = self.as_bit(right);
        evaluate.statements.push(Statement { kind: assign(truth), span });
        let skipped = self.expr(
            ExprKind::Constant(Value::Int((circuit == Circuit::Or).into())),
            Type::Int,
            span,
        );
        let skip = Block { statements: vec![Statement { kind: assign(skipped), span }] };
        let (then, otherwise) = match circuit {
            Circuit::And => (evaluate, skip),
            Circuit::Or => (skip, evaluate),
        };
        self.emit(StatementKind::If { condition: left, then, otherwise }, span);
        Some(self.read_local(result, span))
    }

    fn container_as_number(&mut self, container: ContainerRef, span: Span) {
        let name = self.container_name(container);
        let mut diagnostic = Diagnostic::new(
            codes::types::CONTAINER_AS_NUMBER,
            span,
            format!("`{name}` is a container, no number"),
        )
        .label("a container");
        diagnostic = diagnostic.hint(format!("the number of its threads is `|{name}|`"));
        self.report(diagnostic);
    }

    fn thread_as_number(&mut self, thread: ThreadExpr, span: Span) {
        let name = self.thread_name(&thread);
        let hint = match self.program.attributes.iter().next() {
            Some((_, attribute)) => {
                format!("a variable of the thread is a number: `{name}.{}`", attribute.name)
            }
            None => {
                format!(
                    "a variable of the thread is a number: `{name}.x`, declared in `thread \
                     {{ int x; }}`"
                )
            }
        };
        self.report(
            Diagnostic::new(
                codes::types::THREAD_AS_NUMBER,
                span,
                format!("`{name}` is a thread, no number"),
            )
            .label("a thread")
            .hint(hint),
        );
    }

    /// Reports a name that nothing declares.
    pub(super) fn unknown_name(&mut self, name: &str, span: Span) {
        if self.leaves_out(span) || !self.sees_everything() {
            return;
        }
        let unknown = || {
            Diagnostic::new(codes::names::UNKNOWN_NAME, span, format!("`{name}` is not declared"))
        };
        let diagnostic = if let Some(later) = self.declared_later(name, span) {
            Diagnostic::new(
                codes::names::USED_BEFORE_DECLARATION,
                span,
                format!("`{name}` is used before its declaration"),
            )
            .label("not known yet")
            .also(later, "declared here")
            .hint("move the declaration up")
        } else if self.attributes.contains_key(name) {
            let thread = self.parameter_name().unwrap_or_else(|| "t".to_string());
            unknown()
                .label("a variable of each thread")
                .hint(format!("say whose it is: `{thread}.{name}`"))
        } else {
            let in_sight = self.scopes.names().chain(BUILTINS);
            match suggest(name, in_sight) {
                Some(meant) => {
                    unknown().label("unknown name").hint(format!("did you mean `{meant}`?"))
                }
                None => unknown()
                    .label("unknown name")
                    .hint("declare it in `data { .. }`, or in the handler before its use"),
            }
        };
        self.report(diagnostic);
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Circuit {
    And,
    Or,
}
