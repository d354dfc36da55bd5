//! Shows a running scheduler at one moment, between two handlers ([`crate::locked_copy`]): every
//! thread that it knows, in its container and in that container's order, and what each CPU does.
//! Where those threads are too many to be copied at once, it shows some of them
//! ([`crate::selection`]) and says how many it leaves out.
//!
//! Units: times are in ns; those of the clock are CLOCK_MONOTONIC's.

use std::collections::BTreeMap;

use attune_values::wire::{Tunable, Type};
use serde::{Deserialize, Serialize};

use crate::containers;
use crate::description::{Attribute, Policy, wire_type};
use crate::image::Image;
use crate::layout::Engine;
use crate::locked_copy::{Copier, CopyError, LARGEST, Part, ROOM};
use crate::memory::{Memory, Words};
use crate::records;
use crate::rescues::Rescued;
use crate::selection::{self, Selection};
use crate::statistics::Statistics;
use crate::tunables;

/// A scheduler at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    /// When that was.
    pub at: i64,
    /// How long no handler could run for it.
    pub held: i64,
    /// One, or the commands' and the others'.
    pub policies: Vec<PolicySnapshot>,
    pub cpus: Vec<CpuSnapshot>,
    pub tunables: Vec<Tunable>,
    /// Turns so far of fall-back tasks: threads for which there was no record, and which run beside
    /// all policies.
    pub fall_backs: u64,
    /// From where the engine has run threads that waited too long.
    pub rescued: Vec<Rescued>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicySnapshot {
    pub scheduler: String,
    /// Where there are several: [`crate::role`].
    pub role: Option<String>,
    /// Threads that it could give a CPU, and that it has given one so far.
    pub ready: u64,
    pub dispatches: u64,
    /// What it keeps of each thread.
    pub attributes: Vec<AttributeSnapshot>,
    /// Those with threads, and those that are no arrays.
    pub containers: Vec<ContainerSnapshot>,
    /// Threads that it knows and that sit in no container.
    pub loose: Vec<ThreadSnapshot>,
    /// Threads that it knew just before and that are not shown, in containers or not.
    #[serde(default)]
    pub left_out: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttributeSnapshot {
    pub name: String,
    #[serde(rename = "type")]
    pub ty: Type,
    /// Supplied from outside.
    pub import: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContainerSnapshot {
    /// As the scheduler calls it: `RQ`, `current[1]`.
    pub name: String,
    /// The instance to which it belongs; None where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<u32>,
    pub kind: Kind,
    /// The attribute that it is sorted on.
    pub sorted_on: Option<String>,
    /// The threads in the container's order: a policy takes the first one first.
    pub threads: Vec<ThreadSnapshot>,
    /// Threads behind those.
    #[serde(default)]
    pub left_out: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    Threadref,
    Queue,
    Stack,
    Pqueue,
    Pstack,
}

/// In the order of enum attune_kind.
const KINDS: [Kind; 5] = [Kind::Threadref, Kind::Queue, Kind::Stack, Kind::Pqueue, Kind::Pstack];

/// What the policy thinks of a thread. It runs too while something else keeps it from its CPU for a
/// moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    Ready,
    Running,
    Waiting,
    /// It goes from one instance to another.
    Moving,
    /// The engine runs it because it waited too long, or has let it run until it blocked.
    Away,
    /// Its cgroup has used up its quota: it waits for the next period.
    Throttled,
}

impl State {
    /// Reads a thread's state; None if no policy knows the record.
    fn of(image: &Image, words: &impl Words, record: u64) -> Option<State> {
        // enum attune_state
        match words.u8(record + image.layout().record.state)? {
            1 => Some(State::Ready),
            2 => Some(State::Running),
            3 => Some(State::Waiting),
            5 => Some(State::Moving),
            6 => Some(State::Away),
            7 => Some(State::Throttled),
            _ => None,
        }
    }
}

impl PolicySnapshot {
    /// The value of such an attribute; None: the policy has none.
    pub fn value(&self, thread: &ThreadSnapshot, attribute: &str) -> Option<i64> {
        let index = self.attributes.iter().position(|it| it.name == attribute)?;
        thread.values.get(index).copied()
    }

    /// Those that are shown.
    pub fn threads(&self) -> impl Iterator<Item = &ThreadSnapshot> {
        self.containers.iter().flat_map(|container| &container.threads).chain(&self.loose)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadSnapshot {
    pub thread: i32,
    pub process: i32,
    pub state: State,
    /// Where it runs.
    pub cpu: Option<u32>,
    /// The value that it is sorted by, as it was when it was put there.
    pub key: Option<i64>,
    /// The line that put it there last: `fair.sched:68`.
    pub put_by: Option<String>,
    /// Times that it was given a CPU.
    pub dispatches: u64,
    /// The attributes' values, as the policy would read them, in the order of
    /// [`PolicySnapshot::attributes`]: a name for each would take most of a long text.
    pub values: Vec<i64>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuSnapshot {
    pub cpu: u32,
    /// None: no policy has given it to a thread.
    pub thread: Option<i32>,
    /// An index into the policies.
    pub policy: Option<usize>,
    /// What is left of its slice; None if that has no end.
    pub slice_left: Option<i64>,
}

#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    #[error(transparent)]
    Copy(#[from] CopyError),
    #[error("the scheduler in the kernel lacks {0}: was it built by another version of Attune?")]
    Foreign(&'static str),
    #[error("threads come faster than the scheduler can be copied")]
    TooManyNewThreads,
    #[error("{0} is not whole: the scheduler has failed or is about to end")]
    Broken(String),
}

/// Times that it is tried because more threads came meanwhile than there was room for.
const TRIES: usize = 8;
/// The same where some are shown, and others came to the front. One that is left out is counted.
const TRIES_FOR_SOME: usize = 2;
/// Records more than there are now that are copied too.
const ROOM_FOR_MORE: u64 = 16;

/// Copies the scheduler's memory while no handler runs, and reads the copy.
pub(crate) fn take(
    image: &Image,
    memory: &Memory,
    copier: &mut Copier,
    cpus: u32,
) -> Result<Snapshot, SnapshotError> {
    const LIST: SnapshotError = SnapshotError::Foreign("a list of threads");
    let newest = memory.address(image, "attune_chunks").ok_or(LIST)?;
    let unused = memory.address(image, "attune_fresh").ok_or(LIST)?;
    let (from, bytes) = memory.variables(image);
    let variables = Part { from, bytes: bytes.next_multiple_of(8) };
    let record = image.layout().record.bytes;
    for _ in 0..TRIES {
        let chunks = records::chunks(image, memory);
        let first = chunks.first().copied().unwrap_or(0);
        // The newest chunk is copied as far as it is used, and a little more.
        let used = memory.u64(unused).and_then(|at| at.checked_sub(first)).unwrap_or(ROOM);
        let used = (used + ROOM_FOR_MORE * record).min(ROOM);
        let part =
            |chunk: &u64| Part { from: *chunk, bytes: if *chunk == first { used } else { ROOM } };
        let parts: Vec<Part> = [variables].into_iter().chain(chunks.iter().map(part)).collect();
        if parts.iter().map(|part| part.bytes).sum::<u64>() > LARGEST {
            return take_some(image, memory, copier, cpus, variables);
        }
        let copy = copier.take(image, memory, &parts)?;
        if copy.u64(newest) == Some(first) && copy.u64(unused).is_some_and(|at| at <= first + used)
        {
            let times = Times { at: copy.at, held: copy.held };
            let records = records::all(image, &copy, &chunks);
            return read(image, memory, &copy, times, Held { records, known: None }, cpus);
        }
    }
    Err(SnapshotError::TooManyNewThreads)
}

/// Copies the variables and the records of some threads.
fn take_some(
    image: &Image,
    memory: &Memory,
    copier: &mut Copier,
    cpus: u32,
    variables: Part,
) -> Result<Snapshot, SnapshotError> {
    let most = selection::most(image, variables.bytes);
    let mut tries = 0;
    loop {
        let Selection { records, known, of_each } = Selection::choose(image, memory, cpus, most);
        let mut parts = selection::parts(image, &records);
        parts.push(variables);
        let copy = copier.take(image, memory, &parts)?;
        let times = Times { at: copy.at, held: copy.held };
        let held = Held { records: records.into_iter().collect(), known: Some(known) };
        let snapshot = read(image, memory, &copy, times, held, cpus)?;
        // Where another thread came to the front meanwhile, the way to those behind it is not in
        // the copy.
        let cut = |it: &ContainerSnapshot| it.left_out > 0 && 2 * it.threads.len() < of_each;
        let cut = snapshot.policies.iter().any(|policy| policy.containers.iter().any(cut));
        tries += 1;
        if !cut || tries == TRIES_FOR_SOME {
            return Ok(snapshot);
        }
    }
}

/// The records that a copy holds.
pub(crate) struct Held {
    pub records: Vec<u64>,
    /// Where those are not all: the threads that each policy knows.
    pub known: Option<Vec<u64>>,
}

/// When the words were copied, and how long no handler could run for it.
pub(crate) struct Times {
    pub at: i64,
    pub held: i64,
}

/// `words` holds the scheduler's variables and these records, all as they were at once.
pub(crate) fn read(
    image: &Image,
    memory: &Memory,
    words: &impl Words,
    times: Times,
    held: Held,
    cpus: u32,
) -> Result<Snapshot, SnapshotError> {
    let engine = image.layout().engine.as_ref().ok_or(SnapshotError::Foreign("an engine"))?;
    View { image, memory, words, engine, held }.whole(times, cpus)
}

struct View<'a, W: Words> {
    image: &'a Image,
    memory: &'a Memory,
    words: &'a W,
    engine: &'a Engine,
    held: Held,
}

impl<W: Words> View<'_, W> {
    fn whole(&self, times: Times, cpus: u32) -> Result<Snapshot, SnapshotError> {
        let policies = &self.image.description.policies;
        let statistics = Statistics::read(self.image, self.memory, self.words);
        let known = self.known();
        let mut snapshots = Vec::new();
        for (index, policy) in policies.iter().enumerate() {
            let counted = statistics.policies.get(index).cloned().unwrap_or_default();
            let loose = known.iter().filter(|(_, at)| at.policy == index && at.container == 0);
            let mut snapshot = PolicySnapshot {
                scheduler: policy.name.clone(),
                role: tunables::role(index, policies.len()),
                ready: counted.ready,
                dispatches: counted.dispatches,
                attributes: attributes(policy),
                containers: self.containers(policy, index, &known)?,
                loose: loose.filter_map(|(at, _)| self.thread(*at, policy, index, false)).collect(),
                left_out: 0,
            };
            if let Some(known) = self.held.known.as_ref().and_then(|known| known.get(index)) {
                snapshot.left_out = known.saturating_sub(snapshot.threads().count() as u64);
            }
            snapshots.push(snapshot);
        }
        Ok(Snapshot {
            at: times.at,
            held: times.held,
            policies: snapshots,
            cpus: (0..cpus).filter_map(|number| self.cpu(number, times.at)).collect(),
            tunables: tunables::all(self.image, self.memory),
            fall_backs: statistics.fall_backs,
            rescued: Vec::new(),
        })
    }

    /// The records of threads that a policy knows, by their address.
    fn known(&self) -> BTreeMap<u64, Place> {
        let place = |at: &u64| Some((*at, Place::of(self.image, self.words, *at)?));
        self.held.records.iter().filter_map(place).collect()
    }

    fn containers(
        &self,
        policy: &Policy,
        index: usize,
        known: &BTreeMap<u64, Place>,
    ) -> Result<Vec<ContainerSnapshot>, SnapshotError> {
        // In the order of the scheduler's text, the elements of an array one behind the other.
        let mut snapshots = Vec::new();
        let all = (0..self.image.instances())
            .flat_map(|instance| policy.containers.iter().map(move |it| (instance, it)));
        for (instance, container) in all {
            let Some(base) = self.memory.in_state(self.image, instance, &container.c_name) else {
                continue;
            };
            let element = |at| containers::element(self.image, self.words, at);
            let of_array = |at: &u64| {
                element(*at).is_some_and(|it| containers::at(self.image, base, it) == *at)
            };
            let mut all: Vec<u64> = match element(base) {
                None => vec![base],
                Some(_) => known.values().map(|place| place.container).filter(of_array).collect(),
            };
            all.sort_unstable();
            all.dedup();
            for at in all {
                snapshots.push(ContainerSnapshot {
                    instance: (self.image.instances() > 1).then_some(instance),
                    ..self.container(at, policy, index)?
                });
            }
        }
        Ok(snapshots)
    }

    fn container(
        &self,
        at: u64,
        policy: &Policy,
        index: usize,
    ) -> Result<ContainerSnapshot, SnapshotError> {
        let (image, words) = (self.image, self.words);
        let name = containers::name(image, self.memory, words, at).unwrap_or_default();
        let in_part = self.held.known.is_some();
        let front =
            containers::front(image, words, at).filter(|front| in_part || front.left_out == 0);
        let front = front.ok_or_else(|| SnapshotError::Broken(name.clone()))?;
        let sorted_on = containers::sorted_on(image, words, at);
        let sorted_on = sorted_on.and_then(|number| policy.attributes.get(number));
        let thread = |at: u64| self.thread(at, policy, index, sorted_on.is_some());
        let threads: Option<Vec<ThreadSnapshot>> = front.records.into_iter().map(thread).collect();
        let kind = containers::kind(image, words, at);
        Ok(ContainerSnapshot {
            kind: kind.and_then(|kind| KINDS.get(kind).copied()).unwrap_or(Kind::Queue),
            sorted_on: sorted_on.map(|attribute| attribute.name.clone()),
            threads: threads.ok_or_else(|| SnapshotError::Broken(name.clone()))?,
            left_out: front.left_out as u64,
            name,
            instance: None,
        })
    }

    fn thread(
        &self,
        at: u64,
        policy: &Policy,
        index: usize,
        sorted: bool,
    ) -> Option<ThreadSnapshot> {
        let (words, layout) = (self.words, &self.image.layout().record);
        let state = State::of(self.image, words, at)?;
        let line = words.u32(at + layout.line)?;
        let offsets = layout.attributes.get(index)?.iter().take(policy.attributes.len());
        let values: Option<Vec<i64>> =
            offsets.map(|offset| Some(words.u64(at + offset)? as i64)).collect();
        Some(ThreadSnapshot {
            thread: words.u32(at + layout.thread)? as i32,
            process: words.u32(at + layout.process)? as i32,
            state,
            cpu: words.u32(at + layout.cpu).filter(|_| state == State::Running),
            key: words.u64(at + layout.key).filter(|_| sorted).map(|key| key as i64),
            put_by: (line > 0).then(|| policy.file_and_line(line)),
            dispatches: words.u64(at + layout.dispatches)?,
            values: values?,
        })
    }

    fn cpu(&self, number: u32, now: i64) -> Option<CpuSnapshot> {
        let (words, layout) = (self.words, &self.image.layout().record);
        let base = records::cpu_at(self.image, self.memory, number)?;
        let running = words.u64(base + self.engine.running)?;
        let deadline = words.u64(base + self.engine.deadline)? as i64;
        let runs = running != 0;
        // Where the copy does not hold its record, since it came to this CPU just before, both are
        // as they are now.
        let thread = words.u32(running + layout.thread);
        let thread = thread.or_else(|| self.memory.u32(running + layout.thread)).filter(|_| runs);
        let policy = words.u8(running + layout.domain);
        let policy = policy.or_else(|| self.memory.u8(running + layout.domain)).filter(|_| runs);
        Some(CpuSnapshot {
            cpu: number,
            thread: thread.map(|thread| thread as i32),
            policy: policy.map(usize::from),
            slice_left: (runs && deadline != 0).then(|| (deadline - now).max(0)),
        })
    }
}

/// Where a thread is.
pub(crate) struct Place {
    /// The address of the policy's container; 0 for none.
    pub container: u64,
    pub policy: usize,
}

impl Place {
    /// None if no policy knows the record.
    pub fn of(image: &Image, words: &impl Words, record: u64) -> Option<Place> {
        let layout = &image.layout().record;
        let policy = usize::from(words.u8(record + layout.domain)?);
        let container = match State::of(image, words, record)? {
            State::Throttled => 0, // it is in a queue of the engine's own
            _ => words.u64(record + layout.container)?,
        };
        Some(Place { container, policy })
    }
}

fn attributes(policy: &Policy) -> Vec<AttributeSnapshot> {
    let snapshot = |it: &Attribute| AttributeSnapshot {
        name: it.name.clone(),
        ty: wire_type(it.is_time),
        import: it.import,
    };
    policy.attributes.iter().map(snapshot).collect()
}
