//! Verbatim text: copied as it is, with the scheduler's names standing in it under their own
//! spelling.
//!
//! Locals are C variables of that name already. For the others, macros that hold for the text
//! alone:
//!
//! - a variable or a container is a member of the instance's state;
//! - a `threadref` is a pointer to its thread (`current->userdata`), or NULL;
//! - a per-CPU variable is this CPU's;
//! - a name that had to be changed, because another scope has it too, is itself again.
//!
//! A name that the text also uses for a member of a structure (`x = t->x;`) is no macro, but
//! written out.
//!
//! Imports of the threads that the text can name are read before it and written back behind it. The
//! compiler counts the scheduler's lines inside the text, so that its errors come back with them.

use attune_language::ir::{ContainerKind, Extent, LocalId, Scope, Type};
use attune_language::source::Span;

use super::expressions::fitted;
use super::words::{free_words, spelling, words, write_out};
use super::{Writer, keywords};

/// What stands around one text.
#[derive(Default)]
struct Surroundings {
    before: Vec<String>,
    macros: Vec<(String, String)>,
    after: Vec<String>,
}

impl Writer<'_> {
    pub(super) fn verbatim(&mut self, text: &str, span: Span) {
        let mut around = self.surroundings(text, span);
        let text = write_out(text, &mut around.macros);
        self.enter_text(&around, span);
        self.out.raw(&text);
        self.leave_text(&around);
    }

    pub(super) fn verbatim_value(&mut self, into: LocalId, text: &str, span: Span) {
        let mut around = self.surroundings(text, span);
        let text = write_out(text, &mut around.macros);
        let into = self.names.local(into).to_string();
        around.before.iter().for_each(|line| self.out.line(line));
        define(self, &around);
        self.out.line(format!("{into} = ("));
        self.at_text(span);
        self.out.raw(&text);
        self.out.at_own();
        self.out.line(");");
        self.leave_text(&Surroundings { before: Vec::new(), ..around });
    }

    fn enter_text(&mut self, around: &Surroundings, span: Span) {
        around.before.iter().for_each(|line| self.out.line(line));
        define(self, around);
        self.at_text(span);
    }

    fn at_text(&mut self, span: Span) {
        let file = self.sources.name(span.source).to_string();
        self.out.at_source(&file, self.line(span));
    }

    fn leave_text(&mut self, around: &Surroundings) {
        for (name, _) in &around.macros {
            self.out.raw(&format!("#undef {name}"));
        }
        self.out.at_own();
        around.after.iter().for_each(|line| self.out.line(line));
    }

    fn surroundings(&self, text: &str, span: Span) -> Surroundings {
        let (words, free) = (words(text), free_words(text));
        let mut around = Surroundings::default();
        self.variables_in(&free, &mut around);
        self.containers_in(&free, &mut around);
        self.locals_in(&words, span, &mut around);
        self.threads_in(&words, &mut around);
        around
    }

    /// The element of the CPU on which the handler runs, where there is one for each.
    fn here_in(&self, extent: Extent) -> String {
        match extent {
            Extent::PerCpu => format!("[{}]", self.target.cpu),
            Extent::One | Extent::Array(_) => String::new(),
        }
    }

    fn variables_in(&self, words: &[&str], around: &mut Surroundings) {
        for (id, global) in self.program.globals.iter() {
            let Some(spelling) = spelling(words, &global.name, self.names.global(id)) else {
                continue;
            };
            let name = self.global(id);
            let element = self.here_in(global.extent);
            around.define(spelling, format!("({name}{element})"));
            if let Some((state, width)) = self.import(id) {
                let get = fitted(global.terms, self.get_import(&state, &width, global.ty));
                let set = self.set_import(&state, &width, global.ty, &name);
                let value = fitted(global.terms, name.clone());
                if value != name {
                    around.after.push(format!("{name} = {value};"));
                }
                around.after.push(format!("if ({name} != {get})"));
                around.after.push(format!("    {set}"));
            }
        }
    }

    fn containers_in(&self, words: &[&str], around: &mut Surroundings) {
        for (id, container) in self.program.containers.iter() {
            let visible = match container.scope {
                Scope::Scheduler => true,
                Scope::Handler(event) => Some(event) == self.function.event,
            };
            let spelling = spelling(words, &container.name, self.names.container(id));
            let Some(spelling) = spelling.filter(|_| visible) else { continue };
            let name = self.container_place(id);
            let element = self.here_in(container.extent);
            if container.kind == ContainerKind::Threadref
                && !matches!(container.extent, Extent::Array(_))
            {
                around.define(spelling, format!("ATTUNE_FIRST(&{name}{element})"));
            } else {
                around.define(spelling, format!("({name}{element})"));
            }
        }
    }

    /// The last one declared before the text.
    fn locals_in(&self, words: &[&str], span: Span, around: &mut Surroundings) {
        for &id in &self.function.locals {
            let local = &self.program.locals[id];
            let declared = local.span.source != span.source || local.span.start <= span.start;
            if !local.temporary && declared && words.contains(&local.name.as_str()) {
                around.macros.retain(|(name, _)| *name != local.name);
                let name = self.names.local(id);
                if name != local.name {
                    around.define(&local.name, name.to_string());
                }
            }
        }
        for &id in &self.function.threads {
            let (name, own) = (self.names.thread(id), &self.program.names[id].name);
            if words.contains(&own.as_str()) {
                around.macros.retain(|(name, _)| name != own);
                if name != own {
                    around.define(own, name.to_string());
                }
            }
        }
    }

    /// Thread imports, where the text mentions one: of every thread that it can name.
    fn threads_in(&self, words: &[&str], around: &mut Surroundings) {
        let imports = self.program.attributes.iter().filter(|(_, attribute)| attribute.import);
        let mentioned: Vec<_> =
            imports.filter(|(_, attribute)| words.contains(&attribute.name.as_str())).collect();
        if mentioned.is_empty() {
            return;
        }
        let mut threads: Vec<String> =
            self.function.threads.iter().map(|&id| self.names.thread(id).to_string()).collect();
        for (id, container) in self.program.containers.iter() {
            if container.kind == ContainerKind::Threadref
                && words.contains(&container.name.as_str())
            {
                let name = self.container_place(id);
                match container.extent {
                    Extent::One => threads.push(format!("ATTUNE_FIRST(&{name})")),
                    Extent::PerCpu => {
                        let here = self.here_in(Extent::PerCpu);
                        threads.push(format!("ATTUNE_FIRST(&{name}{here})"));
                    }
                    Extent::Array(_) => {}
                }
            }
        }
        for (id, attribute) in mentioned {
            let Some((state, width)) = self.thread_import(id) else { continue };
            let member = self.names.attribute(id);
            let real = if attribute.ty == Type::Float { "_real" } else { "" };
            for thread in &threads {
                let get = self.attribute(thread, id);
                let there =
                    if thread.contains('(') { format!("if ({thread}) ") } else { String::new() };
                around.before.push(format!("{there}{thread}->{member} = {get};"));
                let there =
                    if thread.contains('(') { format!("{thread} && ") } else { String::new() };
                around.after.push(format!("if ({there}{thread}->{member} != {get})"));
                let value = fitted(attribute.terms, format!("{thread}->{member}"));
                around.after.push(format!(
                    "    attune_set{real}(attune, &{thread}->{state}, {width}, {value});"
                ));
            }
        }
    }
}

impl Surroundings {
    /// A word that C knows by itself keeps C's meaning.
    fn define(&mut self, name: &str, text: String) {
        if !keywords::means_something_in_c(name) {
            self.macros.push((name.to_string(), text));
        }
    }
}

fn define(writer: &mut Writer<'_>, around: &Surroundings) {
    for (name, text) in &around.macros {
        writer.out.raw(&format!("#define {name} {text}"));
    }
}
