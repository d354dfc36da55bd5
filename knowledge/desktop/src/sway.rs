//! Sway, a Wayland compositor, by its IPC: which windows there are, which process each one's client
//! is, which one has the focus and what can be seen of each.
//!
//! No protocol of Wayland tells a third program of another client's input, or of what it draws.
//! So [`Client::told`] is false for all of them, and ratings go by wake-ups. A client's process is
//! the kernel's word (SO_PEERCRED of its connection); that of a client of Xwayland is the X
//! server's word, before wlroots 0.15 the client's own.
//!
//! Messages are read only as far as needed, so that other versions may say more. Sizes and
//! places are logical pixels, as the compositor scales them.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use attune_linux::process::user_of;
use attune_linux::{poll, socket, time};
use serde::Deserialize;

use crate::display::{Display, DisplayError};
use crate::observation::{Client, Input, SECOND, Time};
use crate::process::{Process, named};
use crate::region::{Rect, Region};

/// A compositor that does not answer for so long counts as gone.
const PATIENCE: Duration = Duration::from_secs(5);
/// The tree is asked for when something changed, and at least so often: not every move is told.
const ASK_AT_LEAST: Time = 5 * SECOND;
/// Bytes of an answer.
const LONGEST: u32 = 16 << 20;
/// Windows that are followed at most.
const MOST_WINDOWS: usize = 2048;

const MAGIC: [u8; 6] = *b"i3-ipc";
const SUBSCRIBE: u32 = 2;
const GET_TREE: u32 = 4;
/// The output that sway keeps for windows that are put away.
const PUT_AWAY: &str = "__i3";

pub struct Sway {
    name: String,
    questions: UnixStream,
    events: UnixStream,
    server: Option<Process>,
    /// The X servers that it started for clients of X, which they wake and are woken by.
    xwayland: Vec<Process>,
    changed: bool,
    asked: Time,
    clients: Vec<Client>,
}

/// A node of the tree: the root, an output, a workspace, a container or a window.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Node {
    #[serde(rename = "type")]
    kind: String,
    name: Option<String>,
    rect: Place,
    pid: Option<u32>,
    focused: bool,
    visible: Option<bool>,
    nodes: Vec<Node>,
    /// Above the others, the last one on top.
    floating_nodes: Vec<Node>,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(default)]
struct Place {
    x: i32,
    y: i32,
    width: i32,
    height: i32,
}

/// A window, with what its output shows of its place.
#[derive(Clone, Copy)]
struct Window {
    pid: u32,
    focused: bool,
    /// None: nothing of it is shown.
    place: Option<Rect>,
}

impl Sway {
    /// `socket`: of sway's IPC; None: what SWAYSOCK says, or, since that name changes with each
    /// start of sway, the newest in the same folder that answers.
    pub fn connect(socket: Option<&Path>) -> Result<Sway, DisplayError> {
        let named = std::env::var_os("SWAYSOCK").map(PathBuf::from);
        let folder = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
        let places = match socket {
            Some(socket) => vec![socket.to_owned()],
            None => places(named, folder),
        };
        let mut why = "neither SWAYSOCK nor XDG_RUNTIME_DIR leads to its socket".to_owned();
        for place in places {
            match Sway::start(&place) {
                Ok(sway) => return Ok(sway),
                Err(error) => why = format!("{}: {error}", place.display()),
            }
        }
        Err(DisplayError::Connect { display: "sway".to_owned(), what: why })
    }

    fn start(place: &Path) -> io::Result<Sway> {
        let connect = || {
            let stream = UnixStream::connect(place)?;
            stream.set_read_timeout(Some(PATIENCE))?;
            stream.set_write_timeout(Some(PATIENCE))?;
            Ok::<_, io::Error>(stream)
        };
        let (questions, mut events) = (connect()?, connect()?);
        let server = socket::credentials(&questions)?.process;
        ask(&mut events, SUBSCRIBE, br#"["window","workspace"]"#)?;
        let mut sway = Sway {
            name: place.display().to_string(),
            questions,
            events,
            server: Process::now(server),
            xwayland: Vec::new(),
            changed: true,
            asked: 0,
            clients: Vec::new(),
        };
        sway.look()?;
        Ok(sway)
    }

    fn look(&mut self) -> io::Result<()> {
        let now = time::now();
        if !std::mem::take(&mut self.changed) && now < self.asked + ASK_AT_LEAST {
            return Ok(());
        }
        let tree = ask(&mut self.questions, GET_TREE, b"")?;
        let tree: Node = serde_json::from_slice(&tree)?;
        self.asked = now;
        self.xwayland = self.xwayland();
        self.clients = clients(&tree, Process::now);
        Ok(())
    }

    fn xwayland(&self) -> Vec<Process> {
        let user = |server: Process| user_of(server.pid).ok();
        let own = self.server.and_then(user);
        let found = named(&["Xwayland".to_owned()]).into_iter().map(|facts| facts.process);
        found.filter(|&server| own.is_some() && user(server) == own).collect()
    }

    fn listen(&mut self, until: Time) -> io::Result<()> {
        let left = until.saturating_sub(time::now());
        match poll::wait(&mut [poll::readable(std::os::fd::AsRawFd::as_raw_fd(&self.events))], left)
        {
            Err(error) if error.kind() != ErrorKind::Interrupted => return Err(error),
            _ => {}
        }
        while poll::is_readable(&self.events)? {
            answer(&mut self.events)?;
            self.changed = true;
        }
        Ok(())
    }

    fn gone(&self, error: impl ToString) -> DisplayError {
        DisplayError::Gone { display: self.name.clone(), what: error.to_string() }
    }
}

impl Display for Sway {
    fn name(&self) -> &str {
        &self.name
    }

    fn servers(&self) -> Vec<Process> {
        self.server.into_iter().chain(self.xwayland.iter().copied()).collect()
    }

    fn limits(&self) -> Vec<String> {
        vec![
            "Wayland does not tell which client gets input, or what one draws: input is the \
             focused window's, and how often a client draws shows in how often it wakes sway"
                .to_owned(),
        ]
    }

    fn wait(&mut self, until: Time) -> Result<Vec<Input>, DisplayError> {
        // Events of windows may come in floods: one look a second is enough.
        while time::now() < until {
            self.listen(until).map_err(|error| self.gone(error))?;
        }
        Ok(Vec::new())
    }

    fn clients(&mut self) -> Result<Vec<Client>, DisplayError> {
        self.listen(0).and_then(|()| self.look()).map_err(|error| self.gone(error))?;
        Ok(self.clients.clone())
    }
}

fn places(named: Option<PathBuf>, folder: Option<PathBuf>) -> Vec<PathBuf> {
    let folder = named.as_deref().and_then(Path::parent).map(Path::to_owned).or(folder);
    let entries = folder.and_then(|folder| std::fs::read_dir(folder).ok());
    let is_socket = |path: &PathBuf| {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        name.is_some_and(|name| name.starts_with("sway-ipc.") && name.ends_with(".sock"))
    };
    let others = entries.into_iter().flatten().flatten().map(|entry| entry.path());
    let mut others: Vec<PathBuf> = others.filter(is_socket).collect();
    let made = |path: &PathBuf| path.metadata().map_or(0, |facts| facts.mtime());
    others.sort_by_key(|path| std::cmp::Reverse(made(path)));
    others.retain(|path| Some(path) != named.as_ref());
    named.into_iter().chain(others).collect()
}

fn ask(stream: &mut UnixStream, kind: u32, text: &[u8]) -> io::Result<Vec<u8>> {
    let length = text.len() as u32;
    let head = [&MAGIC[..], &length.to_ne_bytes(), &kind.to_ne_bytes(), text].concat();
    stream.write_all(&head)?;
    answer(stream)
}

/// The text of one message.
fn answer(stream: &mut UnixStream) -> io::Result<Vec<u8>> {
    let mut head = [0; 14];
    stream.read_exact(&mut head)?;
    let length = u32::from_ne_bytes([head[6], head[7], head[8], head[9]]);
    if head[..6] != MAGIC || length > LONGEST {
        return Err(io::Error::new(ErrorKind::InvalidData, "its answer is not sway's"));
    }
    let mut text = vec![0; length as usize];
    stream.read_exact(&mut text)?;
    Ok(text)
}

fn rect(place: Place) -> Rect {
    Rect::new(place.x, place.y, place.width, place.height)
}

/// What the tree says of each process that has windows.
fn clients(root: &Node, process: impl Fn(u32) -> Option<Process>) -> Vec<Client> {
    let outputs = root.nodes.iter().filter(|node| node.name.as_deref() != Some(PUT_AWAY));
    let pixels: u64 = outputs.map(|output| rect(output.rect).area()).sum();
    let mut windows = Vec::new();
    for output in &root.nodes {
        collect(output, rect(output.rect), &mut windows);
    }
    let mut found: BTreeMap<Process, Client> = BTreeMap::new();
    // From the top down: what is left free of windows further up.
    let mut free = Region::of(root.nodes.iter().map(|output| rect(output.rect)));
    for window in windows.into_iter().rev() {
        let shown = window.place.map(|place| free.and(place));
        if let Some(place) = window.place {
            free.minus(&Region::of([place]));
        }
        let Some(process) = process(window.pid) else { continue };
        let unseen = Client { told: false, ..Client::unseen(process) };
        let client = found.entry(process).or_insert(unseen);
        let part = shown.map_or(0, |shown| shown.area()) as f64 / pixels.max(1) as f64;
        client.visible = (client.visible + part).min(1.0);
        client.focused |= window.focused;
    }
    found.into_values().collect()
}

/// The windows below a node, later ones further up.
fn collect(node: &Node, output: Rect, windows: &mut Vec<Window>) {
    if let Some(pid) = node.pid
        && windows.len() < MOST_WINDOWS
    {
        let shown = node.visible.unwrap_or(false);
        let place = shown.then(|| rect(node.rect).and(output)).flatten();
        windows.push(Window { pid, focused: node.focused, place });
    }
    // What fills the screen covers all others, which sway then says are not visible.
    for inner in node.nodes.iter().chain(&node.floating_nodes) {
        collect(inner, output, windows);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two outputs side by side; a workspace with two tiles and a floating window over the second;
    /// a tab behind one of them; a window that is put away.
    const TREE: &str = r#"{"type":"root","nodes":[
        {"type":"output","name":"__i3","rect":{"x":0,"y":0,"width":100,"height":100},"nodes":[
            {"type":"workspace","floating_nodes":[{"type":"floating_con","pid":9,"visible":false,
             "rect":{"x":0,"y":0,"width":50,"height":50}}]}]},
        {"type":"output","name":"A","rect":{"x":0,"y":0,"width":100,"height":100},"nodes":[
            {"type":"workspace","nodes":[
                {"type":"con","pid":1,"visible":true,"focused":true,"later_versions":{"say":"more"},
                 "rect":{"x":0,"y":0,"width":50,"height":100}},
                {"type":"con","nodes":[
                    {"type":"con","pid":2,"visible":true,
                     "rect":{"x":50,"y":0,"width":50,"height":100}},
                    {"type":"con","pid":3,"visible":false,
                     "rect":{"x":50,"y":0,"width":50,"height":100}}]}],
             "floating_nodes":[{"type":"floating_con","pid":4,"visible":true,
                 "rect":{"x":75,"y":0,"width":50,"height":50}}]}]},
        {"type":"output","name":"B","rect":{"x":100,"y":0,"width":100,"height":100},"nodes":[
            {"type":"workspace","nodes":[{"type":"con","pid":1,"visible":true,
             "rect":{"x":100,"y":0,"width":100,"height":100}}]}]}]}"#;

    #[test]
    fn what_can_be_seen_of_tiles_tabs_floating_windows_and_two_outputs() {
        let tree: Node = serde_json::from_str(TREE).unwrap();
        let process = |pid| (pid != 9).then_some(Process { pid, start: 1 });
        let found = clients(&tree, process);
        let seen: Vec<(u32, f64, bool)> = found
            .iter()
            .map(|client| (client.process.pid, client.visible * 20_000.0, client.focused))
            .collect();
        // The floating window ends at the edge of its output.
        let expected =
            [(1, 15_000.0, true), (2, 3_750.0, false), (3, 0.0, false), (4, 1_250.0, false)];
        assert_eq!(seen, expected);
        assert!(found.iter().all(|client| !client.told));
    }

    #[test]
    fn after_sway_started_again_its_new_socket_is_found_beside_the_old_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        for name in ["sway-ipc.1000.7.sock", "wayland-1", "sway-ipc.1000.7.sock.lock"] {
            std::fs::write(path(name), "").unwrap();
        }
        let old = path("sway-ipc.1000.3.sock");
        let wanted = vec![old.clone(), path("sway-ipc.1000.7.sock")];
        assert_eq!(places(Some(old), None), wanted);
        assert_eq!(places(None, Some(folder.path().to_owned())), wanted[1..]);
        assert_eq!(places(None, None), Vec::<PathBuf>::new());
    }
}
