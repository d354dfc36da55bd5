//! `attune gateway`: an emulated Cortex-M board at a serial line is a node of a cluster.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStderr, Stdio};
use std::time::{Duration, Instant};

use attune_backend_c::embedded::Files;
use attune_cluster_local::connection::Connection;
use attune_embedded::firmware::{Board, Firmware, Image, Line, available};
use attune_language::ir::Value::Int;
use attune_linux::signal::TERMINATE;
use attune_linux::{process, time};
use attune_replica::Time;

use crate::cluster::{Manager, own_node};
use crate::support::{Folder, err, skip, status};

const MASTER: &str = r#"distributed scheduler plant {
    nodefamilies { "sensor.subsched" : sensor; }
    nodes { queue all; }
    global { int made = 0; int wanted = 5; int seen = 0; }
    arrival (n) { n => all; }
    departure (n) { }
}"#;

const SENSOR: &str = "scheduler sensor extends fifo {
    after newthread { made += 1; }
    before schedule { if (age(GLOBAL.wanted) < 2s) seen = wanted; }
}";

/// Makes 51 threads, one after the other.
const DEVICE: &str = include_str!("../../../cluster/device/tests/device.c");

/// The board with its serial line at a terminal.
struct Device {
    emulator: Child,
    terminal: String,
}

impl Device {
    fn start(image: &Image) -> Device {
        let mut command = image.on_line(Line::Terminal);
        let mut emulator = command.stdout(Stdio::piped()).spawn().expect("it starts");
        let mut says = BufReader::new(emulator.stdout.take().expect("a pipe"));
        let mut line = String::new();
        says.read_line(&mut line).expect("a line");
        let name = line.split_whitespace().find(|word| word.starts_with("/dev/"));
        let terminal = name.unwrap_or_else(|| panic!("no terminal: {line}")).to_owned();
        Device { emulator, terminal }
    }

    fn end(&mut self) {
        let _ = self.emulator.kill();
        let _ = self.emulator.wait();
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        self.end();
    }
}

struct Gateway {
    child: Child,
    says: BufReader<ChildStderr>,
}

impl Gateway {
    fn start(folder: &Folder, terminal: &str) -> Gateway {
        let words =
            ["gateway", "plant.sched", "--node", "sensor", "--cluster", "./socket", terminal];
        let mut child = folder.command(&words).stderr(Stdio::piped()).spawn().expect("it starts");
        let says = BufReader::new(child.stderr.take().expect("a pipe"));
        Gateway { child, says }
    }

    fn until_says(&mut self, words: &str) {
        let mut line = String::new();
        while !line.contains(words) {
            line.clear();
            assert!(self.says.read_line(&mut line).expect("a line") > 0, "it never says: {words}");
        }
    }

    /// Its exit status and its last words.
    fn ended(&mut self) -> (Option<i32>, String) {
        let mut last = String::new();
        self.says.read_to_string(&mut last).expect("a text");
        (self.child.wait().expect("it ends").code(), last)
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn until(node: &mut Connection, name: &str, value: i64) {
    let shared = node.replica().schema().shared(name).expect("declared");
    let end = Instant::now() + Duration::from_secs(90);
    while node.replica().shared(shared) != Int(value) {
        let now = node.replica().shared(shared);
        assert!(Instant::now() < end, "{name} is {now:?} and never {value}");
        node.exchange(time::now() as Time);
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn firmware(folder: &Folder) -> Image {
    let words = ["build", "plant.sched", "--node", "sensor", "--engine", "embedded", "-o", "out"];
    let built = folder.attune(&words);
    assert_eq!(status(&built), 0, "{}", err(&built));
    let (c, h) = (folder.text("out/attune.c"), folder.text("out/attune.h"));
    let files = Files { c, h, ..Files::default() };
    let board = Board::Mps2An385;
    let project = [("device.c", DEVICE), board.line()];
    let firmware = Firmware { board, attune: &files, project: &project, flags: &["-DSTACK=2048"] };
    firmware.build(&folder.0).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn a_board_at_a_serial_line_is_a_node_while_its_gateway_and_the_line_live() {
    if let Err(missing) = available(Board::Mps2An385) {
        return skip(&missing.to_string());
    }
    let folder = Folder::new("gateway").with("plant.sched", MASTER).with("sensor.subsched", SENSOR);
    let image = firmware(&folder);
    let (mut manager, _) = Manager::of(&folder, "plant.sched", &["wanted=7"]);
    let mut device = Device::start(&image);
    let mut gateway = Gateway::start(&folder, &device.terminal);
    gateway.until_says("attune: the device takes part in cluster ./socket");
    let arrived = manager.until("arrived", 1);
    assert_eq!(arrived["process"], gateway.child.id(), "{arrived}");
    // Each thread adds one, and the policy reads what the manager was started with.
    let mut own = own_node(&folder, "plant.sched");
    until(&mut own, "made", 51);
    until(&mut own, "seen", 7);

    // The next gateway speaks for the same board, whose threads are counted already.
    process::signal(gateway.child.id(), TERMINATE).expect("it lives");
    assert_eq!(gateway.ended(), (Some(0), String::new()));
    manager.until("departed", 1);
    let mut gateway = Gateway::start(&folder, &device.terminal);
    gateway.until_says("takes part");
    let arrived = manager.until("arrived", 1);
    assert_eq!(arrived["shared"]["made"], 51, "{arrived}");

    device.end();
    let (status, said) = gateway.ended();
    assert!(status == Some(2) && said.contains(&device.terminal), "{status:?} {said}");
    let departed = manager.until("departed", 1);
    assert_eq!(departed["shared"]["made"], 51, "{departed}");
}

#[test]
fn a_line_that_is_not_there_is_named() {
    let folder =
        Folder::new("gateway-no").with("plant.sched", MASTER).with("sensor.subsched", SENSOR);
    let words = ["gateway", "plant.sched", "--node", "sensor", "./nowhere"];
    folder.refused(&words, "./nowhere");
}
