//! The interpreter as a subject of the world: the meaning that others are compared with.

use std::sync::Arc;

use attune_language::event::Event;
use attune_language::ir::{CheckId, Program, Storage};
use attune_language::source::SourceMap;
use attune_simulator::interpreter::{Failure, Interpreter, Options, Refusal};
use attune_simulator::policy::{Call, CpuSet, Decision, ImportId, Policy, ThreadId, Value};

use crate::world::{Ending, Subject};

pub struct Interpreted {
    pub interpreter: Interpreter,
    thread_imports: Vec<ImportId>,
    global_imports: Vec<ImportId>,
}

impl Interpreted {
    pub fn new(program: Arc<Program>, sources: &SourceMap, options: Options) -> Result<Interpreted, Refusal> {
        let thread_imports: Vec<String> =
            program.attributes.values().filter(|each| each.import).map(|each| each.name.clone()).collect();
        let global_imports: Vec<String> = program
            .globals
            .values()
            .filter(|each| each.storage == Storage::Import)
            .map(|each| each.name.clone())
            .collect();
        let interpreter = Interpreter::new(program, sources, options)?;
        Ok(Interpreted {
            thread_imports: thread_imports
                .iter()
                .filter_map(|name| interpreter.thread_import(name))
                .collect(),
            global_imports: global_imports
                .iter()
                .filter_map(|name| interpreter.global_import(name))
                .collect(),
            interpreter,
        })
    }
}

/// A check by its number in the program.
pub fn check_number(check: CheckId) -> u32 {
    check.into_raw().into_u32()
}

pub fn trapped(failure: &Failure) -> Ending {
    let place = failure.place.as_ref().map_or(String::new(), |place| format!("{place}: "));
    Ending::Trapped { check: failure.check.map(check_number), message: format!("{place}{}", failure.message) }
}

impl Subject for Interpreted {
    fn handles(&self, event: Event) -> bool {
        self.interpreter.handles(event)
    }

    fn imports(&self) -> (usize, usize) {
        (self.thread_imports.len(), self.global_imports.len())
    }

    fn create(&mut self, thread: ThreadId, affinity: &CpuSet, _now: i64) -> Result<(), Ending> {
        self.interpreter.thread_created(thread, affinity);
        Ok(())
    }

    fn set_affinity(&mut self, thread: ThreadId, affinity: &CpuSet) {
        self.interpreter.set_affinity(thread, affinity);
    }

    fn remove(&mut self, thread: ThreadId) {
        self.interpreter.thread_removed(thread);
    }

    fn write_thread_import(&mut self, thread: ThreadId, import: usize, value: Value) {
        self.interpreter.set_thread_import(thread, self.thread_imports[import], value);
    }

    fn write_global_import(&mut self, import: usize, value: Value) {
        self.interpreter.set_global_import(self.global_imports[import], value);
    }

    fn call(&mut self, call: &Call, decision: &mut Decision) -> Result<(), Ending> {
        self.interpreter.run(call, decision).map_err(|failure| trapped(&failure))
    }

    fn is_stored(&self, thread: ThreadId) -> bool {
        self.interpreter.where_is(thread).is_some()
    }

    fn settled(&mut self) -> Result<(), Ending> {
        Ok(())
    }
}
