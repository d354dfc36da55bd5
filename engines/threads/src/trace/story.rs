//! Turns the records of workers into a timeline: a track per worker and per thread, a counter of
//! ready threads per worker, arrows from the thread that wakes to the one that is woken.
//!
//! Invariants: at most one slice of a thread's track and one of a worker's is open at a time, and
//! times on a track ascend. Memory is bounded by the threads that have not ended, and those that
//! ended in the last gap.

use std::collections::HashMap;
use std::sync::Arc;

use attune_timeline::{Clocks, Event, Timeline, Track, Value};

use super::record::{Container, NAME_HALF, Record, What};
use super::words;
use crate::load::Loaded;
use crate::scheduler::{attributes, container_at, text};
use crate::thread::{ThreadId, WaitsFor};

pub struct Story {
    pub timeline: Timeline,
    loaded: Loaded,
    /// Names by their places.
    containers: HashMap<Container, Option<Arc<str>>>,
    workers: Vec<OfWorker>,
    /// The group of the threads' tracks.
    group: Track,
    threads: HashMap<ThreadId, OfThread>,
    /// The first half of the name whose second one comes next.
    half: [u8; NAME_HALF],
}

struct OfWorker {
    track: Track,
    ready: Ready,
    /// When the last slice of its track ended.
    free: i64,
}

/// How many threads of a worker are ready, as a counter.
struct Ready {
    counter: Track,
    at: i64,
    threads: i64,
    shown: Option<i64>,
}

struct OfThread {
    track: Track,
    label: String,
    /// The worker that spoke of it last.
    worker: usize,
    /// What it does, if that is known, and since when.
    does: Option<Does>,
    since: i64,
    /// The arrow that ends where it is ready.
    arrow: Option<u64>,
    /// The number of the last move to another worker that its worker has told.
    left: u32,
}

#[derive(Clone, Copy, PartialEq)]
enum Does {
    Run,
    BeReady,
    BeSuspended,
    Wait(WaitsFor),
}

impl Does {
    fn name(self) -> &'static str {
        match self {
            Does::Run => "running",
            Does::BeReady => "ready",
            Does::BeSuspended => "suspended",
            Does::Wait(waits_for) => words::waits(waits_for).0,
        }
    }
}

impl Ready {
    /// Shows the number that holds until `at`: the last of several changes at one time.
    fn until(&mut self, at: i64, timeline: &mut Timeline) {
        if at <= self.at {
            return;
        }
        if self.shown != Some(self.threads) {
            timeline.count(self.at, self.counter, self.threads);
            self.shown = Some(self.threads);
        }
        self.at = at;
    }
}

impl Story {
    pub fn new(clocks: Clocks, program: &str, loaded: Loaded, workers: usize) -> Story {
        let mut timeline = Timeline::new(Some(clocks));
        let process = timeline.process(std::process::id() as i32, program);
        let policy = text(loaded.scheduler().name).to_string_lossy();
        let group = timeline.group(Some(process), "workers", &format!("policy {policy}"));
        let workers = (1..=workers)
            .map(|number| {
                let track = timeline.track(group, &format!("worker {number}"));
                let counter = timeline.counter(group, &format!("ready on worker {number}"));
                let ready = Ready { counter, at: clocks.monotonic, threads: 0, shown: None };
                OfWorker { track, ready, free: clocks.monotonic }
            })
            .collect();
        let group = timeline.group(Some(process), "threads", "");
        Story {
            timeline,
            loaded,
            containers: HashMap::new(),
            workers,
            group,
            threads: HashMap::new(),
            half: [0; NAME_HALF],
        }
    }

    /// A record of that worker. Those of one worker come in their order.
    pub fn hear(&mut self, worker: usize, record: &Record) {
        let Record { at, thread, what } = *record;
        self.workers[worker].ready.until(at, &mut self.timeline);
        match what {
            What::Name { half: 0, bytes } => self.half = bytes,
            What::Name { bytes, .. } => {
                let name = words::name(&[self.half, bytes].concat());
                self.meet(worker, thread, at, &name);
            }
            What::Running if self.workers.len() > 1 => {
                let place = [("worker", Value::Int(worker as i64 + 1))];
                self.change(worker, thread, at, Some(Does::Run), &place);
            }
            What::Running => self.change(worker, thread, at, Some(Does::Run), &[]),
            What::Ready { container, outcome } => {
                let woken = self.woken_by(thread, outcome);
                self.rest(worker, thread, at, Does::BeReady, container, woken);
            }
            What::Suspended { container } => {
                self.rest(worker, thread, at, Does::BeSuspended, container, None);
            }
            What::Waiting { container, waits_for } => {
                let more = words::waits(waits_for).1;
                self.rest(worker, thread, at, Does::Wait(waits_for), container, more);
            }
            What::Ended => {
                self.change(worker, thread, at, None, &[]);
                self.threads.remove(&thread);
            }
            What::Leaves { turn } => {
                self.change(worker, thread, at, None, &[]);
                self.threads.entry(thread).and_modify(|it| it.left = turn);
            }
            What::Arrives { from, .. } => self.arrives(worker, thread, at, from),
            What::Wakes { by, turn } => self.wakes(worker, thread, at, by, arrow(thread, turn)),
            What::Woken { turn } => self.is_woken(thread, at, arrow(thread, turn)),
            What::Hint { import, value } => self.hint(worker, thread, at, import, value),
            What::Lost { until, count } => self.lost(worker, at, until, count),
        }
    }

    /// The worker whose records go before this one, if it is not known yet that the thread has left
    /// that worker.
    pub fn waits_for(&self, record: &Record) -> Option<usize> {
        let What::Arrives { from, turn } = record.what else { return None };
        let left = self.threads.get(&record.thread).map(|it| it.left);
        (left != Some(turn)).then_some(from as usize)
    }

    /// The trace ends now.
    pub fn end(&mut self, now: i64) {
        let threads: Vec<_> = self.threads.iter().map(|(id, it)| (*id, it.worker)).collect();
        for (thread, worker) in threads {
            self.change(worker, thread, now, None, &[]);
        }
        for worker in &mut self.workers {
            worker.ready.until(i64::MAX, &mut self.timeline);
        }
    }

    fn meet(&mut self, worker: usize, thread: ThreadId, at: i64, name: &str) {
        // After a gap all names come again.
        if self.threads.contains_key(&thread) {
            return;
        }
        let label = format!("{thread} {name}");
        let track = self.timeline.track(self.group, &label);
        let met = OfThread { track, label, worker, does: None, since: at, arrow: None, left: 0 };
        self.threads.insert(thread, met);
    }

    /// From now on the thread does this, in that container.
    fn rest(
        &mut self,
        worker: usize,
        thread: ThreadId,
        at: i64,
        does: Does,
        container: Container,
        more: Option<(&str, Value<'_>)>,
    ) {
        let name = self.container(container);
        let name = name.as_deref().map(|name| ("container", Value::Text(name)));
        let arguments: Vec<_> = name.into_iter().chain(more).collect();
        self.change(worker, thread, at, Some(does), &arguments);
    }

    fn container(&mut self, container: Container) -> Option<Arc<str>> {
        let scheduler = self.loaded.scheduler();
        let find = || container_at(scheduler, container.0 as usize).map(Arc::from);
        self.containers.entry(container).or_insert_with(find).clone()
    }

    /// From now on the thread does this; None: it is not known, or it has ended.
    fn change(
        &mut self,
        worker: usize,
        thread: ThreadId,
        at: i64,
        does: Option<Does>,
        arguments: &[(&str, Value<'_>)],
    ) {
        let Some(it) = self.threads.get_mut(&thread) else { return };
        if does == it.does && worker == it.worker && does != Some(Does::Run) {
            return;
        }
        let timeline = &mut self.timeline;
        let runs = does == Some(Does::Run);
        // A scheduling point has one time, but some messages were followed after it.
        let at = at.max(it.since).max(if runs { self.workers[worker].free } else { 0 });
        let before = &mut self.workers[it.worker];
        if it.does.is_some() {
            timeline.end(at, it.track);
        }
        match it.does {
            Some(Does::Run) => {
                timeline.end(at, before.track);
                before.free = at;
            }
            Some(Does::BeReady) => before.ready.threads -= 1,
            _ => {}
        }
        let on = &mut self.workers[worker];
        let arrow = it.arrow.take();
        (it.worker, it.does, it.since) = (worker, does, at);
        let Some(does) = does else { return };
        let mut event = Event { arguments, ..Event::named(does.name()) };
        match does {
            Does::Run => timeline.begin(at, on.track, &Event::named(&it.label)),
            Does::BeReady => {
                on.ready.threads += 1;
                event.ends = arrow;
            }
            Does::BeSuspended => event.ends = arrow,
            Does::Wait(_) => {}
        }
        timeline.begin(at, it.track, &event);
    }

    fn arrives(&mut self, worker: usize, thread: ThreadId, at: i64, from: u32) {
        let Some(it) = self.threads.get_mut(&thread) else { return };
        it.since = it.since.max(at);
        let places = [
            ("from worker", Value::Int(i64::from(from) + 1)),
            ("to worker", Value::Int(worker as i64 + 1)),
        ];
        let moves = Event { arguments: &places, ..Event::named("moves") };
        self.timeline.instant(it.since, it.track, &moves);
    }

    /// What ended the wait of a thread that is ready now.
    fn woken_by(&self, thread: ThreadId, outcome: i32) -> Option<(&'static str, Value<'static>)> {
        let it = self.threads.get(&thread)?;
        let Some(Does::Wait(waits_for)) = it.does else { return None };
        let by = words::woken_by(waits_for, outcome, it.arrow.is_some());
        Some(("woken by", Value::Text(by)))
    }

    fn wakes(&mut self, worker: usize, thread: ThreadId, at: i64, by: ThreadId, arrow: u64) {
        let number = thread.to_string();
        let woken = self.threads.get(&thread).map_or(number.as_str(), |it| it.label.as_str());
        let to = [("thread", Value::Text(woken))];
        let wakes = Event { arguments: &to, starts: Some(arrow), ..Event::named("wakes") };
        let track = self.threads.get(&by).map_or(self.workers[worker].track, |by| by.track);
        self.timeline.instant(at, track, &wakes);
        // One of another worker hears of it by message.
        if let Some(it) = self.threads.get_mut(&thread).filter(|it| it.worker == worker) {
            it.arrow = Some(arrow);
        }
    }

    fn is_woken(&mut self, thread: ThreadId, at: i64, arrow: u64) {
        if let Some(it) = self.threads.get_mut(&thread) {
            // It is ready after the message, though the worker read its clock before that.
            it.since = it.since.max(at);
            it.arrow = Some(arrow);
        }
    }

    fn hint(&mut self, worker: usize, thread: ThreadId, at: i64, import: u32, value: i64) {
        let imports = attributes(self.loaded.scheduler());
        let name = imports.get(import as usize).map_or(c"?", |import| text(import.name));
        let name = format!("hint {}", name.to_string_lossy());
        let value = [("value", Value::Int(value))];
        let track = self.threads.get(&thread).map_or(self.workers[worker].track, |it| it.track);
        self.timeline.instant(at, track, &Event { arguments: &value, ..Event::named(&name) });
    }

    /// What the threads of the worker did between these times is unknown.
    fn lost(&mut self, worker: usize, from: i64, until: i64, count: u64) {
        // Those of which nothing has come since the gap before this one ended in that.
        self.threads.retain(|_, it| it.worker != worker || it.does.is_some());
        let of_worker = self.threads.iter().filter(|(_, it)| it.worker == worker);
        for thread in of_worker.map(|(id, _)| *id).collect::<Vec<_>>() {
            self.change(worker, thread, from, None, &[]);
        }
        let on = &mut self.workers[worker];
        let count = [("records", Value::Int(count as i64))];
        let from = from.max(on.free);
        on.free = until.max(from);
        // The counter keeps its value as long as nothing is known.
        on.ready.at = on.ready.at.max(on.free);
        let event = Event { arguments: &count, ..Event::named("records lost") };
        self.timeline.begin(from, on.track, &event);
        self.timeline.end(on.free, on.track);
    }
}

/// The number of the arrow to a thread's wake-up.
fn arrow(thread: ThreadId, turn: u32) -> u64 {
    // The factor is odd, so that threads stay apart, and large, so that their turns do.
    thread.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ u64::from(turn)
}
