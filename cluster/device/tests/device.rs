//! Firmware takes part in a cluster, as a process on this machine and on an emulated Cortex-M
//! board: its link is a serial line on which bytes are lost, garbled, made up and said twice.

use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use attune_backend_c::Policy;
use attune_cluster::manager::{Manager, Texts};
use attune_cluster_device::{Gateway, Told};
use attune_cluster_local::connection::Connection;
use attune_embedded::firmware::{Board, Firmware, Image, Line, available};
use attune_language::engine::Engine;
use attune_language::ir::Value;
use attune_language::resolve::SourceText;
use attune_language::{Checked, Options, check};
use attune_linux::event::Event;
use attune_linux::{poll, time};
use attune_replica::messages::Target;
use attune_replica::{Operation, Schema, Time};

const MASTER: &str = r#"distributed scheduler plant {
    nodefamilies { "sensor.subsched" : sensor; "viewer.subsched" : viewer; }
    nodes { queue all; }
    global { int made = 0; int wanted = 1; int echo = 0; int here = 0; int ran = 0; }
    arrival (n) { here += 1; if (n is sensor) n.base += 40; n => all; }
    departure (n) { here -= 1; if (n is sensor) ran += n.base; }
}"#;

const SENSOR: &str = "scheduler sensor {
    thread { int blocked = 0; }
    data { threadref current; queue RQ, WQ; int base = 2; }
    event newthread(t) { made += 3; t => RQ; }
    event schedule {
        if (age(GLOBAL.wanted) < 2s) echo = wanted + base;
        if (|RQ| > 0) { RQ => current; dispatch current; }
    }
    event switch_out {
        if (|current| > 0 && *current.blocked) { current.blocked = 0; current => WQ; }
        if (|current| > 0) current => RQ;
    }
    event set_waiting(fixed t) { t.blocked = 1; }
    event event_raised(t) { t => RQ; }
}";

const VIEWER: &str = "scheduler viewer {
    data { threadref current; queue RQ; }
    event newthread(t) { t => RQ; }
    event schedule { if (|RQ| > 0) { RQ => current; dispatch current; } }
    event switch_out { if (|current| > 0) current => RQ; }
}";

fn now() -> Time {
    time::now() as Time
}

fn checked() -> Checked {
    let mut others: &[(&str, &str)] = &[("sensor.subsched", SENSOR), ("viewer.subsched", VIEWER)];
    let source = SourceText { name: "plant.sched".into(), text: MASTER.into() };
    let checked = check(&source, &mut others, &Options::default());
    assert!(!checked.has_errors(), "{:#?}", checked.diagnostics);
    checked
}

fn build(checked: &Checked, schema: &Schema, board: Board, folder: &Path) -> Image {
    let family = &checked.cluster.as_ref().expect("a master").families[0];
    let report = &family.engines[Engine::Embedded as usize];
    assert_eq!(report.reason, None);
    let (program, sources) = (&family.program, &checked.sources);
    let policy = Policy { program, verdicts: &report.verdicts, sources };
    let files = attune_embedded::node_source(policy, false, schema, 0).expect("C");
    let project = [("device.c", include_str!("device.c")), board.line()];
    // On this machine the functions of its library run on a thread's stack.
    let stack = if board == Board::Host { "-DSTACK=65536" } else { "-DSTACK=2048" };
    let firmware = Firmware { board, attune: &files, project: &project, flags: &[stack] };
    firmware.build(folder).unwrap_or_else(|error| panic!("{error}"))
}

/// A process that ends with its test.
struct Device(Child);

impl Device {
    fn start(image: &Image) -> Device {
        let mut command = image.on_line(Line::Standard);
        Device(command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts"))
    }

    fn hear(&mut self) -> Vec<u8> {
        let from = self.0.stdout.as_mut().expect("a pipe");
        let mut bytes = vec![0; 4096];
        let mut poll = [poll::readable(from.as_raw_fd())];
        let ready = poll::wait(&mut poll, 500_000).expect("it can be waited for") > 0;
        let count = if ready { from.read(&mut bytes).expect("it can be read") } else { 0 };
        bytes.truncate(count);
        bytes
    }

    fn say(&mut self, bytes: &[u8]) {
        self.0.stdin.as_mut().expect("a pipe").write_all(bytes).expect("it listens");
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What a bad wire makes of bytes; 0 per cent: a good one.
fn noisy(bytes: Vec<u8>, random: &mut fastrand::Rng, percent: u32) -> Vec<u8> {
    if bytes.is_empty() || percent == 0 {
        return bytes;
    }
    let mut bytes = bytes;
    if random.u32(0..100) >= percent {
        bytes.extend_from_within(..); // what arrives whole arrives twice
        return bytes;
    }
    let at = random.usize(0..bytes.len());
    match random.u32(0..4) {
        0 => bytes.clear(),
        1 => bytes[at] ^= 1 << random.u32(0..8),
        2 => bytes.truncate(at),
        _ => bytes.splice(at..at, [0, 7, 255, 1]).for_each(drop),
    }
    bytes
}

/// Ends the manager with the test, also when that fails.
struct Stop(Event);

impl Drop for Stop {
    fn drop(&mut self) {
        self.0.set();
    }
}

struct Bench {
    device: Option<Device>,
    gateway: Gateway,
    viewer: Connection,
    random: fastrand::Rng,
    noise: u32,
    told: Vec<Told>,
}

impl Bench {
    fn shared(&self, name: &str) -> i64 {
        let replica = self.viewer.replica();
        match replica.shared(replica.schema().shared(name).expect("declared")) {
            Value::Int(value) => value,
            Value::Float(_) => unreachable!("an int"),
        }
    }

    fn set(&mut self, name: &str, value: i64) {
        let shared = self.viewer.replica().schema().shared(name).expect("declared");
        let set = Operation::Set(Value::Int(value));
        self.viewer.replica_mut().write(Target::Shared(shared), set);
    }

    fn turn(&mut self) {
        let came = self.device.as_mut().map_or_else(Vec::new, Device::hear);
        let came = noisy(came, &mut self.random, self.noise);
        let said = self.gateway.turn(&came, now(), &mut |told| self.told.push(told));
        let said = noisy(said, &mut self.random, self.noise);
        if let (Some(device), false) = (&mut self.device, said.is_empty()) {
            device.say(&said);
        }
        self.viewer.exchange(now());
        std::thread::sleep(Duration::from_micros(300));
    }

    fn until(&mut self, what: &str, wanted: impl Fn(&Bench) -> bool) {
        let began = Instant::now();
        while !wanted(self) {
            let all = ["made", "echo", "here", "ran"].map(|name| (name, self.shared(name)));
            assert!(began.elapsed() < Duration::from_secs(60), "{what}: {all:?} {:?}", self.told);
            self.turn();
        }
    }
}

#[test]
fn a_device_takes_part_whatever_happens_to_its_link_and_to_itself() {
    takes_part_on(Board::Host);
}

#[test]
fn a_cortex_m_board_does_so_too() {
    match available(Board::Mps2An385) {
        Ok(()) => takes_part_on(Board::Mps2An385),
        Err(missing) => {
            assert!(std::env::var("CI").as_deref() != Ok("true"), "{missing}");
            eprintln!("not run: {missing}");
        }
    }
}

fn takes_part_on(board: Board) {
    let checked = checked();
    let cluster = checked.cluster.as_ref().expect("a master");
    let schema = Arc::new(Schema::new(cluster, &checked.sources, &Default::default()));
    let folder = tempfile::tempdir().expect("a folder");
    let firmware = build(&checked, &schema, board, folder.path());
    let path = folder.path().join("plant");
    let texts = Texts { cluster, sources: &checked.sources, seed: 1 };
    let mut manager = Manager::new(&texts, schema.clone(), &path).expect("nobody else listens");
    let stop = Event::new().expect("an event");
    let stopped = stop.share().expect("shared");
    std::thread::scope(|scope| {
        let stop = Stop(stop);
        let serving = scope.spawn(move || manager.serve(&stopped, &mut |_, _| {}));
        let mut bench = Bench {
            device: Some(Device::start(&firmware)),
            gateway: Gateway::new(schema.clone(), 0, path.clone(), 77),
            viewer: Connection::new(schema.clone(), 1, path.clone()),
            random: fastrand::Rng::with_seed(5),
            noise: 30,
            told: Vec::new(),
        };
        // 51 threads, each of which adds 3; and what the master did to the device's own variable.
        bench.until("all is counted", |it| it.shared("made") == 153 && it.shared("here") == 2);
        bench.until("the master's order is followed", |it| it.shared("echo") == 43);
        bench.set("wanted", 1000);
        bench.until("a value comes", |it| it.shared("echo") == 1042);
        assert_eq!(bench.shared("made"), 153);
        // A reset: the node departs, and arrives anew with its first values.
        bench.noise = 0;
        bench.device = Some(Device::start(&firmware));
        bench.until("it counts again", |it| it.shared("made") == 306);
        bench.until("it has arrived anew", |it| it.shared("here") == 2 && it.shared("ran") == 42);
        bench.until("and obeys", |it| it.shared("echo") == 1042);
        // Silence.
        bench.device = None;
        bench.until("it has departed", |it| it.shared("here") == 1 && it.shared("ran") == 84);
        assert!(bench.told.contains(&Told::Silent), "{:?}", bench.told);
        assert_eq!(bench.shared("made"), 306);
        drop(stop);
        serving.join().expect("no panic").expect("no check fails");
    });
}
