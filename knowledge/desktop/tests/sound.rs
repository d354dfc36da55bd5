//! What can be heard, against the real sound servers.

mod common;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use attune_desktop::display::{Display, DisplayError};
use attune_desktop::observation::{Client, Input, Time};
use attune_desktop::rating::Class;
use attune_desktop::sound::Sound;
use attune_desktop::{Process, Settings, monitor};
use common::{have, wait_for};

/// A session of its own: nothing of it reaches the user's servers. All of it ends with the test.
struct Session {
    folder: tempfile::TempDir,
    programs: Vec<Child>,
}

impl Session {
    fn start() -> Session {
        Session { folder: tempfile::tempdir().unwrap(), programs: Vec::new() }
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("pulse/native")
    }

    fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        let folder = self.folder.path();
        for variable in ["HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME", "XDG_CONFIG_HOME"] {
            command.env(variable, folder);
        }
        command.env("PULSE_SERVER", format!("unix:{}", self.socket().display()));
        command.env("DBUS_SESSION_BUS_ADDRESS", format!("unix:path={}", self.bus().display()));
        command.env("PIPEWIRE_RUNTIME_DIR", folder).env_remove("DISPLAY");
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    fn bus(&self) -> PathBuf {
        self.folder.path().join("bus")
    }

    fn keep(&mut self, mut command: Command) -> u32 {
        let child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let pid = child.id();
        self.programs.push(child);
        pid
    }

    fn run(&mut self, program: &str, arguments: &[&str]) -> u32 {
        self.keep(self.command(program, arguments))
    }

    /// A player of silence, from its standard input.
    fn player(&mut self, program: &str, arguments: &[&str]) -> u32 {
        let mut command = self.command(program, arguments);
        command.stdin(File::open("/dev/zero").unwrap());
        self.keep(command)
    }

    fn ask(&self, words: &[&str]) -> bool {
        self.command("pactl", words).status().unwrap().success()
    }

    fn end(&mut self, pid: u32) {
        let child = self.programs.iter_mut().find(|child| child.id() == pid).expect("it runs");
        child.kill().unwrap();
        child.wait().unwrap();
    }

    fn pulseaudio(&mut self) -> u32 {
        std::fs::create_dir(self.folder.path().join("pulse")).unwrap();
        let protocol = format!(
            "module-native-protocol-unix auth-anonymous=1 socket={}",
            self.socket().display()
        );
        let server = self.run(
            "pulseaudio",
            &[
                "-n",
                "--daemonize=no",
                "--use-pid-file=no",
                "--exit-idle-time=-1",
                "--disallow-exit",
                "--load=module-null-sink sink_name=nowhere",
                &format!("--load={protocol}"),
            ],
        );
        wait_for("pulseaudio", || self.ask(&["info"]).then_some(()));
        server
    }

    fn pipewire(&mut self) {
        let bus = format!("--address=unix:path={}", self.bus().display());
        self.run("dbus-daemon", &["--session", "--nofork", "--nosyslog", &bus]);
        wait_for("the message bus", || self.bus().exists().then_some(()));
        self.run("pipewire", &[]);
        wait_for("pipewire", || self.folder.path().join("pipewire-0").exists().then_some(()));
        self.run("wireplumber", &[]);
        self.run("pipewire-pulse", &[]);
        wait_for("pipewire-pulse", || self.ask(&["info"]).then_some(()));
        assert!(self.ask(&["load-module", "module-null-sink", "sink_name=nowhere"]));
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        for child in self.programs.iter_mut().rev() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Asks a server, which may be slow on a busy machine.
struct Listener {
    socket: PathBuf,
    sound: Option<Sound>,
}

impl Listener {
    fn at(session: &Session) -> Listener {
        Listener { socket: session.socket(), sound: None }
    }

    /// What plays, by number of the process.
    fn playing(&mut self) -> Vec<u32> {
        wait_for("an answer", || {
            let sound = self.sound.take().or_else(|| Sound::connect(Some(&self.socket)).ok());
            let mut sound = sound?;
            let playing = sound.playing().ok()?.iter().map(|process| process.pid).collect();
            self.sound = Some(sound);
            Some(playing)
        })
    }

    fn hears(&mut self, pid: u32) -> bool {
        self.playing().contains(&pid)
    }
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    wait_for(what, || is_so().then_some(()));
}

fn a_player_is_heard_until_it_is_muted_or_ends(session: &mut Session) {
    let mut sound = Listener::at(session);
    let player = session.player("pacat", &["--playback", "--raw"]);
    until("its sound", || sound.hears(player));
    assert!(session.ask(&["set-sink-mute", "nowhere", "1"]));
    until("silence", || !sound.hears(player));
    assert!(session.ask(&["set-sink-mute", "nowhere", "0"]));
    until("its sound again", || sound.hears(player));
    // One that lies about its process plays, and nobody is rated for it.
    let lie = format!("--property=application.process.id={}", std::process::id());
    let liar = session.player("pacat", &["--playback", "--raw", &lie]);
    until("the other stream", || {
        let mut list = session.command("pactl", &["list", "short", "sink-inputs"]);
        let output = list.stdout(Stdio::piped()).output().unwrap();
        String::from_utf8_lossy(&output.stdout).lines().count() == 2
    });
    // The answer is of now: the server tells what changed before it answers.
    let playing = sound.playing();
    assert!(playing.contains(&player) && !playing.contains(&liar), "{playing:?}");
    assert!(!playing.contains(&std::process::id()), "{playing:?}");
    session.end(player);
    until("the end", || !sound.hears(player));
}

#[test]
fn pulseaudio_tells_who_plays_and_a_claim_that_is_none_counts_for_nobody() {
    if !have(&["pulseaudio", "pacat", "pactl"]) {
        return;
    }
    let mut session = Session::start();
    session.pulseaudio();
    a_player_is_heard_until_it_is_muted_or_ends(&mut session);
}

#[test]
fn pipewire_tells_of_its_own_clients_and_of_those_that_speak_pulseaudio() {
    let programs = ["pipewire", "pipewire-pulse", "wireplumber", "pw-cat", "dbus-daemon"];
    if !have(&programs) || !have(&["pacat", "pactl"]) {
        return;
    }
    let mut session = Session::start();
    session.pipewire();
    a_player_is_heard_until_it_is_muted_or_ends(&mut session);
    // It knows the processes of its own clients by itself.
    let words = ["-p", "--rate", "48000", "--channels", "2", "--format", "s16"];
    let player = session.player("pw-cat", &[&words[..], &["--target", "nowhere", "-"]].concat());
    let mut sound = Listener::at(&session);
    until("pipewire's own client", || sound.hears(player));
}

/// A display without clients.
struct Blank;

impl Display for Blank {
    fn name(&self) -> &str {
        "blank"
    }

    fn servers(&self) -> Vec<Process> {
        Vec::new()
    }

    fn limits(&self) -> Vec<String> {
        Vec::new()
    }

    fn wait(&mut self, until: Time) -> Result<Vec<Input>, DisplayError> {
        let left = until.saturating_sub(attune_linux::time::now());
        std::thread::sleep(std::time::Duration::from_nanos(left));
        Ok(Vec::new())
    }

    fn clients(&mut self) -> Result<Vec<Client>, DisplayError> {
        Ok(Vec::new())
    }
}

#[test]
fn the_monitor_rates_who_plays_and_goes_on_when_the_sound_server_ends() {
    if !have(&["pulseaudio", "pacat", "pactl"]) {
        return;
    }
    let mut session = Session::start();
    let socket: PathBuf = session.socket();
    let connect = Box::new(|| Ok(Box::new(Blank) as Box<dyn Display>));
    let mut monitor =
        monitor::Monitor::start(connect, None, Settings::default(), &mut |_| ()).unwrap();
    monitor.hear(Box::new(move || Sound::connect(Some(Path::new(&socket)))));
    assert!(monitor.unheard().is_some(), "there is no server yet");
    let server = session.pulseaudio();
    let player = session.player("pacat", &["--playback", "--raw"]);
    let player = Process::now(player).unwrap();
    let explained = wait_for("a rating", || {
        monitor.step(u64::MAX, &mut |_| ());
        let rated = monitor.attention().rated().get(&player)?;
        let right = rated.output.value > 4.0 && rated.class == Class::Audible;
        right.then(|| monitor.attention().explain(player).to_string())
    });
    assert!(monitor.unheard().is_none());
    assert!(explained.contains(&format!("pacat ({player}) plays sound")), "{explained}");
    let of_server = monitor.attention().explain(Process::now(server).unwrap()).to_string();
    assert!(of_server.contains("the sound server that pacat"), "{of_server}");
    session.end(server);
    until("that it is gone", || {
        monitor.step(u64::MAX, &mut |_| ());
        monitor.unheard().is_some() && monitor.attention().rated().is_empty()
    });
}
