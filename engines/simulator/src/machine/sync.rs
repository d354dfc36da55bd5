//! The objects at which threads of a workload meet: semaphores, channels, locks, conditions,
//! barriers. Each serves threads in the order in which they came.
//!
//! Invariants: a semaphore with waiters has no count left, a channel with receivers no messages; a
//! thread that unlocks hands the lock to the first thread that waits, so no thread can overtake.
//! Waiters are slots of living threads.

use std::collections::VecDeque;

use super::thread::{Message, Wait};
use crate::workload::Workload;

type Queue = VecDeque<u32>;

#[derive(Default)]
pub struct Semaphore {
    pub count: u64,
    pub waiters: Queue,
}

#[derive(Default)]
pub struct Channel {
    pub messages: VecDeque<Message>,
    pub capacity: Option<usize>,
    pub receivers: Queue,
    /// Messages that found no room.
    pub lost: u64,
}

#[derive(Default)]
pub struct Lock {
    pub holder: Option<u32>,
    pub waiters: Queue,
}

#[derive(Default)]
pub struct Barrier {
    pub parties: usize,
    pub waiters: Queue,
}

pub struct SyncObjects {
    pub semaphores: Vec<Semaphore>,
    pub channels: Vec<Channel>,
    pub locks: Vec<Lock>,
    pub conditions: Vec<Queue>,
    pub barriers: Vec<Barrier>,
}

impl SyncObjects {
    pub fn new(workload: &Workload) -> SyncObjects {
        SyncObjects {
            semaphores: workload
                .semaphores
                .iter()
                .map(|declared| Semaphore { count: declared.initial, ..Semaphore::default() })
                .collect(),
            channels: workload
                .channels
                .iter()
                .map(|declared| Channel { capacity: declared.capacity, ..Channel::default() })
                .collect(),
            locks: workload.locks.iter().map(|_| Lock::default()).collect(),
            conditions: workload.conditions.iter().map(|_| Queue::new()).collect(),
            barriers: workload
                .barriers
                .iter()
                .map(|declared| Barrier {
                    parties: declared.parties as usize,
                    waiters: Queue::new(),
                })
                .collect(),
        }
    }

    /// Takes a thread that is killed out of the queue in which it waits.
    pub fn forget(&mut self, slot: u32, wait: Wait) {
        let queue = match wait {
            Wait::Semaphore(number) => &mut self.semaphores[number as usize].waiters,
            Wait::Channel(number) => &mut self.channels[number as usize].receivers,
            Wait::Lock(number) => &mut self.locks[number as usize].waiters,
            Wait::Condition { condition, .. } => &mut self.conditions[condition as usize],
            Wait::Barrier(number) => &mut self.barriers[number as usize].waiters,
            Wait::Nothing
            | Wait::Time
            | Wait::Io
            | Wait::Reply(_)
            | Wait::Shared(_)
            | Wait::Wake
            | Wait::Children => return,
        };
        queue.retain(|&waiter| waiter != slot);
    }
}
