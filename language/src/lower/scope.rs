//! Names in sight.
//!
//! Invariant: the innermost scope that declares a name decides what it means, except in a node
//! scheduler of a distributed one, whose outer scopes come first (see [`Scopes::outer_first`]).

use std::collections::HashMap;

use crate::ir::{ContainerId, GlobalId, LocalId, NameId, Type, Value};
use crate::source::Span;

/// What a name stands for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Entity {
    Constant(Type, Value),
    Global(GlobalId),
    Local {
        id: LocalId,
        constant: bool,
    },
    Container(ContainerId),
    Thread(NameId),
    /// Declared, but wrongly: its uses are not reported again.
    Broken,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Declared {
    pub entity: Entity,
    pub span: Span,
}

/// The scopes around a place, the outermost first.
#[derive(Debug, Default)]
pub(super) struct Scopes {
    scopes: Vec<HashMap<String, Declared>>,
    /// So many of the outermost scopes decide before any other, the outermost first. In a node
    /// scheduler a shared global comes before a global of the node, and that before a local;
    /// elsewhere this is 0.
    pub outer_first: usize,
}

impl Scopes {
    pub fn enter(&mut self) {
        self.scopes.push(HashMap::new());
    }

    pub fn leave(&mut self) {
        self.scopes.pop();
    }

    /// Declares a name in the innermost scope. If it is taken there, it keeps its meaning, which is
    /// returned.
    pub fn declare(&mut self, name: &str, entity: Entity, span: Span) -> Option<Declared> {
        let scope = self.scopes.last_mut()?;
        if let Some(&earlier) = scope.get(name) {
            return Some(earlier);
        }
        scope.insert(name.to_string(), Declared { entity, span });
        None
    }

    pub fn find(&self, name: &str) -> Option<Declared> {
        let (outer, inner) = self.scopes.split_at(self.outer_first.min(self.scopes.len()));
        outer.iter().chain(inner.iter().rev()).find_map(|scope| scope.get(name)).copied()
    }

    /// What the `depth`th scope, from the outermost, says of a name.
    pub fn find_at(&self, depth: usize, name: &str) -> Option<Declared> {
        self.scopes.get(depth)?.get(name).copied()
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.scopes.iter().flat_map(|scope| scope.keys()).map(String::as_str)
    }
}
