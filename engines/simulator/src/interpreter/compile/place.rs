//! Reading and assigning variables: of a handler, of the policy, of a thread.
//!
//! Invariant: an import with a range is read, and assigned, as the nearest number in its range.

use attune_language::ir::{self, Extent, Index, LocalId, Place, Storage};

use super::Compiler;
use crate::interpreter::code::*;
use crate::interpreter::layout::{bits, length, raw};

impl Compiler<'_> {
    pub(super) fn assign(&self, place: &Place, value: Expr) -> Statement {
        let value = self.fitted(place, value);
        match place {
            Place::Local(id, None) => Statement::SetLocal(self.layout.local(*id), value),
            Place::Local(id, Some(index)) => {
                Statement::SetLocalAt(self.local_index(*id, index), value)
            }
            Place::Global(id, None) => {
                let slot = self.layout.global(*id);
                match self.program.globals[*id].extent {
                    Extent::PerCpu => Statement::SetGlobalHere(slot, value),
                    Extent::One | Extent::Array(_) => Statement::SetGlobal(slot, value),
                }
            }
            Place::Global(id, Some(index)) => {
                Statement::SetGlobalAt(self.global_index(*id, index), value)
            }
            Place::Attribute(thread, attribute) => {
                Statement::SetAttribute(self.thread(thread), raw(*attribute) as u32, value)
            }
        }
    }

    pub(super) fn read(&self, place: &Place) -> Expr {
        self.fitted(place, self.read_as_it_is(place))
    }

    /// What an import with a range makes of a value.
    pub(super) fn fitted(&self, place: &Place, value: Expr) -> Expr {
        let terms = match place {
            Place::Local(..) => return value,
            Place::Global(id, _) => self.program.globals[*id].terms,
            Place::Attribute(_, id) => self.program.attributes[*id].terms,
        };
        match terms.range {
            Some((low, high)) => Expr::Fitted(Box::new(value), low, high),
            None => value,
        }
    }

    pub(super) fn read_as_it_is(&self, place: &Place) -> Expr {
        match place {
            Place::Local(id, None) => Expr::Local(self.layout.local(*id)),
            Place::Local(id, Some(index)) => Expr::LocalAt(self.local_index(*id, index)),
            Place::Global(id, None)
                if self.in_prologue.get()
                    && self.program.globals[*id].storage == Storage::Import =>
            {
                Expr::Constant(bits(self.program.globals[*id].initial))
            }
            Place::Global(id, None) => match self.program.globals[*id].extent {
                Extent::PerCpu => Expr::GlobalHere(self.layout.global(*id)),
                Extent::One | Extent::Array(_) => Expr::Global(self.layout.global(*id)),
            },
            Place::Global(id, Some(index)) => Expr::GlobalAt(self.global_index(*id, index)),
            Place::Attribute(thread, attribute) => {
                Expr::Attribute(Box::new(self.thread(thread)), raw(*attribute) as u32)
            }
        }
    }

    pub(super) fn local_index(&self, id: LocalId, index: &Index) -> Box<Indexed> {
        self.indexed(self.layout.local(id), length(&self.program.locals[id]), index)
    }

    pub(super) fn global_index(&self, id: ir::GlobalId, index: &Index) -> Box<Indexed> {
        self.indexed(
            self.layout.global(id),
            self.layout.slots(self.program.globals[id].extent),
            index,
        )
    }

    pub(super) fn indexed(&self, base: u32, length: u32, index: &Index) -> Box<Indexed> {
        Box::new(Indexed { base, length, at: self.expr(index.at), check: index.check })
    }
}
