//! What a person sees in a trace of Perfetto's format, for tests: tracks by their names, with the
//! slices, instants and values on them.
//!
//! It shares nothing with the writer but the numbers of Perfetto's messages, and panics with what
//! is wrong: an event on a track that nobody described, a name without a text, an end without a
//! beginning, times that run backwards on a track.

mod wire;

use std::collections::{BTreeMap, HashMap};

use wire::{Fields, Value, whole};

#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// In the order in which they were described.
    pub tracks: Vec<Track>,
    /// The kernel's clocks at one moment, by Perfetto's numbers; none of a simulated trace.
    pub clocks: BTreeMap<u64, u64>,
    /// How often a writer began.
    pub beginnings: usize,
    pub packets: usize,
}

#[derive(Clone, Debug, Default)]
pub struct Track {
    pub name: String,
    pub description: String,
    /// The names of the groups that hold it, the outermost first.
    pub groups: Vec<String>,
    /// The number of the process that the track stands for.
    pub process: Option<u64>,
    pub is_counter: bool,
    /// By the time at which they begin.
    pub slices: Vec<Slice>,
    pub instants: Vec<Event>,
    /// Times and values of a counter.
    pub values: Vec<(u64, i64)>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Event {
    pub at: u64,
    pub name: String,
    pub arguments: BTreeMap<String, String>,
    /// The arrows that begin and end here.
    pub starts: Vec<u64>,
    pub ends: Vec<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slice {
    pub event: Event,
    /// None: it is open where the trace ends.
    pub end: Option<u64>,
    /// In how many others it lies.
    pub depth: usize,
}

impl Slice {
    pub fn lasts(&self) -> u64 {
        self.end.unwrap_or(self.event.at) - self.event.at
    }
}

impl Trace {
    /// Reads a trace up to its last whole packet.
    pub fn read(bytes: &[u8]) -> Trace {
        let mut reading = Reading::default();
        for (number, packet) in Fields(bytes) {
            assert_eq!(number, 1, "a trace has packets only");
            reading.packet(&whole(packet.bytes()));
        }
        reading.finish()
    }

    /// The only track of that name.
    pub fn track(&self, name: &str) -> &Track {
        let mut found = self.tracks.iter().filter(|track| track.name == name);
        let names = || self.tracks.iter().map(|track| &track.name).collect::<Vec<_>>();
        let track = found.next().unwrap_or_else(|| panic!("no track {name}: {:?}", names()));
        assert!(found.next().is_none(), "two tracks are called {name}");
        track
    }

    /// The tracks right in the group of that name.
    pub fn of_group<'t>(&'t self, group: &'t str) -> impl Iterator<Item = &'t Track> {
        self.tracks.iter().filter(move |track| track.groups.last().is_some_and(|it| it == group))
    }
}

impl Track {
    pub fn slices_named<'t>(&'t self, name: &'t str) -> impl Iterator<Item = &'t Slice> {
        self.slices.iter().filter(move |slice| slice.event.name == name)
    }
}

/// One event as the file has it.
struct Raw {
    at: u64,
    kind: u64,
    track: u64,
    value: Option<i64>,
    event: Event,
}

#[derive(Default)]
struct Reading {
    trace: Trace,
    /// By its number in the file: place in `trace.tracks`, number of the group above.
    tracks: HashMap<u64, (usize, u64)>,
    event_names: HashMap<u64, String>,
    argument_names: HashMap<u64, String>,
    events: Vec<Raw>,
}

type Message<'b> = [(u64, Value<'b>)];

fn all<'b>(message: &Message<'b>, number: u64) -> impl Iterator<Item = Value<'b>> {
    message.iter().filter(move |field| field.0 == number).map(|field| field.1)
}

fn one<'b>(message: &Message<'b>, number: u64) -> Option<Value<'b>> {
    all(message, number).last()
}

impl Reading {
    fn packet(&mut self, packet: &Message<'_>) {
        self.trace.packets += 1;
        assert_eq!(one(packet, 10).map(Value::number), Some(1), "each packet names its writer");
        let flags = one(packet, 13).map_or(0, Value::number);
        if flags & 1 != 0 {
            self.trace.beginnings += 1;
            self.event_names.clear();
            self.argument_names.clear();
        }
        if let Some(snapshot) = one(packet, 6) {
            for clock in all(&whole(snapshot.bytes()), 1) {
                let clock = whole(clock.bytes());
                let number = |field| one(&clock, field).map_or(0, Value::number);
                self.trace.clocks.insert(number(1), number(2));
            }
        }
        if let Some(interned) = one(packet, 12) {
            let interned = whole(interned.bytes());
            learn(&mut self.event_names, &interned, 2);
            learn(&mut self.argument_names, &interned, 3);
        }
        if let Some(track) = one(packet, 60) {
            self.track(&whole(track.bytes()));
        }
        if let Some(event) = one(packet, 11) {
            assert!(self.trace.beginnings > 0, "an event comes before the beginning");
            let at = one(packet, 8).expect("an event has a time").number();
            self.event(at, &whole(event.bytes()));
        }
    }

    fn track(&mut self, descriptor: &Message<'_>) {
        let number = |field| one(descriptor, field).map_or(0, Value::number);
        let text = |field| one(descriptor, field).map_or(String::new(), Value::text);
        let process = one(descriptor, 3).map(|process| whole(process.bytes()));
        let process_name = process.as_ref().and_then(|process| one(process, 6));
        let place = self.trace.tracks.len();
        let before = self.tracks.insert(number(1), (place, number(5)));
        assert!(before.is_none(), "a track is described twice");
        self.trace.tracks.push(Track {
            name: process_name.map_or_else(|| text(2), Value::text),
            description: text(14),
            process: process.and_then(|process| one(&process, 1).map(Value::number)),
            is_counter: one(descriptor, 8).is_some(),
            ..Track::default()
        });
    }

    fn event(&mut self, at: u64, event: &Message<'_>) {
        let name = match (one(event, 10), one(event, 23)) {
            (Some(number), None) => {
                self.event_names.get(&number.number()).expect("the name is known").clone()
            }
            (None, Some(text)) => text.text(),
            (None, None) => String::new(),
            (Some(_), Some(_)) => panic!("an event has two names"),
        };
        let argument = |argument: Value<'_>| {
            let argument = whole(argument.bytes());
            let name = match one(&argument, 1) {
                Some(number) => {
                    self.argument_names.get(&number.number()).expect("the name is known").clone()
                }
                None => one(&argument, 10).expect("an argument has a name").text(),
            };
            let value = match (one(&argument, 4), one(&argument, 6)) {
                (Some(number), None) => (number.number() as i64).to_string(),
                (None, Some(text)) => text.text(),
                other => panic!("{name} is {other:?}"),
            };
            (name, value)
        };
        self.events.push(Raw {
            at,
            kind: one(event, 9).expect("an event has a kind").number(),
            track: one(event, 11).expect("an event has a track").number(),
            value: one(event, 30).map(|value| value.number() as i64),
            event: Event {
                at,
                name,
                arguments: all(event, 4).map(argument).collect(),
                starts: all(event, 47).map(Value::number).collect(),
                ends: all(event, 48).map(Value::number).collect(),
            },
        });
    }

    fn finish(mut self) -> Trace {
        for &(place, mut above) in self.tracks.values() {
            while above != 0 {
                let (group, next) = self.tracks[&above];
                let name = self.trace.tracks[group].name.clone();
                self.trace.tracks[place].groups.insert(0, name);
                above = next;
            }
        }
        // Perfetto sorts by time too, and leaves events of one time in the order of the file.
        self.events.sort_by_key(|raw| raw.at);
        let mut open: HashMap<u64, Vec<usize>> = HashMap::new();
        for Raw { at, kind, track, value, event } in self.events {
            let &(place, _) = self.tracks.get(&track).expect("the track was described");
            let on = &mut self.trace.tracks[place];
            assert_eq!(on.is_counter, kind == 4, "{}: {event:?}", on.name);
            let open = open.entry(track).or_default();
            match kind {
                1 => {
                    let depth = open.len();
                    open.push(on.slices.len());
                    on.slices.push(Slice { event, end: None, depth });
                }
                2 => {
                    let last = open.pop();
                    let last = last.unwrap_or_else(|| panic!("{}: nothing ends at {at}", on.name));
                    on.slices[last].end = Some(at);
                }
                3 => on.instants.push(event),
                4 => on.values.push((at, value.expect("a counter has a value"))),
                other => panic!("there is no kind {other}"),
            }
        }
        self.trace
    }
}

fn learn(names: &mut HashMap<u64, String>, interned: &Message<'_>, number: u64) {
    for name in all(interned, number) {
        let name = whole(name.bytes());
        let number = one(&name, 1).expect("a name has a number").number();
        let text = one(&name, 2).expect("a name has a text").text();
        assert!(names.insert(number, text).is_none(), "a name is given twice");
    }
}
