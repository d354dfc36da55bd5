//! The interpreter as a subject of the driver, one for each instance: the meaning that others are
//! compared with.

use std::collections::HashMap;
use std::sync::Arc;

use attune_language::engine::event::Event;
use attune_language::ir::{CheckId, GlobalId, NodeProperty, Program, Storage};
use attune_language::source::SourceMap;
use attune_replica::Operation;
use attune_simulator::interpreter::{Failure, Interpreter, Options, Refusal, Updated};
use attune_simulator::scheduler::{Call, CpuSet, Decision, ImportId, Scheduler, ThreadId, Value};

use crate::driver::{Ending, Subject};

pub struct Interpreted {
    instances: Vec<Interpreter>,
    /// The instance of each thread.
    homes: HashMap<ThreadId, u32>,
    thread_imports: Vec<ImportId>,
    /// Without those that say how old a node's copy is.
    global_imports: Vec<(String, ImportId)>,
    ages: Vec<ImportId>,
}

impl Interpreted {
    pub fn new(
        program: Arc<Program>,
        sources: &SourceMap,
        options: Options,
        instances: u32,
    ) -> Result<Interpreted, Refusal> {
        let thread_imports: Vec<String> = program
            .attributes
            .values()
            .filter(|each| each.import)
            .map(|each| each.name.clone())
            .collect();
        let global_imports: Vec<(bool, String)> = program
            .globals
            .iter()
            .filter(|(_, each)| each.storage == Storage::Import)
            .map(|(id, each)| (is_age(&program, id), each.name.clone()))
            .collect();
        let one = |number: u32| {
            let options = Options { seed: seed_of(options.seed, number), ..options };
            Interpreter::new(program.clone(), sources, options)
        };
        let instances = (0..instances.max(1)).map(one).collect::<Result<Vec<_>, _>>()?;
        let interpreter = &instances[0];
        Ok(Interpreted {
            thread_imports: thread_imports
                .iter()
                .filter_map(|name| interpreter.thread_import(name))
                .collect(),
            global_imports: global_imports
                .iter()
                .filter(|(is_age, _)| !is_age)
                .filter_map(|(_, name)| Some((name.clone(), interpreter.global_import(name)?)))
                .collect(),
            ages: global_imports
                .iter()
                .filter(|(is_age, _)| *is_age)
                .filter_map(|(_, name)| interpreter.global_import(name))
                .collect(),
            homes: HashMap::new(),
            instances,
        })
    }

    pub fn interpreter(&self, instance: u32) -> &Interpreter {
        &self.instances[instance as usize]
    }

    pub fn instances(&self) -> u32 {
        self.instances.len() as u32
    }

    /// Runs a handler. What it has written into global imports reaches the other instances.
    pub fn run(
        &mut self,
        instance: u32,
        call: &Call,
        decision: &mut Decision,
    ) -> Result<(), Failure> {
        let outcome = self.instances[instance as usize].run(call, decision);
        if self.instances.len() > 1 {
            for &(_, import) in &self.global_imports {
                let value = self.instances[instance as usize].get_global_import(import);
                self.instances.iter_mut().for_each(|each| each.set_global_import(import, value));
            }
        }
        outcome
    }

    /// The name of an import that the driver writes.
    pub fn global_import(&self, import: usize) -> &str {
        &self.global_imports[import].0
    }

    pub fn set_age(&mut self, age: i64) {
        for &import in &self.ages {
            let each = self.instances.iter_mut();
            each.for_each(|it| it.set_global_import(import, Value::Int(age)));
        }
    }

    /// What the last call has done to the variables that a cluster supplies.
    pub fn take_written(&mut self, instance: u32) -> Vec<(u32, Operation)> {
        let updates = self.instances[instance as usize].take_updates();
        let each = updates.into_iter().filter_map(|update| match update.place {
            Updated::Global(id) => Some((id.into_raw().into_u32(), update.operation)),
            Updated::Attribute(..) => None,
        });
        each.collect()
    }

    fn home(&mut self, thread: ThreadId) -> &mut Interpreter {
        let home = self.homes.get(&thread).copied().unwrap_or(0);
        &mut self.instances[home as usize]
    }
}

/// Whether it says how old a node's copy is.
pub fn is_age(program: &Program, id: GlobalId) -> bool {
    let mut remotes = program.membership.remotes.iter();
    remotes.any(|it| it.global == id && matches!(it.property, NodeProperty::Age(_)))
}

/// Each instance draws from a stream of its own.
pub fn seed_of(seed: u64, instance: u32) -> u64 {
    seed.wrapping_add(instance.into())
}

/// A check by its number in the program.
pub fn check_number(check: CheckId) -> u32 {
    check.into_raw().into_u32()
}

pub fn trapped(failure: &Failure) -> Ending {
    let place = failure.place.as_ref().map_or(String::new(), |place| format!("{place}: "));
    Ending::Trapped {
        check: failure.check.map(check_number),
        message: format!("{place}{}", failure.message),
    }
}

impl Subject for Interpreted {
    fn handles(&self, event: Event) -> bool {
        self.instances[0].handles(event)
    }

    fn imports(&self) -> (usize, usize) {
        (self.thread_imports.len(), self.global_imports.len())
    }

    fn create(
        &mut self,
        instance: u32,
        thread: ThreadId,
        affinity: &CpuSet,
        _now: i64,
    ) -> Result<(), Ending> {
        self.homes.insert(thread, instance);
        self.home(thread).thread_created(thread, affinity);
        Ok(())
    }

    fn move_thread(&mut self, thread: ThreadId, to: u32, affinity: &CpuSet) {
        let attributes = self.home(thread).thread_leaves(thread);
        self.homes.insert(thread, to);
        self.home(thread).thread_arrives(thread, affinity, &attributes);
    }

    fn set_affinity(&mut self, thread: ThreadId, affinity: &CpuSet) {
        self.home(thread).set_affinity(thread, affinity);
    }

    fn remove(&mut self, thread: ThreadId) {
        self.home(thread).thread_removed(thread);
    }

    fn write_thread_import(&mut self, thread: ThreadId, import: usize, value: Value) {
        let import = self.thread_imports[import];
        self.home(thread).set_thread_import(thread, import, value);
    }

    fn write_global_import(&mut self, import: usize, value: Value) {
        let (_, import) = self.global_imports[import];
        self.instances.iter_mut().for_each(|each| each.set_global_import(import, value));
    }

    fn call(&mut self, instance: u32, call: &Call, decision: &mut Decision) -> Result<(), Ending> {
        self.run(instance, call, decision).map_err(|failure| trapped(&failure))
    }

    fn is_stored(&self, thread: ThreadId) -> bool {
        let home = self.homes.get(&thread).copied().unwrap_or(0);
        self.instances[home as usize].where_is(thread).is_some()
    }

    fn settled(&mut self) -> Result<(), Ending> {
        Ok(())
    }
}
