//! Distributed schedulers: a master, whose containers hold nodes, and the node schedulers, whose containers hold threads.
//!
//! Both are lowered like an ordinary scheduler, each with the names that it sees of the whole. In the master a node's
//! variables are what attributes are to a thread. In a node scheduler a name is a shared global, then a global of the node,
//! then a local. Nothing runs them yet, so no program comes out, only findings.

use std::collections::{HashMap, HashSet};

use super::Lowering;
use super::routine::{Context, Purpose};
use super::scope::Entity;
use crate::diagnostic::{Diagnostic, codes, suggest};
use crate::ir::*;
use crate::resolve::{Family, FlatDistributed, FlatHandler, Sited};
use crate::source::Span;
use crate::syntax::ast::{self, AstNode, DistributedItem, Expr as Syntax, NodeKind, TypeKind};

/// What a scheduler sees of the distributed scheduler that it belongs to.
#[derive(Clone, Debug)]
pub(super) struct Distribution {
    role: Role,
    families: Vec<String>,
    /// The master's containers of nodes.
    nodes: HashSet<String>,
    /// The shared globals.
    globals: HashSet<String>,
    /// What nodes have, whatever their family.
    variables: HashMap<String, NodeVariable>,
    /// Whether every family's scheduler could be read, so that nothing is missing above.
    complete: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Master,
    Node,
}

/// A variable or a container at the top of a node scheduler.
#[derive(Clone, Copy, Debug)]
enum NodeVariable {
    Number { ty: Type, storage: Storage, extent: Extent, span: Span },
    Container { kind: ContainerKind, extent: Extent, span: Span },
}

/// What a scheduler's containers hold: the words for messages.
pub(super) struct Vocabulary {
    pub threads: &'static str,
    /// How to declare a variable that each has; NAME stands for it.
    pub declare_attribute: &'static str,
}

/// What there is to say about a master and its node schedulers.
pub(crate) fn distributed(distributed: &FlatDistributed) -> Vec<Diagnostic> {
    let mut distribution = Distribution {
        role: Role::Node,
        families: distributed.families.iter().map(|family| family.name.clone()).collect(),
        nodes: node_names(&distributed.master),
        globals: HashSet::new(),
        variables: HashMap::new(),
        complete: distributed.families.iter().all(|family| family.scheduler.is_some()),
    };
    let globals = globals_of(&distributed.master);
    for declaration in &globals {
        let names = declaration.node.declarators().filter_map(|declarator| declarator.name());
        distribution.globals.extend(names.map(|name| name.text()));
    }

    // Declarations first: what the families' nodes have is known before any handler is looked at.
    let schedulers = distributed.families.iter().filter_map(|family| family.scheduler.as_ref());
    let mut nodes: Vec<_> = schedulers
        .map(|flat| {
            let mut node = Lowering::new(flat.name_span.source);
            node.distribution = Some(distribution.clone());
            node.enter_node(&globals);
            node.declarations(flat);
            distribution.add_variables(&node.program);
            (flat, node)
        })
        .collect();

    let master = Lowering::new(distributed.master.source);
    let mut diagnostics = master.master(distributed, &globals, distribution.clone());
    for (flat, mut node) in nodes.drain(..) {
        node.distribution = Some(distribution.clone());
        node.handlers(&flat.handlers);
        node.invariants(&flat.invariants);
        diagnostics.append(&mut node.diagnostics);
    }
    diagnostics
}

fn globals_of(master: &Sited<ast::Distributed>) -> Vec<Sited<ast::Declaration>> {
    let sections = master.node.items().filter_map(|item| match item {
        DistributedItem::Globals(globals) => Some(globals),
        _ => None,
    });
    let declarations = sections.flat_map(|section| section.declarations().collect::<Vec<_>>());
    declarations.map(|node| Sited { source: master.source, node }).collect()
}

fn node_declarations(master: &ast::Distributed) -> Vec<ast::NodeDeclaration> {
    let sections = master.items().filter_map(|item| match item {
        DistributedItem::Nodes(nodes) => Some(nodes),
        _ => None,
    });
    sections.flat_map(|section| section.declarations().collect::<Vec<_>>()).collect()
}

fn node_names(master: &Sited<ast::Distributed>) -> HashSet<String> {
    let declarators =
        node_declarations(&master.node).into_iter().flat_map(|it| it.declarators().collect::<Vec<_>>());
    declarators.filter_map(|declarator| declarator.name()).map(|name| name.text()).collect()
}

impl Distribution {
    /// What is at the top of a node scheduler. A name that several families have is what the first of them says.
    fn add_variables(&mut self, program: &Program) {
        for (_, global) in program.globals.iter().filter(|(_, global)| !self.globals.contains(&global.name)) {
            let &Global { ty, storage, extent, span, .. } = global;
            let variable = NodeVariable::Number { ty, storage, extent, span };
            self.variables.entry(global.name.clone()).or_insert(variable);
        }
        for (_, container) in program.containers.iter() {
            let &Container { kind, extent, span, .. } = container;
            let variable = NodeVariable::Container { kind, extent, span };
            self.variables.entry(container.name.clone()).or_insert(variable);
        }
    }
}

// The master.
impl Lowering {
    fn master(
        mut self,
        distributed: &FlatDistributed,
        globals: &[Sited<ast::Declaration>],
        distribution: Distribution,
    ) -> Vec<Diagnostic> {
        for (name, variable) in &distribution.variables {
            if let &NodeVariable::Number { ty, span, extent: Extent::One | Extent::PerCpu, .. } = variable {
                let (name, initial) = (name.clone(), super::declare::zero(ty));
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
        self.diagnostics
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
    fn globals(&mut self, globals: &[Sited<ast::Declaration>]) {
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
        syntax: crate::syntax::SyntaxNode,
    ) {
        let routine = self.node_event(parameter, body, syntax);
        let Some(name) = routine.parameter else { return };
        let Name { name: text, span, .. } = self.program.names[name].clone();
        let message = match stored(&routine.body.statements, name) {
            Stored::Always => return,
            Stored::Never => format!("the node `{text}` is stored nowhere"),
            Stored::Sometimes => format!("the node `{text}` is not stored on every path"),
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
        syntax: crate::syntax::SyntaxNode,
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

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stored {
    Never,
    Sometimes,
    Always,
}

/// Whether the statements move the named node into a container, on the paths that reach their end or leave.
fn stored(statements: &[Statement], name: NameId) -> Stored {
    let mut so_far = Stored::Never;
    for statement in statements {
        let here = match &statement.kind {
            StatementKind::Transfer { source, .. } if matches!(source.kind, ThreadKind::Name(it) if it == name) => {
                Stored::Always
            }
            StatementKind::If { then, otherwise, .. } => {
                match (stored(&then.statements, name), stored(&otherwise.statements, name)) {
                    (then, otherwise) if then == otherwise => then,
                    _ => Stored::Sometimes,
                }
            }
            StatementKind::Loop(each) => at_most_sometimes(stored(&each.body.statements, name)),
            StatementKind::Foreach { body, .. } => at_most_sometimes(stored(&body.statements, name)),
            StatementKind::Return(_) => return so_far,
            _ => Stored::Never,
        };
        so_far = match (so_far, here) {
            (Stored::Always, _) | (_, Stored::Always) => return Stored::Always,
            (Stored::Never, Stored::Never) => Stored::Never,
            _ => Stored::Sometimes,
        };
    }
    so_far
}

fn at_most_sometimes(body: Stored) -> Stored {
    if body == Stored::Never { Stored::Never } else { Stored::Sometimes }
}

// Names that say whose they are.
impl Lowering {
    /// Opens a node scheduler's scopes: the shared globals, which the master has reported on, and its own.
    fn enter_node(&mut self, globals: &[Sited<ast::Declaration>]) {
        self.scopes.enter();
        self.globals(globals);
        self.diagnostics.clear();
        self.scopes.enter();
        self.scopes.outer_first = 2;
    }

    pub(super) fn vocabulary(&self) -> Vocabulary {
        match &self.distribution {
            Some(Distribution { role: Role::Master, .. }) => Vocabulary {
                threads: "nodes",
                declare_attribute: "declare it in `data` of a node scheduler: `int NAME;`",
            },
            _ => Vocabulary {
                threads: "threads",
                declare_attribute: "declare it for every thread: `thread { int NAME; }`",
            },
        }
    }

    /// Whether it is `GLOBAL.x` or `node.x` rather than a thread's attribute.
    pub(super) fn is_qualified(&self, field: &ast::FieldExpr) -> bool {
        let Some(Syntax::Name(base)) = field.base() else { return false };
        let base = base.text();
        if self.scopes.find(&base).is_some() {
            return false;
        }
        base == "GLOBAL" || self.names_node(&base)
    }

    /// False in a master whose node schedulers could not all be read: what is unknown may stand there.
    pub(super) fn sees_everything(&self) -> bool {
        self.distribution.as_ref().is_none_or(|distribution| distribution.complete)
    }

    /// In a node scheduler: whether it is a name of the master's `nodes`.
    fn names_node(&self, name: &str) -> bool {
        let distribution = self.distribution.as_ref().filter(|it| it.role == Role::Node);
        distribution.is_some_and(|distribution| distribution.nodes.contains(name))
    }

    pub(super) fn qualified(&mut self, field: &ast::FieldExpr) -> Option<(Entity, String)> {
        let name = field.field()?;
        let text = name.text();
        let span = self.span(&name);
        let Some(distribution) = &self.distribution else {
            let span = self.span(field);
            self.not_distributed(span, "`GLOBAL`");
            return None;
        };
        if field.is_global() {
            if distribution.globals.contains(&text)
                && let Some(global) = self.scopes.find_at(0, &text)
            {
                return Some((global.entity, text));
            }
            let meant = suggest(&text, distribution.globals.iter().map(String::as_str)).map(str::to_string);
            self.unknown_shared(&text, span, meant);
            return None;
        }
        if let Some(&variable) = distribution.variables.get(&text) {
            return Some((self.foreign(&text, variable), text));
        }
        if self.sees_everything() {
            self.unknown_node_variable(&text, span);
        }
        None
    }

    /// Another node's variable.
    fn foreign(&mut self, name: &str, variable: NodeVariable) -> Entity {
        let name = name.to_string();
        match variable {
            NodeVariable::Number { ty, storage, extent, span } => {
                let initial = super::declare::zero(ty);
                let global = Global { name, ty, storage, extent, initial, span };
                Entity::Global(self.program.globals.alloc(global))
            }
            NodeVariable::Container { kind, extent, span } => {
                let scope = Scope::Scheduler;
                let container = Container { name, kind, sort: None, extent, scope, span };
                Entity::Container(self.program.containers.alloc(container))
            }
        }
    }

    /// In the master, `|n.C|`: how many threads a node has in its container C.
    pub(super) fn node_container_size(&mut self, container: &Syntax, span: Span) -> Option<Option<ExprId>> {
        let distribution = self.distribution.as_ref().filter(|it| it.role == Role::Master)?;
        let Syntax::Field(field) = container else { return None };
        let name = field.field()?.text();
        if !matches!(distribution.variables.get(&name), Some(NodeVariable::Container { .. })) {
            return None;
        }
        let node = self.thread(&field.base()?);
        Some(node.map(|_| self.unknown_number(span)))
    }

    /// `n is family`.
    pub(super) fn is_of_family(&mut self, is: &ast::IsExpr) -> Option<ExprId> {
        let span = self.span(is);
        let Some(distribution) = &self.distribution else {
            self.not_distributed(span, "`is`");
            return None;
        };
        let families = distribution.families.clone();
        let family = is.family()?;
        let (text, family_span) = (family.text(), self.span(&family));
        let node = is.node()?;
        let known = match &node {
            Syntax::Name(name) if self.names_node(&name.text()) => true,
            node => self.thread(node).is_some(),
        };
        if !families.contains(&text) {
            let hint = match suggest(&text, families.iter().map(String::as_str)) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => "families are named in `nodefamilies`".to_string(),
            };
            self.report(
                Diagnostic::new(
                    codes::distributed::UNKNOWN_FAMILY,
                    family_span,
                    format!("there is no family `{text}`"),
                )
                .label("unknown family")
                .hint(hint),
            );
            return None;
        }
        known.then(|| self.unknown_number(span))
    }

    /// A number that only a running node could tell.
    fn unknown_number(&mut self, span: Span) -> ExprId {
        let temporary = self.temporary(Type::Int, span);
        self.read_local(temporary, span)
    }

    fn unknown_shared(&mut self, name: &str, span: Span, meant: Option<String>) {
        let hint = match meant {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => format!("declare it in the master: `global {{ int {name}; }}`"),
        };
        self.report(
            Diagnostic::new(
                codes::distributed::UNKNOWN_SHARED,
                span,
                format!("the nodes share no variable `{name}`"),
            )
            .label("unknown variable")
            .hint(hint),
        );
    }

    fn unknown_node_variable(&mut self, name: &str, span: Span) {
        let known = self.distribution.iter().flat_map(|it| it.variables.keys()).map(String::as_str);
        let hint = match suggest(name, known) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => "a node's variables are those in `data` and `imports` of its scheduler".to_string(),
        };
        self.report(
            Diagnostic::new(
                codes::distributed::UNKNOWN_NODE_VARIABLE,
                span,
                format!("no node has a variable `{name}`"),
            )
            .label("unknown variable")
            .hint(hint),
        );
    }

    /// A declaration that no use can reach, for an outer name comes first.
    pub(super) fn warn_hidden(&mut self, name: &str, span: Span) {
        let Some(found) = self.scopes.find(name).filter(|found| found.span != span) else { return };
        self.report(
            Diagnostic::new(
                codes::distributed::HIDDEN,
                span,
                format!("`{name}` is hidden by a name further out"),
            )
            .label("cannot be reached")
            .also(found.span, "this one is meant wherever the name stands")
            .hint("in a node scheduler a shared global comes first, then the node's own, then a local"),
        );
    }

    fn not_distributed(&mut self, span: Span, what: &str) {
        self.report(
            Diagnostic::new(
                codes::distributed::NOT_DISTRIBUTED,
                span,
                format!("{what} means something in distributed schedulers only"),
            )
            .hint("check the master, which names its node schedulers in `nodefamilies`"),
        );
    }
}
