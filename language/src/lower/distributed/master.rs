//! The master: families, shared globals, containers of nodes, and what happens when a node comes
//! and goes.

use std::collections::{HashMap, HashSet};

use super::{Distribution, Member, node_declarations};
use crate::diagnostic::{Diagnostic, codes};
use crate::engine::event::Event;
use crate::ir::*;
use crate::lower::Lowering;
use crate::lower::routine::Purpose;
use crate::resolve::{Family, FlatDistributed, Sited};
use crate::source::Span;
use crate::syntax::SyntaxNode;
use crate::syntax::ast::{self, AstNode, DistributedItem, NodeKind, TypeKind};

impl Lowering {
    /// The master's program, what there is to say, and what it sees of its nodes.
    pub(super) fn master(
        mut self,
        of: &FlatDistributed,
        globals: &[Sited<ast::Declaration>],
        distribution: Distribution,
    ) -> (Option<Program>, Vec<Diagnostic>, HashSet<String>) {
        self.program.name = of.name.clone();
        self.program.membership.families = distribution.families.clone();
        self.distribution = Some(Distribution { member: Member::Master, ..distribution });
        self.scopes.enter();
        self.families(&of.families);
        self.globals(globals);
        self.source = of.master.source;
        for declaration in node_declarations(&of.master.node) {
            self.nodes(&declaration);
        }
        let mut arrives = false;
        let mut written: HashMap<String, Span> = HashMap::new();
        for item in of.master.node.items() {
            self.source = of.master.source;
            match item {
                DistributedItem::Arrival(it) => {
                    arrives = true;
                    self.node_event(Event::NewThread, it.parameter(), it.body(), it.syntax());
                }
                DistributedItem::Departure(it) => {
                    self.node_event(Event::SetDead, it.parameter(), it.body(), it.syntax());
                }
                DistributedItem::Handler(it) => self.default_handler(&it, &mut written),
                DistributedItem::Families(_)
                | DistributedItem::Nodes(_)
                | DistributedItem::Globals(_) => {}
            }
        }
        if !arrives {
            let span = of.master.node.name().map_or(of.master.span(), |name| self.span(&name));
            self.report(
                Diagnostic::new(
                    codes::distributed::NODE_NOT_STORED,
                    span,
                    "the master has no `arrival`, so no node that comes is stored",
                )
                .hint("write `arrival (n) { n => ..; }`"),
            );
        }
        let observed = self.take_observed();
        let (program, diagnostics) = self.finish();
        (program, diagnostics, observed)
    }

    fn families(&mut self, families: &[Family]) {
        let mut seen: HashMap<&str, Span> = HashMap::new();
        for family in families {
            if let Some(&earlier) = seen.get(family.name.as_str()) {
                self.duplicate(&family.name, family.name_span, Some(earlier));
            }
            seen.entry(&family.name).or_insert(family.name_span);
        }
    }

    /// Declares the shared globals, which are numbers that the cluster supplies.
    pub(super) fn globals(&mut self, globals: &[Sited<ast::Declaration>]) {
        for declaration in globals {
            self.source = declaration.source;
            let container =
                declaration.node.ty().filter(|ty| ty.kind().is_some_and(TypeKind::is_container));
            if let Some(ty) = container {
                let span = self.span(&ty);
                self.report(
                    Diagnostic::new(
                        codes::distributed::SHARED_CONTAINER,
                        span,
                        "a container cannot be shared by nodes",
                    )
                    .label("holds threads of one node")
                    .hint(
                        "share numbers: the nodes can tell each other how many threads they have",
                    ),
                );
                continue;
            }
            self.data(declaration);
        }
        if !self.program.prologue.body.statements.is_empty() {
            let span = self.program.prologue.body.statements[0].span;
            self.not_constant(span, "the initial value of a shared variable");
            self.program.prologue = Routine::default();
        }
        self.refuse_arrays();
        for (id, global) in self.program.globals.iter_mut() {
            if matches!(global.storage, Storage::Data | Storage::Tunable) {
                global.storage = Storage::Import;
                self.program.membership.remotes.push(Remote {
                    global: id,
                    node: None,
                    property: NodeProperty::Variable(global.name.clone()),
                });
            }
        }
    }

    /// The nodes of a cluster share single numbers.
    fn refuse_arrays(&mut self) {
        let globals = self.program.globals.values();
        let arrays: Vec<(Span, String, Extent)> = globals
            .filter(|global| global.extent != Extent::One)
            .map(|global| (global.span, global.name.clone(), global.extent))
            .collect();
        for (span, name, extent) in arrays {
            let each = match extent {
                Extent::Array(length) if length > 1 => format!("`int {name}0, {name}1;`"),
                _ => format!("`int {name};`"),
            };
            self.report(
                Diagnostic::new(
                    codes::distributed::SHARED_ARRAY,
                    span,
                    format!("`{name}` has several elements, and nodes share single numbers"),
                )
                .label("declared here")
                .hint(format!("declare a variable for each: {each}")),
            );
        }
    }

    fn nodes(&mut self, declaration: &ast::NodeDeclaration) {
        let Some(kind) = declaration.kind() else { return };
        let kind = match kind {
            NodeKind::Node => TypeKind::Threadref,
            NodeKind::Queue => TypeKind::Queue,
            NodeKind::Stack => TypeKind::Stack,
            NodeKind::Pqueue => TypeKind::Pqueue,
            NodeKind::Pstack => TypeKind::Pstack,
        };
        for declarator in declaration.declarators() {
            let Some(name) = declarator.name() else { continue };
            let (text, span) = (name.text(), self.span(&name));
            let entity =
                self.container_declaration(kind, &declarator, &text, None, Scope::Scheduler);
            self.declare(&text, entity, span);
        }
    }

    /// A handler of the nodes that have none of their own is lowered with them, in their scope.
    fn default_handler(&mut self, handler: &ast::Handler, written: &mut HashMap<String, Span>) {
        let Some(name) = handler.name() else { return };
        let span = self.span(&name);
        if let Some(&first) = written.get(&name.text()) {
            self.report(
                Diagnostic::new(
                    codes::files::DUPLICATE_HANDLER,
                    span,
                    format!("`{}` has a handler already", name.text()),
                )
                .label("a second handler")
                .also(first, "the first one")
                .hint("join the two"),
            );
        }
        written.entry(name.text()).or_insert(span);
    }

    /// To the master, a node that comes is a new thread, and one that goes is a dead one.
    fn node_event(
        &mut self,
        event: Event,
        parameter: Option<ast::Parameter>,
        body: Option<ast::Compound>,
        syntax: &SyntaxNode,
    ) {
        let name = if event == Event::NewThread { "arrival" } else { "departure" };
        let span = Span::new(self.source, super::super::routine::header(syntax));
        if let Some(earlier) = self.program.handler(event).map(|handler| handler.span) {
            return self.duplicate(name, span, Some(earlier));
        }
        let destroys = event == Event::SetDead;
        let context = self.context(Purpose::Handler(event), destroys, syntax);
        let routine = self.in_routine(context, |this| {
            if let Some(parameter) = parameter {
                this.declare_parameter(&parameter, parameter.is_fixed());
            }
            if let Some(body) = body {
                this.statements(&body);
            }
        });
        self.add_handler(event, vec![Part { role: Role::Own, routine, span }], span);
    }
}
