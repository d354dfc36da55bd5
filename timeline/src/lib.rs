//! A timeline as a trace that Perfetto (ui.perfetto.dev) opens: tracks with slices, instants and
//! counters.
//!
//! A [`Timeline`] turns each call into a packet at once and keeps the bytes until its owner takes
//! them, so memory is bounded by how much the owner lets come together. It does no input or output.
//!
//! Invariant: a packet names only what it or an earlier one has introduced. So a file that was cut
//! off anywhere is readable up to its last whole packet. Units: nanoseconds.

mod messages;
mod names;

use std::io::{self, Write};

use messages::{
    COUNTER, Clock, ClockSnapshot, CounterDescriptor, DebugAnnotation, EXPLICIT, INSTANT, Interned,
    InternedData, NEEDS_STATE, ProcessDescriptor, SLICE_BEGIN, SLICE_END, STATE_CLEARED,
    TracePacket, TracePacketDefaults, TrackDescriptor, TrackEvent,
};
use names::{Called, Names};
use prost::Message as _;

/// All packets of a timeline come from one writer.
const SEQUENCE: u32 = 1;
/// What begins each packet of a file: field 1, with its length.
const PACKET: u8 = 1 << 3 | 2;
/// Perfetto's numbers of the kernel's clocks.
const REALTIME: u32 = 1;
const MONOTONIC: u32 = 3;
const BOOTTIME: u32 = 6;

/// The kernel's clocks at one moment: with them Perfetto can lay the trace beside others.
#[derive(Clone, Copy, Debug)]
pub struct Clocks {
    /// The clock of all times of the timeline.
    pub monotonic: i64,
    pub boottime: i64,
    pub realtime: i64,
}

/// A line of the timeline, or a group of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Track(u64);

/// A value that an event shows.
#[derive(Clone, Copy, Debug)]
pub enum Value<'a> {
    Int(i64),
    Text(&'a str),
}

/// What begins or happens at a time.
#[derive(Clone, Copy, Debug, Default)]
pub struct Event<'a> {
    pub name: &'a str,
    pub arguments: &'a [(&'a str, Value<'a>)],
    /// An arrow begins here, and ends at the event that names the same number.
    pub starts: Option<u64>,
    pub ends: Option<u64>,
}

impl<'a> Event<'a> {
    pub fn named(name: &'a str) -> Event<'a> {
        Event { name, ..Event::default() }
    }
}

pub struct Timeline {
    bytes: Vec<u8>,
    events: Names,
    arguments: Names,
    tracks: u64,
}

impl Timeline {
    /// With times that the kernel's clock shows, or with simulated ones that begin at 0.
    pub fn new(clocks: Option<Clocks>) -> Timeline {
        let mut timeline = Timeline {
            bytes: Vec::new(),
            events: Names::default(),
            arguments: Names::default(),
            tracks: 0,
        };
        let defaults = |_| TracePacketDefaults { timestamp_clock_id: MONOTONIC };
        timeline.write(TracePacket {
            first_packet_on_sequence: true,
            sequence_flags: STATE_CLEARED,
            trace_packet_defaults: clocks.map(defaults),
            clock_snapshot: clocks.map(|clocks| ClockSnapshot {
                primary_trace_clock: MONOTONIC,
                clocks: [
                    (REALTIME, clocks.realtime),
                    (MONOTONIC, clocks.monotonic),
                    (BOOTTIME, clocks.boottime),
                ]
                .map(|(clock_id, at)| Clock { clock_id, timestamp: time(at) })
                .into(),
            }),
            ..TracePacket::default()
        });
        timeline
    }

    /// A process of the system, as a group of tracks.
    pub fn process(&mut self, number: i32, name: &str) -> Track {
        let process = ProcessDescriptor { pid: number, process_name: name.to_owned() };
        self.describe(TrackDescriptor { process: Some(process), ..TrackDescriptor::default() })
    }

    /// A group of tracks, under another or for itself. The description is shown on request.
    pub fn group(&mut self, above: Option<Track>, name: &str, description: &str) -> Track {
        self.describe(TrackDescriptor {
            name: name.to_owned(),
            description: description.to_owned(),
            parent_uuid: above.map_or(0, |above| above.0),
            ..TrackDescriptor::default()
        })
    }

    /// A track for slices and instants. Tracks of a group stand in the order of these calls.
    pub fn track(&mut self, group: Track, name: &str) -> Track {
        self.group(Some(group), name, "")
    }

    /// A track for one number.
    pub fn counter(&mut self, group: Track, name: &str) -> Track {
        self.describe(TrackDescriptor {
            name: name.to_owned(),
            parent_uuid: group.0,
            counter: Some(CounterDescriptor {}),
            ..TrackDescriptor::default()
        })
    }

    fn describe(&mut self, descriptor: TrackDescriptor) -> Track {
        self.tracks += 1;
        let descriptor = TrackDescriptor {
            uuid: self.tracks,
            child_ordering: if descriptor.counter.is_some() { 0 } else { EXPLICIT },
            sibling_order_rank: i32::try_from(self.tracks).unwrap_or(i32::MAX),
            ..descriptor
        };
        self.write(TracePacket { track_descriptor: Some(descriptor), ..TracePacket::default() });
        Track(self.tracks)
    }

    /// A slice begins; it ends with the next [`Timeline::end`] of the track, and may hold others.
    pub fn begin(&mut self, at: i64, track: Track, event: &Event<'_>) {
        self.event(at, track, SLICE_BEGIN, event);
    }

    /// The slice of the track that began last and is still open ends.
    pub fn end(&mut self, at: i64, track: Track) {
        self.event(at, track, SLICE_END, &Event::default());
    }

    pub fn instant(&mut self, at: i64, track: Track, event: &Event<'_>) {
        self.event(at, track, INSTANT, event);
    }

    /// The counter has this value from now on.
    pub fn count(&mut self, at: i64, counter: Track, value: i64) {
        self.add(
            at,
            None,
            TrackEvent {
                r#type: COUNTER,
                track_uuid: counter.0,
                counter_value: Some(value),
                ..TrackEvent::default()
            },
        );
    }

    fn event(&mut self, at: i64, track: Track, kind: i32, event: &Event<'_>) {
        let mut interned = InternedData::default();
        let (name_iid, name) = if event.name.is_empty() {
            (0, String::new())
        } else {
            call(&mut self.events, event.name, &mut interned.event_names)
        };
        let annotation = |&(name, value): &(&str, Value<'_>)| {
            let new = &mut interned.debug_annotation_names;
            let (name_iid, name) = call(&mut self.arguments, name, new);
            let (int_value, string_value) = match value {
                Value::Int(number) => (Some(number), None),
                Value::Text(text) => (None, Some(text.to_owned())),
            };
            DebugAnnotation { name_iid, name, int_value, string_value }
        };
        let event = TrackEvent {
            debug_annotations: event.arguments.iter().map(annotation).collect(),
            r#type: kind,
            name_iid,
            track_uuid: track.0,
            name,
            counter_value: None,
            flow_ids: event.starts.into_iter().collect(),
            terminating_flow_ids: event.ends.into_iter().collect(),
        };
        let new = !(interned.event_names.is_empty() && interned.debug_annotation_names.is_empty());
        self.add(at, new.then_some(interned), event);
    }

    fn add(&mut self, at: i64, interned_data: Option<InternedData>, event: TrackEvent) {
        self.write(TracePacket {
            timestamp: Some(time(at)),
            interned_data,
            sequence_flags: NEEDS_STATE,
            track_event: Some(event),
            ..TracePacket::default()
        });
    }

    fn write(&mut self, packet: TracePacket) {
        let packet = TracePacket { trusted_packet_sequence_id: SEQUENCE, ..packet };
        self.bytes.push(PACKET);
        // It fails only where the room is bounded.
        let _ = packet.encode_length_delimited(&mut self.bytes);
    }

    /// How many bytes nobody has taken yet.
    pub fn waiting(&self) -> usize {
        self.bytes.len()
    }

    /// Takes all packets that nobody has taken yet. After an error the last one may be cut.
    pub fn write_to(&mut self, out: &mut impl Write) -> io::Result<()> {
        let written = out.write_all(&self.bytes);
        self.bytes.clear();
        written
    }

    /// All packets that nobody has taken yet.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

/// The number of a name, or the name in full.
fn call(names: &mut Names, name: &str, new: &mut Vec<Interned>) -> (u64, String) {
    match names.call(name) {
        Called::Known(number) => (number, String::new()),
        Called::New(number) => {
            new.push(Interned { iid: number, name: name.to_owned() });
            (number, String::new())
        }
        Called::InFull => (0, name.to_owned()),
    }
}

/// The format knows no time before its clock began.
fn time(at: i64) -> u64 {
    u64::try_from(at).unwrap_or(0)
}
