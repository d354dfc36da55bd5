//! Statements. A statement with an error is left out; those around it are lowered all the same.

use super::Lowering;
use super::operand::{Operand, Yields};
use super::routine::Purpose;
use super::scope::Entity;
use crate::diagnostic::{Diagnostic, codes};
use crate::engine::event::{Answer, Event};
use crate::ir::*;
use crate::source::Span;
use crate::syntax::ast::{self, Expr as Syntax, PostfixOp, PrefixOp, Statement as Stmt};

impl Lowering {
    /// The statements in a scope of their own.
    pub(super) fn compound(&mut self, compound: Option<ast::Compound>) {
        let Some(compound) = compound else { return };
        self.scopes.enter();
        self.statements(&compound);
        self.scopes.leave();
    }

    /// The statements in the scope that is open.
    pub(super) fn statements(&mut self, compound: &ast::Compound) {
        for statement in compound.statements() {
            self.statement(&statement);
        }
    }

    /// A statement as a block, in a scope of its own.
    fn nested(&mut self, statement: Option<Stmt>) -> Block {
        let (block, ()) = self.in_block(|this| {
            this.scopes.enter();
            if let Some(statement) = statement {
                this.statement(&statement);
            }
            this.scopes.leave();
        });
        block
    }

    fn statement(&mut self, statement: &Stmt) {
        let span = self.span(statement);
        // The parser reported missing parts; a function that returns None reported an error.
        let _ = match statement {
            Stmt::Declaration(declaration) => {
                self.local_declaration(declaration);
                None
            }
            Stmt::Compound(compound) => {
                self.compound(Some(compound.clone()));
                None
            }
            Stmt::Expr(statement) => self.expression_statement(statement.expr()),
            Stmt::If(statement) => self.if_statement(statement, span),
            Stmt::While(statement) => self.loop_statement(
                Test::First,
                statement.condition(),
                statement.body(),
                None,
                span,
            ),
            Stmt::Do(statement) => {
                self.loop_statement(Test::Last, statement.condition(), statement.body(), None, span)
            }
            Stmt::For(statement) => self.for_statement(statement, span),
            Stmt::Foreach(statement) => self.foreach_statement(statement, span),
            Stmt::Break(_) => self.leave_loop(StatementKind::Break, "break", span),
            Stmt::Continue(_) => self.leave_loop(StatementKind::Continue, "continue", span),
            Stmt::Return(statement) => self.return_statement(statement, span),
            Stmt::Transfer(statement) => self.transfer(statement, span),
            Stmt::Dispatch(statement) => self.dispatch(statement, span),
            Stmt::Destroy(statement) => self.destroy(statement, span),
            Stmt::Alarm(statement) => self.alarm(statement, span),
            Stmt::Preempt(statement) => self.preempt(statement, span),
            Stmt::Atomic(statement) => self.atomic(statement, span),
            Stmt::Command(statement) => self.command(statement, span),
            Stmt::Verbatim(statement) => {
                self.program.verbatim.push(span);
                self.emit(StatementKind::Verbatim { text: statement.text() }, span)
            }
        };
    }

    /// An expression for its effects.
    fn expression_statement(&mut self, expr: Option<Syntax>) -> Option<()> {
        let expr = expr?.without_parens()?;
        let span = self.span(&expr);
        match &expr {
            Syntax::Assign(assign) => {
                self.assignment(assign, Yields::Nothing);
            }
            Syntax::Prefix(prefix) if matches!(prefix.op(), Some(PrefixOp::Increment)) => {
                self.step(prefix.operand(), BinaryOp::Add, Yields::Nothing, span);
            }
            Syntax::Prefix(prefix) if matches!(prefix.op(), Some(PrefixOp::Decrement)) => {
                self.step(prefix.operand(), BinaryOp::Subtract, Yields::Nothing, span);
            }
            Syntax::Postfix(postfix) => {
                let decrement = postfix.op() == Some(PostfixOp::Decrement);
                let op = if decrement { BinaryOp::Subtract } else { BinaryOp::Add };
                self.step(postfix.operand(), op, Yields::Nothing, span);
            }
            Syntax::Verbatim(verbatim) => {
                self.program.verbatim.push(span);
                self.emit(StatementKind::Verbatim { text: format!("{};", verbatim.text()) }, span);
            }
            _ => self.useless_expression(&expr, span),
        }
        Some(())
    }

    /// It has no effect of its own, though its parts may.
    fn useless_expression(&mut self, expr: &Syntax, span: Span) {
        let mark = self.out.len();
        let value = self.operand(expr, None);
        if matches!(value, Operand::Broken) {
            return;
        }
        if self.out.len() == mark {
            let hint = match self.routine.purpose {
                Purpose::Invariant => "an invariant says what must hold by `return`",
                _ => "assign the value, or remove the statement",
            };
            self.report(
                Diagnostic::new(
                    codes::types::NO_EFFECT,
                    span,
                    "the value is not used, and nothing is changed",
                )
                .label("has no effect")
                .hint(hint),
            );
        }
        if let Operand::Number(value) = value
            && self.may_trap(value)
        {
            let temporary = self.temporary(self.ty(value), span);
            self.emit(StatementKind::Assign { place: Place::Local(temporary, None), value }, span);
        }
    }

    fn if_statement(&mut self, statement: &ast::IfStmt, span: Span) -> Option<()> {
        let asked = statement.condition();
        let condition = self.condition(asked.clone());
        let nested = |branch| |this: &mut Self| this.nested(branch);
        let then = self.knowing(asked.as_ref(), true, nested(statement.then_branch()));
        let otherwise = self.knowing(asked.as_ref(), false, nested(statement.else_branch()));
        self.emit(StatementKind::If { condition: condition?, then, otherwise }, span)
    }

    fn for_statement(&mut self, statement: &ast::ForStmt, span: Span) -> Option<()> {
        self.expression_statement(statement.init());
        self.loop_statement(
            Test::First,
            statement.condition(),
            statement.body(),
            Some(statement),
            span,
        )
    }

    /// `head` is the `for` whose step belongs to the loop and whose condition may be missing.
    fn loop_statement(
        &mut self,
        test: Test,
        condition: Option<Syntax>,
        body: Option<Stmt>,
        head: Option<&ast::ForStmt>,
        span: Span,
    ) -> Option<()> {
        let bound = self.check(CheckKind::LoopBound, span);
        let endless = head.is_some() && condition.is_none();
        let mut condition = Some(condition);
        let mut tested = None;
        let mut test_now = |this: &mut Self| {
            tested = Some(this.in_block(|this| {
                if endless {
                    Some(this.expr(ExprKind::Constant(Value::Int(1)), Type::Int, span))
                } else {
                    this.condition(condition.take().flatten())
                }
            }));
        };
        // Errors are reported in the order of the source, and temporaries numbered so.
        if test == Test::First {
            test_now(self);
        }
        self.routine.loops += 1;
        let body = self.nested(body);
        self.routine.loops -= 1;
        if test == Test::Last {
            test_now(self);
        }
        let (step, _) =
            self.in_block(|this| this.expression_statement(head.and_then(ast::ForStmt::step)));
        let (prelude, condition) = tested?;
        let condition = condition?;
        self.emit(
            StatementKind::Loop(Box::new(Loop { test, prelude, condition, body, step, bound })),
            span,
        )
    }

    fn foreach_statement(&mut self, statement: &ast::ForeachStmt, span: Span) -> Option<()> {
        let container = statement.container().and_then(|container| self.container(&container));
        let variable = statement.variable()?;
        let variable_span = self.span(&variable);
        let name = Name { name: variable.text(), fixed: false, span: variable_span };
        let name = self.program.names.alloc(name);
        self.scopes.enter();
        self.declare(&variable.text(), Entity::Thread(name), variable_span);
        self.routine.loops += 1;
        let body = self.nested(statement.body());
        self.routine.loops -= 1;
        self.scopes.leave();
        self.emit(StatementKind::Foreach { name, container: container?, body }, span)
    }

    fn leave_loop(&mut self, kind: StatementKind, word: &str, span: Span) -> Option<()> {
        if self.routine.loops == 0 {
            self.report(
                Diagnostic::new(
                    codes::handlers::OUTSIDE_LOOP,
                    span,
                    format!("`{word}` outside of a loop"),
                )
                .label("no loop around it")
                .hint("`return` leaves the handler"),
            );
            return None;
        }
        self.emit(kind, span)
    }

    fn return_statement(&mut self, statement: &ast::ReturnStmt, span: Span) -> Option<()> {
        let Some(value) = statement.value() else {
            if self.routine.answer() != Answer::Nothing {
                self.report(
                    Diagnostic::new(codes::handlers::RETURN_VALUE, span, "a query returns a value")
                        .label("returns nothing")
                        .hint("write `return VALUE;`"),
                );
                return None;
            }
            return self.emit(StatementKind::Return(None), span);
        };
        let value_span = self.span(&value);
        let returned = match self.routine.answer() {
            Answer::Nothing => {
                self.report(
                    Diagnostic::new(
                        codes::handlers::RETURN_VALUE,
                        value_span,
                        "an event returns nothing",
                    )
                    .label("no caller takes a value")
                    .hint("write `return;` to leave the handler; only a `query` returns a value"),
                );
                return None;
            }
            Answer::Int => {
                let value = self.number(Some(value), Some(Type::Int))?;
                Returned::Number(self.store(value, Type::Int))
            }
            Answer::Time => {
                let value = self.number(Some(value), Some(Type::Time))?;
                Returned::Number(self.store(value, Type::Time))
            }
            Answer::Thread => {
                let operand = self.operand(&value, None);
                Returned::Thread(self.returned_thread(operand, value_span)?)
            }
        };
        self.emit(StatementKind::Return(Some(returned)), span)
    }

    fn returned_thread(&mut self, operand: Operand, span: Span) -> Option<ThreadExpr> {
        let diagnostic = match operand {
            Operand::Thread(thread) => return Some(thread),
            Operand::Container(container) if self.is_threadref(container) => {
                return Some(ThreadExpr { kind: ThreadKind::First(container), check: None, span });
            }
            Operand::Container(container) => {
                let name = self.container_name(container);
                Diagnostic::new(
                    codes::types::NOT_A_THREAD,
                    span,
                    format!("`{name}` is a container, no thread"),
                )
                .hint(format!("its first thread, or none, is `*{name}`"))
            }
            Operand::Number(_) => Diagnostic::new(
                codes::types::NOT_A_THREAD,
                span,
                "this query returns a thread, and this is a number",
            )
            .hint("an empty container's first thread is no thread: `return *C;`"),
            Operand::Broken => return None,
        };
        self.report(diagnostic.label("a thread is needed here"));
        None
    }

    fn transfer(&mut self, statement: &ast::TransferStmt, span: Span) -> Option<()> {
        let source = statement.source().and_then(|source| self.transfer_source(&source));
        let mark = self.out.len();
        let destination = statement.destination().and_then(|it| self.transfer_destination(&it));
        let (source, destination) = (source?, destination?);
        let source = self.anchor_thread(source, mark);
        let destination_check = self
            .is_threadref(destination)
            .then(|| self.check(CheckKind::DestinationEmpty, destination.span));
        self.emit(StatementKind::Transfer { source, destination, destination_check }, span)
    }

    fn transfer_source(&mut self, syntax: &Syntax) -> Option<ThreadExpr> {
        let thread = self.thread(syntax)?;
        self.refuse_fixed(&thread, "moved")?;
        Some(self.checked(thread, CheckKind::SourceFilled))
    }

    fn transfer_destination(&mut self, syntax: &Syntax) -> Option<ContainerRef> {
        let span = self.span(syntax);
        let (message, hint) = match self.operand(syntax, None) {
            Operand::Container(container) => return Some(container),
            Operand::Thread(thread @ ThreadExpr { kind: ThreadKind::First(container), .. }) => (
                format!("`{}` is a thread, no container", self.thread_name(&thread)),
                format!("write the container alone: `.. => {}`", self.container_name(container)),
            ),
            Operand::Thread(thread) => (
                format!("`{}` is a thread, no container", self.thread_name(&thread)),
                "threads are put into containers; a `threadref` holds one thread at most"
                    .to_string(),
            ),
            Operand::Number(_) => (
                "this is a number, no container".to_string(),
                "threads are put into containers: `t => RQ`".to_string(),
            ),
            Operand::Broken => return None,
        };
        self.report(
            Diagnostic::new(codes::transfers::DESTINATION, span, message)
                .label("a container is needed here")
                .hint(hint),
        );
        None
    }

    /// `fixed` forbids to move a parameter.
    fn refuse_fixed(&mut self, thread: &ThreadExpr, what: &str) -> Option<()> {
        let ThreadKind::Name(id) = thread.kind else { return Some(()) };
        let name = &self.program.names[id];
        if !name.fixed {
            return Some(());
        }
        let diagnostic = Diagnostic::new(
            codes::transfers::FIXED_MOVED,
            thread.span,
            format!("`{}` is fixed and cannot be {what}", name.name),
        )
        .label(format!("{what} here"))
        .also(name.span, "the handler must leave it where it is")
        .hint(match self.routine.event() {
            Some(Event::SetWaiting | Event::SetDead) => {
                "the running thread is moved in `switch_out`, which follows"
            }
            _ => "leave out `fixed` if the handler shall move the thread",
        });
        self.report(diagnostic);
        None
    }

    /// The thread with the check that there is one: of that kind where it is a container's first.
    fn checked(&mut self, thread: ThreadExpr, filled: CheckKind) -> ThreadExpr {
        let kind = match (thread.kind, filled) {
            (ThreadKind::First(_), kind) => kind,
            (ThreadKind::Name(_), CheckKind::FirstFilled) => CheckKind::NamedUse,
            (ThreadKind::Name(_), _) => CheckKind::NamedTransfer,
        };
        let check = self.check(kind, thread.span);
        ThreadExpr { check: Some(check), ..thread }
    }

    fn dispatch(&mut self, statement: &ast::DispatchStmt, span: Span) -> Option<()> {
        if self.routine.event() != Some(Event::Schedule) {
            self.report(
                Diagnostic::new(
                    codes::handlers::DISPATCH_OUTSIDE_SCHEDULE,
                    span,
                    "`dispatch` outside of `schedule`",
                )
                .label("this handler chooses no thread")
                .hint(
                    "move the thread where `schedule` will find it; `preempt cpu;` makes a \
                     processor choose again",
                ),
            );
            return None;
        }
        let thread = statement.container().and_then(|thread| self.thread(&thread));
        let mark = self.out.len();
        let slice = match statement.duration() {
            Some(duration) => {
                let slice = self.number(Some(duration), Some(Type::Time))?;
                Some(self.store(slice, Type::Time))
            }
            None => None,
        };
        let thread = self.anchor_thread(thread?, mark);
        let thread = self.checked(thread, CheckKind::DispatchFilled);
        self.emit(StatementKind::Dispatch { thread, slice }, span)
    }

    fn destroy(&mut self, statement: &ast::DestroyStmt, span: Span) -> Option<()> {
        let thread = self.thread(&statement.container()?)?;
        self.refuse_fixed(&thread, "destroyed")?;
        let thread = self.checked(thread, CheckKind::DestroyFilled);
        self.emit(StatementKind::Destroy { thread }, span)
    }

    fn alarm(&mut self, statement: &ast::AlarmStmt, span: Span) -> Option<()> {
        let thread = statement.thread().and_then(|thread| self.thread(&thread));
        let mark = self.out.len();
        let at = self.number(statement.time(), Some(Type::Time));
        let thread = self.anchor_thread(thread?, mark);
        let at = self.store(at?, Type::Time);
        let thread = self.checked(thread, CheckKind::FirstFilled);
        self.emit(StatementKind::Alarm { thread, at }, span)
    }

    fn preempt(&mut self, statement: &ast::PreemptStmt, span: Span) -> Option<()> {
        let cpu = self.number(statement.cpu(), Some(Type::Int));
        let mark = self.out.len();
        let at = match statement.time() {
            Some(time) => {
                let at = self.number(Some(time), Some(Type::Time))?;
                Some(self.store(at, Type::Time))
            }
            None => None,
        };
        let cpu = self.convert(cpu?, Type::Int);
        let cpu = self.anchor_before_trap(cpu, mark, at);
        self.emit(StatementKind::Preempt { cpu, at }, span)
    }
}
