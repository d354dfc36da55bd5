//! Holds what a running scheduler holds: its variables, its threads, its containers.
//!
//! Invariant: a thread that is not [`Life::Living`] sits in no container.

use crate::scheduler::{CpuSet, Decision, MAX_CPUS};

use super::code::{Code, ContainerSlot, KeyOrder};
use super::containers::{Containers, NONE};
use super::random::Random;
use super::trap::Found;
use super::update::Update;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Life {
    /// The engine knows no such thread.
    Absent,
    Living,
    /// A `destroy` has run; the engine has not removed the thread yet.
    Destroyed,
}

#[derive(Clone)]
pub(super) struct State {
    pub containers: Containers,
    pub slots: Vec<ContainerSlot>,
    pub globals: Vec<i64>,
    /// Attributes of all threads, `width` values each.
    attributes: Vec<i64>,
    width: usize,
    pub lives: Vec<Life>,
    affinity: Vec<CpuSet>,
    pub locals: Vec<i64>,
    pub names: Vec<u32>,
    pub now: i64,
    pub cpu: u32,
    pub cpus: u32,
    pub random: Random,
    /// Loop iterations left to the running handler.
    pub budget: u32,
    pub divisions_by_zero: u64,
    /// Whether shared containers read as holding only the threads that may run on this CPU.
    pub filtered: bool,
    /// Living threads that may run on some CPUs only.
    pub pinned: u32,
    /// Container slots that the running statement changed; kept only if `watching`.
    pub changed: Vec<u32>,
    pub watching: bool,
    /// What the failed check found.
    pub found: Option<Found>,
    pub decision: Decision,
    /// What the running handler did to values that a cluster shares.
    pub updates: Vec<Update>,
    /// How often each was executed.
    pub noted_statements: Vec<u64>,
    pub noted_exprs: Vec<u64>,
}

impl State {
    /// Before anything has happened.
    pub fn new(code: &Code, cpus: u32, seed: u64, watching: bool) -> State {
        State {
            containers: Containers::new(code.containers.iter().map(|slot| slot.discipline)),
            slots: code.containers.clone(),
            globals: code.globals.clone(),
            attributes: Vec::new(),
            width: code.attributes.len(),
            lives: Vec::new(),
            affinity: Vec::new(),
            locals: vec![0; code.locals as usize],
            names: vec![NONE; code.names as usize],
            now: 0,
            cpu: 0,
            cpus,
            random: Random::new(seed),
            budget: 0,
            divisions_by_zero: 0,
            filtered: false,
            pinned: 0,
            changed: Vec::new(),
            watching,
            found: None,
            decision: Decision::default(),
            updates: Vec::new(),
            noted_statements: Vec::new(),
            noted_exprs: Vec::new(),
        }
    }

    pub fn life(&self, thread: u32) -> Life {
        self.lives.get(thread as usize).copied().unwrap_or(Life::Absent)
    }

    /// A new thread, in no container.
    pub fn create(&mut self, thread: u32, initial: &[i64], affinity: &CpuSet) {
        let index = thread as usize;
        if self.lives.len() <= index {
            self.lives.resize(index + 1, Life::Absent);
            self.affinity.resize(index + 1, CpuSet::ALL);
            self.attributes.resize((index + 1) * self.width, 0);
        }
        self.discard(thread);
        self.containers.add_thread(thread);
        self.lives[index] = Life::Living;
        self.attributes[index * self.width..][..self.width].copy_from_slice(initial);
        self.set_affinity(thread, affinity);
    }

    pub fn set_affinity(&mut self, thread: u32, affinity: &CpuSet) {
        if self.life(thread) == Life::Absent {
            return;
        }
        self.affinity[thread as usize] = *affinity;
        let pinned = (0..self.cpus.min(MAX_CPUS)).any(|cpu| !affinity.contains(cpu));
        match (self.containers.is_pinned(thread), pinned) {
            (false, true) => self.pinned += 1,
            (true, false) => self.pinned -= 1,
            _ => {}
        }
        self.containers.set_pinned(thread, pinned);
    }

    /// The engine forgets a thread.
    pub fn discard(&mut self, thread: u32) {
        if self.life(thread) == Life::Absent {
            return;
        }
        self.containers.remove(thread);
        if self.containers.is_pinned(thread) {
            self.containers.set_pinned(thread, false);
            self.pinned -= 1;
        }
        self.lives[thread as usize] = Life::Absent;
    }

    pub fn attribute(&self, thread: u32, attribute: u32) -> i64 {
        self.attributes[thread as usize * self.width + attribute as usize]
    }

    pub fn attributes_of(&self, thread: u32) -> &[i64] {
        let first = thread as usize * self.width;
        self.attributes.get(first..first + self.width).unwrap_or_default()
    }

    /// Sets the attribute, and leaves the thread where it sits in its container.
    pub fn set_attribute(&mut self, thread: u32, attribute: u32, value: i64) {
        self.attributes[thread as usize * self.width + attribute as usize] = value;
    }

    /// Re-inserts the thread if that is the sort key of the container in which it sits.
    pub fn assign_attribute(&mut self, thread: u32, attribute: u32, value: i64) {
        self.set_attribute(thread, attribute, value);
        let home = self.containers.home(thread);
        let Some(slot) = self.slots.get(home as usize) else { return };
        if slot.key.is_some_and(|key| key.attribute == attribute) {
            self.put(thread, home);
        }
    }

    /// Takes the thread from wherever it is and inserts it into a container.
    pub fn put(&mut self, thread: u32, container: u32) {
        self.take(thread);
        let key = self.slots[container as usize].key;
        let key = key.map_or(0, |key| {
            let value = self.attribute(thread, key.attribute);
            ordered(value.clamp(key.range.0, key.range.1), key.order)
        });
        self.containers.insert(container, thread, key);
        if self.watching {
            self.changed.push(container);
        }
    }

    /// Takes the thread from wherever it is.
    pub fn take(&mut self, thread: u32) {
        if self.watching {
            let home = self.containers.home(thread);
            if home != NONE {
                self.changed.push(home);
            }
        }
        self.containers.remove(thread);
    }

    /// The first thread of a container as this handler reads it, or [`NONE`].
    pub fn first(&self, container: u32) -> u32 {
        let first = self.containers.first(container);
        if self.filters(container) { self.allowed_from(first) } else { first }
    }

    pub fn size(&self, container: u32) -> i64 {
        if self.filters(container) {
            self.containers.threads(container).filter(|&thread| self.allowed(thread)).count() as i64
        } else {
            self.containers.size(container).into()
        }
    }

    /// Whether a `foreach` or a first thread must look at affinities.
    pub fn filters(&self, container: u32) -> bool {
        self.filtered
            && self.slots[container as usize].shared
            && self.containers.pinned(container) > 0
    }

    /// May run on this CPU.
    pub fn allowed(&self, thread: u32) -> bool {
        self.affinity[thread as usize].contains(self.cpu)
    }

    fn allowed_from(&self, mut thread: u32) -> u32 {
        while thread != NONE && !self.allowed(thread) {
            thread = self.containers.next(thread);
        }
        thread
    }
}

/// A key of which the smallest comes first. Floats order like numbers: zeros are equal, what is no
/// number is lowest.
fn ordered(bits: i64, order: KeyOrder) -> i64 {
    match order {
        KeyOrder::LowestInt => bits,
        KeyOrder::HighestInt => !bits,
        KeyOrder::LowestFloat => ordered_float(bits),
        KeyOrder::HighestFloat => !ordered_float(bits),
    }
}

fn ordered_float(bits: i64) -> i64 {
    let value = f64::from_bits(bits as u64);
    if value.is_nan() {
        return i64::MIN;
    }
    // Adding zero makes the negative zero positive. A negative number's bits grow with its
    // magnitude.
    let bits = (value + 0.0).to_bits() as i64;
    if bits < 0 { bits ^ i64::MAX } else { bits }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn float_keys_order_like_numbers() {
        let key = |value: f64| ordered(value.to_bits() as i64, KeyOrder::LowestFloat);
        let ascending =
            [f64::NAN, f64::NEG_INFINITY, -2.5, -1e-300, 0.0, 1e-300, 2.5, f64::INFINITY];
        assert!(ascending.windows(2).all(|pair| key(pair[0]) < key(pair[1])));
        assert_eq!(key(-0.0), key(0.0));
        assert_eq!(key(-f64::NAN), key(f64::NAN));
        let highest = |value: f64| ordered(value.to_bits() as i64, KeyOrder::HighestFloat);
        assert!(ascending.windows(2).all(|pair| highest(pair[0]) > highest(pair[1])));
    }
}
