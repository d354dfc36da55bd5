//! What a program, or one handler of it, uses: so that nothing else is written.

use std::collections::HashSet;

use attune_language::ir::visit::{self, Visitor};
use attune_language::ir::{
    Block, ContainerKind, ExprKind, GlobalId, Place, Program, Statement, StatementKind, Storage,
    Type,
};

use crate::runtime::Needs;

pub fn needs(program: &Program) -> Needs {
    let types = program.attributes.values().map(|attribute| attribute.ty);
    let types = types.chain(program.globals.values().map(|global| global.ty));
    let types = types.chain(program.locals.values().map(|local| local.ty));
    let mut types = types.chain(program.exprs.values().map(|expr| expr.ty));
    let mut found = Visits(false);
    let handlers = program.handlers.iter();
    handlers.for_each(|handler| visit::handler(program, handler, &mut found));
    Needs {
        sorted: program.containers.values().any(|container| container.sort.is_some()),
        stacks: program.containers.values().any(|it| it.kind == ContainerKind::Stack),
        visits: found.0,
        // Verbatim text may read it.
        time: !program.verbatim.is_empty()
            || program.exprs.values().any(|expr| matches!(expr.kind, ExprKind::Now)),
        floats: types.any(|ty| ty == Type::Float),
        imports: program.attributes.values().any(|attribute| attribute.import)
            || program.globals.values().any(|global| global.storage == Storage::Import),
        shared: !program.membership.remotes.is_empty(),
        globals: program.globals.len(),
    }
}

/// Whether there is a `foreach`.
struct Visits(bool);

impl Visitor for Visits {
    fn statement(&mut self, _: &Program, statement: &Statement) {
        self.0 |= matches!(statement.kind, StatementKind::Foreach { .. });
    }
}

/// What the statements of a routine mention.
#[derive(Default)]
pub struct Uses {
    pub imports: HashSet<GlobalId>,
    pub loops: bool,
    pub verbatim: bool,
}

impl Uses {
    pub fn add(&mut self, program: &Program, block: &Block) {
        visit::block(program, block, self);
    }

    fn place(&mut self, program: &Program, place: &Place) {
        if let Place::Global(id, _) = place
            && program.globals[*id].storage == Storage::Import
        {
            self.imports.insert(*id);
        }
    }
}

impl Visitor for Uses {
    fn statement(&mut self, _: &Program, statement: &Statement) {
        match &statement.kind {
            StatementKind::Loop(_) => self.loops = true,
            StatementKind::Verbatim { .. } | StatementKind::VerbatimValue { .. } => {
                self.verbatim = true
            }
            _ => {}
        }
    }

    fn place_read(&mut self, program: &Program, place: &Place) {
        self.place(program, place);
    }

    fn place_written(&mut self, program: &Program, place: &Place) {
        self.place(program, place);
    }
}
