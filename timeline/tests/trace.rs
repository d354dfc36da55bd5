//! What is written can be read, whole or cut off.

use attune_timeline::{Clocks, Event, Timeline, Value};
use attune_timeline_reader::Trace;

/// Two tracks of a process with slices, an arrow between them, and a counter.
fn example() -> Vec<u8> {
    let clocks = Clocks { monotonic: 1_000, boottime: 2_000, realtime: 3_000 };
    let mut timeline = Timeline::new(Some(clocks));
    let process = timeline.process(77, "server");
    let threads = timeline.group(Some(process), "threads", "what they do");
    let (first, second) = (timeline.track(threads, "first"), timeline.track(threads, "second"));
    let ready = timeline.counter(process, "ready");
    let place = [("container", Value::Text("RQ")), ("turn", Value::Int(-3))];
    timeline.begin(1_010, first, &Event { arguments: &place, ..Event::named("running") });
    timeline.instant(1_015, first, &Event { starts: Some(9), ..Event::named("wakes") });
    timeline.begin(1_016, second, &Event { ends: Some(9), ..Event::named("running") });
    timeline.begin(1_017, second, &Event::named("inside"));
    timeline.end(1_018, second);
    timeline.count(1_018, ready, 0);
    timeline.count(1_019, ready, 2);
    timeline.end(1_020, first);
    timeline.begin(1_020, first, &Event::named("ready"));
    timeline.into_bytes()
}

#[test]
fn a_reader_finds_all_that_was_written() {
    let trace = Trace::read(&example());
    assert_eq!(trace.clocks.into_iter().collect::<Vec<_>>(), [(1, 3_000), (3, 1_000), (6, 2_000)]);
    assert_eq!(trace.beginnings, 1);
    let trace = Trace::read(&example());
    assert_eq!(trace.track("server").process, Some(77));
    assert_eq!(trace.track("threads").description, "what they do");
    let first = trace.track("first");
    assert_eq!(first.groups, ["server", "threads"]);
    let slices: Vec<_> =
        first.slices.iter().map(|it| (&*it.event.name, it.event.at, it.end)).collect();
    assert_eq!(slices, [("running", 1_010, Some(1_020)), ("ready", 1_020, None)]);
    let arguments = &first.slices[0].event.arguments;
    assert_eq!((&*arguments["container"], &*arguments["turn"]), ("RQ", "-3"));
    let second = trace.track("second");
    assert_eq!(
        (first.instants[0].starts.clone(), second.slices[0].event.ends.clone()),
        (vec![9], vec![9])
    );
    assert_eq!((second.slices[0].end, second.slices[1].end), (None, Some(1_018)));
    assert_eq!(second.slices[1].depth, 1);
    assert_eq!(trace.track("ready").values, [(1_018, 0), (1_019, 2)]);
}

#[test]
fn a_trace_that_was_cut_off_is_read_up_to_its_last_whole_packet() {
    let bytes = example();
    let whole = Trace::read(&bytes).packets;
    let mut seen = 0;
    for length in 0..bytes.len() {
        let trace = Trace::read(&bytes[..length]);
        assert!((seen..whole).contains(&trace.packets), "{length}: {}", trace.packets);
        seen = trace.packets;
    }
    assert_eq!(seen, whole - 1);
}

/// The bytes are kept only until they are taken, and names do not pile up.
#[test]
fn parts_that_are_taken_make_one_trace_and_leave_nothing_behind() {
    let mut timeline = Timeline::new(None);
    let group = timeline.group(None, "group", "");
    let track = timeline.track(group, "track");
    let mut out = Vec::new();
    for number in 0..5_000 {
        let name = format!("event {number}");
        timeline.instant(number, track, &Event::named(&name));
        timeline.write_to(&mut out).expect("a vector takes all");
        assert_eq!(timeline.waiting(), 0);
    }
    let trace = Trace::read(&out);
    let instants = &trace.track("track").instants;
    assert!(instants.iter().enumerate().all(|(at, it)| it.name == format!("event {at}")));
    assert_eq!(instants.len(), 5_000);
    assert!(trace.clocks.is_empty(), "simulated times have no clock");
}

#[test]
fn an_event_before_the_clock_began_is_put_at_its_beginning() {
    let mut timeline = Timeline::new(None);
    let group = timeline.group(None, "group", "");
    timeline.instant(-5, group, &Event::named("early"));
    assert_eq!(Trace::read(&timeline.into_bytes()).track("group").instants[0].at, 0);
}
