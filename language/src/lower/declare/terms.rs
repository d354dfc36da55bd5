//! The terms of imports: `within LOW to HIGH` and `by SUPPLIER`.

use crate::diagnostic::{Diagnostic, codes};
use crate::ir::*;
use crate::lower::Lowering;
use crate::syntax::SyntaxKind;
use crate::syntax::ast;

/// What an import is to the policy.
#[derive(Clone, Copy)]
pub(in crate::lower) enum Imported {
    Attribute(AttributeId),
    Global(GlobalId),
}

impl Lowering {
    /// Once the constants and the defaults are known.
    pub(super) fn import_terms(&mut self) {
        for (source, imported, import) in std::mem::take(&mut self.terms) {
            self.source = source;
            let (ty, initial) = match imported {
                Imported::Attribute(id) => {
                    (self.program.attributes[id].ty, self.program.attributes[id].initial)
                }
                Imported::Global(id) => {
                    (self.program.globals[id].ty, self.program.globals[id].initial)
                }
            };
            let range = import.range().and_then(|range| self.import_range(&range, ty));
            if let (Some((low, high)), Value::Int(initial)) = (range, initial)
                && !(low..=high).contains(&initial)
            {
                self.default_outside(&import);
            }
            let terms = Terms { range, supplier: supplier(&import) };
            match imported {
                Imported::Attribute(id) => self.program.attributes[id].terms = terms,
                Imported::Global(id) => self.program.globals[id].terms = terms,
            }
        }
    }

    fn import_range(&mut self, range: &ast::ImportRange, ty: Type) -> Option<(i64, i64)> {
        let span = self.span(range);
        if ty == Type::Float {
            self.report(
                Diagnostic::new(codes::names::IMPORT_RANGE, span, "a `float` has no range")
                    .label("only `int` and `time` have one")
                    .hint("compare the value in the handler that uses it"),
            );
            return None;
        }
        let [low, high] = [range.low()?, range.high()?]
            .map(|bound| self.constant_value(bound, ty, "the range of an import"));
        match (low?, high?) {
            (Value::Int(low), Value::Int(high)) if low <= high => Some((low, high)),
            _ => {
                self.report(
                    Diagnostic::new(codes::names::IMPORT_RANGE, span, "the range is empty")
                        .label("no number lies in it")
                        .hint("the least number comes first: `within 0 to 39`"),
                );
                None
            }
        }
    }

    fn default_outside(&mut self, import: &ast::Import) {
        let (Some(default), Some(range)) = (import.default(), import.range()) else { return };
        let (default, range) = (self.span(&default), self.span(&range));
        self.report(
            Diagnostic::new(
                codes::names::IMPORT_RANGE,
                default,
                "the default lies outside of the range",
            )
            .label("this holds until somebody supplies a value")
            .also(range, "the range")
            .hint("choose a default that lies in it, or a wider range"),
        );
    }
}

fn supplier(import: &ast::Import) -> Supplier {
    match import.supplier().and_then(|supplier| supplier.word()) {
        Some(SyntaxKind::LOADER_KW) => Supplier::Loader,
        Some(SyntaxKind::TABLE_KW) => Supplier::Table,
        Some(SyntaxKind::KERNEL_KW) => Supplier::Kernel,
        _ => Supplier::Owner,
    }
}
