//! Handlers, aspects, invariants: what surrounds statements.

use std::collections::HashMap;

use super::Lowering;
use super::scope::Entity;
use crate::diagnostic::{Diagnostic, codes, suggest};
use crate::engine::event::{Answer, Event, Parameter};
use crate::ir::*;
use crate::resolve::{FlatHandler, Sited};
use crate::source::Span;
use crate::syntax::ast::{self, AstNode, HandlerKind};
use crate::syntax::{SyntaxKind, SyntaxNode};

/// What a routine is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Initial values.
    #[default]
    Prologue,
    Handler(Event),
    /// Code around a handler.
    Aspect(Event),
    Invariant,
}

/// The routine that is being lowered.
#[derive(Debug, Default)]
pub(super) struct Context {
    pub purpose: Purpose,
    /// Whether its handler, or the one before it about the same thread, destroys threads in any
    /// part: only then can a named thread be gone.
    pub destroys: bool,
    /// Whether there is verbatim text in it, which may use any name.
    pub verbatim: bool,
    /// Loops around the current statement.
    pub loops: u32,
    pub parameter: Option<NameId>,
    pub locals: Vec<LocalId>,
    pub containers: Vec<ContainerId>,
    pub syntax: Option<SyntaxNode>,
    /// Where it declares each of its names for the last time, once that was asked.
    pub declarations: Option<HashMap<String, Span>>,
}

impl Context {
    pub fn event(&self) -> Option<Event> {
        match self.purpose {
            Purpose::Handler(event) | Purpose::Aspect(event) => Some(event),
            Purpose::Prologue | Purpose::Invariant => None,
        }
    }

    /// What `return` must give.
    pub fn answer(&self) -> Answer {
        match self.purpose {
            Purpose::Handler(event) => event.answer(),
            Purpose::Invariant => Answer::Int,
            Purpose::Prologue | Purpose::Aspect(_) => Answer::Nothing,
        }
    }
}

/// The syntax of all parts of a handler.
fn parts_of(handler: &FlatHandler) -> impl Iterator<Item = &SyntaxNode> {
    let own = handler.own.iter().map(|own| own.node.syntax());
    own.chain(handler.before.iter().chain(&handler.after).map(|aspect| aspect.node.syntax()))
}

fn contains(syntax: &SyntaxNode, kind: SyntaxKind) -> bool {
    syntax.descendants().any(|node| node.kind() == kind)
}

impl Lowering {
    pub(super) fn handlers(&mut self, handlers: &[FlatHandler]) {
        let destroys =
            |of: &FlatHandler| parts_of(of).any(|part| contains(part, SyntaxKind::DESTROY_STMT));
        let ends = handlers.iter().any(|of| of.name == Event::SetDead.name() && destroys(of));
        for handler in handlers {
            if let Some(event) = self.event(handler) {
                // `switch_out` follows `set_dead` and is about the same thread.
                let gone = destroys(handler) || ends && event == Event::SwitchOut;
                self.handler(event, handler, gone);
            }
        }
    }

    fn handler(&mut self, event: Event, of: &FlatHandler, destroys: bool) {
        if of.own.is_none() && self.sees_everything() {
            self.aspects_without_handler(event, of);
        }
        let mut parts = Vec::new();
        let mut span = None;
        for aspect in &of.before {
            parts.push(self.aspect(event, Role::Before, aspect, destroys));
        }
        if let Some(own) = &of.own {
            self.source = own.source;
            let at = Span::new(own.source, header(own.node.syntax()));
            span = Some(at);
            let context = self.context(Purpose::Handler(event), destroys, own.node.syntax());
            let routine =
                self.routine(context, own.node.parameter(), event.parameter(), own.node.body());
            parts.push(Part { role: Role::Own, routine, span: at });
        }
        for aspect in &of.after {
            parts.push(self.aspect(event, Role::After, aspect, destroys));
        }
        let Some(span) = span.or(parts.first().map(|part| part.span)) else { return };
        self.add_handler(event, parts, span);
    }

    /// A handler out of its parts, with the checks at its end.
    pub(super) fn add_handler(&mut self, event: Event, parts: Vec<Part>, span: Span) {
        self.routine.purpose = Purpose::Handler(event);
        let parameter = parts.iter().find_map(|part| part.routine.parameter);
        let stored = matches!(event, Event::NewThread | Event::Arrives).then(|| {
            let at = parameter.map_or(span, |name| self.program.names[name].span);
            self.check(CheckKind::Stored, at)
        });
        let containers: Vec<ContainerId> =
            parts.iter().flat_map(|part| part.routine.containers.iter().copied()).collect();
        let emptied = containers
            .into_iter()
            .map(|container| {
                let at = self.program.containers[container].span;
                (container, self.check(CheckKind::LocalEmptied, at))
            })
            .collect();
        self.program.handlers.push(Handler { event, parts, stored, emptied, span });
    }

    fn aspect(
        &mut self,
        event: Event,
        role: Role,
        aspect: &Sited<ast::Aspect>,
        destroys: bool,
    ) -> Part {
        self.source = aspect.source;
        let span = Span::new(aspect.source, header(aspect.node.syntax()));
        let context = self.context(Purpose::Aspect(event), destroys, aspect.node.syntax());
        // An aspect need not name the thread.
        let shape = match event.parameter() {
            Parameter::Required => Parameter::Optional,
            shape => shape,
        };
        let routine = self.routine(context, aspect.node.parameter(), shape, aspect.node.body());
        Part { role, routine, span }
    }

    pub(super) fn context(&self, purpose: Purpose, destroys: bool, syntax: &SyntaxNode) -> Context {
        let verbatim = contains(syntax, SyntaxKind::VERBATIM_STMT)
            || contains(syntax, SyntaxKind::VERBATIM_EXPR);
        Context { purpose, destroys, verbatim, syntax: Some(syntax.clone()), ..Context::default() }
    }

    fn routine(
        &mut self,
        context: Context,
        parameter: Option<ast::Parameter>,
        shape: Parameter,
        body: Option<ast::Compound>,
    ) -> Routine {
        let aspect = matches!(context.purpose, Purpose::Aspect(_));
        self.in_routine(context, |this| {
            this.parameter(parameter, shape, aspect);
            if let Some(body) = body {
                this.statements(&body);
            }
        })
    }

    /// Declares the parameter, and reports a shape that the event does not have.
    fn parameter(&mut self, parameter: Option<ast::Parameter>, shape: Parameter, aspect: bool) {
        let event = self.routine.event().map_or("", Event::name);
        match (&parameter, shape) {
            (Some(parameter), Parameter::None) => {
                let span = self.span(parameter);
                self.report(
                    Diagnostic::new(
                        codes::handlers::PARAMETER_UNEXPECTED,
                        span,
                        format!("`{event}` is about no thread"),
                    )
                    .label("no thread is given")
                    .hint(format!("write `{event} {{ .. }}`")),
                );
            }
            (None, Parameter::Required | Parameter::Fixed) if !aspect => {
                let fixed = if shape == Parameter::Fixed { "fixed " } else { "" };
                let span = self
                    .routine
                    .syntax
                    .as_ref()
                    .map(header)
                    .map(|range| Span::new(self.source, range));
                if let Some(span) = span {
                    self.report(
                        Diagnostic::new(
                            codes::handlers::PARAMETER_MISSING,
                            span,
                            format!("`{event}` is about a thread, and gives it no name"),
                        )
                        .label("the parameter is missing")
                        .hint(format!("write `{event}({fixed}t)`")),
                    );
                }
            }
            _ => {}
        }
        if let Some(parameter) = parameter {
            self.declare_parameter(&parameter, parameter.is_fixed() || shape == Parameter::Fixed);
        }
    }

    pub(super) fn declare_parameter(&mut self, parameter: &ast::Parameter, fixed: bool) {
        let Some(syntax) = parameter.name() else { return };
        let (text, span) = (syntax.text(), self.span(&syntax));
        let name = self.program.names.alloc(Name { name: text.clone(), fixed, span });
        self.routine.parameter = Some(name);
        self.declare(&text, Entity::Thread(name), span);
    }

    /// The event of that name, if the handler is declared as what it is.
    fn event(&mut self, handler: &FlatHandler) -> Option<Event> {
        let Some(event) = Event::from_name(&handler.name) else {
            let own = handler.own.iter().filter_map(|own| Some((own.source, own.node.name()?)));
            let aspects = handler.before.iter().chain(&handler.after);
            let aspects = aspects.filter_map(|aspect| Some((aspect.source, aspect.node.name()?)));
            for (source, name) in own.chain(aspects) {
                self.unknown_handler(&handler.name, name.span(source));
            }
            return None;
        };
        let Some(own) = &handler.own else { return Some(event) };
        let (written, right) = match (own.node.kind(), event.is_query()) {
            (HandlerKind::Event, true) => ("an event", "query"),
            (HandlerKind::Query, false) => ("a query", "event"),
            _ => return Some(event),
        };
        let span = Span::new(own.source, header(own.node.syntax()));
        self.report(
            Diagnostic::new(
                codes::handlers::WRONG_KEYWORD,
                span,
                format!("`{event}` is not {written}"),
            )
            .label(format!("declared as {written}"))
            .hint(format!("write `{right} {event}`")),
        );
        None
    }

    fn unknown_handler(&mut self, name: &str, span: Span) {
        let names = Event::ALL.map(Event::name);
        let hint = match suggest(name, names) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => format!("there are {}", names.join(", ")),
        };
        self.report(
            Diagnostic::new(
                codes::handlers::UNKNOWN_HANDLER,
                span,
                format!("there is no event or query `{name}`"),
            )
            .label("no engine calls it")
            .hint(hint),
        );
    }

    fn aspects_without_handler(&mut self, event: Event, handler: &FlatHandler) {
        for aspect in handler.before.iter().chain(&handler.after) {
            let span = Span::new(aspect.source, header(aspect.node.syntax()));
            self.report(
                Diagnostic::new(
                    codes::handlers::ASPECT_WITHOUT_HANDLER,
                    span,
                    format!("the scheduler has no handler `{event}`"),
                )
                .label("stands around nothing")
                .hint(format!(
                    "it runs all the same; write `event {event}` if that is what is meant"
                )),
            );
        }
    }

    pub(super) fn invariants(&mut self, invariants: &[Sited<ast::Invariant>]) {
        for invariant in invariants {
            self.source = invariant.source;
            self.invariant(&invariant.node);
        }
    }

    fn invariant(&mut self, invariant: &ast::Invariant) -> Option<()> {
        let span = Span::new(self.source, header(invariant.syntax()));
        let name = invariant.container()?;
        let container = self.invariant_container(&name);
        let context = self.context(Purpose::Invariant, false, invariant.syntax());
        let routine = self.in_routine(context, |this| {
            if let Some(body) = invariant.body() {
                this.statements(&body);
            }
        });
        self.refuse_effects(&routine.body);
        let container = container?;
        self.routine.purpose = Purpose::Invariant;
        let check = self.check(CheckKind::InvariantHolds, span);
        self.program.invariants.push(Invariant { container, routine, check, span });
        Some(())
    }

    fn invariant_container(&mut self, name: &ast::Name) -> Option<ContainerId> {
        let span = self.span(name);
        let text = name.text();
        match self.scopes.find(&text).map(|declared| declared.entity) {
            Some(Entity::Container(container)) => Some(container),
            Some(Entity::Broken) => None,
            Some(_) => {
                self.report(
                    Diagnostic::new(
                        codes::types::NOT_A_CONTAINER,
                        span,
                        format!("`{text}` is no container"),
                    )
                    .label("a container is needed here")
                    .hint(
                        "an invariant is checked when threads come and go; it may read \
                         any variable",
                    ),
                );
                None
            }
            None => {
                self.unknown_name(&text, span);
                None
            }
        }
    }

    /// An invariant looks, and changes nothing but its own variables.
    fn refuse_effects(&mut self, block: &Block) {
        for statement in &block.statements {
            let what = match &statement.kind {
                StatementKind::Assign { place: Place::Local(..), .. } => None,
                StatementKind::Assign { .. } => Some("assigns a variable that others see"),
                StatementKind::Transfer { .. } => Some("moves a thread"),
                StatementKind::Destroy { .. } => Some("destroys a thread"),
                StatementKind::Alarm { .. } => Some("sets an alarm"),
                StatementKind::Preempt { .. } => Some("preempts"),
                StatementKind::Random { .. } => Some("advances the random numbers"),
                StatementKind::If { then, otherwise, .. } => {
                    self.refuse_effects(then);
                    self.refuse_effects(otherwise);
                    None
                }
                StatementKind::Loop(each) => {
                    for block in [&each.prelude, &each.body, &each.step] {
                        self.refuse_effects(block);
                    }
                    None
                }
                StatementKind::Foreach { body, .. } => {
                    self.refuse_effects(body);
                    None
                }
                StatementKind::Clear(_)
                | StatementKind::Verbatim { .. }
                | StatementKind::VerbatimValue { .. }
                // Refused outside of `schedule` already.
                | StatementKind::Dispatch { .. }
                | StatementKind::Break
                | StatementKind::Continue
                | StatementKind::Return(_) => None,
            };
            if let Some(what) = what {
                self.report(
                    Diagnostic::new(
                        codes::handlers::INVARIANT_EFFECT,
                        statement.span,
                        format!("the invariant {what}"),
                    )
                    .label("an effect")
                    .hint(
                        "invariants run in debug builds only, and must not change what the \
                         scheduler does",
                    ),
                );
            }
        }
    }
}

/// The first line of a handler, without its body.
pub(super) fn header(syntax: &SyntaxNode) -> rowan::TextRange {
    let whole = syntax.text_range();
    let end = syntax
        .children()
        .take_while(|child| child.kind() != SyntaxKind::COMPOUND)
        .last()
        .map_or(whole.end(), |child| child.text_range().end());
    rowan::TextRange::new(whole.start(), end)
}
