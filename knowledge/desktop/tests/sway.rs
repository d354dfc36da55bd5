//! The adapter for sway against a real compositor without a screen.

mod common;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use attune_desktop::display::{Display, DisplayError};
use attune_desktop::observation::Client;
use attune_desktop::rating::Class;
use attune_desktop::sway::Sway;
use attune_desktop::wakes::Wakes;
use attune_desktop::{Cause, Process, Settings, monitor};
use attune_linux::time::now;
use common::{cannot_run, child_of, have, wait_for};

/// Sway refuses to run as root: then it and its clients run as nobody.
const NOBODY: &str = "65534";

/// A compositor of its own, in a folder of its own. All of it ends with the test.
struct Desktop {
    folder: tempfile::TempDir,
    sway: Child,
    programs: Vec<Child>,
}

impl Desktop {
    fn start() -> Desktop {
        let folder = tempfile::tempdir().unwrap();
        let config = "output HEADLESS-1 resolution 800x600\nxwayland enable\n\
                      focus_follows_mouse no\nseat seat0 hide_cursor 0\n\
                      exec sh -c 'echo $DISPLAY > $HOME/display'\n";
        std::fs::write(folder.path().join("config"), config).unwrap();
        if is_root() {
            let nobody = NOBODY.parse().ok();
            std::os::unix::fs::chown(folder.path(), nobody, nobody).unwrap();
        }
        let sway = command(folder.path(), "sway").args(["-c", "config"]).spawn().unwrap();
        let mut desktop = Desktop { folder, sway, programs: Vec::new() };
        wait_for("sway", || Sway::connect(Some(&desktop.find("sway-ipc.")?)).ok());
        // Sway starts the server of X only for its first client, and tells its number before.
        wait_for("its displays", || {
            desktop
                .find("display")
                .filter(|path| std::fs::read(path).is_ok_and(|it| !it.is_empty()))
        });
        assert!(desktop.sway.try_wait().unwrap().is_none());
        desktop
    }

    fn find(&self, start: &str) -> Option<PathBuf> {
        let entries = std::fs::read_dir(self.folder.path()).unwrap().flatten();
        let name = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
        let is_it = |name: String| name.starts_with(start) && !name.ends_with(".lock");
        entries.map(|entry| entry.path()).find(|path| is_it(name(path)))
    }

    fn socket(&self) -> PathBuf {
        self.find("sway-ipc.").expect("sway listens")
    }

    fn command(&self, program: &str) -> Command {
        let mut command = command(self.folder.path(), program);
        let wayland = self.find("wayland-").expect("sway has a display");
        command.env("WAYLAND_DISPLAY", wayland.file_name().unwrap());
        command.env("SWAYSOCK", self.socket());
        let x = std::fs::read_to_string(self.folder.path().join("display")).unwrap();
        command.env("DISPLAY", x.trim());
        command
    }

    fn run(&mut self, program: &str, arguments: &[&str]) -> u32 {
        let child = self.command(program).args(arguments).spawn().unwrap();
        let pid = child.id();
        self.programs.push(child);
        pid
    }

    fn message(&self, words: &str) {
        assert!(self.command("swaymsg").args(["--", words]).status().unwrap().success(), "{words}");
    }
}

impl Drop for Desktop {
    fn drop(&mut self) {
        for child in self.programs.iter_mut().chain([&mut self.sway]) {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn is_root() -> bool {
    attune_linux::process::effective_user() == 0
}

fn command(folder: &Path, program: &str) -> Command {
    let mut command = match is_root() {
        true => {
            let mut command = Command::new("setpriv");
            command.args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups", program]);
            command
        }
        false => Command::new(program),
    };
    command.current_dir(folder).env("HOME", folder).env("XDG_RUNTIME_DIR", folder);
    command.env("WLR_BACKENDS", "headless").env("WLR_LIBINPUT_NO_DEVICES", "1");
    command.env("WLR_RENDERER", "pixman").env("LC_ALL", "C.UTF-8");
    command.env_remove("DISPLAY").env_remove("WAYLAND_DISPLAY").env_remove("SWAYSOCK");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

const PROGRAMS: [&str; 5] = ["sway", "swaymsg", "foot", "Xwayland", "setpriv"];

fn of(clients: &[Client], pid: u32) -> Option<Client> {
    clients.iter().find(|client| client.process.pid == pid).copied()
}

/// Waits until what sway tells is so.
fn until(what: &str, display: &mut dyn Display, is_so: impl Fn(&[Client]) -> bool) {
    wait_for(what, || {
        display.wait(now() + 50_000_000).unwrap();
        is_so(&display.clients().unwrap()).then_some(())
    });
}

#[test]
fn windows_have_processes_focus_and_what_can_be_seen_of_them() {
    if !have(&PROGRAMS) || !have(&["xterm"]) {
        return;
    }
    let mut desktop = Desktop::start();
    let mut display = Sway::connect(Some(&desktop.socket())).unwrap();
    assert_eq!(display.servers()[0].pid, desktop.sway.id());
    assert!(display.clients().unwrap().is_empty());

    let first = desktop.run("foot", &["sleep", "1000"]);
    until("the first window", &mut display, |clients| {
        of(clients, first).is_some_and(|client| client.focused && client.visible > 0.9)
    });
    // Two tiles; the second takes the focus. It is a client of X.
    let second = desktop.run("xterm", &["-e", "sleep", "1000"]);
    until("a client of X beside it", &mut display, |clients| {
        let both = of(clients, first).zip(of(clients, second));
        both.is_some_and(|(first, second)| {
            !first.focused && second.focused && first.visible < 0.6 && second.visible < 0.6
        })
    });
    assert!(display.servers().len() > 1, "Xwayland serves, too");
    // A window that fills the screen covers all others.
    desktop.message("fullscreen enable");
    until("a window over all others", &mut display, |clients| {
        let first = of(clients, first).unwrap();
        first.visible == 0.0 && of(clients, second).unwrap().visible > 0.9
    });
    desktop.message("fullscreen disable");
    // On another workspace, nothing of it can be seen.
    desktop.message("move container to workspace 2");
    until("a window on another workspace", &mut display, |clients| {
        let hidden = of(clients, second).unwrap();
        hidden.visible == 0.0 && !hidden.focused && of(clients, first).unwrap().focused
    });
}

#[test]
fn a_compositor_that_ends_is_said_to_be_gone() {
    if !have(&PROGRAMS) {
        return;
    }
    let mut desktop = Desktop::start();
    let mut display = Sway::connect(Some(&desktop.socket())).unwrap();
    desktop.sway.kill().unwrap();
    desktop.sway.wait().unwrap();
    let gone = display.wait(now() + 60_000_000_000).and_then(|_| display.clients());
    assert!(matches!(gone, Err(DisplayError::Gone { .. })), "{gone:?}");
    let nowhere = Sway::connect(Some(Path::new("/nowhere/sway"))).err().unwrap().to_string();
    assert!(nowhere.contains("/nowhere/sway"), "{nowhere}");
}

#[test]
fn typing_rates_the_program_behind_the_focused_terminal() {
    if !have(&PROGRAMS) || !have(&["wtype"]) {
        return;
    }
    let wakes = match Wakes::start() {
        Ok(wakes) => wakes,
        Err(error) => return cannot_run(&error.to_string()),
    };
    let mut desktop = Desktop::start();
    let other = desktop.run("foot", &["sh", "-c", "while :; do :; done"]);
    let socket = desktop.socket();
    let mut display = Sway::connect(Some(&socket)).unwrap();
    until("another window", &mut display, |clients| of(clients, other).is_some());
    let terminal = desktop.run("foot", &["cat"]);
    until("the terminal", &mut display, |clients| {
        of(clients, terminal).is_some_and(|client| client.focused)
    });
    let cat = child_of(terminal, "cat");
    let hog = child_of(other, "sh");
    let connect = Box::new(move || Ok(Box::new(Sway::connect(Some(&socket))?) as Box<dyn Display>));
    let settings = Settings::default();
    let mut monitor = monitor::Monitor::start(connect, Some(wakes), settings, &mut |_| ()).unwrap();
    let terminal = Process::now(terminal).unwrap();
    wait_for("a rating of the program in the terminal", || {
        let typed = ["-s", "100", "-d", "20", "words", "-k", "Return", "-s", "100"];
        assert!(desktop.command("wtype").args(typed).status().unwrap().success());
        monitor.step(u64::MAX, &mut |_| ());
        let rated = monitor.attention().rated().get(&cat)?;
        let through = rated.input.cause == Some(Cause::Path(vec![terminal, cat]));
        (rated.input.value > 4.0 && rated.class == Class::Focused && through).then_some(())
    });
    let input = monitor.attention().rated().get(&hog).map_or(0.0, |rated| rated.input.value);
    assert_eq!(input, 0.0, "nobody types there: {}", monitor.attention().explain(hog));
    let said = monitor.attention().explain(cat).to_string();
    assert!(said.contains("a wake-up of the display server"), "{said}");
}
