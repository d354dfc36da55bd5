//! The functions: one for each handler and invariant, one for each prologue.
//!
//! A handler reads `now` and its imports once, runs its parts in order, then performs the exit checks. A part that
//! ends early jumps behind itself, or returns where nothing follows.

use attune_language::event::Event;
use attune_language::ir::visit::{self, Visitor};
use attune_language::ir::{
    Block, CheckId, CheckKind, Extent, GlobalId, Handler, Part, Program, Role as PartRole, Routine, Storage,
    Type,
};
use attune_language::source::SourceId;

use super::output::quoted;
use super::statements::{Function, Leave, c_type};
use super::usage::Uses;
use super::{Writer, bpf};

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
        self.read_imports(&uses);
        let counted = uses.loops && self.needs_budget(handler.parts.iter().map(|part| &part.routine.body));
        if counted || self.options.debug {
            self.out.line("attune_budget = ATTUNE_LOOP_BUDGET;");
        }
        let stored = handler.stored.filter(|&check| self.performed(check));
        let emptied: Vec<_> =
            handler.emptied.iter().copied().filter(|&(_, check)| self.performed(check)).collect();
        // Containers that are read for one CPU are walked by loops that know no place.
        let walked = self.is_bpf() && handler.event == Event::Schedule;
        let exits = stored.is_some() || !emptied.is_empty() || walked;
        let mut labels = 0;
        for (number, part) in handler.parts.iter().enumerate() {
            let last = number + 1 == handler.parts.len() && !exits;
            let leave = if last { Leave::Return } else { Leave::To(format!("attune_part_{}", number + 1)) };
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
            self.out.line(format!("attune_need_stored({check}, attune_thread);"));
        }
        for (container, check) in emptied {
            let check = self.check(check, |writer| {
                let name = &writer.program.containers[container].name;
                format!("{name} is local and not empty at the end of {}", handler.event)
            });
            let length = self.length(self.program.containers[container].extent);
            let name = self.names.container(container).to_string();
            match length {
                None => self.out.line(format!("attune_need_empty({check}, &{name});")),
                Some(length) => {
                    let (test, zero) = (self.bounded(&length), self.zero());
                    self.out.open(format!("for (uint32_t attune_i = {zero}; {test}; attune_i++)"));
                    self.out.line(format!("attune_need_empty({check}, &{name}[attune_i]);"));
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
            self.out
                .line(format!("struct thread ATTUNE_ARENA *const {name} = ATTUNE_RECORD(attune_thread);"));
            self.function.threads.push(parameter);
        }
        self.function.locals.clone_from(&routine.locals);
        let mut scalars = 0;
        for &local in &routine.locals {
            let declared = &self.program.locals[local];
            let (ty, name) = (c_type(declared.ty), self.names.local(local).to_string());
            match declared.length {
                None if !self.is_bpf() || scalars < bpf::LOCALS_ON_STACK => {
                    scalars += 1;
                    let zero = if self.is_bpf() { "ATTUNE_ZERO" } else { "0" };
                    self.out.line(format!("{ty} {name} = {zero};"));
                }
                None => {
                    self.out.line(format!("static {ty} ATTUNE_ARENA {name};"));
                    self.out.line(format!("{name} = 0;"));
                }
                Some(length) if self.is_bpf() => {
                    self.out.line(format!("static {ty} ATTUNE_ARENA {name}[{length}];"));
                    self.out.open(format!("for (uint32_t attune_i = (uint32_t)ATTUNE_ZERO; attune_i < {length} && ATTUNE_MAY_LOOP; attune_i++)"));
                    self.out.line(format!("{name}[attune_i] = 0;"));
                    self.out.dedent();
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

    /// Back to the C file's own lines after statements that were mapped to the scheduler's.
    pub(super) fn own_lines(&mut self) {
        if self.options.debug {
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
        (self.options.debug && !self.program.invariants.is_empty())
            || bounds.0.into_iter().any(|check| self.performed(check))
    }

    /// Each import that the handler, or in a debug build an invariant, may look at: once, before anything else.
    fn read_imports(&mut self, uses: &Uses) {
        let all = uses.verbatim || (self.options.debug && !self.program.invariants.is_empty());
        for (id, global) in self.program.globals.iter() {
            if global.storage == Storage::Import && (all || uses.imports.contains(&id)) {
                let line = self.import_text(id, global.ty);
                self.out.line(line);
            }
        }
    }

    fn import_text(&self, id: GlobalId, ty: Type) -> String {
        let get = if ty == Type::Float { "attune_get_real" } else { "attune_get" };
        let (state, width) = self.names.import(id).unwrap_or_default();
        format!("{} = {get}(&{state}, {width});", self.names.global(id))
    }

    /// After the handler's copy of an import was assigned.
    pub(super) fn write_through(&mut self, id: GlobalId) {
        let set = if self.program.globals[id].ty == Type::Float { "attune_set_real" } else { "attune_set" };
        let (state, width) = self.names.import(id).unwrap_or_default();
        let line = format!("{set}(&{state}, {width}, {});", self.names.global(id));
        self.out.line(line);
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
        for (id, global) in self.program.globals.iter() {
            if global.storage == Storage::Import {
                let initial = super::expressions::constant(global.initial);
                self.out.line(format!("{} = {initial};", self.names.global(id)));
            }
        }
        self.out.line("attune_budget = ATTUNE_LOOP_BUDGET;");
        self.function = Function::new(Leave::Return);
        self.function.counted = true;
        self.routine(routine);
        self.own_lines();
        self.end_function();
    }

    /// In debug builds: the invariants, and what runs them where a container has changed.
    fn invariants(&mut self) {
        if !self.options.debug {
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
                "static int {}(struct attune_call *attune_call)",
                self.names.invariant(number)
            ));
            self.out.open("{");
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
        self.out
            .line(format!("static const struct attune_check attune_unsound = {{ UINT32_MAX, 1, 1, {file},"));
        self.out
            .line("    \"a container is inconsistent: the program has overwritten a thread's record\" };");
        self.out.blank();
        self.out.line("/* After a statement that may have changed containers: are they sound, do the invariants hold? */");
        self.out.line("static void attune_watch(struct attune_call *attune_call)");
        self.out.open("{");
        let containers: Vec<_> = self.program.containers.iter().map(|(id, it)| (id, it.extent)).collect();
        for &(id, extent) in &containers {
            let name = self.names.container(id).to_string();
            self.each_element(extent, &name, |writer, element| {
                writer.out.line(format!("attune_need_sound(&attune_unsound, &{element});"));
            });
        }
        for (number, invariant) in self.program.invariants.iter().enumerate() {
            let extent = self.program.containers[invariant.container].extent;
            let name = self.names.container(invariant.container).to_string();
            let function = self.names.invariant(number).to_string();
            let check = self.check(invariant.check, |writer| {
                format!(
                    "the invariant of {} does not hold",
                    writer.program.containers[invariant.container].name
                )
            });
            self.each_element(extent, &name, |writer, element| {
                writer.out.open(format!("if ({element}.changed) {{"));
                writer.out.open(format!("if (!{function}(attune_call))"));
                writer.out.line(format!("attune_trap({check}, &{element}, NULL);"));
                writer.out.dedent();
                if extent != Extent::One {
                    writer.out.line("break;");
                }
                writer.out.close("}");
            });
        }
        for &(id, extent) in &containers {
            let name = self.names.container(id).to_string();
            self.each_element(extent, &name, |writer, element| {
                writer.out.line(format!("{element}.changed = 0;"))
            });
        }
        self.out.close("}");
    }

    /// A handler's storage class and type, and its parameters.
    fn signature(&self) -> (&'static str, &'static str) {
        if self.is_bpf() { ("ATTUNE_OUTLINE", bpf::PARAMETERS) } else { ("static void", PARAMETERS) }
    }

    fn file(&self, handler: &Handler) -> &str {
        self.sources.name(handler.span.source)
    }

    fn end_function(&mut self) {
        if self.is_bpf() {
            self.out.line("ATTUNE_RETURN;");
        }
        self.out.close("}");
    }

    /// The events that have a handler.
    pub(super) fn handled(&self) -> Vec<Event> {
        self.program.handlers.iter().map(|handler| handler.event).collect()
    }
}

const PARAMETERS: &str = "struct attune_call *attune_call, struct attune_thread *attune_thread";
