//! The interpreter as a subject of the driver, one for each instance: the meaning that others are
//! compared with.

use std::collections::HashMap;
use std::sync::Arc;

use attune_language::engine::event::Event;
use attune_language::ir::{CheckId, Program, Storage};
use attune_language::source::SourceMap;
use attune_simulator::interpreter::{Failure, Interpreter, Options, Refusal};
use attune_simulator::scheduler::{Call, CpuSet, Decision, ImportId, Scheduler, ThreadId, Value};

use crate::driver::{Ending, Subject};

pub struct Interpreted {
    instances: Vec<Interpreter>,
    /// The instance of each thread.
    homes: HashMap<ThreadId, u32>,
    thread_imports: Vec<ImportId>,
    global_imports: Vec<ImportId>,
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
        let global_imports: Vec<String> = program
            .globals
            .values()
            .filter(|each| each.storage == Storage::Import)
            .map(|each| each.name.clone())
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
                .filter_map(|name| interpreter.global_import(name))
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
            for &import in &self.global_imports {
                let value = self.instances[instance as usize].get_global_import(import);
                self.instances.iter_mut().for_each(|each| each.set_global_import(import, value));
            }
        }
        outcome
    }

    fn home(&mut self, thread: ThreadId) -> &mut Interpreter {
        let home = self.homes.get(&thread).copied().unwrap_or(0);
        &mut self.instances[home as usize]
    }
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
        let import = self.global_imports[import];
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
