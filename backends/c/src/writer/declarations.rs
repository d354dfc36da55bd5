//! What stands around the handlers: the runtime, the thread record, variables and containers above them; starting,
//! a thread's beginning and the engine's table below.

use attune_language::event::Event;
use attune_language::ir::{
    Attribute, Container, ContainerKind, Extent, First, Global, GlobalId, Scope, Storage, Type,
};
use attune_language::source::SourceId;

use super::expressions::constant;
use super::names;
use super::output::{Output, quoted};
use super::statements::c_type;
use super::{Options, Role, Target, Writer, bpf};
use crate::runtime;

/// What stands above all policies of a file: the runtime, what the engine has in front, the thread record.
pub fn head(writers: &[Writer<'_>], options: &Options, out: &mut Output) {
    let called: Vec<String> = writers
        .iter()
        .map(|writer| {
            let file = one_line(writer.sources.name(SourceId(0)));
            format!("{}, generated from {file}", one_line(&writer.program.name))
        })
        .collect();
    let schedulers = if writers.len() > 1 { "schedulers" } else { "scheduler" };
    out.line(format!("/* The {schedulers} {} by Attune.", called.join(", and ")));
    let bpf = matches!(options.target, Target::Bpf(_));
    out.raw(if bpf { bpf::BANNER } else { BANNER });
    out.raw(PRAGMAS);
    if options.debug {
        out.line("#define ATTUNE_DEBUG 1");
    }
    if writers.iter().any(|writer| !writer.program.verbatim.is_empty()) {
        out.raw("#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n#include <time.h>");
    }
    out.blank();
    let needs = writers.iter().map(Writer::needs).reduce(runtime::Needs::and);
    out.raw(&runtime::text(needs.unwrap_or_default()));
    if let Target::Bpf(around) = &options.target {
        if writers.len() > 1 {
            out.raw(&format!(
                "/* Policies that share the CPUs. */\n#define ATTUNE_DOMAINS {}\n",
                writers.len()
            ));
        }
        if writers.iter().any(Writer::takes_timeouts) {
            out.raw("/* Some policy wants to know what threads wait until. */\n#define ATTUNE_IMPLICIT 1\n");
        }
        out.raw(&around.before);
        out.raw(&runtime::affinity());
    }
    out.line("/* ---- The scheduler -------------------------------------------------------------------------------- */");
    out.blank();
    thread_record(writers, bpf, out);
}

fn thread_record(writers: &[Writer<'_>], bpf: bool, out: &mut Output) {
    out.raw("/* The CPUs that there is room for. */\n#ifndef ATTUNE_CPUS\n#define ATTUNE_CPUS 1\n#endif\n");
    out.blank();
    out.line("/* A thread, with the variables that every thread has. */");
    out.open("struct thread {");
    out.line("union {");
    out.line("    struct attune_thread attune;");
    out.line("    struct { uint64_t attune_id; void *userdata; };");
    out.line("};");
    if bpf {
        out.line("ATTUNE_MEMBERS                      /* the engine's */");
        if writers.iter().any(Writer::has_alarms) {
            out.line("struct attune_thread attune_alarm_node;");
        }
    }
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
    for writer in writers {
        for (id, _) in writer.program.attributes.iter() {
            if let Some((_, width)) = writer.names.thread_import(id) {
                out.line(format!("static enum attune_width {width};"));
            }
        }
    }
    if bpf {
        out.raw(bpf::NOBODY);
    }
}

impl Writer<'_> {
    /// Its variables, containers and remaining checks.
    pub(super) fn state(&mut self) -> Output {
        self.variables();
        self.containers();
        self.check_records();
        self.written()
    }

    /// The variables that every thread has.
    fn members(&self, out: &mut Output) {
        for (id, attribute) in self.program.attributes.iter() {
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

    fn variables(&mut self) {
        self.out.blank();
        for (id, global) in self.program.globals.iter() {
            let name = self.names.global(id).to_string();
            let ty = c_type(global.ty);
            let length = self.length(global.extent).map(|length| format!("[{length}]")).unwrap_or_default();
            let said = match global.storage {
                Storage::Data => "",
                Storage::Const => " /* const */",
                Storage::Tunable => " /* tunable */",
                Storage::Import => " /* import: as this handler has read it */",
            };
            let space = self.space();
            self.out.line(format!("static {ty} {space}{name}{length};{said}"));
            if let Some((state, width)) = self.names.import(id) {
                let lines =
                    format!("static struct attune_import {space}{state};\nstatic enum attune_width {width};");
                self.out.raw(&lines);
            }
        }
    }

    fn containers(&mut self) {
        self.out.blank();
        for (id, container) in self.program.containers.iter() {
            let name = self.names.container(id);
            let length =
                self.length(container.extent).map(|length| format!("[{length}]")).unwrap_or_default();
            let line = format!(
                "static struct attune_container {}ATTUNE_ARENA {name}{length}; /* {} */",
                if self.is_bpf() { "ATTUNE_KEPT " } else { "" },
                self.described(container)
            );
            self.out.line(line);
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
    pub(super) fn length(&self, extent: Extent) -> Option<String> {
        match extent {
            Extent::One => None,
            Extent::Array(length) => Some(length.to_string()),
            Extent::PerCpu => Some("ATTUNE_CPUS".to_string()),
        }
    }

    /// Writes something for every element of an array, or for the one that there is.
    pub(super) fn each_element(&mut self, extent: Extent, name: &str, write: impl FnOnce(&mut Self, &str)) {
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

    /// Where the scheduler's state lives.
    pub(super) fn space(&self) -> &'static str {
        if self.is_bpf() { "ATTUNE_KEPT ATTUNE_ARENA " } else { "" }
    }

    /// The functions that begin a scheduler and a thread, and end a thread.
    pub(super) fn starting(&mut self) -> Output {
        self.start();
        self.thread_init();
        if self.role == Role::Command {
            self.out.blank();
            self.out.raw(THREAD_REMOVE);
        }
        self.written()
    }

    pub(super) fn engine_table(&mut self) -> Output {
        self.out.blank();
        self.out.raw(ATTACH);
        self.out.blank();
        self.out.raw(CONTAINER_EACH);
        self.variable_tables();
        self.container_table();
        self.scheduler_table();
        self.written()
    }

    fn start(&mut self) {
        self.out.blank();
        let ending = self.role.ending();
        self.out
            .line(format!("static void attune_start{ending}(uint64_t attune_seed, uint32_t attune_cpus)"));
        self.out.open("{");
        self.out.line("attune_random_state = attune_seed;");
        self.out.line("attune_stamp = 1;");
        for (id, container) in self.program.containers.iter() {
            let name = self.names.container(id).to_string();
            let (lowest, sorted_on) = match container.sort {
                None => (0, 0),
                Some(sort) => (u8::from(sort.first == First::Lowest), sort.by.into_raw().into_u32() + 1),
            };
            let element = match container.extent {
                Extent::One => "-1",
                Extent::Array(_) => "(int32_t)attune_i",
                Extent::PerCpu => "ATTUNE_CPUS > 1 ? (int32_t)attune_i : -1",
            };
            let rest = format!(
                "{}, {element}, {}, {lowest}, {sorted_on}",
                // In the kernel a container has no name: whoever reads its memory knows where it lies.
                if self.is_bpf() { "NULL".to_string() } else { quoted(&container.name) },
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
            let space = if self.is_bpf() { "static ATTUNE_ARENA " } else { "" };
            self.out.line(format!("{space}struct attune_call attune_first_call;"));
            self.out.line("attune_first_call.cpus = attune_cpus;");
            self.out.line("attune_first_call.cpu = 0;");
            self.out.line("attune_first_call.now = 0;");
            self.out.line("attune_first_call.slice = -1;");
            self.out.line(format!("attune_prologue{ending}(&attune_first_call, NULL);"));
        }
        self.out.close("}");
    }

    fn set_initial(&mut self, id: GlobalId, global: &Global) {
        let initial = constant(global.initial);
        let name = self.names.global(id).to_string();
        self.each_element(global.extent, &name, |writer, element| {
            writer.out.line(format!("{element} = {initial};"));
        });
        if let Some((state, _)) = self.names.import(id) {
            let line = format!("{state}.value.{} = {initial};", member_of_value(global.ty));
            self.out.line(line);
        }
    }

    fn thread_init(&mut self) {
        self.out.blank();
        let ending = self.role.ending();
        self.out.line(format!("static void attune_thread_init{ending}(struct attune_call ATTUNE_ARENA *attune_call, struct attune_thread ATTUNE_ARENA *attune_thread)"));
        self.out.open("{");
        self.out.line("struct thread ATTUNE_ARENA *const attune_new = ATTUNE_RECORD(attune_thread);");
        for (id, attribute) in self.program.attributes.iter() {
            let initial = constant(attribute.initial);
            let line = match self.names.thread_import(id) {
                None => format!("attune_new->{} = {initial};", self.names.attribute(id)),
                Some((state, _)) => {
                    let member = member_of_value(attribute.ty);
                    format!(
                        "attune_new->{state}.link = NULL;\n    attune_new->{state}.value.{member} = {initial};"
                    )
                }
            };
            self.out.line(line);
        }
        if !self.program.thread_prologue.body.statements.is_empty() {
            self.out.line(format!("attune_thread_prologue{ending}(attune_call, attune_thread);"));
        }
        self.out.close("}");
    }

    fn variable_tables(&mut self) {
        let mut globals = Vec::new();
        for (id, global) in self.program.globals.iter() {
            let name = self.names.global(id);
            let length = self.length(global.extent);
            let (imported, storage, link, width) = match self.names.import(id) {
                Some((state, width)) => {
                    (1, format!("&{state}.value"), format!("&{state}.link"), format!("&{width}"))
                }
                None => {
                    let imported = match global.storage {
                        Storage::Tunable => 2,
                        Storage::Const => 3,
                        Storage::Data | Storage::Import => 0,
                    };
                    let storage = if length.is_some() { name.to_string() } else { format!("&{name}") };
                    (imported, storage, "NULL".to_string(), "NULL".to_string())
                }
            };
            globals.push(format!(
                "{{ {}, {}, {imported}, {}, {storage}, 0, {link}, {width} }},",
                quoted(&global.name),
                abi_type(global.ty),
                length.unwrap_or("0".to_string())
            ));
        }
        let attributes: Vec<String> =
            self.program.attributes.iter().map(|(id, attribute)| self.attribute_row(id, attribute)).collect();
        self.table("struct attune_variable attune_globals", &globals);
        self.table("struct attune_variable attune_attributes", &attributes);
    }

    fn attribute_row(&self, id: attune_language::ir::AttributeId, attribute: &Attribute) -> String {
        let (imported, member, width) = match self.names.thread_import(id) {
            Some((state, width)) => (1, state, format!("&{width}")),
            None => (0, self.names.attribute(id), "NULL".to_string()),
        };
        format!(
            "{{ {}, {}, {imported}, 0, NULL, offsetof(struct thread, {member}), NULL, {width} }},",
            quoted(&attribute.name),
            abi_type(attribute.ty)
        )
    }

    fn container_table(&mut self) {
        let mut rows = Vec::new();
        for (id, container) in self.program.containers.iter() {
            if container.scope == Scope::Scheduler {
                let name = self.names.container(id);
                let (first, length) = match self.length(container.extent) {
                    None => (format!("&{name}"), "0".to_string()),
                    Some(length) => (name.to_string(), length),
                };
                rows.push(format!(
                    "{{ {}, {first}, {length}, sizeof(struct attune_container) }},",
                    quoted(&container.name)
                ));
            }
        }
        self.table("struct attune_container_info attune_containers", &rows);
    }

    fn table(&mut self, declared: &str, rows: &[String]) {
        if rows.is_empty() {
            return;
        }
        self.out.blank();
        self.out.open(format!("static const {declared}[] = {{"));
        rows.iter().for_each(|row| self.out.line(row));
        self.out.close("};");
    }

    fn scheduler_table(&mut self) {
        let globals = self.program.globals.len();
        let attributes = self.program.attributes.len();
        let containers =
            self.program.containers.values().filter(|container| container.scope == Scope::Scheduler).count();
        let table = |name: &str, rows: usize| if rows == 0 { "NULL".to_string() } else { name.to_string() };
        self.out.blank();
        self.out.raw("#ifdef __GNUC__\n__attribute__((visibility(\"default\")))\n#endif");
        self.out.open("const struct attune_scheduler attune_scheduler = {");
        self.out.line(".abi = ATTUNE_ABI, .thread_size = sizeof(struct thread), .cpus = ATTUNE_CPUS,");
        self.out.line(format!(
            ".name = {}, .file = {},",
            quoted(&self.program.name),
            quoted(self.sources.name(SourceId(0)))
        ));
        self.out.line(format!(".globals = {}, .global_count = {globals},", table("attune_globals", globals)));
        self.out.line(format!(
            ".attributes = {}, .attribute_count = {attributes},",
            table("attune_attributes", attributes)
        ));
        self.out.line(format!(
            ".containers = {}, .container_count = {containers},",
            table("attune_containers", containers)
        ));
        self.out.line(".attach = attune_attach, .thread_init = attune_thread_init,");
        self.out.line(".thread_remove = attune_thread_remove, .container_each = attune_container_each,");
        self.out.open(".handler = {");
        for event in self.handled() {
            let line = format!("[{}] = {},", abi_event(event), self.names.handler(event));
            self.out.line(line);
        }
        if self.program.handlers.is_empty() {
            self.out.line("NULL");
        }
        self.out.close("},");
        self.out.line(".divisions_by_zero = &attune_divisions_by_zero, .clamped = &attune_clamped,");
        self.out.close("};");
    }
}

const BANNER: &str = " *
 * One file that needs nothing else: cc -shared -fPIC -O2 this.c -o this.so
 * First the runtime that all schedulers share, then the scheduler itself.
 */
";

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

const ATTACH: &str = "static void attune_attach(const struct attune_host *attune_new_host)
{
    attune_host = attune_new_host;
    attune_start(attune_host->seed, attune_host->cpus);
}
";

const THREAD_REMOVE: &str =
    "static void attune_thread_remove(struct attune_thread ATTUNE_ARENA *attune_thread)
{
    struct attune_container ATTUNE_ARENA *attune_where = attune_thread->where;
    attune_remove(attune_thread);
    if (attune_where)
        attune_where->changed = 0;                      /* not by a statement: no invariant runs */
}
";

const CONTAINER_EACH: &str =
    "static void attune_container_each(struct attune_container ATTUNE_ARENA *attune_container,
                                  int (*attune_visitor)(void *arg, struct attune_thread ATTUNE_ARENA *thread),
                                  void *attune_arg)
{
    struct attune_thread ATTUNE_ARENA *attune_at = attune_first(attune_container), *attune_behind;
    for (; attune_at && ATTUNE_MAY_LOOP; attune_at = attune_behind) {
        attune_behind = attune_after(attune_at);
        if (attune_visitor(attune_arg, attune_at))
            return;
    }
}
";

fn member_of_value(ty: Type) -> &'static str {
    if ty == Type::Float { "real" } else { "number" }
}

fn abi_type(ty: Type) -> &'static str {
    match ty {
        Type::Int => "ATTUNE_INT",
        Type::Float => "ATTUNE_FLOAT",
        Type::Time => "ATTUNE_TIME",
    }
}

pub fn abi_event(event: Event) -> String {
    format!("ATTUNE_{}", event.name().to_ascii_uppercase())
}

/// Text that stands in a comment.
pub fn one_line(text: &str) -> String {
    text.replace("*/", "* /").replace(['\n', '\r'], " ")
}
