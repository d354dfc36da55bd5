//! The functions: one for each handler and invariant, one for each prologue.
//!
//! A handler reads `now` and its imports once, runs its parts in order, then performs the exit
//! checks. A part that ends early jumps behind itself, or returns where nothing follows.

use attune_language::engine::event::Event;
use attune_language::ir::visit::{self, Visitor};
use attune_language::ir::{
    Block, CheckId, CheckKind, Extent, GlobalId, Handler, Part, Program, Role as PartRole, Routine,
    Storage, Type,
};
use attune_language::source::SourceId;

use super::Writer;
use super::expressions::{fitted, in_state};
use super::output::quoted;
use super::statements::{Function, Leave, c_type};
use super::target::{Imports, State};
use super::usage::Uses;

impl Writer<'_> {
    pub(super) fn functions(&mut self) {
        self.invariants();
        self.prologue();
        self.thread_prologue();
        for handler in &self.program.handlers {
            self.handler(handler);
        }
    }

    fn handler(&mut self, handler: &Handler) {
        let mut uses = Uses::default();
        for part in &handler.parts {
            uses.add(self.program, &part.routine.body);
        }
        self.out.blank();
        let sort = if handler.event.is_query() { "query" } else { "event" };
        self.out.line(format!(
            "/* {sort} {}, {}:{} */",
            handler.event,
            self.file(handler),
            self.line(handler.span)
        ));
        let (storage, parameters) = self.signature();
        self.out.line(format!("{storage} {}({parameters})", self.names.handler(handler.event)));
        self.out.open("{");
        self.find_state();
        self.read_imports(&uses);
        let counted =
            uses.loops && self.needs_budget(handler.parts.iter().map(|part| &part.routine.body));
        if counted || self.debug {
            self.out.line("attune->budget = ATTUNE_LOOP_BUDGET;");
        }
        let stored = handler.stored.filter(|&check| self.performed(check));
        let emptied: Vec<_> =
            handler.emptied.iter().copied().filter(|&(_, check)| self.performed(check)).collect();
        // Containers that are read for one CPU are walked by loops that know no place.
        let walked = self.target.affinity && handler.event == Event::Schedule;
        let exits = stored.is_some() || !emptied.is_empty() || walked;
        let mut labels = 0;
        for (number, part) in handler.parts.iter().enumerate() {
            let last = number + 1 == handler.parts.len() && !exits;
            let leave =
                if last { Leave::Return } else { Leave::To(format!("attune_part_{}", number + 1)) };
            let mut function = Function::new(leave.clone());
            function.counted = counted;
            function.labels = labels;
            function.event = Some(handler.event);
            self.function = function;
            self.part(part, handler.parts.len() > 1);
            if let Leave::To(label) = leave
                && self.function.jumped
            {
                self.own_lines();
                self.out.raw(&format!("{label}: ;"));
            }
            labels = self.function.labels;
        }
        self.own_lines();
        if let Some(check) = stored {
            let parameter = handler.parts.iter().find_map(|part| part.routine.parameter);
            let check = self.check(check, |writer| {
                let name = parameter.map_or("t", |name| writer.program.names[name].name.as_str());
                format!("{} has put {name} into no container", handler.event)
            });
            self.out.line(format!("attune_need_stored(attune, {check}, attune_thread);"));
        }
        for (container, check) in emptied {
            let check = self.check(check, |writer| {
                let name = &writer.program.containers[container].name;
                format!("{name} is local and not empty at the end of {}", handler.event)
            });
            let length = self.length(self.program.containers[container].extent);
            let name = self.container_place(container);
            match length {
                None => self.out.line(format!("attune_need_empty(attune, {check}, &{name});")),
                Some(length) => {
                    let (test, zero) = (self.bounded(&length), self.zero());
                    self.out.open(format!("for (uint32_t attune_i = {zero}; {test}; attune_i++)"));
                    self.out
                        .line(format!("attune_need_empty(attune, {check}, &{name}[attune_i]);"));
                    self.out.dedent();
                }
            }
        }
        if walked {
            let place = self.cut(handler.span, |_| "schedule".to_string());
            self.out.raw("#if ATTUNE_CPUS > 1");
            self.out.line(format!("attune_cut_inside({place});"));
            self.out.raw("#endif");
        }
        self.end_function();
    }

    fn part(&mut self, part: &Part, several: bool) {
        if several {
            let role = match part.role {
                PartRole::Before => "before",
                PartRole::Own => "the handler's own body",
                PartRole::After => "after",
            };
            self.own_lines();
            self.out.open(format!("{{ // {role}, {}", self.place(part.span)));
        }
        self.routine(&part.routine);
        if several {
            self.own_lines();
            self.out.close("}");
        }
    }

    /// Parameter, locals and statements.
    fn routine(&mut self, routine: &Routine) {
        self.names.enter(self.program, routine);
        if let Some(parameter) = routine.parameter {
            let name = self.names.thread(parameter).to_string();
            self.out.line(format!(
                "struct thread ATTUNE_ARENA *const {name} = ATTUNE_RECORD(attune_thread);"
            ));
            self.function.threads.push(parameter);
        }
        self.function.locals.clone_from(&routine.locals);
        let on_stack =
            self.target.verifier.map_or(usize::MAX, |verifier| verifier.scalars_on_stack);
        let mut scalars = 0;
        for &local in &routine.locals {
            let declared = &self.program.locals[local];
            let (ty, name) = (c_type(declared.ty), self.names.local(local).to_string());
            match declared.length {
                None if scalars < on_stack => {
                    scalars += 1;
                    let zero = if self.is_verified() { "ATTUNE_ZERO" } else { "0" };
                    self.out.line(format!("{ty} {name} = {zero};"));
                }
                None => {
                    let name = self.keep(ty, &name, "");
                    self.out.line(format!("{name} = 0;"));
                    self.names.rename_local(local, name);
                }
                Some(length) if self.is_verified() => {
                    let name = self.keep(ty, &name, &format!("[{length}]"));
                    self.out.open(format!(
                        "for (uint32_t attune_i = (uint32_t)ATTUNE_ZERO; \
                        attune_i < {length} && ATTUNE_MAY_LOOP; attune_i++)"
                    ));
                    self.out.line(format!("{name}[attune_i] = 0;"));
                    self.out.dedent();
                    self.names.rename_local(local, name);
                }
                Some(length) => self.out.line(format!("{ty} {name}[{length}] = {{ 0 }};")),
            }
        }
        if !routine.locals.is_empty() {
            self.out.blank();
        }
        self.block(&routine.body, true);
        if routine.parameter.is_some() {
            self.function.threads.pop();
        }
    }

    /// The state of the instance in which a function runs.
    pub(super) fn find_state(&mut self) {
        if self.target.state == State::Passed {
            self.out.line("struct state ATTUNE_ARENA *const attune_state = ATTUNE_STATE(attune);");
        }
    }

    /// A variable that keeps its place between calls, or is too large for the stack: a member of
    /// the state.
    pub(super) fn keep(&mut self, ty: &str, wanted: &str, length: &str) -> String {
        let member = self.names.in_state(wanted);
        self.kept.push(format!("{ty} {member}{length};"));
        in_state(&member)
    }

    /// Back to the C file's own lines after statements that were mapped to the scheduler's.
    pub(super) fn own_lines(&mut self) {
        if self.debug {
            self.out.at_own();
        }
    }

    /// Whether some loop may not end within the budget: then all of them count.
    fn needs_budget<'b>(&self, blocks: impl Iterator<Item = &'b Block>) -> bool {
        struct Bounds(Vec<CheckId>);
        impl Visitor for Bounds {
            fn check(&mut self, program: &Program, check: CheckId) {
                if program.checks[check].kind == CheckKind::LoopBound {
                    self.0.push(check);
                }
            }
        }
        let mut bounds = Bounds(Vec::new());
        for block in blocks {
            visit::block(self.program, block, &mut bounds);
        }
        // In debug builds invariants share the budget.
        (self.debug && !self.program.invariants.is_empty())
            || bounds.0.into_iter().any(|check| self.performed(check))
    }

    /// Each import that the handler, or in a debug build an invariant, may look at: once, before
    /// anything else.
    fn read_imports(&mut self, uses: &Uses) {
        let all = uses.verbatim || (self.debug && !self.program.invariants.is_empty());
        for (id, global) in self.program.globals.iter() {
            if global.storage == Storage::Import && (all || uses.imports.contains(&id)) {
                let line = self.import_text(id, global.ty);
                self.out.line(line);
            }
        }
    }

    fn import_text(&self, id: GlobalId, ty: Type) -> String {
        let (state, width) = self.import(id).unwrap_or_default();
        let value = match self.target.tells_ages && self.is_age(id) {
            true => "attune_age(attune)".to_owned(),
            false => self.get_import(&state, &width, ty),
        };
        let value = fitted(self.program.globals[id].terms, value);
        format!("{} = {value};", self.global(id))
    }

    /// After the handler's copy of an import was assigned.
    pub(super) fn write_through(&mut self, id: GlobalId) {
        let (state, width) = self.import(id).unwrap_or_default();
        let (ty, name) = (self.program.globals[id].ty, self.global(id));
        let line = self.set_import(&state, &width, ty, &name);
        self.out.line(line);
    }

    /// The value of a global import.
    pub(super) fn get_import(&self, state: &str, width: &str, ty: Type) -> String {
        let float = ty == Type::Float;
        match self.target.imports {
            Imports::Linked => {
                let get = if float { "attune_get_real" } else { "attune_get" };
                format!("{get}(attune, &{state}, {width})")
            }
            Imports::Plain => {
                let read = if float { "ATTUNE_READ_REAL" } else { "ATTUNE_READ" };
                format!("{read}({state})")
            }
        }
    }

    /// A statement that sets a global import.
    pub(super) fn set_import(&self, state: &str, width: &str, ty: Type, value: &str) -> String {
        let float = ty == Type::Float;
        match self.target.imports {
            Imports::Linked => {
                let set = if float { "attune_set_real" } else { "attune_set" };
                format!("{set}(attune, &{state}, {width}, {value});")
            }
            Imports::Plain => {
                let write = if float { "ATTUNE_WRITE_REAL" } else { "ATTUNE_WRITE" };
                format!("{write}({state}, {value});")
            }
        }
    }

    fn prologue(&mut self) {
        let routine = &self.program.prologue;
        if routine.body.statements.is_empty() {
            return;
        }
        self.out.blank();
        self.out.line("/* Initial values that are no constants. */");
        let (storage, parameters) = self.signature();
        let name = format!("attune_prologue{}", self.role.ending());
        self.out.line(format!("{storage} {name}({parameters})"));
        self.prologue_body(routine);
    }

    fn thread_prologue(&mut self) {
        let routine = &self.program.thread_prologue;
        if routine.body.statements.is_empty() {
            return;
        }
        self.out.blank();
        self.out.line("/* Initial values of a new thread's attributes that are no constants. */");
        let (storage, parameters) = self.signature();
        let name = format!("attune_thread_prologue{}", self.role.ending());
        self.out.line(format!("{storage} {name}({parameters})"));
        self.prologue_body(routine);
    }

    /// Prologues see the imports' defaults.
    fn prologue_body(&mut self, routine: &Routine) {
        self.out.open("{");
        self.find_state();
        for (id, global) in self.program.globals.iter() {
            if global.storage == Storage::Import {
                let initial = super::expressions::constant(global.initial);
                self.out.line(format!("{} = {initial};", self.global(id)));
            }
        }
        self.out.line("attune->budget = ATTUNE_LOOP_BUDGET;");
        self.function = Function::new(Leave::Return);
        self.function.counted = true;
        self.routine(routine);
        self.own_lines();
        self.end_function();
    }

    /// In debug builds: the invariants, and what runs them where a container has changed.
    fn invariants(&mut self) {
        if !self.debug {
            return;
        }
        for (number, invariant) in self.program.invariants.iter().enumerate() {
            self.out.blank();
            let place = self.place(invariant.span);
            self.out.line(format!(
                "/* invariant {}, {place} */",
                self.program.containers[invariant.container].name
            ));
            self.out.line(format!(
                "static int {}(struct attune_instance *attune)",
                self.names.invariant(number)
            ));
            self.out.open("{");
            self.find_state();
            self.function = Function::new(Leave::Answer);
            self.function.counted = true;
            self.routine(&invariant.routine);
            self.own_lines();
            self.out.line("return 1;");
            self.out.close("}");
        }
        self.watcher();
    }

    fn watcher(&mut self) {
        self.out.blank();
        let file = quoted(self.sources.name(SourceId(0)));
        self.out.line(format!(
            "static const struct attune_check attune_unsound = {{ UINT32_MAX, 1, 1, {file},"
        ));
        self.out.line(
            "    \"a container is inconsistent: the program has overwritten a thread's record\" };",
        );
        self.out.blank();
        self.out.line(
            "/* After a statement that may have changed containers: are they sound, do \
            the invariants hold? */",
        );
        self.out.line("static void attune_watch(struct attune_instance *attune)");
        self.out.open("{");
        self.find_state();
        let containers: Vec<_> =
            self.program.containers.iter().map(|(id, it)| (id, it.extent)).collect();
        for &(id, extent) in &containers {
            let name = self.container_place(id);
            self.each_element(extent, &name, |writer, element| {
                writer.out.line(format!("attune_need_sound(attune, &attune_unsound, &{element});"));
            });
        }
        for (number, invariant) in self.program.invariants.iter().enumerate() {
            let extent = self.program.containers[invariant.container].extent;
            let name = self.container_place(invariant.container);
            let function = self.names.invariant(number).to_string();
            let check = self.check(invariant.check, |writer| {
                format!(
                    "the invariant of {} does not hold",
                    writer.program.containers[invariant.container].name
                )
            });
            self.each_element(extent, &name, |writer, element| {
                writer.out.open(format!("if ({element}.changed) {{"));
                writer.out.open(format!("if (!{function}(attune))"));
                writer.out.line(format!("attune_trap(attune, {check}, &{element}, NULL);"));
                writer.out.dedent();
                if extent != Extent::One {
                    writer.out.line("break;");
                }
                writer.out.close("}");
            });
        }
        for &(id, extent) in &containers {
            let name = self.container_place(id);
            self.each_element(extent, &name, |writer, element| {
                writer.out.line(format!("{element}.changed = 0;"))
            });
        }
        self.out.close("}");
    }

    /// A handler's storage class and type, and its parameters.
    fn signature(&self) -> (&'static str, &'static str) {
        (self.target.handler, self.target.parameters)
    }

    fn file(&self, handler: &Handler) -> &str {
        self.sources.name(handler.span.source)
    }

    fn end_function(&mut self) {
        if self.target.returns {
            self.out.line(self.target.leave);
        }
        self.out.close("}");
    }

    /// The events that have a handler.
    pub(crate) fn handled(&self) -> Vec<Event> {
        self.program.handlers.iter().map(|handler| handler.event).collect()
    }
}
