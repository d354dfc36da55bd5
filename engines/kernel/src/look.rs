//! How a running scheduler stands: every thread that it knows, in its container and in that container's order, and what each CPU
//! does. All of it was true at one moment, between two handlers ([`crate::copying`]).
//!
//! Units: times are in ns; those of the clock are CLOCK_MONOTONIC's.

use std::collections::BTreeMap;

use attune_values::wire::{Tunable, Type};
use serde::{Deserialize, Serialize};

use crate::contents::{self, ELEMENT};
use crate::copying::{Copier, CopyError, Part, ROOM, Still};
use crate::description::Policy;
use crate::failure::container_name;
use crate::image::Image;
use crate::layout::{self, Types};
use crate::memory::{Memory, Words};
use crate::settings;
use crate::statistics::Statistics;

/// A scheduler at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Look {
    /// When that was.
    pub at: i64,
    /// How long no handler could run for it.
    pub held: i64,
    /// One, or the command's and the others'.
    pub policies: Vec<PolicyLook>,
    pub cpus: Vec<CpuLook>,
    pub tunables: Vec<Tunable>,
    /// Turns so far of threads that found no record and run beside all policies.
    pub strangers: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyLook {
    pub scheduler: String,
    /// Of two: `command` or `others`.
    pub role: Option<String>,
    /// Threads that it could give a CPU, and that it has given one so far.
    pub ready: u64,
    pub dispatches: u64,
    /// What it keeps of each thread.
    pub attributes: Vec<AttributeLook>,
    /// Those with threads, and those that are no arrays.
    pub containers: Vec<ContainerLook>,
    /// Threads that it knows and that sit in no container.
    pub loose: Vec<ThreadLook>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttributeLook {
    pub name: String,
    #[serde(rename = "type")]
    pub ty: Type,
    /// Supplied from outside.
    pub import: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContainerLook {
    /// As the scheduler calls it: `RQ`, `current[1]`.
    pub name: String,
    pub kind: Kind,
    /// The attribute that it is sorted on.
    pub sorted_on: Option<String>,
    /// In its order: the first is taken first.
    pub threads: Vec<ThreadLook>,
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

/// What the policy thinks of a thread. It runs too while something else keeps it from its CPU for a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    Ready,
    Running,
    Waiting,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadLook {
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
    /// Of each attribute, as the policy would read it.
    pub values: BTreeMap<String, i64>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuLook {
    pub cpu: u32,
    /// None: nobody whom a policy has given it.
    pub thread: Option<i32>,
    /// An index into the policies.
    pub policy: Option<usize>,
    /// What is left of its slice; None if that has no end.
    pub slice_left: Option<i64>,
}

#[derive(Debug, thiserror::Error)]
pub enum LookError {
    #[error(transparent)]
    Copy(#[from] CopyError),
    #[error("the scheduler in the kernel lacks {0}: was it built by another version of Attune?")]
    Foreign(&'static str),
    #[error("threads come faster than the scheduler can be looked at")]
    Restless,
    #[error("{0} is not whole: the scheduler has failed or is about to end")]
    Broken(String),
}

/// Times that it is tried again because more threads came meanwhile than there was room for.
const TRIES: usize = 8;
/// Records more than there are now that are copied too.
const ROOM_FOR_MORE: u64 = 16;

pub(crate) fn look(
    image: &Image,
    memory: &Memory,
    copier: &mut Copier,
    cpus: u32,
) -> Result<Look, LookError> {
    let types = Types::of(image).ok_or(LookError::Foreign("its types"))?;
    let record = layout::Record::of(&types, image).ok_or(LookError::Foreign("the layout of a thread"))?;
    let cpu = layout::Cpu::of(&types).ok_or(LookError::Foreign("the layout of a CPU"))?;
    let newest = memory.address(image, "attune_chunks").ok_or(LookError::Foreign("a list of threads"))?;
    let unused = memory.address(image, "attune_fresh").ok_or(LookError::Foreign("a list of threads"))?;
    let (from, bytes) = memory.variables(image);
    let variables = Part { from, bytes: bytes.next_multiple_of(8) };
    for _ in 0..TRIES {
        let chunks = chunks(memory, newest);
        let first = chunks.first().copied().unwrap_or(0);
        // Of the newest chunk only what is used, and a little more.
        let used = memory.u64(unused).and_then(|at| at.checked_sub(first)).unwrap_or(ROOM);
        let used = (used + ROOM_FOR_MORE * record.size).min(ROOM);
        let part = |chunk: &u64| Part { from: *chunk, bytes: if *chunk == first { used } else { ROOM } };
        let parts: Vec<Part> = [variables].into_iter().chain(chunks.iter().map(part)).collect();
        let still = copier.take(image, memory, &parts)?;
        if still.u64(newest) == Some(first) && still.u64(unused).is_some_and(|at| at <= first + used) {
            return View { image, memory, still: &still, record: &record }.whole(&chunks, &cpu, cpus);
        }
    }
    Err(LookError::Restless)
}

/// The addresses of all chunks of records, the newest first. They stay where they are.
fn chunks(memory: &Memory, newest: u64) -> Vec<u64> {
    let first = memory.u64(newest).filter(|chunk| *chunk != 0);
    std::iter::successors(first, |chunk| memory.u64(*chunk).filter(|before| *before != 0))
        .take(65536)
        .collect()
}

struct View<'a> {
    image: &'a Image,
    memory: &'a Memory,
    still: &'a Still<'a>,
    record: &'a layout::Record,
}

impl View<'_> {
    fn whole(&self, chunks: &[u64], cpu: &layout::Cpu, cpus: u32) -> Result<Look, LookError> {
        let policies = &self.image.description.policies;
        let statistics = Statistics::read(self.image, self.memory, self.still);
        let known = self.known(chunks);
        let mut looks = Vec::new();
        for (index, policy) in policies.iter().enumerate() {
            let counted = statistics.policies.get(index).cloned().unwrap_or_default();
            let loose = known.iter().filter(|(_, at)| at.policy == index && at.container == 0);
            looks.push(PolicyLook {
                scheduler: policy.name.clone(),
                role: settings::role(policies, index).map(str::to_owned),
                ready: counted.ready,
                dispatches: counted.dispatches,
                attributes: attributes(policy),
                containers: self.containers(policy, index, &known)?,
                loose: loose.filter_map(|(at, _)| self.thread(*at, policy, index, false)).collect(),
            });
        }
        Ok(Look {
            at: self.still.at,
            held: self.still.held,
            policies: looks,
            cpus: (0..cpus).filter_map(|number| self.cpu(number, cpu)).collect(),
            tunables: settings::tunables(self.image, self.memory),
            strangers: statistics.strangers,
        })
    }

    /// The records of threads that a policy knows, by their address.
    fn known(&self, chunks: &[u64]) -> BTreeMap<u64, Place> {
        let of_chunk = |chunk: &u64| {
            let (first, count) =
                (*chunk + 16, self.still.u64(*chunk + 8).unwrap_or(0).min(ROOM / self.record.size));
            (0..count).map(move |index| first + index * self.record.size)
        };
        let place = |at: u64| {
            self.state(at)?;
            let policy = usize::from(self.still.u8(at + self.record.domain)?);
            Some((at, Place { container: self.still.u64(at + self.record.container)?, policy }))
        };
        chunks.iter().flat_map(of_chunk).filter_map(place).collect()
    }

    /// None of a record that no policy knows.
    fn state(&self, at: u64) -> Option<State> {
        // enum attune_state
        match self.still.u8(at + self.record.state)? {
            1 => Some(State::Ready),
            2 => Some(State::Running),
            3 => Some(State::Waiting),
            _ => None,
        }
    }

    fn containers(
        &self,
        policy: &Policy,
        index: usize,
        known: &BTreeMap<u64, Place>,
    ) -> Result<Vec<ContainerLook>, LookError> {
        // In the order of the scheduler's text, the elements of an array one behind the other.
        let base = |name: &str| self.memory.address(self.image, name);
        let mut looks = Vec::new();
        for container in &policy.containers {
            let Some(base) = base(&container.c_name) else { continue };
            let alone = self.still.u32(base + ELEMENT) == Some(u32::MAX);
            let with_threads = known.values().map(|place| place.container).filter(|at| {
                *at >= base && contents::index(self.still, *at).is_some_and(|index| base + index == *at)
            });
            let mut all: Vec<u64> = if alone { vec![base] } else { with_threads.collect() };
            all.sort_unstable();
            all.dedup();
            for at in all {
                looks.push(self.container(at, policy, index)?);
            }
        }
        Ok(looks)
    }

    fn container(&self, at: u64, policy: &Policy, index: usize) -> Result<ContainerLook, LookError> {
        let name = container_name(self.image, self.memory, at).unwrap_or_default();
        let records = contents::records(self.still, at);
        let records = records.ok_or_else(|| LookError::Broken(name.clone()))?;
        let sorted_on = contents::sorted_on(self.still, at).and_then(|number| policy.attributes.get(number));
        let thread = |at: u64| self.thread(at, policy, index, sorted_on.is_some());
        let threads: Option<Vec<ThreadLook>> = records.into_iter().map(thread).collect();
        Ok(ContainerLook {
            kind: contents::kind(self.still, at)
                .and_then(|kind| KINDS.get(kind).copied())
                .unwrap_or(Kind::Queue),
            sorted_on: sorted_on.map(|attribute| attribute.name.clone()),
            threads: threads.ok_or_else(|| LookError::Broken(name.clone()))?,
            name,
        })
    }

    fn thread(&self, at: u64, policy: &Policy, index: usize, sorted: bool) -> Option<ThreadLook> {
        let (still, record) = (self.still, self.record);
        let state = self.state(at)?;
        let line = still.u32(at + record.line)?;
        let values = policy.attributes.iter().zip(record.attributes.get(index)?);
        Some(ThreadLook {
            thread: still.u32(at + record.thread)? as i32,
            process: still.u32(at + record.process)? as i32,
            state,
            cpu: still.u32(at + record.cpu).filter(|_| state == State::Running),
            key: still.u64(at + record.key).filter(|_| sorted).map(|key| key as i64),
            put_by: (line > 0).then(|| policy.file_and_line(line)),
            dispatches: still.u64(at + record.dispatches)?,
            values: values
                .filter_map(|(attribute, offset)| {
                    Some((attribute.name.clone(), still.u64(at + offset)? as i64))
                })
                .collect(),
        })
    }

    fn cpu(&self, number: u32, layout: &layout::Cpu) -> Option<CpuLook> {
        let base = self.memory.address(self.image, "attune_cpus")? + u64::from(number) * layout.size;
        let running = self.still.u64(base + layout.running)?;
        let deadline = self.still.u64(base + layout.deadline)? as i64;
        let runs = running != 0;
        let of = |offset: u64| self.still.u32(running + offset).filter(|_| runs);
        Some(CpuLook {
            cpu: number,
            thread: of(self.record.thread).map(|thread| thread as i32),
            policy: self.still.u8(running + self.record.domain).filter(|_| runs).map(usize::from),
            slice_left: (runs && deadline != 0).then(|| (deadline - self.still.at).max(0)),
        })
    }
}

/// Where a thread is.
struct Place {
    container: u64,
    policy: usize,
}

fn attributes(policy: &Policy) -> Vec<AttributeLook> {
    let look = |it: &crate::description::Attribute| AttributeLook {
        name: it.name.clone(),
        ty: it.ty,
        import: it.import,
    };
    policy.attributes.iter().map(look).collect()
}
