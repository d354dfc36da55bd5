//! Compiled C as a subject: calls its handlers through the ABI, and reads its whole state back.
//!
//! Invariant: every record that the scheduler may still know is kept alive, at one address, until it is removed.

pub mod crash;
mod library;
pub mod shim;

use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_int, c_void};

use attune_abi::{self as abi, ContainerInfo, EVENTS, IMPORTED, Import, TYPE_FLOAT, Thread, Variable};
use attune_language::event::Event;
use attune_simulator::policy::{Call, Decision, Dispatch, ThreadId, Value};
use attune_values::Width;

pub use library::{BuildError, Library};
use shim::Conformance;

use crate::rival::{Bits, Rival, State, Trap, bits};

pub struct Compiled<'l> {
    library: &'l Library,
    conformance: *const Conformance,
    records: HashMap<ThreadId, Record>,
    /// What is linked to the global imports: by position in the table.
    global_links: HashMap<usize, Link>,
    linked: bool,
    divisions_before: u64,
    cpus: u32,
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
    pub fn new(library: &'l Library, cpus: u32, seed: u64, linked: bool) -> (Compiled<'l>, Option<Trap>) {
        // Safety: the counter lives in the library.
        let divisions_before = unsafe { *library.table.divisions_by_zero };
        // Safety: the shim's function; a failed check comes back.
        let conformance = crash::guarded(library.crash, || unsafe { (library.attach)(seed, cpus) });
        let mut compiled = Compiled {
            library,
            conformance,
            records: HashMap::new(),
            global_links: HashMap::new(),
            linked,
            divisions_before,
            cpus,
        };
        compiled.link_globals();
        let trap = compiled.trap();
        (compiled, trap)
    }

    fn contents(&self, info: &ContainerInfo) -> Vec<Vec<ThreadId>> {
        unsafe extern "C" fn collect(found: *mut c_void, thread: *mut Thread) -> c_int {
            // Safety: `found` is the vector below, `thread` a record that is alive.
            let (found, id) = unsafe { (&mut *found.cast::<Vec<ThreadId>>(), (*thread).id) };
            found.push(ThreadId(id as u32));
            // A list that runs in a circle must not go on for ever.
            c_int::from(found.len() > MANY)
        }
        let element = |number: u32| {
            let mut found: Vec<ThreadId> = Vec::new();
            let start = info.container.cast::<u8>();
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
            message: text(kept.message),
            found: None,
        })
    }

    fn new_call(&self, now: i64, cpu: u32) -> abi::Call {
        abi::Call {
            now,
            cpu,
            cpus: self.cpus,
            dispatched: std::ptr::null_mut(),
            slice: -1,
            value: 0,
            value_thread: std::ptr::null_mut(),
        }
    }

    fn globals(&self) -> &'l [Variable] {
        // Safety: the table's counts say how long its arrays are.
        unsafe { slice(self.library.table.globals, self.library.table.global_count) }
    }

    fn attributes(&self) -> &'l [Variable] {
        // Safety: the table's counts say how long its arrays are.
        unsafe { slice(self.library.table.attributes, self.library.table.attribute_count) }
    }

    fn nth_import(&self, variables: &[Variable], import: usize) -> Option<(usize, bool)> {
        let mut imports = variables.iter().enumerate().filter(|(_, each)| each.imported == IMPORTED);
        imports.nth(import).map(|(position, each)| (position, each.ty == TYPE_FLOAT))
    }

    fn link_globals(&mut self) {
        for (position, variable) in self.globals().iter().enumerate() {
            if variable.imported != IMPORTED {
                continue;
            }
            if !self.linked {
                // Safety: attach leaves links: this takes back those of an earlier run.
                unsafe { *variable.link = std::ptr::null_mut() };
                continue;
            }
            // Safety: the storage holds the default; link and width are cells of the library.
            unsafe {
                let link = Link::new(*variable.storage.cast::<Bits>());
                *variable.width = width(variable);
                *variable.link = link.0.cast();
                self.global_links.insert(position, link);
            }
        }
    }

    fn link_thread(&self, record: &mut Record) {
        for (position, attribute) in self.attributes().iter().enumerate() {
            if attribute.imported == IMPORTED {
                let start: *mut u8 = record.thread().cast();
                // Safety: the record holds an import at this offset; the width is a cell of the library.
                unsafe {
                    let import = start.add(attribute.offset).cast::<Import>();
                    let link = Link::new((*import).value.cast_signed());
                    *attribute.width = width(attribute);
                    (*import).link = link.0.cast();
                    record.links.insert(position, link);
                }
            }
        }
    }
}

impl Rival for Compiled<'_> {
    fn handles(&self, event: Event) -> bool {
        self.library.table.handler[event as usize].is_some()
    }

    fn create(&mut self, thread: ThreadId, now: i64) -> Option<Trap> {
        let size = self.library.table.thread_size as usize;
        let mut record = Record { memory: vec![0; size.div_ceil(8).max(16)], links: HashMap::new() };
        let pointer = record.thread();
        // Safety: the record is as large as the table says and zeroed.
        unsafe { (*pointer).id = thread.0.into() };
        let mut call = self.new_call(now, 0);
        // Safety: a record with its head set; the call outlives the function.
        crash::guarded(self.library.crash, || unsafe {
            (self.library.call)(EVENTS as u32, &mut call, pointer)
        });
        if self.linked {
            self.link_thread(&mut record);
        }
        self.records.insert(thread, record);
        self.trap()
    }

    fn remove(&mut self, thread: ThreadId) {
        if let Some(mut record) = self.records.remove(&thread) {
            // Safety: the record is alive until the end of this block.
            unsafe { (self.library.thread_remove)(record.thread()) };
        }
    }

    fn call(&mut self, call: &Call, decision: &mut Decision) -> Option<Trap> {
        let thread = call.thread.and_then(|id| self.records.get_mut(&id));
        let pointer = thread.map_or(std::ptr::null_mut(), Record::thread);
        let mut c_call = self.new_call(call.now, call.cpu);
        // Safety: the record is alive, the call outlives the function.
        crash::guarded(self.library.crash, || unsafe {
            (self.library.call)(call.event as u32, &mut c_call, pointer)
        });
        let id = |thread: *mut Thread| {
            // Safety: the scheduler only knows records that are alive.
            (!thread.is_null()).then(|| ThreadId(unsafe { (*thread).id } as u32))
        };
        let slice = (c_call.slice >= 0).then_some(c_call.slice);
        decision.dispatch = id(c_call.dispatched).map(|thread| Dispatch { thread, slice });
        decision.value_thread = id(c_call.value_thread);
        decision.value = Some(c_call.value);
        // Safety: the shim's record of the last call; only so many entries are kept.
        let kept = unsafe { &*self.conformance };
        let alarms = kept.alarm.iter().take(kept.alarms as usize);
        decision.alarms.extend(alarms.filter_map(|alarm| Some((id(alarm.thread)?, alarm.at))));
        let preemptions = kept.preempt.iter().take(kept.preempts as usize);
        decision.preempt.extend(preemptions.map(|preemption| (preemption.cpu, preemption.at)));
        self.trap()
    }

    fn write_thread_import(&mut self, thread: ThreadId, import: usize, value: Value) {
        let Some((position, float)) = self.nth_import(self.attributes(), import) else { return };
        if let Some(record) = self.records.get(&thread)
            && let Some(link) = record.links.get(&position)
        {
            link.set(bits(float, value));
        }
    }

    fn write_global_import(&mut self, import: usize, value: Value) {
        let Some((position, float)) = self.nth_import(self.globals(), import) else { return };
        if let Some(link) = self.global_links.get(&position) {
            link.set(bits(float, value));
        }
    }

    fn is_stored(&mut self, thread: ThreadId) -> bool {
        let Some(record) = self.records.get_mut(&thread) else { return false };
        // Safety: the record is alive.
        unsafe { !(*record.thread()).container.is_null() }
    }

    fn state(&self) -> State {
        let table = self.library.table;
        let mut state = State::default();
        // Safety: the table's counts say how long its arrays are.
        let infos = unsafe { slice(table.containers, table.container_count) };
        for info in infos {
            state.containers.insert(text(info.name), self.contents(info));
        }
        for (position, variable) in self.globals().iter().enumerate() {
            let values = match self.global_links.get(&position) {
                Some(link) => vec![link.get()],
                None => {
                    let count = variable.length.max(1) as usize;
                    // Safety: storage holds so many elements of 8 bytes.
                    unsafe { std::slice::from_raw_parts(variable.storage.cast::<Bits>(), count) }.to_vec()
                }
            };
            state.globals.insert(text(variable.name), values);
        }
        // Safety: the counter lives in the library.
        state.divisions_by_zero = unsafe { *table.divisions_by_zero } - self.divisions_before;
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
                match attribute.imported {
                    IMPORTED => unsafe { (*place.cast::<Import>()).value.cast_signed() },
                    _ => unsafe { *place.cast::<Bits>() },
                }
            });
            values.insert(text(attribute.name), value);
        }
        values
    }
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
