//! The program made for the kernel engine as an implementation: its handlers run in this machine's
//! kernel, one at a time.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use attune_kernel::{Compiler, Image, Layout, REPLAY_INSTANCES, REPLAY_THREADS, Replay};
use attune_language::engine::event::Event;
use attune_language::ir::{Extent, Program, Scope, Storage};
use attune_simulator::scheduler::{Call, CpuSet, Decision, Dispatch, ThreadId, Value};

use crate::driver::Setting;
use crate::implementation::{Bits, Implementation, State, Trap, Written, bits};
use crate::interpreted::seed_of;

/// Compiles the text for so many CPUs, and has the kernel take it. Err: why there is no program.
pub fn load(text: &str, cpus: u32) -> Result<Replay, String> {
    static COMPILER: OnceLock<Result<Compiler, String>> = OnceLock::new();
    let compiler =
        COMPILER.get_or_init(|| Compiler::find().map_err(|error| error.to_string())).as_ref()?;
    let folder = tempfile::tempdir().map_err(|error| format!("a temporary folder: {error}"))?;
    let object = folder.path().join("scheduler.bpf.o");
    attune_kernel::compile(compiler, text, &object, cpus, 1, Layout::Usual)
        .map_err(|error| error.to_string())?;
    let bytes = std::fs::read(&object).map_err(|error| format!("the object: {error}"))?;
    let image = Image::read(bytes).map_err(|error| error.to_string())?;
    Replay::load(image, cpus).map_err(|error| error.to_string())
}

pub struct Replayed<'r> {
    replay: &'r mut Replay,
    program: Arc<Program>,
    setting: Setting,
}

impl<'r> Replayed<'r> {
    /// Starts anew.
    pub fn new(
        replay: &'r mut Replay,
        program: Arc<Program>,
        setting: Setting,
        seed: u64,
    ) -> (Replayed<'r>, Option<Trap>) {
        let mut replayed = Replayed { replay, program, setting };
        replayed.take_written();
        for instance in 0..setting.instances.min(REPLAY_INSTANCES) {
            let started = replayed.replay.start(instance, seed_of(seed, instance));
            let trap = replayed.told(started);
            if trap.is_some() {
                return (replayed, trap);
            }
        }
        (replayed, None)
    }

    /// What failed in the last order.
    fn told<T>(&self, result: std::io::Result<T>) -> Option<Trap> {
        if let Err(error) = result {
            let message = format!("the kernel does not run it: {error}");
            let (file, found) = (String::new(), None);
            return Some(Trap {
                crashed: true,
                check: 0,
                file,
                line: 0,
                column: 0,
                message,
                found,
            });
        }
        self.replay.failed().map(|failed| Trap {
            crashed: false,
            check: failed.check,
            file: failed.file,
            line: failed.line,
            column: failed.column,
            message: failed.sentence,
            found: Some(failed.found),
        })
    }

    /// What an instance has written into global imports reaches the others.
    fn share_globals(&mut self, writer: u32) {
        let imports = self.program.globals.values().filter(|it| it.storage == Storage::Import);
        for import in imports.filter(|_| self.setting.instances > 1) {
            let value = self.replay.global(writer, &import.name, 1);
            for instance in 0..self.setting.instances {
                if let Some([value]) = value.as_deref() {
                    self.replay.set_global(instance, &import.name, *value);
                }
            }
        }
    }

    fn elements(&self, extent: Extent) -> usize {
        match extent {
            Extent::One => 1,
            Extent::Array(length) => length as usize,
            Extent::PerCpu => self.setting.cpus as usize,
        }
    }
}

/// What names no thread of a case: a number that only wrong code makes.
fn thread(number: u64) -> ThreadId {
    ThreadId(u32::try_from(number).unwrap_or(u32::MAX))
}

impl Implementation for Replayed<'_> {
    fn handles(&self, event: Event) -> bool {
        // An event that the program has no handler for does nothing there; the program is the same
        // on both sides.
        self.program.handler(event).is_some()
    }

    fn create(&mut self, instance: u32, thread: ThreadId, now: i64) -> Option<Trap> {
        debug_assert!(thread.0 < REPLAY_THREADS);
        let begun = self.replay.begin(instance, thread.0, now);
        self.told(begun)
    }

    fn set_affinity(&mut self, thread: ThreadId, affinity: &CpuSet) {
        let allowed = (0..self.setting.cpus)
            .filter(|&cpu| affinity.contains(cpu))
            .fold(0, |set, cpu| set | 1 << cpu);
        // A kernel that does not run it does not run the next handler either, which says so.
        let _ = self.replay.allow(thread.0, allowed);
    }

    fn leave(&mut self, thread: ThreadId) {
        self.remove(thread);
    }

    fn remove(&mut self, thread: ThreadId) {
        // As above.
        let _ = self.replay.remove(thread.0);
    }

    fn call(&mut self, instance: u32, call: &Call, decision: &mut Decision) -> Option<Trap> {
        let thread_number = call.thread.map(|thread| thread.0);
        let called = self.replay.call(instance, call.event, thread_number, call.now, call.cpu);
        self.share_globals(instance);
        if let Ok(answer) = &called {
            decision.dispatch =
                answer.dispatched.map(|(number, slice)| Dispatch { thread: thread(number), slice });
            decision.alarms.extend(answer.alarms.iter().map(|&(number, at)| (thread(number), at)));
            decision.preempt.extend(&answer.preempted);
            decision.value = Some(answer.value);
            decision.value_thread = answer.thread.map(thread);
        }
        self.told(called)
    }

    fn write_thread_import(&mut self, thread: ThreadId, import: usize, value: Value) {
        let mut imports = self.program.attributes.values().filter(|attribute| attribute.import);
        if let Some(import) = imports.nth(import) {
            self.replay.set_attribute(thread.0, &import.name, bits(false, value));
        }
    }

    fn write_global_import(&mut self, name: &str, value: Value) {
        for instance in 0..self.setting.instances {
            self.replay.set_global(instance, name, bits(false, value));
        }
    }

    fn hear(&mut self, heard_at: Option<i64>, _now: i64) {
        // A program that is no node's hears nothing.
        self.replay.hear(heard_at.unwrap_or(0));
    }

    fn written(&self) -> Written {
        Written::Merged(self.replay.written())
    }

    fn take_written(&mut self) {
        self.replay.take_written();
    }

    fn is_stored(&mut self, thread: ThreadId) -> bool {
        self.replay.is_stored(thread.0)
    }

    fn state(&self, instance: u32) -> State {
        let mut state = State {
            divisions_by_zero: self.replay.divisions_by_zero(instance),
            ..State::default()
        };
        for container in self.program.containers.values().filter(|it| it.scope == Scope::Scheduler)
        {
            let elements =
                self.replay.container(instance, &container.name, self.elements(container.extent));
            if let Some(elements) = elements {
                let elements =
                    elements.into_iter().map(|all| all.into_iter().map(thread).collect());
                state.containers.insert(container.name.clone(), elements.collect());
            }
        }
        for global in self.program.globals.values() {
            if let Some(values) =
                self.replay.global(instance, &global.name, self.elements(global.extent))
            {
                state.globals.insert(global.name.clone(), values);
            }
        }
        state
    }

    fn attributes_of(&mut self, thread: ThreadId) -> HashMap<String, Bits> {
        let attributes = self.program.attributes.values();
        let value = |name: &String| Some((name.clone(), self.replay.attribute(thread.0, name)?));
        attributes.filter_map(|attribute| value(&attribute.name)).collect()
    }
}
