//! What is different where the C becomes a BPF program.
//!
//! - State lives in an arena, also what is local and large: handlers are atomic.
//! - Every loop asks the kernel whether it may go on.
//! - A failed check is noted, and the handler goes on with something harmless (`runtime/failure.h`): nothing can be thrown
//!   through a held lock.
//! - In `schedule` shared containers hold only the threads that may run on this CPU (`runtime/affinity.h`).
//! - Handlers are reached by macros, `ATTUNE_ON_SWITCH_OUT(call, thread)`; those that the policy lacks do nothing.

use attune_language::event::Event;
use attune_language::ir::{Attribute, ContainerRef, Extent, Storage, Type, Value};
use attune_language::source::{SourceId, Span};

use super::Writer;
use super::declarations::abi_event;
use super::expressions::constant;
use super::output::{Output, quoted};

/// A thread's last transfer is a line, with the number of its file above these bits.
pub const LINE_BITS: u32 = 20;

/// Scalars of a routine that stay on the stack or in registers.
pub const LOCALS_ON_STACK: usize = 12;

pub const PARAMETERS: &str = "struct attune_call ATTUNE_ARENA *attune_call ATTUNE_IN_ARENA, struct attune_thread ATTUNE_ARENA *attune_thread ATTUNE_IN_ARENA";

pub const BANNER: &str = " *
 * A BPF program that needs nothing else: clang --target=bpf -mcpu=v4 -O2 -g -ffreestanding -fno-builtin -c this.bpf.c
 * First the runtime that all schedulers share, then the scheduler, then the engine.
 */
";

pub const NOBODY: &str = "
static struct thread ATTUNE_ARENA attune_no_thread;

static struct attune_thread ATTUNE_ARENA *attune_nobody(void)
{
    return &attune_no_thread.attune;
}
";

impl Writer<'_> {
    /// Whether a container is read as holding only what may run on this CPU.
    pub(super) fn is_filtered(&self, of: &ContainerRef) -> bool {
        self.is_bpf()
            && self.function.event == Some(Event::Schedule)
            && self.program.containers[of.container].extent != Extent::PerCpu
    }

    /// A call of a container function up to its own arguments: `attune_size(`, `attune_size_here(attune_call, `.
    pub(super) fn here(&self, function: &str, of: &ContainerRef) -> String {
        if self.is_filtered(of) { format!("{function}_here(attune_call, ") } else { format!("{function}(") }
    }

    /// Where a loop over an array starts.
    pub(super) fn zero(&self) -> &'static str {
        if self.is_bpf() { "(uint32_t)ATTUNE_ZERO" } else { "0" }
    }

    /// The test of a loop over an array.
    pub(super) fn bounded(&self, length: &str) -> String {
        self.bounded_by(format!("attune_i < {length}"))
    }

    /// The test of a loop of the runtime's kind, without a place.
    pub(super) fn bounded_by(&self, test: String) -> String {
        if self.is_bpf() { format!("{test} && ATTUNE_MAY_LOOP") } else { test }
    }

    /// Asks whether a loop of the scheduler's may go on.
    pub(super) fn may_loop(&mut self, span: Span, what: impl FnOnce(&Self) -> String) -> Option<String> {
        self.is_bpf().then(|| format!("ATTUNE_MAY_LOOP_AT({})", self.cut(span, what)))
    }

    /// The handlers as the engine reaches them.
    fn reached(&mut self) {
        let role = self.role.in_macros();
        for event in Event::ALL {
            let name = abi_event(event).replacen("ATTUNE_", "", 1);
            let handled = self.program.handler(event).is_some();
            let target = match handled {
                true => format!("{}(call, thread)", self.names.handler(event)),
                false => "(void)0".to_string(),
            };
            self.out.line(format!("#define ATTUNE_{role}HAS_{name} {}", u8::from(handled)));
            self.out.line(format!("#define ATTUNE_{role}ON_{name}(call, thread) {target}"));
        }
        self.out.line(format!("#define ATTUNE_{role}TAKES_TIMEOUTS {}", u8::from(self.takes_timeouts())));
        self.out.blank();
        self.supply();
    }

    /// What the kernel knows of a thread, for imports of that name.
    fn supply(&mut self) {
        let ending = self.role.ending();
        self.out.line("/* Thread imports that the kernel itself supplies. */");
        self.out
            .line(format!("static inline void attune_supply{ending}(struct thread ATTUNE_ARENA *thread)"));
        self.out.open("{");
        for (name, value) in [("weight", "weight"), ("process", "tgid")] {
            if let Some(state) = self.import_named(name) {
                self.out.line(format!("thread->{state}.value.number = thread->attune_task.{value};"));
            }
        }
        self.out.close("}");
        if self.takes_timeouts() {
            self.tell();
        }
    }

    /// What a thread waits until, for imports of that name that nobody supplies.
    fn tell(&mut self) {
        let ending = self.role.ending();
        self.out.line("/* Thread imports that the kernel supplies where no process does. */");
        self.out.line(format!("static inline void attune_tell{ending}(struct thread ATTUNE_ARENA *thread)"));
        self.out.open("{");
        for (name, value) in [("polls", "told"), ("next_release", "release"), ("implicit", "told != 0")] {
            if let Some(state) = self.import_named(name) {
                self.out.line(format!("if (!thread->{state}.link)"));
                self.out.line(format!(
                    "    thread->{state}.value.number = thread->attune_task.timeouts.{value};"
                ));
            }
        }
        self.out.close("}");
    }

    fn import_named(&self, name: &str) -> Option<String> {
        let import = self.program.attributes.iter().find(|(_, it)| it.import && it.name == name);
        import.and_then(|(id, _)| self.names.thread_import(id)).map(|(state, _)| state.to_string())
    }

    /// Whether the policy asks what threads wait until.
    pub(super) fn takes_timeouts(&self) -> bool {
        self.program.attributes.iter().any(|(_, it)| it.import && it.name == "implicit")
    }

    /// Thread imports that processes may supply, for the engine to go through. Those of one name have one number.
    fn supplied(&mut self, numbers: &[String]) {
        let mut each = Vec::new();
        for (id, attribute) in self.program.attributes.iter().filter(|(_, it)| is_supplied(it)) {
            let number = numbers.iter().position(|name| *name == attribute.name);
            if let (Some((state, _)), Some(number)) = (self.names.thread_import(id), number) {
                let default = constant(attribute.initial);
                each.push(format!("visit({number}, &(thread)->{state}, {default})"));
            }
        }
        let role = self.role.in_macros();
        self.out.line(format!("#define ATTUNE_{role}EACH_SUPPLIED(visit, thread) {}", each.join(" ")));
    }

    /// What a loader must know to speak in the scheduler's words: lines of words between tabs.
    fn description(&self) -> Vec<String> {
        let mut lines = vec![format!("scheduler\t{}\t{}", self.program.name, self.sources.name(SourceId(0)))];
        for source in self.sources.ids().filter(|source| *source != SourceId(0)) {
            lines.push(format!("source\t{}\t{}", source.0 << LINE_BITS, self.sources.name(source)));
        }
        for (number, span, what) in self.performed_checks() {
            let at = self.sources.location(span);
            let file = self.sources.name(span.source);
            lines.push(format!("check\t{number}\t{}\t{}\t{file}\t{what}", at.line, at.column));
        }
        for (id, global) in self.program.globals.iter() {
            let (storage, name) = match (global.storage, self.names.import(id)) {
                (Storage::Import, Some((state, _))) => ("import", format!("{state}.value")),
                (Storage::Tunable, _) => ("tunable", self.names.global(id).to_string()),
                (Storage::Const, _) => ("const", self.names.global(id).to_string()),
                _ => ("data", self.names.global(id).to_string()),
            };
            let ty = type_name(global.ty);
            lines.push(format!("global\t{}\t{name}\t{storage}\t{ty}", global.name));
        }
        for (id, attribute) in self.program.attributes.iter() {
            let (member, storage) = match self.names.thread_import(id) {
                Some((state, _)) => (state, "import"),
                None => (self.names.attribute(id), "data"),
            };
            let ty = type_name(attribute.ty);
            lines.push(format!("attribute\t{}\t{member}\t{storage}\t{ty}", attribute.name));
        }
        for (_, import) in self.program.attributes.iter().filter(|(_, it)| is_supplied(it)) {
            if let Value::Int(default) = import.initial {
                lines.push(format!("threadimport\t{}\t{default}", import.name));
            }
        }
        for (id, container) in self.program.containers.iter() {
            lines.push(format!("container\t{}\t{}", container.name, self.names.container(id)));
        }
        lines
    }
}

/// What the engine calls of each policy, the engine, and what a loader must know.
pub fn engine(writers: &mut [Writer<'_>], behind: &str, out: &mut Output) {
    out.blank();
    out.line("/* What the engine calls. */");
    for writer in &mut *writers {
        writer.reached();
        out.append(writer.written());
    }
    out.blank();
    let mut supplied: Vec<String> = Vec::new();
    for writer in &*writers {
        for (_, import) in writer.program.attributes.iter().filter(|(_, it)| is_supplied(it)) {
            if !supplied.contains(&import.name) {
                supplied.push(import.name.clone());
            }
        }
    }
    out.line("/* Thread imports that processes may supply. */");
    out.line(format!("#define ATTUNE_SUPPLIED {}", supplied.len()));
    for writer in &mut *writers {
        writer.supplied(&supplied);
        out.append(writer.written());
    }
    out.blank();
    out.raw(behind);
    out.blank();
    out.line("const char attune_description[] ATTUNE_SECTION(\".rodata.attune\") =");
    for line in writers.iter().flat_map(Writer::description) {
        out.line(format!("    {}", quoted(&format!("{line}\n"))));
    }
    out.line(";");
}

/// There are no floats in the kernel.
fn type_name(ty: Type) -> &'static str {
    if ty == Type::Time { "time" } else { "int" }
}

/// Not what the kernel alone knows.
fn is_supplied(attribute: &Attribute) -> bool {
    attribute.import && !["weight", "process", "implicit"].contains(&attribute.name.as_str())
}
