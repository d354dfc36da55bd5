//! The table through which an engine finds everything in a shared object.

use attune_language::engine::event::Event;
use attune_language::ir::{Attribute, AttributeId, Scope, Storage, Type};
use attune_language::source::SourceId;

use crate::policy::Node;
use crate::writer::Writer;
use crate::writer::declarations::abi_event;
use crate::writer::output::{Output, quoted};
use crate::writer::target::{Imports, State};

impl Writer<'_> {
    pub(crate) fn engine_table(&mut self, node: Option<&Node>) -> Output {
        self.out.blank();
        self.out.raw(ATTACH);
        self.out.blank();
        self.out.raw(CONTAINER_EACH);
        self.variable_tables();
        self.container_table();
        if let Some(node) = node {
            self.node(node);
        }
        if self.has_change(node) {
            self.change();
        }
        self.scheduler_table(node);
        self.written()
    }

    /// Whether one function does all that a switch asks. Firmware calls the handlers directly, and
    /// a node's engine has something to do between them.
    fn has_change(&self, node: Option<&Node>) -> bool {
        let handles = |event| self.handled().contains(&event);
        self.target.state != State::Only
            && node.is_none()
            && handles(Event::SwitchOut)
            && handles(Event::Schedule)
    }

    fn change(&mut self) {
        let [switch_out, schedule] =
            [Event::SwitchOut, Event::Schedule].map(|event| self.names.handler(event).to_owned());
        self.out.blank();
        self.out.raw(CHANGE);
        self.out.line(format!("    {switch_out}(attune, attune_stops);"));
        self.out.line(format!("    {schedule}(attune, NULL);"));
        self.out.raw("}\n");
    }

    fn variable_tables(&mut self) {
        let mut globals = Vec::new();
        for (id, global) in self.program.globals.iter() {
            let name = self.names.global(id);
            let length = self.length(global.extent);
            let (imported, offset, width, storage) = match self.names.import(id) {
                Some((state, width)) if self.target.imports == Imports::Linked => {
                    let imported = if self.is_shared(id) { 4 } else { 1 };
                    (imported, in_state(state), in_state(width), "NULL".to_string())
                }
                // Handlers find it out themselves.
                Some(_) if self.is_age(id) => {
                    (1, "0".to_string(), "0".to_string(), "NULL".to_string())
                }
                Some((variable, _)) => {
                    (1, "0".to_string(), "0".to_string(), format!("&{variable}"))
                }
                None => {
                    let imported = match global.storage {
                        Storage::Tunable => 2,
                        Storage::Const => 3,
                        Storage::Data | Storage::Import => 0,
                    };
                    (imported, in_state(name), "0".to_string(), "NULL".to_string())
                }
            };
            globals.push(format!(
                "{{ {}, {}, {imported}, {}, {offset}, {width}, {storage} }},",
                quoted(&global.name),
                abi_type(global.ty),
                length.unwrap_or("0".to_string())
            ));
        }
        let attributes: Vec<String> = self
            .program
            .attributes
            .iter()
            .map(|(id, attribute)| self.attribute_row(id, attribute))
            .collect();
        self.table("struct attune_variable attune_globals", &globals);
        self.table("struct attune_variable attune_attributes", &attributes);
    }

    fn attribute_row(&self, id: AttributeId, attribute: &Attribute) -> String {
        let (imported, member, width) = match self.names.thread_import(id) {
            Some((state, width)) => (1, state, in_state(width)),
            None => (u8::from(attribute.import), self.names.attribute(id), "0".to_string()),
        };
        format!(
            "{{ {}, {}, {imported}, 0, offsetof(struct thread, {member}), {width}, NULL }},",
            quoted(&attribute.name),
            abi_type(attribute.ty)
        )
    }

    fn container_table(&mut self) {
        let mut rows = Vec::new();
        for (id, container) in self.program.containers.iter() {
            if container.scope == Scope::Scheduler {
                let name = self.names.container(id);
                let length = self.length(container.extent).unwrap_or("0".to_string());
                rows.push(format!(
                    "{{ {}, {}, {length}, sizeof(struct attune_container) }},",
                    quoted(&container.name),
                    in_state(name)
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

    fn scheduler_table(&mut self, node: Option<&Node>) {
        let globals = self.program.globals.len();
        let attributes = self.program.attributes.len();
        let containers = self
            .program
            .containers
            .values()
            .filter(|container| container.scope == Scope::Scheduler)
            .count();
        let table =
            |name: &str, rows: usize| if rows == 0 { "NULL".to_string() } else { name.to_string() };
        self.out.blank();
        self.out.raw("#ifdef __GNUC__\n__attribute__((visibility(\"default\")))\n#endif");
        self.out.open("const struct attune_scheduler attune_scheduler = {");
        self.out
            .line(".abi = ATTUNE_ABI, .thread_size = sizeof(struct thread), .cpus = ATTUNE_CPUS,");
        let only = if self.target.state == State::Only { "&attune_only.attune" } else { "NULL" };
        self.out.line(format!(".state_size = sizeof(struct state), .only = {only},"));
        let split = u8::from(self.program.may_be_split && node.is_none());
        let time = u8::from(self.needs().time);
        self.out.line(format!(".may_be_split = {split}, .tells_time = {time},"));
        self.out.line(format!(
            ".name = {}, .file = {},",
            quoted(&self.program.name),
            quoted(self.sources.name(SourceId(0)))
        ));
        self.out.line(format!(
            ".globals = {}, .global_count = {globals},",
            table("attune_globals", globals)
        ));
        self.out.line(format!(
            ".attributes = {}, .attribute_count = {attributes},",
            table("attune_attributes", attributes)
        ));
        self.out.line(format!(
            ".containers = {}, .container_count = {containers},",
            table("attune_containers", containers)
        ));
        self.out.line(".attach = attune_attach, .thread_init = attune_thread_init,");
        self.out.line(
            ".thread_remove = attune_thread_remove, .container_each = attune_container_each,",
        );
        self.out.open(".handler = {");
        for event in self.handled() {
            let line = format!("[{}] = {},", abi_event(event), self.names.handler(event));
            self.out.line(line);
        }
        if self.program.handlers.is_empty() {
            self.out.line("NULL");
        }
        self.out.close("},");
        if self.has_change(node) {
            self.out.line(".change = attune_change,");
        }
        if node.is_some() {
            self.out.line(".node = &attune_node,");
        }
        self.out.close("};");
    }

    fn node(&mut self, node: &Node) {
        self.out.blank();
        self.out.open("static const struct attune_node attune_node = {");
        self.out.line(format!(".cluster = {},", quoted(&node.cluster)));
        self.out.line(format!(".description = {},", quoted(&node.description)));
        self.out.close("};");
    }
}

const ATTACH: &str = "static void attune_attach(struct attune_instance *attune,
                          const struct attune_host *attune_host)
{
    attune->host = attune_host;
    attune_start(attune, attune_host->seed, attune_host->cpus);
}
";

const CHANGE: &str = "static __attribute__((flatten)) void attune_change(
    struct attune_instance ATTUNE_ARENA *attune, struct attune_thread ATTUNE_ARENA *attune_stops)
{
";

const CONTAINER_EACH: &str =
    "static void attune_container_each(struct attune_container ATTUNE_ARENA *attune_container,
                                  int (*attune_visitor)(void *arg, struct attune_thread \
                                      ATTUNE_ARENA *thread),
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

/// Bytes from the start of the state to a member.
fn in_state(member: &str) -> String {
    format!("offsetof(struct state, {member})")
}

fn abi_type(ty: Type) -> &'static str {
    match ty {
        Type::Int => "ATTUNE_INT",
        Type::Float => "ATTUNE_FLOAT",
        Type::Time => "ATTUNE_TIME",
    }
}
