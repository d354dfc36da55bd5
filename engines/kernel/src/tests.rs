//! Tests what the loader reads of a scheduler's memory, without a kernel: a test writes the memory
//! that the compiled program would have, by the layout in its object.

use std::collections::BTreeMap;
use std::path::Path;

use attune_backend_c as c;
use attune_language::Checked;
use attune_language::engine::Engine;

use crate::failure::{self, Kind};
use crate::image::Image;
use crate::memory::{ARENA, Memory, Section, Words};
use crate::rescues::Rescues;
use crate::snapshot::{self, Held, Snapshot, SnapshotError, State, Times};
use crate::statistics::Statistics;
use crate::{Compiler, Layout, compile, containers, records, shared_source};

mod selection;

/// `fair`, compiled, and memory for it.
struct Scheduler {
    image: Image,
    memory: Memory,
    /// Behind `memory`, which lies in both.
    _arena: Vec<u64>,
    _plain: Vec<u64>,
    chunk: u64,
    records: u64,
}

/// Where the variables of the program lie in the arena, and a chunk of records behind them.
const VARIABLES: u64 = 1 << 20;
const CHUNK: u64 = 2 << 20;
const PLAIN: usize = 1 << 16;

fn fair() -> Image {
    let checked = library("fair");
    compiled(&shared_source(&[policy(&checked)]).unwrap())
}

fn library(scheduler: &str) -> Checked {
    let mut opened = attune_schedulers::open(Path::new(scheduler), &[]).unwrap();
    attune_language::check(&opened.source, &mut opened.loader, &Default::default())
}

fn policy(checked: &Checked) -> c::Policy<'_> {
    let verdicts = &checked.engine(Engine::Kernel).verdicts;
    c::Policy { program: checked.program.as_ref().unwrap(), verdicts, sources: &checked.sources }
}

fn compiled(text: &str) -> Image {
    let object = std::env::temp_dir().join(format!("attune_kernel_{}.o", std::process::id()));
    // Two tests may compile at once: each has its own file.
    let object = object.with_extension(format!("{:?}.o", std::thread::current().id()));
    let compiler = Compiler::find().unwrap();
    compile(&compiler, text, &object, 2, 1, Layout::Usual)
        .unwrap_or_else(|error| panic!("{error}"));
    let bytes = std::fs::read(&object).unwrap();
    let _ = std::fs::remove_file(&object);
    Image::read(bytes).unwrap_or_else(|error| panic!("{error}"))
}

impl Scheduler {
    fn new() -> Scheduler {
        let image = fair();
        let arena = vec![0u64; (ARENA / 8) as usize];
        let plain = vec![0u64; PLAIN / 8];
        let start = arena.as_ptr() as u64;
        let bss = Section { name: ".bss".to_string(), start: plain.as_ptr() as u64, bytes: PLAIN };
        let origin = start + VARIABLES + image.variable("attune_failure").unwrap().offset as u64;
        // SAFETY: the vectors live as long as the memory, and nothing else uses them.
        let memory = unsafe { Memory::new(&image, start, origin, vec![bss]) }.unwrap();
        let chunk = start + CHUNK;
        let mut scheduler =
            Scheduler { image, memory, _arena: arena, _plain: plain, chunk, records: 0 };
        scheduler.start();
        scheduler
    }

    /// As the program does when it starts.
    fn start(&mut self) {
        let layout = self.image.layout().container.clone();
        for container in &self.image.description.policies[0].containers {
            let Some(at) = self.memory.in_state(&self.image, 0, &container.c_name) else {
                continue;
            };
            let per_cpu = container.name == "current";
            for element in 0..if per_cpu { 2 } else { 1 } {
                let at = containers::at(&self.image, at, element);
                let element = if per_cpu { element as u32 } else { u32::MAX };
                self.memory.set_u32(at + layout.element, element);
            }
        }
        let chunks = self.address("attune_chunks");
        self.memory.set_u64(chunks, self.chunk);
    }

    fn address(&self, name: &str) -> u64 {
        self.memory.address(&self.image, name).unwrap_or_else(|| panic!("no {name}"))
    }

    fn container(&self, name: &str) -> u64 {
        let containers = &self.image.description.policies[0].containers;
        let container = containers.iter().find(|it| it.name == name).unwrap();
        self.memory.in_state(&self.image, 0, &container.c_name).unwrap()
    }

    /// Writes one byte.
    fn set_u8(&self, at: u64, value: u8) {
        let word = self.memory.u32(at & !3).unwrap();
        let shift = 8 * (at & 3);
        self.memory.set_u32(at & !3, word & !(0xff << shift) | u32::from(value) << shift);
    }

    /// A thread that sits in that container, at the end of a queue; 0: in none.
    fn thread(&mut self, number: u32, state: u8, container: u64, line: u32) -> u64 {
        let layout = self.image.layout().clone();
        let engine = layout.engine.unwrap();
        let at = self.chunk + engine.chunk_first + self.records * layout.record.bytes;
        self.records += 1;
        self.memory.set_u64(self.chunk + engine.chunk_records, self.records);
        self.memory.set_u64(at + layout.record.id, number.into());
        self.memory.set_u32(at + layout.record.thread, number);
        self.memory.set_u32(at + layout.record.process, number / 10);
        self.memory.set_u32(at + layout.record.line, line);
        self.memory.set_u64(at + layout.record.container, container);
        self.set_u8(at + layout.record.state, state);
        if container != 0 {
            let size = self.memory.u32(container + layout.container.size).unwrap();
            self.memory.set_u32(container + layout.container.size, size + 1);
            if size == 0 {
                self.memory.set_u64(container + layout.container.first, at);
            }
        }
        at
    }

    fn link(&self, from: u64, member: u64, to: u64) {
        self.memory.set_u64(from + member, to);
    }

    /// Ready threads in `RQ`, each inserted as a leaf of its tree. A thread's key is ten times
    /// its number.
    fn tree(&mut self, keys: &[u32]) {
        let queue = self.container("RQ");
        let layout = self.image.layout().clone();
        self.memory.set_u32(queue + layout.container.sorted_on, vtime(self) as u32 + 1);
        self.set_u8(queue + layout.container.kind, 3);
        let mut nodes: BTreeMap<u32, u64> = BTreeMap::new();
        for key in keys {
            let record = self.thread(*key, READY, queue, 68);
            self.memory.set_u64(record + layout.record.key, 10 * u64::from(*key));
            let below = nodes.range(..key).next_back().map(|(_, at)| *at);
            let parent = match below {
                Some(at) if self.memory.u64(at + layout.record.next) == Some(0) => {
                    self.link(at, layout.record.next, record);
                    at
                }
                _ => match nodes.range(key..).next().map(|(_, at)| *at) {
                    Some(at) => {
                        self.link(at, layout.record.left, record);
                        at
                    }
                    None => 0,
                },
            };
            self.link(record, layout.record.parent, parent);
            nodes.insert(*key, record);
        }
        self.link(queue, layout.container.first, nodes.values().next().copied().unwrap_or(0));
    }

    fn snapshot(&self) -> Result<Snapshot, SnapshotError> {
        let chunks = records::chunks(&self.image, &self.memory);
        let times = Times { at: 1_000, held: 7 };
        let records = records::all(&self.image, &self.memory, &chunks);
        let held = Held { records, known: None };
        snapshot::read(&self.image, &self.memory, &self.memory, times, held, 2)
    }
}

const READY: u8 = 1;
const RUNNING: u8 = 2;
const WAITING: u8 = 3;
const THROTTLED: u8 = 7;

/// RQ as the tree  20(10, 30), that is 10, 20, 30 in its order.
fn with_a_tree() -> (Scheduler, u64) {
    let mut scheduler = Scheduler::new();
    scheduler.tree(&[20, 10, 30]);
    let queue = scheduler.container("RQ");
    (scheduler, queue)
}

fn vtime(scheduler: &Scheduler) -> usize {
    let attributes = &scheduler.image.description.policies[0].attributes;
    attributes.iter().position(|it| it.name == "vtime").unwrap()
}

#[test]
fn a_snapshot_shows_each_container_in_its_own_order() {
    let (mut scheduler, _) = with_a_tree();
    let waiting = scheduler.container("WQ");
    let first = scheduler.thread(71, WAITING, waiting, 1);
    let second = scheduler.thread(70, WAITING, waiting, 1);
    scheduler.link(first, scheduler.image.layout().record.next, second);
    let snapshot = scheduler.snapshot().unwrap();
    assert_eq!((snapshot.at, snapshot.held), (1_000, 7));
    let container = |name: &str| {
        snapshot.policies[0].containers.iter().find(|it| it.name == name).unwrap().clone()
    };
    let threads: Vec<i32> = container("RQ").threads.iter().map(|it| it.thread).collect();
    assert_eq!(threads, [10, 20, 30]);
    assert_eq!(container("RQ").sorted_on.as_deref(), Some("vtime"));
    let keys: Vec<Option<i64>> = container("RQ").threads.iter().map(|it| it.key).collect();
    assert_eq!(keys, [Some(100), Some(200), Some(300)]);
    let threads: Vec<i32> = container("WQ").threads.iter().map(|it| it.thread).collect();
    assert_eq!(threads, [71, 70]);
    assert_eq!(container("WQ").threads[0].key, None);
    assert_eq!(container("WQ").threads[0].process, 7);
}

#[test]
fn a_snapshot_shows_what_runs_on_each_cpu_and_how_long_it_may_stay() {
    let mut scheduler = Scheduler::new();
    let layout = scheduler.image.layout().clone();
    let engine = layout.engine.unwrap();
    let current = scheduler.container("current");
    let of_cpu_1 = containers::at(&scheduler.image, current, 1);
    let record = scheduler.thread(40, RUNNING, of_cpu_1, 66);
    scheduler.memory.set_u32(record + layout.record.cpu, 1);
    let cpu = scheduler.address("attune_cpus") + engine.cpu_bytes;
    scheduler.memory.set_u64(cpu + engine.running, record);
    scheduler.memory.set_u64(cpu + engine.deadline, 1_600);
    let attribute = layout.record.attributes[0][vtime(&scheduler)];
    scheduler.memory.set_u64(record + attribute, 55);
    let snapshot = scheduler.snapshot().unwrap();
    let cpus: Vec<_> = snapshot.cpus.iter().map(|it| (it.thread, it.slice_left)).collect();
    assert_eq!(cpus, [(None, None), (Some(40), Some(600))]);
    let place = &snapshot.policies[0].containers.iter().find(|it| it.name == "current[1]").unwrap();
    let thread = &place.threads[0];
    assert_eq!((thread.state, thread.cpu), (State::Running, Some(1)));
    assert_eq!(snapshot.policies[0].value(thread, "vtime"), Some(55));
}

/// The policy has given it away, and it sits in the engine's own queue.
#[test]
fn a_thread_over_its_quota_is_shown_beside_the_containers() {
    let mut scheduler = Scheduler::new();
    let queue = scheduler.address("attune_throttled");
    scheduler.thread(40, THROTTLED, queue, 66);
    let policy = &scheduler.snapshot().unwrap().policies[0];
    let loose: Vec<_> = policy.loose.iter().map(|it| (it.thread, it.state)).collect();
    assert_eq!(loose, [(40, State::Throttled)]);
    assert!(policy.containers.iter().all(|it| it.threads.is_empty()));
}

#[test]
fn a_container_that_is_not_what_it_says_is_told_and_not_shown() {
    let (scheduler, queue) = with_a_tree();
    let layout = scheduler.image.layout().clone();
    scheduler.memory.set_u32(queue + layout.container.size, 4);
    let broken = |scheduler: &Scheduler| match scheduler.snapshot() {
        Err(SnapshotError::Broken(name)) => name,
        other => panic!("{other:?}"),
    };
    assert_eq!(broken(&scheduler), "RQ");
    // A tree with a circle ends too.
    let (scheduler, queue) = with_a_tree();
    let root = scheduler.memory.u64(queue + layout.container.first).unwrap();
    scheduler.link(root, layout.record.next, root);
    scheduler.link(root, layout.record.left, root);
    assert_eq!(broken(&scheduler), "RQ");
}

#[test]
fn counters_are_read_from_where_the_engine_keeps_them() {
    let scheduler = Scheduler::new();
    let engine = scheduler.image.layout().engine.clone().unwrap();
    let (counters, domain) =
        (scheduler.address("attune_statistics"), scheduler.address("attune_domains"));
    for (at, value) in [
        (counters + engine.kept, 1),
        (counters + engine.kicks, 2),
        (counters + engine.timers, 3),
        (counters + engine.fall_backs, 4),
        (counters + engine.records, 5),
        (domain + engine.ready, 6),
        (domain + engine.dispatches, 8),
        (domain + engine.calls, 9),
    ] {
        scheduler.memory.set_u64(at, value);
    }
    let read = Statistics::read(&scheduler.image, &scheduler.memory, &scheduler.memory);
    assert_eq!(
        (read.kept, read.kicks, read.timers, read.fall_backs, read.records),
        (1, 2, 3, 4, 5)
    );
    assert_eq!((read.ready(), read.dispatches(), read.handler_calls()), (6, 8, 9));
}

#[test]
fn a_failed_check_is_told_with_its_place_in_the_policy() {
    let scheduler = Scheduler::new();
    let layout = scheduler.image.layout().failure.clone();
    assert_eq!(failure::failure(&scheduler.image, &scheduler.memory), None);
    let (number, check) = scheduler.image.description.checks.iter().next().unwrap();
    let base = scheduler.address("attune_failure");
    for (at, value) in [(layout.failed, 1), (layout.check, *number), (layout.about, 2)] {
        scheduler.memory.set_u32(base + at, value);
    }
    scheduler.memory.set_u64(base + layout.index, 9);
    scheduler.memory.set_u64(base + layout.length, 4);
    let told = failure::failure(&scheduler.image, &scheduler.memory).unwrap();
    let place = format!("{}:{}:{}: {}", check.file, check.line, check.column, check.what);
    assert_eq!(told, format!("{place} (it is 9, outside 0..3)"));
}

#[test]
fn a_stall_names_the_thread_its_container_and_the_line_that_put_it_there() {
    let mut scheduler = Scheduler::new();
    let late = scheduler.container("late");
    scheduler.thread(42, READY, late, 60);
    let kind = scheduler.address("attune_exit_kind");
    scheduler.memory.set_u32(kind, 1026);
    let message = scheduler.address("attune_exit_message");
    for (at, byte) in b"hog[42] failed to run for 5.000s".iter().enumerate() {
        scheduler.set_u8(message + at as u64, *byte);
    }
    let exit = failure::exit(&scheduler.image, &scheduler.memory).unwrap();
    assert_eq!(exit.kind, Kind::Stall);
    let told = exit.failure.unwrap();
    let expected = "fair.sched: thread 42 (hog) was ready and was not dispatched; it sits in late, \
                    put there by line 60";
    assert!(told.ends_with(expected), "{told}");
}

#[test]
fn rescues_are_summed_up_by_place_and_those_written_over_are_left_out() {
    let scheduler = Scheduler::new();
    let engine = scheduler.image.layout().engine.clone().unwrap();
    let (late, ring) = (scheduler.container("late"), scheduler.address("attune_rescues"));
    let count = scheduler.address("attune_statistics") + engine.rescues;
    let note = |number: u64, thread: u64, waited: u64, line: u32| {
        let layout = &engine.rescue;
        let at = ring + (number - 1) % 64 * layout.bytes;
        for (member, value) in
            [(layout.thread, thread), (layout.container, late), (layout.waited, waited)]
        {
            scheduler.memory.set_u64(at + member, value);
        }
        scheduler.memory.set_u32(at + layout.line, line);
        scheduler.memory.set_u64(at + layout.number, number);
    };
    let mut rescues = Rescues::default();
    let mut read = || {
        let places = rescues.read(&scheduler.image, &scheduler.memory).iter();
        places.map(|it| (it.first.clone(), it.times, it.longest)).collect::<Vec<_>>()
    };
    assert_eq!(read(), []);

    // No process has such a number, so none has a name.
    let [one, other] = [1 << 40, 2 << 40];
    note(1, one, 500, 60);
    note(2, other, 900, 60);
    note(3, other, 700, 61);
    scheduler.memory.set_u64(count, 4);
    // The fourth is still being written.
    let both = [(one.to_string(), 2, 900), (other.to_string(), 1, 700)];
    assert_eq!(read(), both);
    assert_eq!(read(), both);

    // 68 are there, and the first four have been written over.
    for number in 5..=68 {
        note(number, one, 600, 61);
    }
    scheduler.memory.set_u64(count, 68);
    assert_eq!(read()[1], (other.to_string(), 65, 700));
    let place = "fair.sched: thread 1099511627776 was ready for 0.0 s and was not dispatched; it \
                 sat in late, put there by line 60";
    let told = rescues.read(&scheduler.image, &scheduler.memory)[0].sentence();
    assert!(told.ends_with(place), "{told}");
}

#[test]
fn no_object_holds_none_or_nine_schedulers() {
    let fair = library("fair");
    for (count, number) in [(0, "not 0"), (9, "not 9")] {
        let refusal = shared_source(&vec![policy(&fair); count]).unwrap_err().to_string();
        assert!(refusal.contains("1 to 8 policies") && refusal.contains(number), "{refusal}");
    }
}

#[test]
fn eight_schedulers_become_one_object_that_tells_them_apart() {
    let names = ["fair", "edf", "coop", "human", "fair", "round_robin", "reserve", "fair"];
    let checked = names.map(library);
    let image = compiled(&shared_source(&checked.each_ref().map(policy)).unwrap());
    assert_eq!(image.policies().collect::<Vec<_>>(), names);
    let layout = image.layout();
    let mut places: Vec<&u64> = Vec::new();
    for (policy, attributes) in image.description.policies.iter().zip(&layout.record.attributes) {
        assert_eq!(policy.attributes.len(), attributes.len());
        let members = policy.globals.iter().map(|it| &it.c_name);
        let members = members.chain(policy.containers.iter().map(|it| &it.c_name));
        places.extend(members.filter_map(|name| layout.state.get(name.split('.').next()?)));
    }
    // Each variable and each container of each of them has a place of its own.
    let count = places.len();
    places.sort_unstable();
    places.dedup();
    assert_eq!(places.len(), count);
    let domains = image.variable("attune_domains").unwrap().bytes;
    assert_eq!(domains, 8 * layout.engine.as_ref().unwrap().domain_bytes);
}
