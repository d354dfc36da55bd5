//! Reads which threads the engine has run because they waited too long (`bpf/rescue.h`), and sums
//! them up by the place where the policy had put them.
//!
//! The program keeps the last 64. A reader that comes too rarely misses some: they are counted in
//! [`crate::Statistics`], and have no place here.

use serde::{Deserialize, Serialize};

use crate::containers;
use crate::failure::{named, policy, put_there};
use crate::image::Image;
use crate::memory::{Memory, Words};

/// `ATTUNE_RESCUES`.
const KEPT: u64 = 64;

/// Threads that waited too long where one line of a policy had put them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rescued {
    pub scheduler: String,
    /// In words: `it sat in forgotten, put there by line 8`.
    pub place: String,
    /// The first of them, with its name: `123 (make)`.
    pub first: String,
    /// Times that the engine ran one.
    pub times: u64,
    /// The longest that one had been ready, in ns.
    pub longest: u64,
}

impl Rescued {
    /// The first time, in a sentence without a full stop.
    pub fn sentence(&self) -> String {
        let Rescued { scheduler, place, first, longest, .. } = self;
        format!(
            "{scheduler}: thread {first} was ready for {:.1} s and was not dispatched; {place}",
            *longest as f64 / 1e9
        )
    }
}

/// What was read so far.
#[derive(Default)]
pub(crate) struct Rescues {
    read: u64,
    places: Vec<Rescued>,
}

/// One entry of the ring.
struct Note {
    thread: u64,
    waited: u64,
    scheduler: String,
    place: String,
}

impl Rescues {
    /// All places, in the order of their first thread.
    pub fn read(&mut self, image: &Image, memory: &Memory) -> &[Rescued] {
        let written = written(image, memory).unwrap_or(0);
        self.read = self.read.max(written.saturating_sub(KEPT));
        while self.read < written && number(image, memory, self.read) > Some(self.read) {
            if let Some(note) = note(image, memory, self.read) {
                self.add(note);
            }
            self.read += 1;
        }
        &self.places
    }

    fn add(&mut self, note: Note) {
        let known = |it: &&mut Rescued| it.place == note.place && it.scheduler == note.scheduler;
        if let Some(known) = self.places.iter_mut().find(known) {
            known.times += 1;
            known.longest = known.longest.max(note.waited);
            return;
        }
        self.places.push(Rescued {
            scheduler: note.scheduler,
            place: note.place,
            first: named(note.thread),
            times: 1,
            longest: note.waited,
        });
    }
}

fn written(image: &Image, memory: &Memory) -> Option<u64> {
    let counters = memory.address(image, "attune_statistics")?;
    memory.u64(counters + image.layout().engine.as_ref()?.rescues)
}

/// Where the ring's entry of an index from 0 lies.
fn entry(image: &Image, memory: &Memory, index: u64) -> Option<u64> {
    let bytes = image.layout().engine.as_ref()?.rescue.bytes;
    Some(memory.address(image, "attune_rescues")? + index % KEPT * bytes)
}

/// The number, from 1, of the rescue that is written there; 0: one is being written.
fn number(image: &Image, memory: &Memory, index: u64) -> Option<u64> {
    memory.u64(entry(image, memory, index)? + image.layout().engine.as_ref()?.rescue.number)
}

/// The entry of that index; None if a later one has been written over it.
fn note(image: &Image, memory: &Memory, index: u64) -> Option<Note> {
    let layout = &image.layout().engine.as_ref()?.rescue;
    let at = entry(image, memory, index)?;
    let policy = policy(image, memory.u32(at + layout.policy)?);
    let by = put_there(policy, memory.u32(at + layout.line)?);
    let container = memory.u64(at + layout.container)?;
    let container = containers::name(image, memory, memory, container);
    let place = match container {
        Some(name) => format!("it sat in {name}{by}"),
        None => format!("it sat in no container{by}"),
    };
    let note = Note {
        thread: memory.u64(at + layout.thread)?,
        waited: memory.u64(at + layout.waited)?,
        scheduler: policy.file.clone(),
        place,
    };
    (number(image, memory, index) == Some(index + 1)).then_some(note)
}
