//! The tracer: which processes it watches, when, and the events that it has seen.

use std::cell::RefCell;
use std::rc::Rc;

use libbpf_rs::{Link, MapCore, MapFlags, Object, RingBuffer, RingBufferBuilder};

use crate::event::Event;
use crate::program;
use crate::settings::{Error, Settings};

/// Whether the children of a process are traced as well.
const TRACED: u32 = 1;
const CHILDREN: u32 = 2;

/// The program in the kernel. Dropping it detaches and unloads it.
pub struct Tracer {
    settings: Settings,
    links: Vec<Link>,
    ring: RingBuffer<'static>,
    seen: Rc<RefCell<Vec<Event>>>,
    object: Object,
}

impl Tracer {
    /// Loads it; nothing is watched yet.
    pub fn load(settings: Settings) -> Result<Tracer, Error> {
        let object = program::load(&settings)?;
        let seen = Rc::new(RefCell::new(Vec::new()));
        let sink = Rc::clone(&seen);
        let ring = {
            let map = program::map(&object, "ring")?;
            let mut builder = RingBufferBuilder::new();
            let take = move |bytes: &[u8]| {
                sink.borrow_mut().extend(Event::from_record(bytes));
                0
            };
            let built = builder.add(&map, take).map(|_| ()).and_then(|()| builder.build());
            built.map_err(|error| Error::Refused { what: error.to_string() })?
        };
        let tracer = Tracer { settings, links: Vec::new(), ring, seen, object };
        tracer.restrict("threads", &tracer.settings.threads)?;
        tracer.restrict("calls", &tracer.settings.calls)?;
        Ok(tracer)
    }

    fn restrict(&self, map: &str, keys: &Option<Vec<u32>>) -> Result<(), Error> {
        keys.iter().flatten().try_for_each(|&key| self.put(map, key, 1))
    }

    fn put(&self, map: &str, key: u32, value: u32) -> Result<(), Error> {
        let map = program::map(&self.object, map)?;
        let put = map.update(&key.to_ne_bytes(), &value.to_ne_bytes(), MapFlags::ANY);
        put.map_err(|_| Error::Full { limit: map.max_entries() })
    }

    /// Watches a process, and with `children` those that it will start.
    pub fn select(&self, process: u32, children: bool) -> Result<(), Error> {
        self.put("processes", process, if children { TRACED | CHILDREN } else { TRACED })
    }

    /// Watches the processes that this one will start, but not itself. Made for a parent that is
    /// about to start the program: nothing of the program's life is missed.
    pub fn select_future_children(&self, process: u32) -> Result<(), Error> {
        self.put("processes", process, CHILDREN)
    }

    /// Stops watching it; its children stay watched.
    pub fn deselect(&self, process: u32) {
        if let Ok(map) = program::map(&self.object, "processes") {
            // It is gone if the process ended meanwhile.
            let _ = map.delete(&process.to_ne_bytes());
        }
    }

    /// The processes that are watched now. One that ended is watched no longer.
    pub fn selected(&self) -> Vec<u32> {
        let Ok(map) = program::map(&self.object, "processes") else { return Vec::new() };
        let traced = |key: &Vec<u8>| {
            let value =
                map.lookup(key, MapFlags::ANY).ok().flatten().and_then(|value| word(&value));
            value.is_some_and(|flags| flags & TRACED != 0)
        };
        map.keys().filter(traced).filter_map(|key| word(&key)).collect()
    }

    /// From now on events come. Attached twice is attached.
    pub fn attach(&mut self) -> Result<(), Error> {
        if self.links.is_empty() {
            self.forget_jobs();
            self.links = attune_bpf::load::attach(&self.object)?;
        }
        Ok(())
    }

    /// Jobs that began while the tracer was detached have an unknown CPU time: it forgets them.
    fn forget_jobs(&self) {
        if let Ok(jobs) = program::map(&self.object, "jobs") {
            for key in jobs.keys().collect::<Vec<_>>() {
                let _ = jobs.delete(&key);
            }
        }
    }

    /// From now on no events come; those in the ring stay to be drained.
    pub fn detach(&mut self) {
        self.links.clear();
    }

    pub fn is_attached(&self) -> bool {
        !self.links.is_empty()
    }

    /// Appends the events that came since the last time, in the order of each CPU. Call it every 20
    /// ms or so.
    pub fn drain(&mut self, events: &mut Vec<Event>) {
        self.ring.consume_raw();
        events.append(&mut self.seen.borrow_mut());
    }

    /// Events that found the ring full, since it was loaded.
    pub fn lost(&self) -> u64 {
        let count = program::map(&self.object, "lost").and_then(|map| {
            map.lookup(&0u32.to_ne_bytes(), MapFlags::ANY)
                .map_err(|error| Error::Refused { what: error.to_string() })
        });
        let bytes = count.ok().flatten().and_then(|bytes| bytes.try_into().ok());
        bytes.map_or(0, u64::from_ne_bytes)
    }
}

fn word(bytes: &[u8]) -> Option<u32> {
    bytes.try_into().ok().map(u32::from_ne_bytes)
}
