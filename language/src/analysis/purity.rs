//! Effects: queries have none, events have some. (Invariants have none either; lowering sees to
//! that.)
//!
//! An effect is whatever outlives the handler: a thread that moves or dies, an assignment to a
//! variable of the scheduler or of a thread, a step of `random`, an alarm, a preemption. Verbatim
//! text is taken on trust in a query, and counts as an effect in an event.

use crate::diagnostic::{Diagnostic, codes};
use crate::ir::*;
use crate::source::Span;

pub fn check(program: &Program, diagnostics: &mut Vec<Diagnostic>) {
    for handler in &program.handlers {
        for part in &handler.parts {
            let effects = effects(program, &part.routine.body);
            if handler.event.is_query() {
                for (span, what) in &effects.certain {
                    let message = format!("the query `{}` {what}", handler.event);
                    diagnostics.push(
                        Diagnostic::new(codes::flow::QUERY_EFFECT, *span, message)
                            .label("a query changes nothing")
                            .hint(
                                "do this in an event, and let the query read what the event left",
                            ),
                    );
                }
            } else if part.role == Role::Own
                && !part.routine.body.statements.is_empty()
                && effects.certain.is_empty()
                && !effects.verbatim
            {
                let name = program.handler_name(handler.event);
                let message = format!("the event `{name}` changes nothing");
                diagnostics.push(
                    Diagnostic::new(codes::flow::EVENT_WITHOUT_EFFECT, part.span, message)
                        .label("moves no thread, and assigns no variable that outlives it")
                        .hint("remove the handler, or let it do what it is for"),
                );
            }
        }
    }
}

struct Effects<'a> {
    certain: Vec<(Span, String)>,
    verbatim: bool,
    program: &'a Program,
}

fn effects<'a>(program: &'a Program, body: &Block) -> Effects<'a> {
    let mut effects = Effects { certain: Vec::new(), verbatim: false, program };
    visit::block(program, body, &mut effects);
    effects
}

impl visit::Visitor for Effects<'_> {
    fn statement(&mut self, _program: &Program, statement: &Statement) {
        let what = match &statement.kind {
            StatementKind::Transfer { .. } => "moves a thread".to_string(),
            StatementKind::Destroy { .. } => "destroys a thread".to_string(),
            StatementKind::Dispatch { .. } => "dispatches a thread".to_string(),
            StatementKind::Alarm { .. } => "sets an alarm".to_string(),
            StatementKind::Preempt { .. } => "preempts a processor".to_string(),
            StatementKind::Random { .. } => {
                "draws a random number, which changes all later ones".to_string()
            }
            StatementKind::Assign { place: Place::Global(global, _), .. } => {
                format!("assigns `{}`", self.program.globals[*global].name)
            }
            StatementKind::Assign { place: Place::Attribute(_, attribute), .. } => {
                format!(
                    "assigns the thread variable `{}`",
                    self.program.attributes[*attribute].name
                )
            }
            StatementKind::Verbatim { .. } | StatementKind::VerbatimValue { .. } => {
                self.verbatim = true;
                return;
            }
            _ => return,
        };
        self.certain.push((statement.span, what));
    }
}
