//! Runs a policy's handlers one at a time, in the kernel but without sched_ext, so that a test can
//! compare the program made for the kernel engine with other engines (bpf/replay.h takes the
//! engine's place).
//!
//! It needs root and a kernel with BPF arenas ([`crate::support::check_replay`]).
//!
//! Invariant: the program runs only inside [`Replay`]'s own calls, so its memory is still while it
//! is read.

use std::collections::HashMap;
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, AsRawFd, RawFd};

use attune_language::engine::event::Event;
use attune_replica::Change;
use libbpf_rs::libbpf_sys;

use crate::containers;
use crate::division::Division;
use crate::failure::{self, Found};
use crate::image::Image;
use crate::load::{self, Error, Settings};
use crate::members::Members;
use crate::memory::{Memory, Words};

/// Threads that there can be: their numbers are below it.
pub const THREADS: u32 = 64;
/// Instances of the policy: their numbers are below it.
pub const INSTANCES: u32 = 2;

/// As in replay.h, behind the events.
const START: u32 = Event::ALL.len() as u32;
const BEGIN: u32 = START + 1;
const REMOVE: u32 = START + 2;
const AFFINITY: u32 = START + 3;
const KEPT: u64 = 4096;

/// A scheduler's program, loaded.
pub struct Replay {
    image: Image,
    memory: Memory,
    program: RawFd,
    /// Bytes from a record's start to the attribute's value.
    attributes: HashMap<String, u64>,
    records: u64,
    record_size: u64,
    cpus: u32,
    // Behind `memory`, which uses it.
    object: ManuallyDrop<libbpf_rs::Object>,
}

impl Drop for Replay {
    fn drop(&mut self) {
        // SAFETY: dropped here and nowhere else; nothing reads the memory any more.
        unsafe { ManuallyDrop::drop(&mut self.object) };
    }
}

/// What a handler decided.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// The thread, and its slice if it is bounded.
    pub dispatched: Option<(u64, Option<i64>)>,
    /// The alarms in the order in which the handler set them.
    pub alarms: Vec<(u64, i64)>,
    /// CPU and time; 0 where the scheduler says none.
    pub preempted: Vec<(i64, i64)>,
    /// The answer of a query.
    pub value: i64,
    pub thread: Option<u64>,
}

/// A check that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    /// Its number in the program.
    pub check: u32,
    pub file: String,
    pub line: u32,
    pub column: u32,
    pub found: Found,
    /// As `attune run` says it.
    pub sentence: String,
}

impl Replay {
    /// Loads what was compiled from [`crate::replay_source`] for so many CPUs.
    pub fn load(image: Image, cpus: u32) -> Result<Replay, Error> {
        let settings = Settings {
            seed: 0,
            cpus,
            partial: false,
            shares: Vec::new(),
            members: Members::default(),
            timeout_ms: 0,
            strict: true,
            implicit: false,
            division: Division::whole(cpus),
        };
        let object = load::object(&image, &settings)?;
        let program = object.progs().find(|program| program.name() == "attune_replay");
        let program = program
            .ok_or(Error::Inconsistent("it is no program for replaying"))?
            .as_fd()
            .as_raw_fd();
        // The first order stands there already. It says where everything is.
        run(program).map_err(|_| Error::Inconsistent("its first order fails"))?;
        let memory = load::memory_of(&image, &object)?;
        let names = image.description.first().attributes.iter().map(|it| it.name.clone());
        let offsets = image.layout().record.attributes.iter().flatten().copied();
        let attributes = names.zip(offsets).collect();
        let found = |name| memory.address(&image, name);
        let records = found("attune_records").ok_or(Error::Inconsistent("it has no records"))?;
        let record_size = image.layout().record.bytes;
        Ok(Replay {
            memory,
            program,
            attributes,
            records,
            record_size,
            cpus,
            object: ManuallyDrop::new(object),
            image,
        })
    }

    /// An instance begins anew; its threads are forgotten.
    pub fn start(&mut self, instance: u32, seed: u64) -> io::Result<()> {
        self.order(instance, START, THREADS, 0, seed)
    }

    /// There is a thread of that number from now on, which may run anywhere.
    pub fn begin(&mut self, instance: u32, thread: u32, now: i64) -> io::Result<()> {
        let record = self.record(thread);
        for word in 0..self.record_size / 8 {
            self.memory.set_u64(record + 8 * word, 0);
        }
        self.memory.set_u64(record, thread.into());
        self.set_time(instance, now);
        self.order(instance, BEGIN, thread, 0, 0)
    }

    /// It is no more, or it has left its instance: it sits in no container.
    pub fn remove(&mut self, thread: u32) -> io::Result<()> {
        self.order(0, REMOVE, thread, 0, 0)
    }

    /// It may run on the CPUs of these bits.
    pub fn allow(&mut self, thread: u32, cpus: u64) -> io::Result<()> {
        self.order(0, AFFINITY, thread, 0, cpus)
    }

    /// Runs a handler in an instance.
    pub fn call(
        &mut self,
        instance: u32,
        event: Event,
        thread: Option<u32>,
        now: i64,
        cpu: u32,
    ) -> io::Result<Answer> {
        self.set_time(instance, now);
        self.order(instance, event as u32, thread.unwrap_or(THREADS), cpu, 0)?;
        Ok(self.answer(instance).unwrap_or_default())
    }

    /// The check that failed in the last call.
    pub fn failed(&self) -> Option<Failed> {
        let noted = failure::noted(&self.image, &self.memory)?;
        let check = self.image.description.checks.get(&noted.check);
        Some(Failed {
            check: noted.check,
            file: check.map(|it| it.file.clone()).unwrap_or_default(),
            line: check.map_or(0, |it| it.line),
            column: check.map_or(0, |it| it.column),
            found: noted.found,
            sentence: failure::failure(&self.image, &self.memory).unwrap_or_default(),
        })
    }

    /// Whether the thread sits in a container.
    pub fn is_stored(&self, thread: u32) -> bool {
        let container = self.record(thread) + self.image.layout().record.container;
        self.memory.u64(container).is_some_and(|container| container != 0)
    }

    /// The threads in each of so many elements of a container. None: there is none of that name, or
    /// it is inconsistent.
    pub fn container(&self, instance: u32, name: &str, elements: usize) -> Option<Vec<Vec<u64>>> {
        let container =
            self.image.description.first().containers.iter().find(|it| it.name == name)?;
        let base = self.memory.in_state(&self.image, instance, &container.c_name)?;
        let threads = |element: u64| {
            let container = containers::at(&self.image, base, element);
            let records = containers::records(&self.image, &self.memory, container)?;
            records.into_iter().map(|record| self.memory.u64(record)).collect()
        };
        (0..elements as u64).map(threads).collect()
    }

    /// The first elements of a variable.
    pub fn global(&self, instance: u32, name: &str, elements: usize) -> Option<Vec<i64>> {
        let base = self.global_address(instance, name)?;
        (0..elements as u64)
            .map(|element| self.memory.u64(base + 8 * element).map(|it| it as i64))
            .collect()
    }

    /// The value of a thread's variable.
    pub fn attribute(&self, thread: u32, name: &str) -> Option<i64> {
        let offset = self.attributes.get(name)?;
        self.memory.u64(self.record(thread) + offset).map(|value| value as i64)
    }

    /// From outside: an import's value. False if there is no such thing.
    pub fn set_global(&mut self, instance: u32, name: &str, value: i64) -> bool {
        self.global_address(instance, name)
            .is_some_and(|address| self.memory.set_u64(address, value as u64))
    }

    /// From outside: the value of a thread's import. False if there is no such thing.
    pub fn set_attribute(&mut self, thread: u32, name: &str, value: i64) -> bool {
        let offset = self.attributes.get(name).copied();
        offset.is_some_and(|offset| self.memory.set_u64(self.record(thread) + offset, value as u64))
    }

    /// What handlers of a node have done to each of the policy's variables since that was taken:
    /// `attune_written`. Empty where the policy is no node's.
    pub fn written(&self) -> Vec<Change> {
        let word = |at| self.memory.u64(at).unwrap_or(0) as i64;
        let change = |at| Change { scale: word(at), shift: word(at + 8) };
        self.written_places().map(change).collect()
    }

    pub fn take_written(&mut self) {
        for at in self.written_places() {
            self.memory.set_u64(at, Change::NONE.scale as u64);
            self.memory.set_u64(at + 8, Change::NONE.shift as u64);
        }
    }

    fn written_places(&self) -> impl Iterator<Item = u64> + use<> {
        let start = self.memory.address(&self.image, "attune_written");
        let globals = start.map_or(0, |_| self.image.description.first().globals.len() as u64);
        (0..globals).map(move |global| start.unwrap_or(0) + global * 16)
    }

    /// When a node has heard of its cluster; 0: never. False if the policy is no node's.
    pub fn hear(&mut self, heard_at: i64) -> bool {
        let place = self.memory.address(&self.image, "attune_heard_at");
        place.is_some_and(|place| self.memory.set_u64(place, heard_at as u64))
    }

    /// Divisions by zero since the start.
    pub fn divisions_by_zero(&self, instance: u32) -> u64 {
        let layout = self.image.layout();
        let address = self.memory.instance(&self.image, instance);
        address.and_then(|at| self.memory.u64(at + layout.divisions_by_zero)).unwrap_or(0)
    }

    fn order(
        &mut self,
        instance: u32,
        what: u32,
        thread: u32,
        cpu: u32,
        value: u64,
    ) -> io::Result<()> {
        let order = self.address("attune_order").ok_or(io::ErrorKind::NotFound)?;
        for (offset, word) in [(0, what), (4, thread), (8, cpu), (12, self.cpus), (24, instance)] {
            self.memory.set_u32(order + offset, word);
        }
        self.memory.set_u64(order + 16, value);
        run(self.program)
    }

    /// The answer of the last call.
    fn answer(&self, instance: u32) -> Option<Answer> {
        let call = self.memory.instance(&self.image, instance)?;
        let word = |address: u64| self.memory.u64(address);
        let thread = |address: u64| word(address).filter(|&record| record != 0).and_then(word);
        let slice = word(call + 24)? as i64;
        let kept = |count: &str| Some(u64::from(self.memory.u32(self.address(count)?)?).min(KEPT));
        let (alarms, preempts) = (self.address("attune_alarms")?, self.address("attune_preempts")?);
        let pair = |at: u64| Some((word(at)?, word(at + 8)? as i64));
        let preempted = |index: u64| pair(preempts + 16 * index).map(|(cpu, at)| (cpu as i64, at));
        Some(Answer {
            dispatched: thread(call + 16).map(|thread| (thread, (slice >= 0).then_some(slice))),
            alarms: (0..kept("attune_alarm_count")?)
                .filter_map(|index| pair(alarms + 16 * index))
                .collect(),
            preempted: (0..kept("attune_preempt_count")?).filter_map(preempted).collect(),
            value: word(call + 32)? as i64,
            thread: thread(call + 40),
        })
    }

    fn record(&self, thread: u32) -> u64 {
        self.records + u64::from(thread % THREADS) * self.record_size
    }

    fn address(&self, name: &str) -> Option<u64> {
        self.memory.address(&self.image, name)
    }

    fn set_time(&self, instance: u32, now: i64) {
        if let Some(address) = self.memory.instance(&self.image, instance) {
            self.memory.set_u64(address, now as u64);
        }
    }

    fn global_address(&self, instance: u32, name: &str) -> Option<u64> {
        let global = self.image.description.first().globals.iter().find(|it| it.name == name)?;
        Some(self.memory.in_state(&self.image, instance, &global.c_name)? + global.offset())
    }
}

fn run(program: RawFd) -> io::Result<()> {
    // SAFETY: zero is a value of each of its members.
    let mut options: libbpf_sys::bpf_test_run_opts = unsafe { std::mem::zeroed() };
    options.sz = size_of_val(&options) as libbpf_sys::size_t;
    // SAFETY: a program that is loaded, and takes nothing.
    let result = unsafe { libbpf_sys::bpf_prog_test_run_opts(program, &mut options) };
    match (result, options.retval) {
        (0, 0) => Ok(()),
        (0, _) => Err(io::ErrorKind::InvalidInput.into()),
        (error, _) => Err(io::Error::from_raw_os_error(-error)),
    }
}
