//! Names that say whose they are: `GLOBAL.x`, `node.x`, `n is family`.

use super::{Distribution, NodeVariable, Role, Vocabulary};
use crate::diagnostic::{Diagnostic, codes, suggest};
use crate::ir::*;
use crate::lower::Lowering;
use crate::lower::declare::zero;
use crate::lower::scope::Entity;
use crate::resolve::Sited;
use crate::source::Span;
use crate::syntax::ast::{self, Expr as Syntax};

impl Lowering {
    /// Opens a node scheduler's scopes: the shared globals, which the master has reported on, and its own.
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
    pub(in crate::lower) fn is_qualified(&self, field: &ast::FieldExpr) -> bool {
        let Some(Syntax::Name(base)) = field.base() else { return false };
        let base = base.text();
        if self.scopes.find(&base).is_some() {
            return false;
        }
        base == "GLOBAL" || self.names_node(&base)
    }

    /// False in a master whose node schedulers could not all be read: what is unknown may stand there.
    pub(in crate::lower) fn sees_everything(&self) -> bool {
        self.distribution.as_ref().is_none_or(|distribution| distribution.complete)
    }

    /// In a node scheduler: whether it is a name of the master's `nodes`.
    fn names_node(&self, name: &str) -> bool {
        let distribution = self.distribution.as_ref().filter(|it| it.role == Role::Node);
        distribution.is_some_and(|distribution| distribution.nodes.contains(name))
    }

    pub(in crate::lower) fn qualified(&mut self, field: &ast::FieldExpr) -> Option<(Entity, String)> {
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
                let initial = zero(ty);
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
    pub(in crate::lower) fn node_container_size(
        &mut self,
        container: &Syntax,
        span: Span,
    ) -> Option<Option<ExprId>> {
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
            .label("this is an ordinary scheduler")
            .hint("check the master, which names its node schedulers in `nodefamilies`"),
        );
    }
}
