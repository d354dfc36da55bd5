//! Containers and variables that serve no purpose: threads go in and never come out, or would come
//! out and never go in; nothing is ever kept there.
//!
//! Whether threads leave is asked of the occupancy analysis: a thread that is moved by name, or
//! that dies, leaves the container that it sits in. Only what the main file declares is looked at,
//! and only in complete schedulers.

use super::occupancy::Occupancy;
use crate::diagnostic::Diagnostic;
use crate::diagnostic::codes::transfers::{NEVER_ENTERED, NEVER_LEFT, UNUSED};
use crate::ir::*;

/// `engines`: of each engine that could run the scheduler.
pub fn check(program: &Program, engines: &[&Occupancy], diagnostics: &mut Vec<Diagnostic>) {
    // Verbatim text may use any name; a base is completed by others.
    if program.partial || engines.is_empty() {
        return;
    }
    let uses = Uses::of(program);
    for (index, (id, container)) in program.containers.iter().enumerate() {
        if container.scope != Scope::Scheduler || container.span.source != program.source {
            continue;
        }
        let name = &container.name;
        let entered = engines.iter().any(|engine| engine.entered[index]);
        let left = uses.sources.contains(&id) || engines.iter().any(|engine| engine.left[index]);
        let (code, message, label, hint) = if !uses.mentioned.contains(&id) {
            if !program.verbatim.is_empty() {
                continue;
            }
            (UNUSED, format!("`{name}` is never used"), "no handler speaks of it", "remove it")
        } else if entered && !left {
            let message = format!("threads enter `{name}` and never leave it");
            let label = "nothing takes a thread out of it, not even its end";
            (NEVER_LEFT, message, label, "take its threads somewhere: `if (|C| > 0) C => D;`")
        } else if uses.sources.contains(&id) && !uses.destinations.contains(&id) {
            let message = format!("threads leave `{name}` and never enter it");
            let label = "nothing puts a thread into it: it is always empty";
            (NEVER_ENTERED, message, label, "put threads into it, or remove it")
        } else {
            continue;
        };
        diagnostics.push(Diagnostic::new(code, container.span, message).label(label).hint(hint));
    }
    if program.verbatim.is_empty() {
        unused_variables(program, &uses, diagnostics);
    }
}

fn unused_variables(program: &Program, uses: &Uses, diagnostics: &mut Vec<Diagnostic>) {
    let globals = program.globals.iter().filter(|(id, global)| {
        // Lowering puts constants in the place of their names.
        global.storage == Storage::Data && !uses.globals.contains(id)
    });
    let globals = globals.map(|(_, global)| (&global.name, global.span));
    let attributes = program.attributes.iter().filter(|(id, attribute)| {
        let sorts = program
            .containers
            .iter()
            .any(|(_, container)| container.sort.is_some_and(|sort| sort.by == *id));
        !attribute.import && !sorts && !uses.attributes.contains(id)
    });
    let attributes = attributes.map(|(_, attribute)| (&attribute.name, attribute.span));
    for (name, span) in globals.chain(attributes) {
        if span.source == program.source {
            diagnostics.push(
                Diagnostic::new(UNUSED, span, format!("`{name}` is never used"))
                    .label("no handler speaks of it")
                    .hint("remove it"),
            );
        }
    }
}

/// What routines speak of.
#[derive(Default)]
struct Uses {
    mentioned: Vec<ContainerId>,
    sources: Vec<ContainerId>,
    destinations: Vec<ContainerId>,
    globals: Vec<GlobalId>,
    attributes: Vec<AttributeId>,
}

impl Uses {
    fn of(program: &Program) -> Uses {
        let mut uses = Uses::default();
        for handler in &program.handlers {
            visit::handler(program, handler, &mut uses);
        }
        let invariants = program.invariants.iter().map(|invariant| &invariant.routine);
        for routine in [&program.prologue, &program.thread_prologue].into_iter().chain(invariants) {
            visit::block(program, &routine.body, &mut uses);
        }
        // The master and other nodes see these.
        let observed = |name: &String| program.membership.observed.contains(name);
        let containers = program.containers.iter().filter(|(_, it)| observed(&it.name));
        uses.mentioned.extend(containers.map(|(id, _)| id));
        let globals = program.globals.iter().filter(|(_, it)| observed(&it.name));
        uses.globals.extend(globals.map(|(id, _)| id));
        uses
    }

    fn place(&mut self, place: &Place) {
        match place {
            Place::Local(..) => {}
            Place::Global(global, _) => self.globals.push(*global),
            Place::Attribute(_, attribute) => self.attributes.push(*attribute),
        }
    }
}

impl visit::Visitor for Uses {
    fn statement(&mut self, _program: &Program, statement: &Statement) {
        match &statement.kind {
            StatementKind::Transfer { source, destination, .. } => {
                self.destinations.push(destination.container);
                if let ThreadKind::First(of) = &source.kind {
                    self.sources.push(of.container);
                }
            }
            StatementKind::Destroy { thread } => {
                if let ThreadKind::First(of) = &thread.kind {
                    self.sources.push(of.container);
                }
            }
            _ => {}
        }
    }

    fn container(&mut self, _program: &Program, container: &ContainerRef) {
        self.mentioned.push(container.container);
    }

    fn place_read(&mut self, _program: &Program, place: &Place) {
        self.place(place);
    }

    fn place_written(&mut self, _program: &Program, place: &Place) {
        self.place(place);
    }
}
