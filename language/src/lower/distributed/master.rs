//! The master: families, shared globals, containers of nodes, and what happens when a node comes and goes.

use std::collections::HashMap;

use super::{Distribution, NodeVariable, Role, node_declarations};
use crate::diagnostic::{Diagnostic, codes, has_errors};
use crate::ir::*;
use crate::lower::Lowering;
use crate::lower::declare::zero;
use crate::lower::routine::{Context, Purpose};
use crate::resolve::{Family, FlatDistributed, FlatHandler, Sited};
use crate::source::Span;
use crate::syntax::SyntaxNode;
use crate::syntax::ast::{self, AstNode, DistributedItem, NodeKind, TypeKind};

impl Lowering {
    pub(super) fn master(
        mut self,
        distributed: &FlatDistributed,
        globals: &[Sited<ast::Declaration>],
        distribution: Distribution,
    ) -> Vec<Diagnostic> {
        for (name, variable) in &distribution.variables {
            if let &NodeVariable::Number { ty, span, extent: Extent::One | Extent::PerCpu, .. } = variable {
                let (name, initial) = (name.clone(), zero(ty));
                let attribute = Attribute { name: name.clone(), ty, initial, import: false, span };
                let attribute = self.program.attributes.alloc(attribute);
                self.attributes.insert(name, Some(attribute));
            }
        }
        self.distribution = Some(Distribution { role: Role::Master, ..distribution });
        self.scopes.enter();
        self.families(&distributed.families);
        self.globals(globals);
        self.source = distributed.master.source;
        for declaration in node_declarations(&distributed.master.node) {
            self.nodes(&declaration);
        }
        for item in distributed.master.node.items() {
            self.source = distributed.master.source;
            match item {
                DistributedItem::Arrival(it) => self.arrival(it.parameter(), it.body(), it.syntax().clone()),
                DistributedItem::Departure(it) => {
                    self.node_event(it.parameter(), it.body(), it.syntax().clone());
                }
                DistributedItem::Handler(node) => self.master_handler(Sited { source: self.source, node }),
                DistributedItem::Families(_) | DistributedItem::Nodes(_) | DistributedItem::Globals(_) => {}
            }
        }
        self.finish().1
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

    /// Declares the shared globals, which are numbers.
    pub(super) fn globals(&mut self, globals: &[Sited<ast::Declaration>]) {
        for declaration in globals {
            self.source = declaration.source;
            let container = declaration.node.ty().filter(|ty| ty.kind().is_some_and(TypeKind::is_container));
            if let Some(ty) = container {
                let span = self.span(&ty);
                self.report(
                    Diagnostic::new(
                        codes::distributed::SHARED_CONTAINER,
                        span,
                        "a container cannot be shared by nodes",
                    )
                    .label("holds threads of one node")
                    .hint("share numbers: the nodes can tell each other how many threads they have"),
                );
                continue;
            }
            self.data(declaration);
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
            let entity = self.container_declaration(kind, &declarator, &text, None, Scope::Scheduler);
            self.declare(&text, entity, span);
        }
    }

    fn master_handler(&mut self, handler: Sited<ast::Handler>) {
        let Some(name) = handler.node.name() else { return };
        let flat =
            FlatHandler { name: name.text(), before: Vec::new(), own: Some(handler), after: Vec::new() };
        self.handlers(&[flat]);
    }

    /// A node that has come sits in a container at the end.
    fn arrival(
        &mut self,
        parameter: Option<ast::Parameter>,
        body: Option<ast::Compound>,
        syntax: SyntaxNode,
    ) {
        let before = self.diagnostics.len();
        let routine = self.node_event(parameter, body, syntax);
        let Some(name) = routine.parameter else { return };
        if has_errors(&self.diagnostics[before..]) || !self.sees_everything() {
            // Statements with errors are left out, so nothing certain can be said.
            return;
        }
        let Name { name: text, span, .. } = self.program.names[name].clone();
        let mut left = Paths::default();
        let start = Paths { stored: false, unstored: true };
        let ends = storing(&routine.body.statements, name, start, &mut left).or(left);
        let message = match ends {
            Paths { unstored: false, .. } => return,
            Paths { stored: false, .. } => format!("the node `{text}` is stored nowhere"),
            Paths { .. } => format!("the node `{text}` is not stored on every path"),
        };
        self.report(
            Diagnostic::new(codes::distributed::NODE_NOT_STORED, span, message)
                .label("a node that has come")
                .hint(format!("move it into a container of `nodes`: `{text} => ..;`")),
        );
    }

    fn node_event(
        &mut self,
        parameter: Option<ast::Parameter>,
        body: Option<ast::Compound>,
        syntax: SyntaxNode,
    ) -> Routine {
        let context = Context { purpose: Purpose::NodeEvent, syntax: Some(syntax), ..Context::default() };
        self.in_routine(context, |this| {
            if let Some(parameter) = parameter {
                this.declare_parameter(&parameter, parameter.is_fixed());
            }
            if let Some(body) = body {
                this.statements(&body);
            }
        })
    }
}

/// On which paths the node may be at a place: those that have stored it, those that have not.
#[derive(Clone, Copy, Debug, Default)]
struct Paths {
    stored: bool,
    unstored: bool,
}

impl Paths {
    fn or(self, other: Paths) -> Paths {
        Paths { stored: self.stored || other.stored, unstored: self.unstored || other.unstored }
    }
}

/// The paths behind the statements, given those before them; the paths that `return` are added to `left`.
fn storing(statements: &[Statement], name: NameId, mut paths: Paths, left: &mut Paths) -> Paths {
    for statement in statements {
        paths = match &statement.kind {
            StatementKind::Transfer { source, .. } if matches!(source.kind, ThreadKind::Name(it) if it == name) => {
                Paths { stored: paths.stored || paths.unstored, unstored: false }
            }
            StatementKind::If { then, otherwise, .. } => {
                let then = storing(&then.statements, name, paths, left);
                then.or(storing(&otherwise.statements, name, paths, left))
            }
            StatementKind::Loop(each) => {
                let turn = storing(&each.body.statements, name, paths, left);
                if each.test == Test::First { paths.or(turn) } else { turn }
            }
            StatementKind::Foreach { body, .. } => paths.or(storing(&body.statements, name, paths, left)),
            StatementKind::Return(_) => {
                *left = left.or(paths);
                Paths::default()
            }
            _ => paths,
        };
    }
    paths
}
