//! Loops, and the ways out of them.
//!
//! `while`, `do` and `for` are C's where C can say the same; effects of a condition or a step that
//! is no single assignment make a `for (;;)`, in which `continue` jumps to the step. A `foreach`
//! whose body may change what it visits keeps its place in a cursor (in the instance's state, whose
//! handlers never run at the same time); a statement that leaves the loop early gives the cursor
//! back to the container. Where nothing moves while it goes on, the thread itself is the place.

use attune_language::ir::visit::{self, Visitor};
use attune_language::ir::{
    Block, ContainerRef, ExprKind, Loop, NameId, Place, Program, Statement, StatementKind, Test,
    Value,
};
use attune_language::source::Span;

use super::Writer;
use super::target::Failures;

/// A loop around the statement being written.
pub enum Frame {
    /// The label that stands before the step, and whether it was used; without one `continue` is
    /// C's.
    Loop(Option<(String, bool)>),
    /// The cursor.
    Foreach(String),
}

impl Writer<'_> {
    pub(super) fn iterate(&mut self, each: &Loop, span: Span) {
        let counted = self.function.counted.then(|| {
            let check = self.loop_check(each.bound);
            format!("attune_iterate(attune, {check})")
        });
        let may = self.may_loop(span, |_| "the loop".to_string());
        match each.test {
            Test::First => self.test_first(each, counted, may),
            Test::Last => self.test_last(each, counted, may),
        }
    }

    fn test_first(&mut self, each: &Loop, counted: Option<String>, may: Option<String>) {
        let endless = match self.program.exprs[each.condition].kind {
            ExprKind::Constant(Value::Int(value)) => value != 0,
            _ => false,
        };
        let step = self.step_text(&each.step);
        if each.prelude.statements.is_empty() && (each.step.statements.is_empty() || step.is_some())
        {
            let test = match (counted, endless) {
                (None, _) => self.clause(each.condition),
                (Some(counted), true) => counted,
                (Some(counted), false) => format!("{counted} && {}", self.clause(each.condition)),
            };
            let test = std::iter::once(test).chain(may).collect::<Vec<_>>().join(" && ");
            self.out.open(match step {
                None => format!("while ({test}) {{"),
                Some(step) => format!("for (; {test}; {step}) {{"),
            });
            self.function.frames.push(Frame::Loop(None));
            self.block(&each.body, false);
            self.function.frames.pop();
            self.out.close("}");
            return;
        }
        self.out.open(match may {
            Some(may) => format!("for (; {may};) {{"),
            None => "for (;;) {".to_string(),
        });
        self.count(counted);
        self.block(&each.prelude, false);
        if !endless {
            let condition = self.operand(each.condition);
            self.out.open(format!("if (!{condition})"));
            self.out.line("break;");
            self.out.dedent();
        }
        self.body_and_step(each);
        self.out.close("}");
    }

    fn test_last(&mut self, each: &Loop, counted: Option<String>, may: Option<String>) {
        self.out.open("do {");
        self.count(counted);
        if each.step.statements.is_empty() && each.prelude.statements.is_empty() {
            self.function.frames.push(Frame::Loop(None));
            self.block(&each.body, false);
            self.function.frames.pop();
        } else {
            self.body_and_step(each);
            self.block(&each.prelude, false);
        }
        let condition = self.clause(each.condition);
        let condition = std::iter::once(condition).chain(may).collect::<Vec<_>>().join(" && ");
        self.out.close(format!("}} while ({condition});"));
    }

    /// One more iteration of a loop that counts.
    fn count(&mut self, counted: Option<String>) {
        match counted {
            None => {}
            Some(counted) if self.target.failures == Failures::AreNoted => {
                self.out.open(format!("if (!{counted})"));
                self.out.line("break;");
                self.out.dedent();
            }
            Some(counted) => self.out.line(format!("{counted};")),
        }
    }

    /// The body, the label for `continue` where there is one, the step.
    fn body_and_step(&mut self, each: &Loop) {
        let plain = each.test == Test::First && each.step.statements.is_empty();
        let label = (!plain).then(|| {
            self.function.labels += 1;
            (format!("attune_next_{}", self.function.labels), false)
        });
        self.function.frames.push(Frame::Loop(label));
        self.block(&each.body, false);
        if let Some(Frame::Loop(Some((label, true)))) = self.function.frames.pop() {
            self.out.raw(&format!("{label}: ;"));
        }
        self.block(&each.step, false);
    }

    /// A step that is one plain assignment, as an expression.
    fn step_text(&mut self, step: &Block) -> Option<String> {
        let [Statement { kind: StatementKind::Assign { place, value }, .. }] =
            step.statements.as_slice()
        else {
            return None;
        };
        if matches!(place, Place::Attribute(..))
            || self.is_import(place)
            || self.place_is_fallible(place)
        {
            return None;
        }
        if self.is_verified() && matches!(place, Place::Local(..)) {
            return Some(format!(
                "{} = {} + ATTUNE_ZERO",
                self.variable(place),
                self.operand(*value)
            ));
        }
        Some(format!("{} = {}", self.variable(place), self.expr(*value)))
    }

    pub(super) fn foreach(
        &mut self,
        name: NameId,
        container: &ContainerRef,
        body: &Block,
        span: Span,
    ) {
        let over = &self.program.containers[container.container].name;
        let may = self.may_loop(span, |_| format!("the foreach over {over}"));
        let may = may.map(|may| format!(" && {may}")).unwrap_or_default();
        let still = stands_still(self.program, body);
        let (first, next) = match still {
            true => (self.here("attune_first", container), self.here("attune_after", container)),
            false => (self.here("attune_visit", container), self.here("attune_next", container)),
        };
        let container = self.container(container);
        self.names.name_thread(self.program, name);
        let thread = self.names.thread(name).to_string();
        let (first, next, frame) = if still {
            (
                format!("{first}&{container})"),
                format!("{next}&{thread}->attune)"),
                Frame::Loop(None),
            )
        } else {
            let cursor = self.keep("struct attune_cursor", &format!("{thread}_cursor"), "");
            (
                format!("{first}&{container}, &{cursor})"),
                format!("{next}&{cursor})"),
                Frame::Foreach(cursor),
            )
        };
        self.out.open(format!(
            "for (struct thread ATTUNE_ARENA *{thread} = ATTUNE_RECORD({first}); {thread}{may};"
        ));
        self.out.line(format!("    {thread} = ATTUNE_RECORD({next})) {{"));
        self.function.frames.push(frame);
        self.function.threads.push(name);
        self.block(body, false);
        self.function.threads.pop();
        self.function.frames.pop();
        self.out.close("}");
        self.names.release(&thread);
    }

    pub(super) fn leave_loop(&mut self) {
        if let Some(Frame::Foreach(cursor)) = self.function.frames.last() {
            let line = format!("attune_leave(&{cursor});");
            self.out.line(line);
        }
        self.out.line("break;");
    }

    pub(super) fn next_iteration(&mut self) {
        match self.function.frames.last_mut() {
            Some(Frame::Loop(Some((label, used)))) => {
                *used = true;
                let line = format!("goto {label};");
                self.out.line(line);
            }
            _ => self.out.line("continue;"),
        }
    }
}

/// Whether all threads keep their places from one iteration of a `foreach` to the next: what moves,
/// moves on the way out.
fn stands_still(program: &Program, body: &Block) -> bool {
    let leaves = matches!(
        body.statements.last().map(|last| &last.kind),
        Some(StatementKind::Break | StatementKind::Return(_) | StatementKind::Dispatch { .. })
    );
    let found = Found::within(program, &body.statements);
    if !found.moves || (leaves && !found.continues) {
        return true;
    }
    body.statements.iter().all(|statement| match &statement.kind {
        StatementKind::If { then, otherwise, .. } => {
            stands_still(program, then) && stands_still(program, otherwise)
        }
        _ => !Found::within(program, std::slice::from_ref(statement)).moves,
    })
}

/// What some statements may do.
#[derive(Default)]
struct Found {
    moves: bool,
    continues: bool,
}

impl Found {
    fn within(program: &Program, statements: &[Statement]) -> Found {
        let mut found = Found::default();
        statements.iter().for_each(|statement| visit::statement(program, statement, &mut found));
        found
    }
}

impl Visitor for Found {
    fn statement(&mut self, program: &Program, statement: &Statement) {
        match &statement.kind {
            StatementKind::Transfer { .. } | StatementKind::Destroy { .. } => self.moves = true,
            StatementKind::Verbatim { .. } | StatementKind::VerbatimValue { .. } => {
                self.moves = true
            }
            StatementKind::Assign { place: Place::Attribute(_, attribute), .. } => {
                let sorts = |by| by == Some(*attribute);
                self.moves |=
                    program.containers.values().any(|of| sorts(of.sort.map(|sort| sort.by)));
            }
            StatementKind::Continue => self.continues = true,
            _ => {}
        }
    }
}
