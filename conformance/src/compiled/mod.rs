//! Compiled C as a subject: calls its handlers through the ABI, and reads its whole state back.
//!
//! Invariant: every record that the scheduler may still know is kept alive, at one address, until
//! it is removed.

pub mod crash;
mod library;
pub mod shim;

use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::offset_of;

use attune_abi::{
    self as abi, ContainerInfo, EVENTS, IMPORTED, Import, SHARED, TYPE_FLOAT, Thread, Variable,
};
use attune_language::engine::event::Event;
use attune_language::ir::Program;
use attune_replica::{Change, Operation};
use attune_simulator::scheduler::{Call, Decision, Dispatch, ThreadId, Value};
use attune_values::Width;

pub use library::{BuildError, Library};
use shim::Conformance;

use crate::driver::Setting;
use crate::implementation::{Bits, Implementation, State, Trap, Written, bits};
use crate::interpreted::{is_age, seed_of};

pub struct Compiled<'l> {
    library: &'l Library,
    conformance: *const Conformance,
    records: HashMap<ThreadId, Record>,
    /// What is linked to the global imports: by position in the table.
    global_links: HashMap<usize, Link>,
    linked: bool,
    /// The instances' states; one, unused, where the scheduler keeps its only one itself.
    states: Vec<Vec<u64>>,
    divisions_before: u64,
    cpus: u32,
    /// By position in the table: it says how old a node's copy is.
    ages: Vec<bool>,
}

struct Record {
    /// The record, in units that align it.
    memory: Vec<u64>,
    links: HashMap<usize, Link>,
}

impl Record {
    fn thread(&mut self) -> *mut Thread {
        self.memory.as_mut_ptr().cast()
    }
}

/// A variable of the application, which C reads and writes behind our back.
struct Link(*mut Bits);

impl Link {
    fn new(value: Bits) -> Link {
        Link(Box::into_raw(Box::new(value)))
    }

    fn get(&self) -> Bits {
        // Safety: ours, and alive.
        unsafe { *self.0 }
    }

    fn set(&self, value: Bits) {
        // Safety: ours, and alive.
        unsafe { *self.0 = value }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        // Safety: made by `new`, dropped once.
        drop(unsafe { Box::from_raw(self.0) });
    }
}

impl<'l> Compiled<'l> {
    /// Attaches anew. `linked`: the application has registered all imports, as 64-bit variables.
    pub fn new(
        library: &'l Library,
        program: &Program,
        setting: Setting,
        seed: u64,
    ) -> (Compiled<'l>, Option<Trap>) {
        let size = (library.table.state_size as usize).max(size_of::<abi::Instance>());
        let mut compiled = Compiled {
            library,
            conformance: std::ptr::null(),
            records: HashMap::new(),
            global_links: HashMap::new(),
            linked: setting.imports,
            states: vec![vec![0; size.div_ceil(8)]; setting.instances.max(1) as usize],
            divisions_before: 0,
            cpus: setting.cpus,
            ages: program.globals.iter().map(|(id, _)| is_age(program, id)).collect(),
        };
        // Safety: the state is alive. Starting leaves this counter.
        compiled.divisions_before = unsafe { (*compiled.instance(0)).divisions_by_zero };
        for number in 0..setting.instances.max(1) {
            let (instance, seed) = (compiled.instance(number), seed_of(seed, number));
            // Safety: the shim's function; a failed check comes back.
            compiled.conformance = crash::guarded(library.crash, || unsafe {
                (library.attach)(instance, seed, setting.cpus)
            });
            let trap = compiled.trap();
            if trap.is_some() {
                return (compiled, trap);
            }
        }
        compiled.take_written();
        compiled.link_globals();
        (compiled, None)
    }

    /// The state of an instance.
    fn instance(&self, number: u32) -> *mut abi::Instance {
        match self.library.table.only {
            only if only.is_null() => self.states[number as usize].as_ptr().cast_mut().cast(),
            only => only,
        }
    }

    /// A place in the state of an instance.
    fn place<T>(&self, instance: u32, offset: usize) -> *mut T {
        self.instance(instance).wrapping_byte_add(offset).cast()
    }

    fn instances(&self) -> std::ops::Range<u32> {
        0..self.states.len() as u32
    }

    /// What an instance has written into global imports reaches the others; linked ones are one
    /// variable for all.
    fn share_globals(&self, writer: u32) {
        let all =
            self.globals().iter().filter(|it| it.imported == IMPORTED && self.states.len() > 1);
        for variable in all {
            for other in self.instances().filter(|&other| other != writer) {
                // Safety: variables of 8 bytes, of states that are alive.
                unsafe { *self.storage(other, variable) = *self.storage(writer, variable) };
            }
        }
    }

    /// Where a global's value is.
    fn storage(&self, instance: u32, variable: &Variable) -> *mut Bits {
        match (variable.storage.is_null(), has_link(variable)) {
            (false, _) => variable.storage.cast(),
            (true, true) => self.place(instance, variable.offset + offset_of!(Import, value)),
            (true, false) => self.place(instance, variable.offset),
        }
    }

    fn contents(&self, instance: u32, info: &ContainerInfo) -> Vec<Vec<ThreadId>> {
        unsafe extern "C" fn collect(found: *mut c_void, thread: *mut Thread) -> c_int {
            // Safety: `found` is the vector below, `thread` a record that is alive.
            let (found, id) = unsafe { (&mut *found.cast::<Vec<ThreadId>>(), (*thread).id) };
            found.push(ThreadId(id as u32));
            // A list that runs in a circle must not go on for ever.
            c_int::from(found.len() > MANY)
        }
        let element = |number: u32| {
            let mut found: Vec<ThreadId> = Vec::new();
            let start = self.place::<u8>(instance, info.offset);
            // Safety: elements stand `stride` bytes apart, as many as the length says.
            unsafe {
                let container = start.add(number as usize * info.stride as usize);
                (self.library.container_each)(container.cast(), collect, (&raw mut found).cast());
            }
            found
        };
        (0..info.length.max(1)).map(element).collect()
    }

    fn trap(&self) -> Option<Trap> {
        // Safety: the shim's record of the last call.
        let kept = unsafe { &*self.conformance };
        (kept.trapped != 0).then(|| Trap {
            crashed: kept.trapped == 2,
            check: kept.check,
            file: text(kept.file),
            line: kept.line,
            column: kept.column,
            message: text(kept.message.as_ptr()),
            found: None,
        })
    }

    /// The instance, ready for a call.
    fn new_call(&mut self, instance: u32, now: i64, cpu: u32) -> *mut abi::Instance {
        let instance = self.instance(instance);
        // Safety: the state is alive, and no call is under way.
        unsafe {
            (*instance).now = now;
            (*instance).cpu = cpu;
            (*instance).cpus = self.cpus;
            (*instance).dispatched = std::ptr::null_mut();
            (*instance).slice = -1;
            (*instance).value = 0;
            (*instance).value_thread = std::ptr::null_mut();
        }
        instance
    }

    fn globals(&self) -> &'l [Variable] {
        // Safety: the table's counts say how long its arrays are.
        unsafe { slice(self.library.table.globals, self.library.table.global_count) }
    }

    fn attributes(&self) -> &'l [Variable] {
        // Safety: the table's counts say how long its arrays are.
        unsafe { slice(self.library.table.attributes, self.library.table.attribute_count) }
    }

    /// None: no operation of the ABI.
    fn operation(&self, told: &shim::Told) -> Option<Operation> {
        let real = told.operation & abi::BY_REAL != 0;
        let operand = match real || self.globals().get(told.global as usize)?.ty == TYPE_FLOAT {
            true => Value::Float(f64::from_bits(told.operand.cast_unsigned())),
            false => Value::Int(told.operand),
        };
        Some(match told.operation & !abi::BY_REAL {
            abi::SET => Operation::Set(operand),
            abi::ADD => Operation::Add(operand),
            abi::MULTIPLY => Operation::Multiply(operand),
            abi::DIVIDE => Operation::Divide(operand),
            abi::REMAINDER => Operation::Remainder(operand),
            _ => return None,
        })
    }

    fn nth_import(&self, variables: &[Variable], import: usize) -> Option<(usize, bool)> {
        let mut imports =
            variables.iter().enumerate().filter(|(_, each)| each.imported == IMPORTED);
        imports.nth(import).map(|(position, each)| (position, each.ty == TYPE_FLOAT))
    }

    fn link_globals(&mut self) {
        for (position, variable) in self.globals().iter().enumerate() {
            // Without a link the variable is the application's own.
            if !is_linked(variable) {
                continue;
            }
            // Safety: the state holds the default there.
            let link = Link::new(unsafe { *self.storage(0, variable) });
            for instance in self.instances().filter(|_| self.linked) {
                let import = self.place::<Import>(instance, variable.offset);
                let cell = self.place::<u32>(instance, variable.width);
                // Safety: the state holds an import and its width at these offsets.
                unsafe {
                    *cell = width(variable);
                    (*import).link = link.0.cast();
                }
            }
            if self.linked {
                self.global_links.insert(position, link);
            }
        }
    }

    fn link_thread(&self, record: &mut Record) {
        for (position, attribute) in self.attributes().iter().enumerate() {
            if is_linked(attribute) {
                let start: *mut u8 = record.thread().cast();
                for instance in self.instances() {
                    // Safety: the state holds the import's width at this offset.
                    unsafe { *self.place::<u32>(instance, attribute.width) = width(attribute) };
                }
                // Safety: the record holds an import at this offset.
                unsafe {
                    let import = start.add(attribute.offset).cast::<Import>();
                    let link = Link::new((*import).value.cast_signed());
                    (*import).link = link.0.cast();
                    record.links.insert(position, link);
                }
            }
        }
    }
}

impl Implementation for Compiled<'_> {
    fn handles(&self, event: Event) -> bool {
        self.library.table.handler[event as usize].is_some()
    }

    fn create(&mut self, instance: u32, thread: ThreadId, now: i64) -> Option<Trap> {
        let size = self.library.table.thread_size as usize;
        let mut record =
            Record { memory: vec![0; size.div_ceil(8).max(16)], links: HashMap::new() };
        let pointer = record.thread();
        // Safety: the record is as large as the table says and zeroed.
        unsafe { (*pointer).id = thread.0.into() };
        let instance = self.new_call(instance, now, 0);
        // Safety: a record with its head set; the state outlives the function.
        crash::guarded(self.library.crash, || unsafe {
            (self.library.call)(EVENTS as u32, instance, pointer)
        });
        if self.linked {
            self.link_thread(&mut record);
        }
        self.records.insert(thread, record);
        self.trap()
    }

    fn leave(&mut self, thread: ThreadId) {
        if let Some(record) = self.records.get_mut(&thread) {
            // Safety: the record is alive.
            unsafe { (self.library.thread_remove)(record.thread()) };
        }
    }

    fn remove(&mut self, thread: ThreadId) {
        if let Some(mut record) = self.records.remove(&thread) {
            // Safety: the record is alive until the end of this block.
            unsafe { (self.library.thread_remove)(record.thread()) };
        }
    }

    fn call(&mut self, number: u32, call: &Call, decision: &mut Decision) -> Option<Trap> {
        let thread = call.thread.and_then(|id| self.records.get_mut(&id));
        let pointer = thread.map_or(std::ptr::null_mut(), Record::thread);
        let instance = self.new_call(number, call.now, call.cpu);
        // Safety: the record and the state are alive.
        crash::guarded(self.library.crash, || unsafe {
            (self.library.call)(call.event as u32, instance, pointer)
        });
        self.share_globals(number);
        // Safety: as above; the call is over.
        let answer = unsafe { &*instance };
        let id = |thread: *mut Thread| {
            // Safety: the scheduler only knows records that are alive.
            (!thread.is_null()).then(|| ThreadId(unsafe { (*thread).id } as u32))
        };
        let slice = (answer.slice >= 0).then_some(answer.slice);
        decision.dispatch = id(answer.dispatched).map(|thread| Dispatch { thread, slice });
        decision.value_thread = id(answer.value_thread);
        decision.value = Some(answer.value);
        // Safety: the shim's record of the last call; only so many entries are kept.
        let kept = unsafe { &*self.conformance };
        let alarms = kept.alarm.iter().take(kept.alarms as usize);
        decision.alarms.extend(alarms.filter_map(|alarm| Some((id(alarm.thread)?, alarm.at))));
        let preemptions = kept.preempt.iter().take(kept.preempts as usize);
        decision.preempt.extend(preemptions.map(|preemption| (preemption.cpu, preemption.at)));
        self.trap()
    }

    fn write_thread_import(&mut self, thread: ThreadId, import: usize, value: Value) {
        let attributes = self.attributes();
        let Some((position, float)) = self.nth_import(attributes, import) else { return };
        let Some(record) = self.records.get_mut(&thread) else { return };
        if let Some(link) = record.links.get(&position) {
            link.set(bits(float, value));
        } else if !is_linked(&attributes[position]) {
            let start: *mut u8 = record.thread().cast();
            // Safety: the record holds the value itself at this offset, which is aligned.
            unsafe { *start.add(attributes[position].offset).cast::<Bits>() = bits(float, value) };
        }
    }

    fn write_global_import(&mut self, name: &str, value: Value) {
        let globals = self.globals();
        let Some(position) = globals.iter().position(|it| text(it.name) == name) else { return };
        let float = globals[position].ty == TYPE_FLOAT;
        if let Some(link) = self.global_links.get(&position) {
            link.set(bits(float, value));
        } else if !is_linked(&globals[position]) {
            // Safety: a variable of 8 bytes of the library's.
            unsafe { *self.storage(0, &globals[position]) = bits(float, value) };
        }
    }

    fn hear(&mut self, heard_at: Option<i64>, now: i64) {
        if let Some(merged) = &self.library.merged {
            // Safety: a variable of the library's.
            unsafe { *merged.heard_at = heard_at.unwrap_or(0) };
            return;
        }
        let ages = self.globals().iter().zip(&self.ages).filter(|(_, is_age)| **is_age);
        for (variable, _) in ages {
            // Safety: a variable of 8 bytes of the instance's.
            unsafe {
                *self.storage(0, variable) = heard_at.map_or(i64::MAX, |at| (now - at).max(0))
            };
        }
    }

    fn written(&self) -> Written {
        if let Some(merged) = &self.library.merged {
            // Safety: the library has an element for each global.
            let all = unsafe { slice(merged.written, self.library.table.global_count) };
            return Written::Merged(all.to_vec());
        }
        // Safety: the shim's record of the last call; only so many entries are kept.
        let kept = unsafe { &*self.conformance };
        let each = kept.update.iter().take(kept.updates as usize);
        Written::Each(each.filter_map(|it| Some((it.global, self.operation(it)?))).collect())
    }

    fn take_written(&mut self) {
        // The shim forgets what is not merged with the next call.
        for global in 0..self.globals().len() {
            if let Some(merged) = &self.library.merged {
                // Safety: as above.
                unsafe { *merged.written.add(global) = Change::NONE };
            }
        }
    }

    fn is_stored(&mut self, thread: ThreadId) -> bool {
        let Some(record) = self.records.get_mut(&thread) else { return false };
        // Safety: the record is alive.
        unsafe { !(*record.thread()).container.is_null() }
    }

    fn state(&self, instance: u32) -> State {
        let table = self.library.table;
        let mut state = State::default();
        // Safety: the table's counts say how long its arrays are.
        let infos = unsafe { slice(table.containers, table.container_count) };
        for info in infos {
            state.containers.insert(text(info.name), self.contents(instance, info));
        }
        for (position, variable) in self.globals().iter().enumerate() {
            let values = match self.global_links.get(&position) {
                Some(link) => vec![link.get()],
                None => {
                    let count = variable.length.max(1) as usize;
                    // Safety: storage holds so many elements of 8 bytes.
                    unsafe { std::slice::from_raw_parts(self.storage(instance, variable), count) }
                        .to_vec()
                }
            };
            state.globals.insert(text(variable.name), values);
        }
        // Safety: the state is alive.
        let divisions = unsafe { (*self.instance(instance)).divisions_by_zero };
        state.divisions_by_zero = divisions - self.divisions_before;
        state
    }

    fn attributes_of(&mut self, thread: ThreadId) -> HashMap<String, Bits> {
        let table = self.library.table;
        // Safety: the table's counts say how long its arrays are.
        let attributes = unsafe { slice(table.attributes, table.attribute_count) };
        let Some(record) = self.records.get_mut(&thread) else { return HashMap::new() };
        let start: *mut u8 = record.thread().cast();
        let mut values = HashMap::new();
        for (position, attribute) in attributes.iter().enumerate() {
            let linked = record.links.get(&position).map(Link::get);
            let value = linked.unwrap_or_else(|| {
                // Safety: offsets lie inside the record, and are aligned.
                let place = unsafe { start.add(attribute.offset) };
                match is_linked(attribute) {
                    true => unsafe { (*place.cast::<Import>()).value.cast_signed() },
                    false => unsafe { *place.cast::<Bits>() },
                }
            });
            values.insert(text(attribute.name), value);
        }
        values
    }
}

/// Whether the state holds a link, which nobody sets to what a cluster supplies.
fn has_link(variable: &Variable) -> bool {
    matches!(variable.imported, IMPORTED | SHARED) && variable.width != 0
}

/// Whether the record or the state holds a link to the variable, not its value.
fn is_linked(variable: &Variable) -> bool {
    variable.imported == IMPORTED && variable.width != 0
}

/// More threads than any case has.
const MANY: usize = 10_000;

fn width(variable: &Variable) -> u32 {
    if variable.ty == TYPE_FLOAT { Width::F64 as u32 } else { Width::I64 as u32 }
}

/// # Safety
/// `start` must be null or point to `count` elements.
unsafe fn slice<'a, T>(start: *const T, count: u32) -> &'a [T] {
    if start.is_null() || count == 0 {
        return &[];
    }
    // Safety: the caller's promise.
    unsafe { std::slice::from_raw_parts(start, count as usize) }
}

fn text(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // Safety: the library's strings end in zero.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}
