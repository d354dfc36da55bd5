//! Thread imports that the engine supplies, those that processes may supply, and those that a table
//! by process may.
//!
//! The engine declares what it knows of a thread as data ([`Supply`]), and which names a table
//! alone may supply ([`Supplies`]): this file only writes the functions that copy the values into
//! the imports of those names, and lists of the others.

use attune_language::ir::{Attribute, Supplier};

use crate::writer::Writer;
use crate::writer::expressions::constant;
use crate::writer::output::Output;

/// Where thread imports come from. One that is not named here, processes or a table may supply.
#[derive(Debug)]
pub struct Supplies {
    pub kernel: &'static [Supply],
    /// Names that a table by process supplies and no process may: what it says is of others.
    pub table_alone: &'static [&'static str],
}

/// Some thread imports that one generated function supplies when the engine calls it.
#[derive(Debug)]
pub struct Supply {
    /// The function: `attune_supply(thread)`; of a second policy, `attune_supply_policy1(thread)`.
    pub function: &'static str,
    /// What stands above it as a comment.
    pub comment: &'static str,
    /// None: every policy gets the function. Else all do where one asks.
    pub request: Option<Request>,
    /// A value that a process supplies stays in force.
    pub yields: bool,
    /// The function has a second parameter: values may name `task`, the kernel's.
    pub of_task: bool,
    pub imports: &'static [Import],
}

/// A policy asks for a supply by a thread import of that name.
#[derive(Debug, PartialEq, Eq)]
pub struct Request {
    pub import: &'static str,
    /// 1 for a policy that asks, in a macro `ATTUNE_NAME` or `ATTUNE_POLICY1_NAME`.
    pub in_macro: &'static str,
    /// Text in front of the engine's, where some policy asks.
    pub before: &'static str,
}

#[derive(Debug)]
pub struct Import {
    pub name: &'static str,
    /// The value, as C that may name `thread`.
    pub value: &'static str,
    /// Whether a process may supply it as well.
    pub processes: bool,
}

impl Request {
    pub(crate) fn is_made_by(&self, writer: &Writer<'_>) -> bool {
        writer.program.attributes.iter().any(|(_, it)| it.import && it.name == self.import)
    }
}

impl Writer<'_> {
    /// `made`: what this policy or another one asks for.
    pub(super) fn supply(&mut self, supplies: &Supplies, made: &[&Request]) {
        let role = self.role.in_macros();
        for request in supplies.kernel.iter().filter_map(|supply| supply.request.as_ref()) {
            let asks = u8::from(request.is_made_by(self));
            self.out.line(format!("#define ATTUNE_{role}{} {asks}", request.in_macro));
        }
        self.out.blank();
        for supply in supplies.kernel {
            if supply.request.as_ref().is_none_or(|request| made.contains(&request)) {
                self.supplying(supply);
            }
        }
    }

    fn supplying(&mut self, supply: &Supply) {
        let function = format!("{}{}", supply.function, self.role.ending());
        self.out.line(format!("/* {} */", supply.comment));
        let task = if supply.of_task { ", struct task_struct *task" } else { "" };
        let parameters = format!("(struct thread ATTUNE_ARENA *thread{task})");
        self.out.line(format!("static inline void {function}{parameters}"));
        self.out.open("{");
        for import in supply.imports {
            let Some(state) = self.import_named(import.name) else { continue };
            let set = format!("thread->{state}.value.number = {};", import.value);
            if supply.yields {
                self.out.line(format!("if (!thread->{state}.link)"));
                self.out.line(format!("    {set}"));
            } else {
                self.out.line(set);
            }
        }
        self.out.close("}");
    }

    fn import_named(&self, name: &str) -> Option<String> {
        let import = self.program.attributes.iter().find(|(_, it)| it.import && it.name == name);
        import.and_then(|(id, _)| self.names.thread_import(id)).map(|(state, _)| state.to_string())
    }

    /// The thread imports of these names, for the engine to go through. Those of one name have one
    /// number.
    fn each(&mut self, what: &str, numbers: &[&str]) {
        let mut each = Vec::new();
        for (id, attribute) in self.program.attributes.iter() {
            let number = numbers.iter().position(|name| *name == attribute.name);
            if let (Some((state, _)), Some(number)) = (self.names.thread_import(id), number) {
                let default = constant(attribute.initial);
                each.push(format!("visit({number}, &(thread)->{state}, {default})"));
            }
        }
        let role = self.role.in_macros();
        self.out
            .line(format!("#define ATTUNE_{role}EACH_{what}(visit, thread) {}", each.join(" ")));
    }
}

/// The imports that others than the engine supply, in the engine's macros.
pub fn by_others(writers: &mut [Writer<'_>], supplies: &Supplies, out: &mut Output) {
    type May = fn(&Supplies, &Attribute) -> bool;
    let processes: (&str, &str, May) = ("processes", "SUPPLIED", processes_may);
    let tables: (&str, &str, May) = ("a table by process", "TABLED", tables_may);
    let programs: Vec<_> = writers.iter().map(|writer| writer.program).collect();
    for (who, what, may) in [processes, tables] {
        let mut numbers: Vec<&str> = Vec::new();
        for attribute in programs.iter().flat_map(|program| program.attributes.values()) {
            if may(supplies, attribute) && !numbers.contains(&attribute.name.as_str()) {
                numbers.push(&attribute.name);
            }
        }
        out.line(format!("/* Thread imports that {who} may supply. */"));
        out.line(format!("#define ATTUNE_{what} {}", numbers.len()));
        for writer in &mut *writers {
            writer.each(what, &numbers);
            out.append(writer.written());
        }
    }
}

impl Supplies {
    fn of_kernel(&self, attribute: &Attribute) -> Option<&Import> {
        let mut imports = self.kernel.iter().flat_map(|supply| supply.imports);
        imports.find(|it| it.name == attribute.name)
    }
}

/// Whether a process may supply the attribute. Which users' processes, the loader decides.
pub fn processes_may(supplies: &Supplies, attribute: &Attribute) -> bool {
    attribute.import
        && matches!(attribute.terms.supplier, Supplier::Owner | Supplier::Loader)
        && !supplies.table_alone.contains(&attribute.name.as_str())
        && supplies.of_kernel(attribute).is_none_or(|import| import.processes)
}

/// Whether a table by process may supply the attribute: all that the kernel does not. Only root and
/// the loader have tables.
pub fn tables_may(supplies: &Supplies, attribute: &Attribute) -> bool {
    attribute.import
        && attribute.terms.supplier != Supplier::Kernel
        && supplies.of_kernel(attribute).is_none()
}
