//! What each thing is called in C: its own name wherever C allows. Where one file holds several
//! policies, the names of all but the first begin with a prefix, at file level and in the record.
//!
//! Invariant: at file level every name is used once; in a function no name equals one at file
//! level, nor another that is in scope. Members of the thread record have a scope of their own.

use std::collections::{HashMap, HashSet};

use attune_language::engine::event::Event;
use attune_language::ir::{
    AttributeId, ContainerId, ContainerKind, GlobalId, LocalId, NameId, Program, Routine, Storage,
};
use la_arena::ArenaMap;

use super::target::Imports;
use super::{Role, keywords};

pub struct Names {
    prefix: String,
    file: HashSet<String>,
    members: HashSet<String>,
    function: HashSet<String>,
    attributes: ArenaMap<AttributeId, String>,
    globals: ArenaMap<GlobalId, String>,
    containers: ArenaMap<ContainerId, String>,
    locals: ArenaMap<LocalId, String>,
    threads: ArenaMap<NameId, String>,
    /// The state and the width of a global import.
    imports: HashMap<GlobalId, (String, String)>,
    /// The state in the record and the width of a thread import.
    thread_imports: HashMap<AttributeId, (String, String)>,
    handlers: HashMap<Event, String>,
    invariants: Vec<String>,
}

impl Names {
    /// `before`: the names of the policy that stands in the same file already.
    pub fn new(program: &Program, imports: Imports, role: Role, before: Option<&Names>) -> Names {
        let mut names = Names {
            prefix: role.prefix(),
            file: before.map(|names| names.file.clone()).unwrap_or_default(),
            members: before.map(|names| names.members.clone()).unwrap_or_default(),
            function: HashSet::new(),
            attributes: ArenaMap::default(),
            globals: ArenaMap::default(),
            containers: ArenaMap::default(),
            locals: ArenaMap::default(),
            threads: ArenaMap::default(),
            imports: HashMap::new(),
            thread_imports: HashMap::new(),
            handlers: HashMap::new(),
            invariants: Vec::new(),
        };
        names.variables(program, imports);
        names.members(program, imports);
        names.functions(program);
        names
    }

    fn variables(&mut self, program: &Program, imports: Imports) {
        for (id, global) in program.globals.iter() {
            let copy = imports == Imports::Plain && global.storage == Storage::Import;
            let name = match copy {
                // The firmware's variable may have the import's name.
                true => self.at_file(&format!("attune_read_{}", global.name)),
                false => self.at_file(&keywords::variable(&global.name)),
            };
            self.globals.insert(id, name);
        }
        for (id, container) in program.containers.iter() {
            let name = self.at_file(&keywords::variable(&container.name));
            self.containers.insert(id, name);
        }
        for (id, global) in
            program.globals.iter().filter(|(_, global)| global.storage == Storage::Import)
        {
            if imports == Imports::Plain {
                self.imports.insert(id, (plain_import(&global.name), String::new()));
                continue;
            }
            let state = self.at_file(&keywords::variable(&format!("{}_import", global.name)));
            let width = self.at_file(&keywords::variable(&format!("{}_width", global.name)));
            self.imports.insert(id, (state, width));
        }
    }

    fn members(&mut self, program: &Program, imports: Imports) {
        for (id, attribute) in program.attributes.iter() {
            let name = self.in_record(&keywords::member(&attribute.name));
            self.attributes.insert(id, name);
        }
        if imports == Imports::Plain {
            return;
        }
        for (id, attribute) in program.attributes.iter().filter(|(_, attribute)| attribute.import) {
            let state = self.in_record(&keywords::member(&format!("{}_import", attribute.name)));
            let width =
                self.at_file(&keywords::variable(&format!("thread_{}_width", attribute.name)));
            self.thread_imports.insert(id, (state, width));
        }
    }

    fn functions(&mut self, program: &Program) {
        for handler in &program.handlers {
            let name = self.at_file(&format!("on_{}", handler.event));
            self.handlers.insert(handler.event, name);
        }
        for invariant in &program.invariants {
            let name = self
                .at_file(&format!("invariant_{}", program.containers[invariant.container].name));
            self.invariants.push(name);
        }
    }

    fn in_record(&mut self, wanted: &str) -> String {
        let name = free(&format!("{}{wanted}", self.prefix), |name| !self.members.contains(name));
        self.members.insert(name.clone());
        name
    }

    fn at_file(&mut self, wanted: &str) -> String {
        let name = free(&format!("{}{wanted}", self.prefix), |name| !self.file.contains(name));
        self.file.insert(name.clone());
        name
    }

    /// A name for a member of the state.
    pub fn in_state(&mut self, wanted: &str) -> String {
        self.at_file(wanted)
    }

    /// A local that lies elsewhere than on the stack.
    pub fn rename_local(&mut self, id: LocalId, place: String) {
        self.locals.insert(id, place);
    }

    /// A name for something inside a function, until [`Names::release`] or the next routine.
    pub fn in_function(&mut self, wanted: &str) -> String {
        let name = free(wanted, |name| !self.file.contains(name) && !self.function.contains(name));
        self.function.insert(name.clone());
        name
    }

    pub fn release(&mut self, name: &str) {
        self.function.remove(name);
    }

    /// Names the parameter and the locals of a routine; those of the routine before are gone.
    pub fn enter(&mut self, program: &Program, routine: &Routine) {
        self.function.clear();
        if let Some(parameter) = routine.parameter {
            self.name_thread(program, parameter);
        }
        for &local in &routine.locals {
            let declared = &program.locals[local];
            let wanted = match (declared.temporary, declared.name.as_str()) {
                (true, _) | (_, "") => "value".to_string(),
                (false, name) => keywords::variable(name),
            };
            let name = self.in_function(&wanted);
            self.locals.insert(local, name);
        }
    }

    /// Names a parameter or a `foreach` variable.
    pub fn name_thread(&mut self, program: &Program, id: NameId) {
        let wanted = match program.names[id].name.as_str() {
            "" => "t".to_string(),
            name => keywords::variable(name),
        };
        let name = self.in_function(&wanted);
        self.threads.insert(id, name);
    }

    pub fn attribute(&self, id: AttributeId) -> &str {
        found(self.attributes.get(id))
    }

    pub fn global(&self, id: GlobalId) -> &str {
        found(self.globals.get(id))
    }

    pub fn container(&self, id: ContainerId) -> &str {
        found(self.containers.get(id))
    }

    pub fn local(&self, id: LocalId) -> &str {
        found(self.locals.get(id))
    }

    pub fn thread(&self, id: NameId) -> &str {
        found(self.threads.get(id))
    }

    /// State and width of a global import.
    pub fn import(&self, id: GlobalId) -> Option<(&str, &str)> {
        self.imports.get(&id).map(|(state, width)| (state.as_str(), width.as_str()))
    }

    /// Member of the record and width of a thread import.
    pub fn thread_import(&self, id: AttributeId) -> Option<(&str, &str)> {
        self.thread_imports.get(&id).map(|(state, width)| (state.as_str(), width.as_str()))
    }

    pub fn handler(&self, event: Event) -> &str {
        found(self.handlers.get(&event))
    }

    pub fn invariant(&self, index: usize) -> &str {
        found(self.invariants.get(index))
    }
}

/// Every id of the program was given a name before it is asked for; in a malformed program the C
/// compiler says so.
fn found(name: Option<&String>) -> &str {
    name.map_or("attune_unnamed", String::as_str)
}

/// The first of `wanted`, `wanted_2`, `wanted_3` .. that is free.
fn free(wanted: &str, is_free: impl Fn(&str) -> bool) -> String {
    let mut name = wanted.to_string();
    let mut number = 2;
    while !is_free(&name) {
        name = format!("{wanted}_{number}");
        number += 1;
    }
    name
}

/// The macro that names the variable of a global import, for firmware to define.
pub fn plain_import(name: &str) -> String {
    format!("ATTUNE_IMPORT_{name}")
}

/// The macro that names it where the firmware has no variable of its own.
pub fn own_import(name: &str) -> String {
    format!("ATTUNE_OWN_{name}")
}

/// The macro of a tunable's initial value.
pub fn tuned(name: &str) -> String {
    format!("ATTUNE_TUNE_{name}")
}

/// A scheduler's name as a file's.
pub fn file_stem(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' };
    if name.is_empty() { "scheduler".to_string() } else { name.chars().map(plain).collect() }
}

/// How the runtime calls a kind.
pub fn kind(kind: ContainerKind) -> &'static str {
    match kind {
        ContainerKind::Threadref => "ATTUNE_THREADREF",
        ContainerKind::Queue => "ATTUNE_QUEUE",
        ContainerKind::Stack => "ATTUNE_STACK",
        ContainerKind::PQueue => "ATTUNE_PQUEUE",
        ContainerKind::PStack => "ATTUNE_PSTACK",
    }
}
