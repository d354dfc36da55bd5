//! Names that say whose they are: `GLOBAL.x`, `node.x`, `n is family`.

use std::collections::HashSet;

use super::families::FamilySet;
use super::{Distribution, Member, Vocabulary};
use crate::diagnostic::{Diagnostic, codes, suggest};
use crate::ir::*;
use crate::lower::Lowering;
use crate::lower::declare::zero;
use crate::lower::scope::Entity;
use crate::resolve::Sited;
use crate::source::Span;
use crate::syntax::ast::{self, AstNode, Expr as Syntax};

impl Lowering {
    /// Opens a node scheduler's scopes: the shared globals, which the master has reported on, and
    /// its own.
    pub(super) fn enter_node(&mut self, globals: &[Sited<ast::Declaration>]) {
        self.scopes.enter();
        self.globals(globals);
        self.diagnostics.clear();
        self.failed = false;
        self.scopes.enter();
        self.scopes.outer_first = 2;
    }

    pub(in crate::lower) fn vocabulary(&self) -> Vocabulary {
        match &self.distribution {
            Some(Distribution { member: Member::Master, .. }) => Vocabulary {
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
    pub(in crate::lower) fn is_qualified(&self, field: &ast::FieldExpr) -> bool {
        let Some(Syntax::Name(base)) = field.base() else { return false };
        let base = base.text();
        if self.scopes.find(&base).is_some() {
            return false;
        }
        base == "GLOBAL" || self.names_node(&base)
    }

    /// False where a base, or in a master a node scheduler, could not be read: what is unknown may
    /// be declared there.
    pub(in crate::lower) fn sees_everything(&self) -> bool {
        self.complete && self.distribution.as_ref().is_none_or(|distribution| distribution.complete)
    }

    /// In a node scheduler: whether it is a name of the master's `nodes`.
    fn names_node(&self, name: &str) -> bool {
        let distribution = self.distribution.as_ref().filter(|it| it.member == Member::Node);
        distribution.is_some_and(|distribution| distribution.nodes.contains(name))
    }

    fn is_master(&self) -> bool {
        self.distribution.as_ref().is_some_and(|it| it.member == Member::Master)
    }

    /// Names of nodes' variables and containers that were seen from elsewhere.
    pub(super) fn take_observed(&mut self) -> HashSet<String> {
        self.distribution.as_mut().map(|it| std::mem::take(&mut it.observed)).unwrap_or_default()
    }

    pub(in crate::lower) fn qualified(
        &mut self,
        field: &ast::FieldExpr,
    ) -> Option<(Entity, String)> {
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
            let meant =
                suggest(&text, distribution.globals.iter().map(String::as_str)).map(str::to_string);
            self.unknown_shared(&text, span, meant);
            return None;
        }
        let node = field.base()?;
        let families = self.families_of(&node);
        if let Some((ty, declared)) = distribution.number(&text, families) {
            let node = node.syntax().text().to_string();
            let property = NodeProperty::Variable(text.clone());
            let global = self.remote(Some(node), property, ty, declared);
            return Some((Entity::Global(global), text));
        }
        if distribution.has_container(&text, families) {
            self.foreign_container(&text, span);
        } else if self.sees_everything() {
            self.unknown_node_variable(&text, span);
        }
        None
    }

    /// In a node's program: the import of something that the cluster supplies, declared once.
    fn remote(
        &mut self,
        node: Option<String>,
        property: NodeProperty,
        ty: Type,
        span: Span,
    ) -> GlobalId {
        self.observe(&property);
        let known = self.program.membership.remotes.iter().find(|remote| {
            remote.node == node
                && remote.property == property
                && self.program.globals[remote.global].ty == ty
        });
        if let Some(known) = known {
            return known.global;
        }
        let what = property_name(&property);
        let name = node.as_ref().map_or(what.clone(), |node| format!("{node}_{what}"));
        let taken = |name: &str| self.program.globals.values().any(|global| global.name == name);
        let name = std::iter::successors(Some(name), |name| Some(format!("{name}_")))
            .find(|name| !taken(name))
            .unwrap_or_default();
        // Where there is no such node, its family is none.
        let initial = match property {
            NodeProperty::Family => Value::Int(-1),
            _ => zero(ty),
        };
        let (storage, extent) = (Storage::Import, Extent::One);
        let global = self.program.globals.alloc(Global {
            name,
            ty,
            storage,
            extent,
            initial,
            terms: Terms::default(),
            span,
        });
        self.program.membership.remotes.push(Remote { global, node, property });
        global
    }

    /// In the master: the thread import that is this of a node, declared once.
    fn node_property(&mut self, property: NodeProperty, ty: Type, span: Span) -> AttributeId {
        self.observe(&property);
        let known = self.program.membership.properties.iter().find(|(attribute, known)| {
            *known == property && self.program.attributes[*attribute].ty == ty
        });
        if let Some((attribute, _)) = known {
            return *attribute;
        }
        let name = property_name(&property);
        let taken = |name: &str| self.program.attributes.values().any(|each| each.name == name);
        let name = std::iter::successors(Some(name), |name| Some(format!("{name}_")))
            .find(|name| !taken(name))
            .unwrap_or_default();
        let initial = zero(ty);
        let attribute = self.program.attributes.alloc(Attribute {
            name,
            ty,
            initial,
            import: true,
            terms: Terms::default(),
            span,
        });
        self.program.membership.properties.push((attribute, property));
        attribute
    }

    fn observe(&mut self, property: &NodeProperty) {
        let (NodeProperty::Variable(name)
        | NodeProperty::Size(name)
        | NodeProperty::Suspended(name)
        | NodeProperty::Age(name)) = property
        else {
            return;
        };
        if let Some(distribution) = &mut self.distribution {
            distribution.observed.insert(name.clone());
        }
    }

    /// In the master, the variable of a node. None in any other scheduler.
    pub(in crate::lower) fn node_variable(
        &mut self,
        node: Option<&Syntax>,
        name: &ast::Name,
    ) -> Option<Option<AttributeId>> {
        if !self.is_master() {
            return None;
        }
        let families = node.map_or(FamilySet::ALL, |node| self.families_of(node));
        let text = name.text();
        let found = self.distribution.as_ref().and_then(|it| it.number(&text, families));
        if let Some((ty, declared)) = found {
            return Some(Some(self.node_property(NodeProperty::Variable(text), ty, declared)));
        }
        let span = self.span(name);
        let container =
            self.distribution.as_ref().is_some_and(|it| it.has_container(&text, families));
        if container {
            self.foreign_container(&text, span);
        } else if self.sees_everything() {
            self.unknown_node_variable(&text, span);
        }
        Some(None)
    }

    /// `|n.C|`: how many threads a node has in its container C. None if it is no container of a
    /// node's.
    pub(in crate::lower) fn node_container_size(
        &mut self,
        container: &Syntax,
        span: Span,
    ) -> Option<Option<ExprId>> {
        let (node, property) = self.container_of_node(container, NodeProperty::Size)?;
        Some(self.read_property(&node, property, Type::Int, span))
    }

    /// A container of a node, as `node.C` names it, made a property.
    fn container_of_node(
        &self,
        container: &Syntax,
        property: impl FnOnce(String) -> NodeProperty,
    ) -> Option<(Syntax, NodeProperty)> {
        let Syntax::Field(field) = container else { return None };
        let (node, name) = (field.base()?, field.field()?.text());
        let names_node = match &node {
            Syntax::Name(name) => self.names_node(&name.text()),
            _ => false,
        };
        if !names_node && !self.is_master() {
            return None;
        }
        let distribution = self.distribution.as_ref()?;
        let known = distribution.has_container(&name, self.families_of(&node));
        known.then(|| (node, property(name)))
    }

    fn read_property(
        &mut self,
        node: &Syntax,
        property: NodeProperty,
        ty: Type,
        span: Span,
    ) -> Option<ExprId> {
        let place = self.property_place(node, property, ty, span)?;
        Some(self.expr(ExprKind::Read(place), ty, span))
    }

    fn property_place(
        &mut self,
        node: &Syntax,
        property: NodeProperty,
        ty: Type,
        span: Span,
    ) -> Option<Place> {
        if !self.is_master() {
            let node = node.syntax().text().to_string();
            return Some(Place::Global(self.remote(Some(node), property, ty, span), None));
        }
        let thread = self.thread(node)?;
        let attribute = self.node_property(property, ty, span);
        let kind = match thread.kind {
            ThreadKind::Name(_) => CheckKind::NamedUse,
            ThreadKind::First(_) => CheckKind::FirstFilled,
        };
        let check = Some(self.check(kind, span));
        Some(Place::Attribute(ThreadExpr { check, ..thread }, attribute))
    }

    /// `n is family`.
    pub(in crate::lower) fn is_of_family(&mut self, is: &ast::IsExpr) -> Option<ExprId> {
        let span = self.span(is);
        let Some(distribution) = &self.distribution else {
            self.not_distributed(span, "`is`");
            return None;
        };
        let families = distribution.families.clone();
        let family = is.family()?;
        let (text, family_span) = (family.text(), self.span(&family));
        let node = is.node()?;
        let Some(number) = families.iter().position(|known| *known == text) else {
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
        };
        if !self.is_master() {
            let named = matches!(&node, Syntax::Name(name) if self.names_node(&name.text()));
            if !named {
                self.not_a_node(&node);
                return None;
            }
        }
        let read = self.read_property(&node, NodeProperty::Family, Type::Int, span)?;
        let number = Value::Int(number as i64);
        let number = self.expr(ExprKind::Constant(number), Type::Int, family_span);
        Some(self.expr(ExprKind::Binary(BinaryOp::Equal, read, number), Type::Int, span))
    }

    fn not_a_node(&mut self, syntax: &Syntax) {
        let span = self.span(syntax);
        self.report(
            Diagnostic::new(codes::distributed::NOT_A_NODE, span, "this is no node")
                .label("a node is needed here")
                .hint("in a node scheduler the nodes are those that the master declares as `node`"),
        );
    }

    /// `age(x)`: how long ago the value of a remote variable was heard of.
    pub(in crate::lower) fn age(&mut self, of: &Syntax, span: Span) -> Option<ExprId> {
        if self.distribution.is_none() {
            self.not_distributed(span, "`age`");
            return None;
        }
        if let Syntax::Field(field) = of
            && let Some(node) = field.base()
            && self.is_master()
            && !field.is_global()
        {
            let name = field.field()?;
            self.node_variable(Some(&node), &name)??;
            return self.read_property(&node, NodeProperty::Age(name.text()), Type::Time, span);
        }
        let (entity, _) = self.entity(of)?;
        let remotes = &self.program.membership.remotes;
        let remote = match entity {
            Entity::Global(global) => remotes.iter().find(|remote| remote.global == global),
            _ => None,
        };
        let Some(Remote { node, property: NodeProperty::Variable(name), .. }) = remote.cloned()
        else {
            let span = self.span(of);
            self.report(
                Diagnostic::new(
                    codes::distributed::NOT_REMOTE,
                    span,
                    "this variable is the node's own, and has no age",
                )
                .label("always as it is now")
                .hint("ask the age of a shared variable or of another node's: `age(GLOBAL.x)`"),
            );
            return None;
        };
        let global = self.remote(node, NodeProperty::Age(name), Type::Time, span);
        Some(self.expr(ExprKind::Read(Place::Global(global, None)), Type::Time, span))
    }

    /// `suspend n.C;`, `resume n.C;`
    pub(in crate::lower) fn command(
        &mut self,
        command: &ast::CommandStmt,
        span: Span,
    ) -> Option<()> {
        let target = command.target()?;
        if self.distribution.is_none() {
            let word = if command.suspends() { "`suspend`" } else { "`resume`" };
            self.not_distributed(span, word);
            return None;
        }
        let Some((node, property)) = self.container_of_node(&target, NodeProperty::Suspended)
        else {
            let span = self.span(&target);
            self.report(
                Diagnostic::new(
                    codes::distributed::NOT_A_NODE,
                    span,
                    "a command is about the threads in a container of a node",
                )
                .label("no container of a node")
                .hint("name the node and its container: `suspend n.RQ;`"),
            );
            return None;
        };
        let place = self.property_place(&node, property, Type::Int, span)?;
        let value = Value::Int(i64::from(command.suspends()));
        let value = self.expr(ExprKind::Constant(value), Type::Int, span);
        self.emit(StatementKind::Assign { place, value }, span)
    }

    /// `atomic { .. }`: assignments that other nodes see together. All that a handler writes goes
    /// out together, so nothing but the promise has to be checked.
    pub(in crate::lower) fn atomic(&mut self, atomic: &ast::AtomicStmt, span: Span) -> Option<()> {
        if self.distribution.is_none() {
            self.not_distributed(span, "`atomic`");
            return None;
        }
        let (block, ()) = self.in_block(|this| this.compound(atomic.body()));
        for statement in &block.statements {
            let written = match &statement.kind {
                StatementKind::Assign { place: Place::Global(global, None), .. } => {
                    self.is_remote(*global)
                }
                StatementKind::Assign { place: Place::Attribute(..), .. } => self.is_master(),
                StatementKind::Assign { place: Place::Local(local, None), .. } => {
                    self.program.locals[*local].temporary
                }
                _ => false,
            };
            if !written {
                self.report(
                    Diagnostic::new(
                        codes::distributed::ATOMIC,
                        statement.span,
                        "an atomic block holds assignments to shared variables only",
                    )
                    .label("something else")
                    .hint("move it before or behind the block"),
                );
            }
        }
        self.out.extend(block.statements);
        Some(())
    }

    fn is_remote(&self, global: GlobalId) -> bool {
        self.program.membership.remotes.iter().any(|remote| remote.global == global)
    }

    fn foreign_container(&mut self, name: &str, span: Span) {
        self.report(
            Diagnostic::new(
                codes::distributed::FOREIGN_CONTAINER,
                span,
                format!("the container `{name}` is another node's"),
            )
            .label("its threads can only be counted")
            .hint(format!("`|node.{name}|` is their number, and `suspend node.{name};` a command")),
        );
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
            None => {
                "a node's variables are those in `data` and `imports` of its scheduler".to_string()
            }
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
    pub(in crate::lower) fn warn_hidden(&mut self, name: &str, span: Span) {
        let Some(found) = self.scopes.find(name).filter(|found| found.span != span) else { return };
        self.report(
            Diagnostic::new(
                codes::distributed::HIDDEN,
                span,
                format!("`{name}` is hidden by a name further out"),
            )
            .label("cannot be reached")
            .also(found.span, "this one is meant wherever the name stands")
            .hint(
                "in a node scheduler a shared global comes first, then the node's own, \
                 then a local",
            ),
        );
    }

    fn not_distributed(&mut self, span: Span, what: &str) {
        self.report(
            Diagnostic::new(
                codes::distributed::NOT_DISTRIBUTED,
                span,
                format!("{what} means something in distributed schedulers only"),
            )
            .label("this is an ordinary scheduler")
            .hint("check the master, which names its node schedulers in `nodefamilies`"),
        );
    }
}

/// What an import of a property is called: a name in every target's language.
fn property_name(property: &NodeProperty) -> String {
    match property {
        NodeProperty::Family => "family".to_string(),
        NodeProperty::Variable(name) => name.clone(),
        NodeProperty::Size(name) => format!("{name}_size"),
        NodeProperty::Suspended(name) => format!("{name}_suspended"),
        NodeProperty::Age(name) => format!("{name}_age"),
    }
}
