//! Snapshots of more threads than are copied at once: what is chosen, and what such a copy shows.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::{RUNNING, Scheduler, WAITING};
use crate::memory::Words;
use crate::selection::{self, Selection};
use crate::snapshot::{self, Held, Snapshot, SnapshotError, Times};
use crate::{containers, records};

/// The words of the variables, and of these records alone.
struct Copied<'a> {
    scheduler: &'a Scheduler,
    records: &'a BTreeSet<u64>,
}

impl Copied<'_> {
    fn holds(&self, address: u64) -> bool {
        let bytes = self.scheduler.image.layout().record.bytes;
        let record = self.records.range(..=address).next_back();
        address < self.scheduler.chunk || record.is_some_and(|at| address < at + bytes)
    }
}

impl Words for Copied<'_> {
    fn u64(&self, address: u64) -> Option<u64> {
        self.scheduler.memory.u64(address).filter(|_| self.holds(address))
    }

    fn u32(&self, address: u64) -> Option<u32> {
        self.scheduler.memory.u32(address).filter(|_| self.holds(address))
    }

    fn u8(&self, address: u64) -> Option<u8> {
        self.scheduler.memory.u8(address).filter(|_| self.holds(address))
    }
}

impl Scheduler {
    fn choose(&self, most: usize) -> Selection {
        Selection::choose(&self.image, &self.memory, 2, most)
    }

    /// What a copy of these records shows.
    fn of_some(&self, selection: Selection) -> Result<Snapshot, SnapshotError> {
        let Selection { records, known, .. } = selection;
        let words = Copied { scheduler: self, records: &records };
        let held = Held { records: records.iter().copied().collect(), known: Some(known) };
        let times = Times { at: 1_000, held: 7 };
        snapshot::read(&self.image, &self.memory, &words, times, held, 2)
    }

    /// Threads at the end of a queue, the first with this number.
    fn queue(&mut self, name: &str, from: u32, count: u32) {
        let queue = self.container(name);
        let records: Vec<u64> =
            (from..from + count).map(|number| self.thread(number, WAITING, queue, 1)).collect();
        for pair in records.windows(2) {
            self.link(pair[0], self.image.layout().record.next, pair[1]);
        }
    }

    /// No thread is left.
    fn empty(&mut self) {
        let layout = self.image.layout().clone();
        let chunks = records::chunks(&self.image, &self.memory);
        for record in records::all(&self.image, &self.memory, &chunks) {
            self.memory.store(record, &vec![0; layout.record.bytes as usize]);
        }
        for name in ["RQ", "WQ"] {
            let container = self.container(name);
            self.memory.set_u32(container + layout.container.size, 0);
            self.memory.set_u64(container + layout.container.first, 0);
        }
        self.records = 0;
    }
}

fn numbers(snapshot: &Snapshot, container: &str) -> (Vec<i32>, u64) {
    let containers = &snapshot.policies[0].containers;
    let it = containers.iter().find(|it| it.name == container).unwrap();
    (it.threads.iter().map(|it| it.thread).collect(), it.left_out)
}

#[test]
fn of_many_threads_those_at_the_front_are_shown_and_the_others_counted() {
    let mut scheduler = Scheduler::new();
    scheduler.tree(&[20, 10, 30]);
    scheduler.queue("WQ", 100, 50);
    for number in 200..250 {
        scheduler.thread(number, WAITING, 0, 1);
    }
    let snapshot = scheduler.of_some(scheduler.choose(20)).unwrap();
    assert_eq!(numbers(&snapshot, "RQ"), (vec![10, 20, 30], 0));
    assert_eq!(numbers(&snapshot, "WQ"), ((100..117).collect(), 33));
    let policy = &snapshot.policies[0];
    assert_eq!((policy.loose.len(), policy.left_out), (0, 83));
    // Where there is room for it, all is shown.
    let snapshot = scheduler.of_some(scheduler.choose(1000)).unwrap();
    assert_eq!(snapshot, Snapshot { at: 1_000, held: 7, ..scheduler.snapshot().unwrap() });
}

#[test]
fn a_thread_with_a_cpu_is_always_chosen() {
    let mut scheduler = Scheduler::new();
    scheduler.queue("WQ", 100, 50);
    let engine = scheduler.image.layout().engine.clone().unwrap();
    let current = scheduler.container("current");
    let of_cpu_1 = containers::at(&scheduler.image, current, 1);
    let record = scheduler.thread(40, RUNNING, of_cpu_1, 66);
    let cpu = scheduler.address("attune_cpus") + engine.cpu_bytes;
    scheduler.memory.set_u64(cpu + engine.running, record);
    let snapshot = scheduler.of_some(scheduler.choose(1)).unwrap();
    assert_eq!(numbers(&snapshot, "current[1]"), (vec![40], 0));
    assert_eq!(numbers(&snapshot, "WQ"), (vec![], 50));
    assert_eq!(snapshot.cpus[1].thread, Some(40));
}

/// Between the choice and the copy.
#[test]
fn a_thread_that_came_to_the_front_meanwhile_hides_those_behind_it() {
    let mut scheduler = Scheduler::new();
    scheduler.queue("WQ", 100, 5);
    let queue = scheduler.container("WQ");
    let layout = scheduler.image.layout().clone();
    let selection = scheduler.choose(1000);
    let first = scheduler.memory.u64(queue + layout.container.first).unwrap();
    let new = scheduler.thread(7, WAITING, queue, 1);
    scheduler.link(new, layout.record.next, first);
    scheduler.link(queue, layout.container.first, new);
    let cpu = scheduler.address("attune_cpus");
    scheduler.memory.set_u64(cpu + layout.engine.unwrap().running, new);
    let snapshot = scheduler.of_some(selection).unwrap();
    assert_eq!(numbers(&snapshot, "WQ"), (vec![], 6));
    assert_eq!(snapshot.cpus[0].thread, Some(7));
    assert_eq!(
        numbers(&scheduler.of_some(scheduler.choose(1000)).unwrap(), "WQ"),
        (vec![7, 100, 101, 102, 103, 104], 0)
    );
}

#[test]
fn records_behind_each_other_are_one_part() {
    let mut scheduler = Scheduler::new();
    let all: Vec<u64> = (1..=5).map(|it| scheduler.thread(it, WAITING, 0, 1)).collect();
    let some = BTreeSet::from([all[0], all[1], all[3]]);
    let bytes = scheduler.image.layout().record.bytes;
    let parts = selection::parts(&scheduler.image, &some);
    let parts: Vec<(u64, u64)> = parts.iter().map(|part| (part.from, part.bytes)).collect();
    assert_eq!(parts, [(all[0], 2 * bytes), (all[3], bytes)]);
}

#[test]
fn what_is_shown_of_a_container_is_its_front() {
    let mut runner = proptest::test_runner::TestRunner::default();
    let keys = Just((1..=40u32).collect::<Vec<u32>>()).prop_shuffle();
    // One scheduler is compiled for all cases.
    let mut scheduler = Scheduler::new();
    let case = (keys, 0..60u32, 1..140usize);
    let scheduler = std::cell::RefCell::new(&mut scheduler);
    let tried = runner.run(&case, |(keys, waiting, most)| {
        let mut scheduler = scheduler.borrow_mut();
        scheduler.empty();
        scheduler.tree(&keys);
        scheduler.queue("WQ", 100, waiting);
        let selection = scheduler.choose(most);
        let of_each = selection.of_each;
        let snapshot = scheduler.of_some(selection).unwrap();
        let whole = scheduler.snapshot().unwrap();
        let mut left_out = 0;
        for container in ["RQ", "WQ"] {
            let (all, _) = numbers(&whole, container);
            let (shown, hidden) = numbers(&snapshot, container);
            prop_assert_eq!(&all[..shown.len()], &shown);
            prop_assert_eq!(all.len() - shown.len(), hidden as usize);
            prop_assert!(
                hidden == 0 || shown.len() + 1 >= of_each,
                "{} of {}",
                shown.len(),
                of_each
            );
            left_out += hidden;
        }
        prop_assert_eq!(snapshot.policies[0].left_out, left_out);
        Ok(())
    });
    tried.unwrap_or_else(|error| panic!("{error}"));
}
