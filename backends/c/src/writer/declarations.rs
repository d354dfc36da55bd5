//! What stands around the handlers: the file's first lines, the thread record, variables and
//! containers above them; the functions that start a scheduler and a thread below.

use attune_language::engine::event::Event;
use attune_language::ir::{
    Container, ContainerKind, Extent, First, Global, GlobalId, Scope, Storage, Type,
};
use attune_language::source::SourceId;

use super::expressions::constant;
use super::names;
use super::output::{Output, quoted};
use super::statements::c_type;
use super::target::{Imports, State};
use super::{Role, Writer};

/// The file's first lines: its comment, and what holds for all that follows.
pub fn opening(writers: &[Writer<'_>], out: &mut Output) {
    let Some(first) = writers.first() else { return };
    let called: Vec<String> = writers
        .iter()
        .map(|writer| {
            let file = one_line(writer.sources.name(SourceId(0)));
            format!("{}, generated from {file}", one_line(&writer.program.name))
        })
        .collect();
    let schedulers = if writers.len() > 1 { "schedulers" } else { "scheduler" };
    out.line(format!("/* The {schedulers} {} by Attune.", called.join(", and ")));
    out.raw(first.target.banner);
    out.raw(PRAGMAS);
    if first.debug {
        out.line("#define ATTUNE_DEBUG 1");
    }
    let headers = first.target.verbatim_headers;
    if !headers.is_empty() && writers.iter().any(|writer| !writer.program.verbatim.is_empty()) {
        out.raw(headers);
    }
    out.blank();
}

/// The thread record, which all policies of a file share; `members` are the engine's own.
pub fn record(writers: &[Writer<'_>], members: &[&str], out: &mut Output) {
    out.line(
        "/* ---- The scheduler \
        -------------------------------------------------------------------------------- */",
    );
    out.blank();
    out.raw(
        "/* The CPUs that there is room for. */\n#ifndef ATTUNE_CPUS\n#define ATTUNE_CPUS \
        1\n#endif\n",
    );
    out.blank();
    out.line("/* A thread, with the variables that every thread has. */");
    out.open("struct thread {");
    out.line("union {");
    out.line("    struct attune_thread attune;");
    out.line("    struct { uint64_t attune_id; void *userdata; };");
    out.line("};");
    members.iter().for_each(|member| out.line(member));
    match writers {
        [writer] => writer.members(out),
        // A thread follows one of them.
        _ => {
            out.open("union {");
            for writer in writers {
                out.open("struct {");
                writer.members(out);
                out.close("};");
            }
            out.close("};");
        }
    }
    out.close("};");
    out.blank();
    out.line("#define ATTUNE_RECORD(head) ((struct thread ATTUNE_ARENA *)(head))");
    out.line("#define ATTUNE_FIRST(container) ATTUNE_RECORD(attune_first(container))");
}

/// The state of an instance, which all policies of a file share. The functions must be written:
/// what they keep from call to call is a part of it.
pub fn state(writers: &mut [Writer<'_>], out: &mut Output) {
    out.blank();
    out.line("/* What an instance has of its own: the scheduler's variables and containers. */");
    out.open("struct state {");
    out.line("struct attune_instance attune;");
    for writer in &mut *writers {
        writer.variables(out);
        writer.containers(out);
        std::mem::take(&mut writer.kept).into_iter().for_each(|member| out.line(member));
    }
    out.close("};");
    out.blank();
    out.line("#define ATTUNE_STATE(head) ((struct state ATTUNE_ARENA *)(head))");
    if writers.first().is_some_and(|writer| writer.target.state == State::Only) {
        out.raw(ONLY);
    }
}

impl Writer<'_> {
    /// Its remaining checks.
    pub(crate) fn remaining_checks(&mut self) -> Output {
        self.check_records();
        self.written()
    }

    /// The variables that every thread has.
    fn members(&self, out: &mut Output) {
        let plain = self.target.imports == Imports::Plain;
        if plain && self.program.attributes.values().any(|attribute| attribute.import) {
            self.plain_imports(out);
        }
        for (id, attribute) in self.program.attributes.iter() {
            if plain && attribute.import {
                continue;
            }
            let member = self.names.attribute(id);
            match self.names.thread_import(id) {
                None => out.line(format!("{} {member};", c_type(attribute.ty))),
                Some((state, _)) => {
                    out.line(format!("struct attune_import {state};"));
                    if !self.program.verbatim.is_empty() {
                        out.line(format!(
                            "{} {member};                    /* as verbatim text sees it */",
                            c_type(attribute.ty)
                        ));
                    }
                }
            }
        }
    }

    /// The thread imports under their own names, and together as the header declares them.
    fn plain_imports(&self, out: &mut Output) {
        out.open("union {");
        out.line("struct attune_imports attune_imports;");
        out.open("struct {");
        for (id, attribute) in self.program.attributes.iter().filter(|(_, it)| it.import) {
            out.line(format!("{} {};", c_type(attribute.ty), self.names.attribute(id)));
        }
        out.close("};");
        out.close("};");
    }

    fn variables(&self, out: &mut Output) {
        for (id, global) in self.program.globals.iter() {
            let name = self.names.global(id).to_string();
            let ty = c_type(global.ty);
            let length =
                self.length(global.extent).map(|length| format!("[{length}]")).unwrap_or_default();
            let said = match global.storage {
                Storage::Data => "",
                Storage::Const => " /* const */",
                Storage::Tunable => " /* tunable */",
                Storage::Import => " /* import: as this handler has read it */",
            };
            out.line(format!("{ty} {name}{length};{said}"));
            if let (Imports::Linked, Some((state, width))) =
                (self.target.imports, self.names.import(id))
            {
                out.line(format!("struct attune_import {state};"));
                out.line(format!("enum attune_width {width};"));
            }
        }
        for (id, _) in self.program.attributes.iter() {
            if let Some((_, width)) = self.names.thread_import(id) {
                out.line(format!("enum attune_width {width};"));
            }
        }
    }

    fn containers(&self, out: &mut Output) {
        for (id, container) in self.program.containers.iter() {
            let name = self.names.container(id);
            let length = self
                .length(container.extent)
                .map(|length| format!("[{length}]"))
                .unwrap_or_default();
            let line = format!(
                "struct attune_container {name}{length}; /* {} */",
                self.described(container)
            );
            out.line(line);
        }
    }

    /// `pqueue, highest rank first; local to schedule`.
    fn described(&self, container: &Container) -> String {
        let kind = match container.kind {
            ContainerKind::Threadref => "threadref",
            ContainerKind::Queue => "queue",
            ContainerKind::Stack => "stack",
            ContainerKind::PQueue => "pqueue",
            ContainerKind::PStack => "pstack",
        };
        let sort = container.sort.map(|sort| {
            let first = if sort.first == First::Highest { "highest" } else { "lowest" };
            format!(", {first} {} first", one_line(&self.program.attributes[sort.by].name))
        });
        let scope = match container.scope {
            Scope::Scheduler => String::new(),
            Scope::Handler(event) => format!("; local to {event}"),
        };
        format!("{kind}{}{scope}", sort.unwrap_or_default())
    }

    /// Number of elements as C says it; none for a single one.
    pub(crate) fn length(&self, extent: Extent) -> Option<String> {
        match extent {
            Extent::One => None,
            Extent::Array(length) => Some(length.to_string()),
            Extent::PerCpu => Some("ATTUNE_CPUS".to_string()),
        }
    }

    /// Writes something for every element of an array, or for the one that there is.
    pub(super) fn each_element(
        &mut self,
        extent: Extent,
        name: &str,
        write: impl FnOnce(&mut Self, &str),
    ) {
        match self.length(extent) {
            None => write(self, name),
            Some(length) => {
                let (test, zero) = (self.bounded(&length), self.zero());
                self.out.open(format!("for (uint32_t attune_i = {zero}; {test}; attune_i++) {{"));
                write(self, &format!("{name}[attune_i]"));
                self.out.close("}");
            }
        }
    }

    /// The functions that begin a scheduler and a thread, and end a thread.
    pub(crate) fn starting(&mut self) -> Output {
        self.start();
        self.thread_init();
        if self.role == Role::FIRST {
            self.out.blank();
            self.out.raw(THREAD_REMOVE);
        }
        self.written()
    }

    /// The handlers as an engine in the same text reaches them: `ATTUNE_ON_INIT(instance, thread)`,
    /// which does nothing where the policy has none.
    pub(crate) fn handlers_by_macro(&mut self) {
        let role = self.role.in_macros();
        for event in Event::ALL {
            let name = abi_event(event).replacen("ATTUNE_", "", 1);
            let handled = self.program.handler(event).is_some();
            let target = match handled {
                true => format!("{}(instance, thread)", self.names.handler(event)),
                false => "(void)0".to_string(),
            };
            self.out.line(format!("#define ATTUNE_{role}HAS_{name} {}", u8::from(handled)));
            self.out.line(format!("#define ATTUNE_{role}ON_{name}(instance, thread) {target}"));
        }
    }

    fn start(&mut self) {
        self.out.blank();
        let ending = self.role.ending();
        self.out.line(format!(
            "static void attune_start{ending}(struct attune_instance ATTUNE_ARENA *attune, \
                uint64_t \
                attune_seed, uint32_t attune_cpus)"
        ));
        self.out.open("{");
        self.find_state();
        self.out.line("attune->random_state = attune_seed;");
        self.out.line("attune->stamp = 1;");
        for (id, container) in self.program.containers.iter() {
            let name = self.container_place(id);
            let (lowest, sorted_on) = match container.sort {
                None => (0, 0),
                Some(sort) => {
                    (u8::from(sort.first == First::Lowest), sort.by.into_raw().into_u32() + 1)
                }
            };
            let element = match container.extent {
                Extent::One => "-1",
                Extent::Array(_) => "(int32_t)attune_i",
                Extent::PerCpu => "ATTUNE_CPUS > 1 ? (int32_t)attune_i : -1",
            };
            let rest = format!(
                "{}, {element}, {}, {lowest}, {sorted_on}",
                // Without a name, a program that reads the memory knows where it lies.
                if self.target.named_containers { quoted(&container.name) } else { "NULL".into() },
                names::kind(container.kind)
            );
            self.each_element(container.extent, &name, |writer, element| {
                writer.out.line(format!("attune_container_init(&{element}, {rest});"));
            });
        }
        for (id, global) in self.program.globals.iter() {
            self.set_initial(id, global);
        }
        if !self.program.prologue.body.statements.is_empty() {
            self.out.line("int64_t attune_now = attune->now;");
            self.out.line("attune->cpus = attune_cpus;");
            self.out.line("attune->cpu = 0;");
            self.out.line("attune->now = 0;");
            self.out.line("attune->slice = -1;");
            self.out.line(format!("attune_prologue{ending}(attune, NULL);"));
            self.out.line("attune->now = attune_now;");
        }
        self.out.close("}");
    }

    fn set_initial(&mut self, id: GlobalId, global: &Global) {
        let initial = match (self.target.imports, global.storage) {
            // The firmware's configuration may say another value.
            (Imports::Plain, Storage::Tunable) => names::tuned(&global.name),
            _ => constant(global.initial),
        };
        let name = self.global(id);
        self.each_element(global.extent, &name, |writer, element| {
            writer.out.line(format!("{element} = {initial};"));
        });
        let Some((state, _)) = self.import(id) else { return };
        match self.target.imports {
            Imports::Linked => {
                let line = format!("{state}.value.{} = {initial};", member_of_value(global.ty));
                self.out.line(line);
            }
            // The firmware's own variable keeps its value.
            Imports::Plain => {
                let own = names::own_import(&global.name);
                self.out.raw(&format!("#ifdef {own}\n    {own} = {initial};\n#endif"));
            }
        }
    }

    fn thread_init(&mut self) {
        self.out.blank();
        let ending = self.role.ending();
        self.out.line(format!(
            "static void attune_thread_init{ending}(struct attune_instance \
            ATTUNE_ARENA *attune, struct attune_thread ATTUNE_ARENA *attune_thread)"
        ));
        self.out.open("{");
        self.out
            .line("struct thread ATTUNE_ARENA *const attune_new = ATTUNE_RECORD(attune_thread);");
        for (id, attribute) in self.program.attributes.iter() {
            let initial = constant(attribute.initial);
            let line = match self.names.thread_import(id) {
                None => format!("attune_new->{} = {initial};", self.names.attribute(id)),
                Some((state, _)) => {
                    let member = member_of_value(attribute.ty);
                    format!(
                        "attune_new->{state}.link = NULL;\n    attune_new->{state}.value.{member} \
                            = {initial};"
                    )
                }
            };
            self.out.line(line);
        }
        if !self.program.thread_prologue.body.statements.is_empty() {
            self.out.line(format!("attune_thread_prologue{ending}(attune, attune_thread);"));
        }
        self.out.close("}");
    }
}

const PRAGMAS: &str = "#ifdef __GNUC__
#pragma GCC diagnostic ignored \"-Wunused-function\"
#pragma GCC diagnostic ignored \"-Wunused-variable\"
#pragma GCC diagnostic ignored \"-Wunused-parameter\"
#pragma GCC diagnostic ignored \"-Wunused-but-set-variable\"
#pragma GCC diagnostic ignored \"-Wtautological-compare\"
#endif
#ifdef __clang__
#pragma GCC diagnostic ignored \"-Wself-assign\"
#endif
";

/// The one instance of a machine without an operating system: the compiler knows its addresses.
const ONLY: &str = "
static struct state attune_only;
static struct attune_instance *const attune = &attune_only.attune;
static struct state *const attune_state = &attune_only;
#define ATTUNE_CPU      (ATTUNE_CPUS > 1 ? attune->cpu : 0)
#define ATTUNE_ALL_CPUS (ATTUNE_CPUS > 1 ? attune->cpus : 1)
";

const THREAD_REMOVE: &str =
    "ATTUNE_OUTLINE attune_thread_remove(struct attune_thread ATTUNE_ARENA *attune_thread
                                    ATTUNE_IN_ARENA)
{
    struct attune_container ATTUNE_ARENA *attune_where = attune_thread->where;
    attune_remove(attune_thread);
    if (attune_where)
        attune_where->changed = 0;                      /* not by a statement: no invariant runs */
    ATTUNE_RETURN;
}
";

fn member_of_value(ty: Type) -> &'static str {
    if ty == Type::Float { "real" } else { "number" }
}

pub fn abi_event(event: Event) -> String {
    format!("ATTUNE_{}", event.name().to_ascii_uppercase())
}

/// Text that stands in a comment.
pub fn one_line(text: &str) -> String {
    text.replace("*/", "* /").replace(['\n', '\r'], " ")
}
