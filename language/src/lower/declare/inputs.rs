//! What each thread has, and what the application tells: `thread`, `threadimports`, `imports`.

use super::terms::Imported;
use super::{append, scalar, zero};
use crate::ir::*;
use crate::lower::Lowering;
use crate::lower::routine::{Context, Purpose};
use crate::lower::scope::Entity;
use crate::resolve::Sited;
use crate::source::Span;
use crate::syntax::ast;

impl Lowering {
    /// Their initial values come later, when all names are known.
    pub(super) fn attributes_of(&mut self, declaration: &Sited<ast::Declaration>) {
        self.source = declaration.source;
        let declaration = &declaration.node;
        // A container was refused with the syntax.
        let ty = declaration.ty().and_then(|ty| ty.kind()).and_then(scalar);
        for declarator in declaration.declarators() {
            let Some(name) = declarator.name() else { continue };
            if let Some(array) = declarator.array() {
                let span = self.span(&array);
                self.misplaced(
                    span,
                    "a thread's variable is no array",
                    "declare several variables",
                );
            }
            if let Some(sort) = declarator.sort() {
                self.unexpected_sort(&sort);
            }
            if let Some(attribute) = self.declare_attribute(&name, ty, false) {
                self.initials.push((self.source, attribute, declarator.initial()));
            }
        }
    }

    pub(super) fn thread_import(&mut self, import: &Sited<ast::Import>) {
        self.source = import.source;
        let Some(name) = import.node.name() else { return };
        let ty = self.scalar_type(import.node.ty());
        if let Some(attribute) = self.declare_attribute(&name, ty, true) {
            self.initials.push((import.source, attribute, import.node.default()));
            self.terms.push((import.source, Imported::Attribute(attribute), import.node.clone()));
        }
    }

    fn declare_attribute(
        &mut self,
        name: &ast::Name,
        ty: Option<Type>,
        import: bool,
    ) -> Option<AttributeId> {
        let (text, span) = (name.text(), self.span(name));
        if let Some(earlier) = self.attributes.get(&text) {
            let earlier = earlier.map(|attribute| self.program.attributes[attribute].span);
            self.duplicate(&text, span, earlier);
            return None;
        }
        let attribute = ty.map(|ty| {
            let initial = zero(ty);
            self.program.attributes.alloc(Attribute {
                name: text.clone(),
                ty,
                initial,
                import,
                terms: Terms::default(),
                span,
            })
        });
        self.attributes.insert(text, attribute);
        attribute
    }

    /// The initial values of attributes, once all names are known.
    pub(super) fn attribute_initials(&mut self) {
        for (source, attribute, initial) in std::mem::take(&mut self.initials) {
            self.source = source;
            let Some(initial) = initial else { continue };
            let span = self.span(&initial);
            let Attribute { ty, import, .. } = self.program.attributes[attribute];
            let parameter = self.program.thread_prologue.parameter;
            let context = Context { purpose: Purpose::Prologue, parameter, ..Context::default() };
            let mut value = None;
            let mut routine = self.in_routine(context, |this| {
                value = this.number(Some(initial), Some(ty)).map(|value| this.store(value, ty));
            });
            let Some(value) = value else { continue };
            if let (Some(constant), true) =
                (self.constant(value), routine.body.statements.is_empty())
            {
                self.program.attributes[attribute].initial = constant;
                continue;
            }
            if import {
                self.not_constant(span, "the default of an import");
                continue;
            }
            let name = self.new_thread(span);
            let check = Some(self.check(CheckKind::NamedUse, span));
            let thread = ThreadExpr { kind: ThreadKind::Name(name), check, span };
            let place = Place::Attribute(thread, attribute);
            routine
                .body
                .statements
                .push(Statement { kind: StatementKind::Assign { place, value }, span });
            append(&mut self.program.thread_prologue, routine);
        }
    }

    /// The thread that the thread prologue is about.
    fn new_thread(&mut self, span: Span) -> NameId {
        if let Some(name) = self.program.thread_prologue.parameter {
            return name;
        }
        let name = self.program.names.alloc(Name { name: "thread".to_string(), fixed: true, span });
        self.program.thread_prologue.parameter = Some(name);
        name
    }

    pub(super) fn import(&mut self, import: &Sited<ast::Import>) {
        self.source = import.source;
        let Some(name) = import.node.name() else { return };
        let (text, span) = (name.text(), self.span(&name));
        let entity = match self.scalar_type(import.node.ty()) {
            Some(ty) => {
                let global = Global {
                    name: text.clone(),
                    ty,
                    storage: Storage::Import,
                    extent: Extent::One,
                    initial: zero(ty),
                    terms: Terms::default(),
                    span,
                };
                let global = self.program.globals.alloc(global);
                self.defaults.push((import.source, global, import.node.default()));
                self.terms.push((import.source, Imported::Global(global), import.node.clone()));
                Entity::Global(global)
            }
            None => Entity::Broken,
        };
        self.declare(&text, entity, span);
    }

    /// The defaults of imports, once the constants are known.
    pub(super) fn import_defaults(&mut self) {
        for (source, global, default) in std::mem::take(&mut self.defaults) {
            self.source = source;
            let Some(default) = default else { continue };
            let ty = self.program.globals[global].ty;
            if let Some(value) = self.constant_value(default, ty, "the default of an import") {
                self.program.globals[global].initial = value;
            }
        }
    }
}
