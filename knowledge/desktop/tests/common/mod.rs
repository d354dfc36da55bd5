//! A desktop for a test: an X server of its own on a free display, and programs on it. All of it
//! ends with the test.

#![allow(dead_code)] // Each test file uses a part of it.

pub mod painter;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use attune_desktop::Process;

/// Without the programs the test passes, but says so, and fails where CI=true.
pub fn have(programs: &[&str]) -> bool {
    let path = std::env::var("PATH").unwrap_or_default();
    let there =
        |program: &&&str| path.split(':').any(|folder| Path::new(folder).join(program).exists());
    let missing: Vec<_> = programs.iter().filter(|program| !there(program)).collect();
    if missing.is_empty() {
        return true;
    }
    cannot_run(&format!("{missing:?} are missing; tools/setup.sh test installs them"));
    false
}

pub fn cannot_run(why: &str) {
    assert!(std::env::var("CI").as_deref() != Ok("true"), "cannot run here: {why}");
    eprintln!("cannot run here: {why}");
}

pub struct Desktop {
    pub display: String,
    server: Child,
    programs: Vec<Child>,
}

pub const WIDTH: u16 = 800;
pub const HEIGHT: u16 = 600;

impl Desktop {
    pub fn start() -> Desktop {
        // The server says which display was free.
        Desktop::start_as(&["-displayfd", "1"])
    }

    /// `place`: a display such as `:93`, or how the server chooses one.
    pub fn start_as(place: &[&str]) -> Desktop {
        Desktop::start_with(place, &["-nolisten", "tcp"])
    }

    pub fn start_with(place: &[&str], options: &[&str]) -> Desktop {
        let mut server = Command::new("Xvfb")
            .args(place)
            .args(["-screen", "0", &format!("{WIDTH}x{HEIGHT}x24"), "-ac"])
            .args(options)
            // No key repeats itself, however late a busy machine lets it go.
            .args(["-noreset", "-r"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("Xvfb starts");
        let display = match place {
            ["-displayfd", _] => {
                let mut line = String::new();
                let out = server.stdout.take().expect("its output is a pipe");
                BufReader::new(out).read_line(&mut line).expect("Xvfb says its display");
                format!(":{}", line.trim())
            }
            place => place[0].to_owned(),
        };
        let desktop = Desktop { display, server, programs: Vec::new() };
        let patience = Instant::now() + Duration::from_secs(90);
        while x11rb::connect(Some(&desktop.display)).is_err() {
            assert!(Instant::now() < patience, "Xvfb does not answer at {}", desktop.display);
            std::thread::sleep(Duration::from_millis(50));
        }
        desktop
    }

    pub fn server(&self) -> u32 {
        self.server.id()
    }

    pub fn kill_server(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }

    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env("DISPLAY", &self.display).env_remove("WAYLAND_DISPLAY");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    /// A program that runs until the test ends.
    pub fn run(&mut self, program: &str, arguments: &[&str]) -> u32 {
        let child = self.command(program).args(arguments).spawn();
        let child = child.unwrap_or_else(|error| panic!("{program}: {error}"));
        let pid = child.id();
        self.programs.push(child);
        pid
    }

    pub fn end(&mut self, pid: u32) {
        let at = self.programs.iter().position(|child| child.id() == pid).expect("it was started");
        let mut child = self.programs.remove(at);
        let _ = child.kill();
        let _ = child.wait();
    }

    /// What xdotool prints.
    pub fn xdotool(&self, arguments: &[&str]) -> String {
        let output = self.command("xdotool").args(arguments).stdout(Stdio::piped()).output();
        String::from_utf8_lossy(&output.expect("xdotool runs").stdout).trim().to_owned()
    }

    /// A window manager that is ready for clients.
    pub fn manage(&mut self) {
        self.run("openbox", &[]);
        wait_for("the window manager", || {
            use x11rb::protocol::xproto::{AtomEnum, ConnectionExt};
            let (connection, screen) = x11rb::connect(Some(&self.display)).ok()?;
            let root = x11rb::connection::Connection::setup(&connection).roots[screen].root;
            let name = b"_NET_SUPPORTING_WM_CHECK";
            let atom = connection.intern_atom(false, name).ok()?.reply().ok()?.atom;
            let property = connection.get_property(false, root, atom, AtomEnum::ANY, 0, 1);
            (property.ok()?.reply().ok()?.value_len > 0).then_some(())
        });
    }

    /// A terminal with a command in it, focused. Its process.
    pub fn terminal(&mut self, command: &[&str]) -> u32 {
        let arguments = [&["-geometry", "60x20", "-e"], command].concat();
        let pid = self.run("xterm", &arguments);
        let window = wait_for("the terminal's window", || {
            let of = pid.to_string();
            let found = self.xdotool(&["search", "--all", "--onlyvisible", "--pid", &of]);
            found.lines().last().map(str::to_owned)
        });
        self.xdotool(&["windowfocus", "--sync", &window]);
        pid
    }
}

impl Drop for Desktop {
    fn drop(&mut self) {
        for child in &mut self.programs {
            let _ = child.kill();
            let _ = child.wait();
        }
        self.kill_server();
    }
}

pub fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let patience = Instant::now() + Duration::from_secs(90);
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < patience, "{what} did not come");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// The child of a process that has this name.
pub fn child_of(parent: u32, name: &str) -> Process {
    wait_for(name, || {
        let children = std::fs::read_to_string(format!("/proc/{parent}/task/{parent}/children"));
        let pids: Vec<u32> =
            children.ok()?.split_whitespace().filter_map(|pid| pid.parse().ok()).collect();
        let facts = pids.into_iter().filter_map(attune_desktop::Facts::read);
        facts.into_iter().find(|facts| facts.name.starts_with(name)).map(|facts| facts.process)
    })
}
