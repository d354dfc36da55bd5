//! Variables and containers of a handler.

use super::{scalar, zero};
use crate::ir::*;
use crate::lower::Lowering;
use crate::lower::scope::Entity;
use crate::source::Span;
use crate::syntax::ast::{self, Storage as Word};

impl Lowering {
    pub(in crate::lower) fn local_declaration(&mut self, declaration: &ast::Declaration) {
        let mut word = self.storage_word(declaration);
        if let Some((Word::Tunable | Word::Percpu, token)) = declaration.storage().next() {
            let span = Span::new(self.source, token.text_range());
            self.misplaced(
                span,
                format!("a handler's variable cannot be `{}`", token.text()),
                "declare it in `data { .. }`, or leave the word out",
            );
            word = None;
        }
        let Some(kind) = declaration.ty().and_then(|ty| ty.kind()) else { return };
        for declarator in declaration.declarators() {
            let Some(name) = declarator.name() else { continue };
            let (text, span) = (name.text(), self.span(&name));
            let entity = match (scalar(kind), self.routine.event()) {
                (Some(ty), _) => self.local(ty, &declarator, &text, word, span),
                (None, Some(event)) => self.container_declaration(
                    kind,
                    &declarator,
                    &text,
                    word,
                    Scope::Handler(event),
                ),
                (None, None) => {
                    self.misplaced(
                        span,
                        "a container cannot be declared here",
                        "only events and queries have containers of their own",
                    );
                    Entity::Broken
                }
            };
            if let Entity::Container(container) = entity {
                self.routine.containers.push(container);
            }
            self.declare(&text, entity, span);
        }
    }

    /// A local variable, with the statement that gives it its value: zero if nothing else is said.
    fn local(
        &mut self,
        ty: Type,
        declarator: &ast::Declarator,
        name: &str,
        word: Option<Word>,
        span: Span,
    ) -> Entity {
        if let Some(sort) = declarator.sort() {
            self.unexpected_sort(&sort);
        }
        let is_const = word == Some(Word::Const);
        let length = match declarator.array() {
            Some(array) if is_const => {
                let at = self.span(&array);
                self.misplaced(
                    at,
                    format!("`{name}` is an array, and its elements could never get values"),
                    "declare single constants, or an array without `const`",
                );
                return Entity::Broken;
            }
            Some(array) => match self.array_length(declarator, &array) {
                Some(length) => Some(length),
                None => return Entity::Broken,
            },
            None => None,
        };
        let value = match (declarator.initial(), length) {
            (Some(initial), None) => match self.number(Some(initial), Some(ty)) {
                Some(value) => Some(self.store(value, ty)),
                None => return Entity::Broken,
            },
            (_, Some(_)) => None,
            (None, None) if is_const => {
                self.const_without_value(name, span);
                return Entity::Broken;
            }
            (None, None) => Some(self.expr(ExprKind::Constant(zero(ty)), ty, span)),
        };
        let known = value.and_then(|value| self.constant(value)).filter(|_| is_const);
        if let (Some(value), false) = (known, self.routine.verbatim) {
            return Entity::Constant(ty, value);
        }
        let local = Local { name: name.to_string(), ty, length, temporary: false, span };
        let id = self.program.locals.alloc(local);
        self.routine.locals.push(id);
        match value {
            Some(value) => {
                self.emit(StatementKind::Assign { place: Place::Local(id, None), value }, span)
            }
            None => self.emit(StatementKind::Clear(id), span),
        };
        match known {
            Some(value) => Entity::Constant(ty, value),
            None => Entity::Local { id, constant: is_const },
        }
    }
}
