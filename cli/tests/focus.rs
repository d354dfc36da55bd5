//! `attune focus` on a desktop of its own: an X server, a terminal, an editor, and a typist.
//! Without the programs it says so and passes, but fails where CI=true.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use attune_linux::scheduling::{Attributes, Class};
use attune_linux::signal::INTERRUPT;
use attune_linux::{process, procfs};
use serde_json::{Value, json};

const ATTUNE: &str = env!("CARGO_BIN_EXE_attune");

fn have(programs: &[&str]) -> bool {
    let path = std::env::var("PATH").unwrap_or_default();
    let there =
        |program: &&&str| path.split(':').any(|folder| Path::new(folder).join(program).exists());
    let missing: Vec<_> = programs.iter().filter(|program| !there(program)).collect();
    if missing.is_empty() {
        return true;
    }
    cannot_run(&format!("{missing:?} are missing; tools/setup.sh test installs them"))
}

fn cannot_run(why: &str) -> bool {
    assert!(std::env::var("CI").as_deref() != Ok("true"), "cannot run here: {why}");
    eprintln!("cannot run here: {why}");
    false
}

/// Programs that end with the test.
struct Desktop {
    display: String,
    state: tempfile::TempDir,
    programs: Vec<Child>,
}

impl Desktop {
    fn start() -> Desktop {
        let mut server = Command::new("Xvfb")
            .args(["-displayfd", "1", "-screen", "0", "800x600x24", "-nolisten", "tcp", "-ac"])
            // No key repeats itself, however late a busy machine lets it go.
            .args(["-noreset", "-r"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let state = tempfile::tempdir().unwrap();
        Desktop { display: format!(":{}", line.trim()), state, programs: vec![server] }
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env("DISPLAY", &self.display).env("ATTUNE_STATE_DIR", self.state.path());
        without_session(&mut command, self.state.path());
        command.stdin(Stdio::null());
        command
    }

    fn keep(&mut self, mut command: Command) -> u32 {
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let pid = child.id();
        self.programs.push(child);
        pid
    }

    /// A terminal with a command in it, focused.
    fn terminal(&mut self, words: &[&str]) -> u32 {
        let mut command = self.command("xterm");
        command.args(["-geometry", "60x20+0+0", "-e"]).args(words);
        let terminal = self.keep(command);
        let window = wait_for("the terminal", || {
            let pid = terminal.to_string();
            let found = self.xdotool(&["search", "--all", "--onlyvisible", "--pid", &pid]);
            found.lines().last().map(str::to_owned)
        });
        self.xdotool(&["windowfocus", "--sync", &window]);
        terminal
    }

    fn xdotool(&self, words: &[&str]) -> String {
        let output = self.command("xdotool").args(words).output().unwrap();
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    fn focus(&self, words: &[&str]) -> Output {
        self.command(ATTUNE).arg("focus").args(words).output().unwrap()
    }

    fn explain(&self, pid: u32) -> Option<Value> {
        let output = self.focus(&["explain", &pid.to_string(), "--json"]);
        serde_json::from_slice(&output.stdout).ok()
    }
}

impl Drop for Desktop {
    fn drop(&mut self) {
        for child in self.programs.iter_mut().rev() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Nothing of the session in which the test runs.
fn without_session(command: &mut Command, folder: &Path) {
    for variable in ["XDG_RUNTIME_DIR", "WAYLAND_DISPLAY", "SWAYSOCK", "PULSE_SERVER"] {
        command.env_remove(variable);
    }
    command.env("XDG_CONFIG_HOME", folder);
}

fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let patience = Instant::now() + Duration::from_secs(90);
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < patience, "{what} did not come");
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output().unwrap();
    text(&id.stdout).trim() == "0"
}

#[test]
fn an_editor_that_is_typed_into_is_explained_drawn_recorded_and_replayed() {
    if !have(&["Xvfb", "xterm", "vim", "xdotool", "pgrep"]) {
        return;
    }
    if !is_root() {
        cannot_run("counting wake-ups needs root");
        return;
    }
    let mut desktop = Desktop::start();
    let file = desktop.state.path().join("text");
    let terminal = desktop.terminal(&["vim", "-u", "NONE", "-n", file.to_str().unwrap()]);
    let editor = wait_for("the editor", || {
        let found = Command::new("pgrep").args(["-P", &terminal.to_string()]).output().ok()?;
        text(&found.stdout).lines().next()?.parse::<u32>().ok()
    });
    let recording = desktop.state.path().join("session");
    let mut monitor = desktop.command(ATTUNE);
    monitor.args(["focus", "--json", "--record", recording.to_str().unwrap()]);
    let monitor = desktop.keep(monitor);
    wait_for("the monitor", || desktop.explain(editor));
    // The thread that listens for input, too: ratings wait for it.
    let threads = procfs::threads(monitor);
    let classes = threads.iter().map(|&thread| Attributes::of(thread).unwrap().class);
    let classes: Vec<Class> = classes.collect();
    assert!(classes.len() > 1 && classes.iter().all(|it| *it == Class::ROUND_ROBIN), "{classes:?}");
    desktop.xdotool(&["key", "Escape", "i"]);
    let explained = wait_for("a rating of the editor", || {
        desktop.xdotool(&["type", "--delay", "50", "the quick brown fox"]);
        let explained = desktop.explain(editor)?;
        (explained["input"]["rating"].as_f64()? > 8.0
            && explained["input"]["path"].as_array()?.len() == 3)
            .then_some(explained)
    });
    let path: Vec<&str> = explained["input"]["path"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|step| step["name"].as_str())
        .collect();
    assert_eq!(path[..2], ["Xvfb", "xterm"], "{explained}");
    assert!(path[2].starts_with("vim"), "{explained}");
    assert_eq!(explained["class"], "focused");

    let said = text(&desktop.focus(&["explain", &editor.to_string()]).stdout);
    let way = format!("path Xvfb ({}) -> xterm ({terminal}) -> vim", desktop.programs[0].id());
    assert!(said.contains(&way) && said.contains("got a key"), "{said}");
    let listed = text(&desktop.focus(&["show"]).stdout);
    assert!(listed.contains("xterm > vim"), "{listed}");
    let own = std::process::id();
    let unrated = text(&desktop.focus(&["explain", &own.to_string()]).stdout);
    assert!(unrated.contains("not rated"), "{unrated}");
    let dot = text(&desktop.focus(&["show", "--dot"]).stdout);
    assert!(dot.starts_with("digraph") && dot.contains("vim"), "{dot}");
    let second = desktop.focus(&["--seconds", "1"]);
    assert_eq!(second.status.code(), Some(2));
    assert!(text(&second.stderr).contains("a monitor runs already"), "{}", text(&second.stderr));

    // The recording tells what a process used once a second, and only if it used something.
    let used = format!("\"pid\":{editor},");
    wait_for("what the editor used", || {
        desktop.xdotool(&["type", "--delay", "50", "jumps over"]);
        let text = std::fs::read_to_string(&recording).ok()?;
        let told = |line: &str| line.split("\"used\":").nth(1).is_some_and(|it| it.contains(&used));
        text.lines().any(told).then_some(())
    });
    let replayed = desktop.focus(&["replay", recording.to_str().unwrap()]);
    assert!(text(&replayed.stdout).contains("xterm > vim"), "{}", text(&replayed.stderr));
    // The page's commands turn the session into a workload, and try a policy on it.
    let commands: Vec<String> = page().lines().map(str::to_owned).collect();
    let commands = commands.iter().filter(|line| line.contains("session.toml"));
    let commands: Vec<&str> = commands.map(String::as_str).collect();
    let folder = Path::new(ATTUNE).parent().unwrap().display().to_string();
    let path = format!("{folder}:{}", std::env::var("PATH").unwrap());
    let mut command = desktop.command("sh");
    command.args(["-ec", &commands.join("\n")]).current_dir(desktop.state.path());
    let sim = command.env("PATH", path).output().unwrap();
    let name = format!("-{editor} ");
    assert!(text(&sim.stdout).contains(&name), "{} {}", text(&sim.stdout), text(&sim.stderr));
    let workload = std::fs::read_to_string(desktop.state.path().join("session.toml")).unwrap();
    let editors =
        workload.split("[[thread]]").find(|thread| thread.contains(&name.replace(' ', "\"")));
    let rated =
        |line: &str| line.contains("input_rating = ") && !line.contains("input_rating = 0,");
    assert!(editors.unwrap().lines().any(rated), "{workload}");
    let recorded = std::fs::read_to_string(&recording).unwrap();
    assert!(!recorded.contains("quick") && !recorded.contains("keycode"));
    let wrong = desktop.focus(&["replay", recording.to_str().unwrap(), "--set", "celing=3"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(text(&wrong.stderr).contains("there is no setting celing"));
}

#[test]
fn without_privilege_clients_and_their_server_are_rated() {
    if !have(&["Xvfb", "xterm", "xdotool", "setpriv"]) {
        return;
    }
    let mut desktop = Desktop::start();
    let terminal = desktop.terminal(&["cat"]);
    let mut command = match is_root() {
        // The program itself may lie where only root looks.
        true => {
            let copy = desktop.state.path().join("attune");
            std::fs::copy(ATTUNE, &copy).unwrap();
            let open = std::os::unix::fs::PermissionsExt::from_mode(0o777);
            std::fs::set_permissions(desktop.state.path(), open).unwrap();
            let mut command = desktop.command("setpriv");
            command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(copy);
            command
        }
        false => desktop.command(ATTUNE),
    };
    command.args(["focus", "--json"]);
    let monitor = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    wait_for("the monitor", || desktop.explain(terminal));
    let explained = wait_for("a rating", || {
        desktop.xdotool(&["type", "--delay", "50", "the quick brown fox"]);
        let explained = desktop.explain(terminal)?;
        (explained["input"]["rating"].as_f64()? > 5.0).then_some(explained)
    });
    assert_eq!(explained["input"]["path"].as_array().unwrap().len(), 1, "{explained}");
    let server = desktop.explain(desktop.programs[0].id()).unwrap();
    let reason = server["input"]["reason"].as_str().unwrap();
    assert!(reason.contains("display server of xterm"), "{server}");
    // Our own child, not waited for.
    process::signal(monitor.id(), INTERRUPT).unwrap();
    let output = monitor.wait_with_output().unwrap();
    assert!(output.status.success());
    let said = text(&output.stderr);
    assert!(said.contains("CAP_BPF") && said.contains("only the display's own clients"), "{said}");
}

/// The test stands where the daemon listens; daemon/tests/tuning has the real one.
#[test]
fn the_daemon_is_told_what_the_monitor_has_found() {
    if !have(&["Xvfb", "xterm", "xdotool"]) {
        return;
    }
    let mut desktop = Desktop::start();
    let terminal = desktop.terminal(&["cat"]);
    let daemon = UnixListener::bind(desktop.state.path().join("attuned.sock")).unwrap();
    let mut monitor = desktop.command(ATTUNE);
    monitor.args(["focus", "--json"]).stdout(Stdio::null()).stderr(Stdio::piped());
    let monitor = monitor.spawn().unwrap();
    wait_for("the monitor", || desktop.explain(terminal));
    let (mut connection, _) = daemon.accept().unwrap();
    connection.set_read_timeout(Some(Duration::from_secs(90))).unwrap();
    let mut requests = BufReader::new(connection.try_clone().unwrap());
    let rating = wait_for("a rating of the terminal", || {
        desktop.xdotool(&["type", "--delay", "50", "the quick"]);
        let mut line = String::new();
        requests.read_line(&mut line).unwrap();
        let request: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(request["request"], "rate", "{line}");
        let ratings = request["ratings"].as_array().unwrap().clone();
        ratings.into_iter().find(|one| one[0] == terminal && one[2].as_i64() > Some(500))
    });
    let start = attune_linux::procfs::start_time(terminal).unwrap();
    assert_eq!(rating[1], start, "{rating}");
    // What the daemon has against it, the monitor says once.
    for _ in 0..2 {
        let refusal = json!({ "ok": false, "error": "it is not the day for it" });
        writeln!(connection, "{refusal}").unwrap();
    }
    let seen = desktop.explain(terminal).map(|_| ()).is_some();
    assert!(seen, "the monitor goes on");
    for _ in 0..3 {
        requests.read_line(&mut String::new()).unwrap();
    }
    process::signal(monitor.id(), INTERRUPT).unwrap();
    let said = text(&monitor.wait_with_output().unwrap().stderr);
    let news = "attuned gives no weights: it is not the day for it";
    assert_eq!(said.matches(news).count(), 1, "{said}");
}

#[test]
fn what_is_missing_is_said() {
    let state = tempfile::tempdir().unwrap();
    let focus = |words: &[&str]| {
        let mut command = Command::new(ATTUNE);
        command.env("ATTUNE_STATE_DIR", state.path());
        without_session(&mut command, state.path());
        command.env_remove("DISPLAY");
        let output = command.arg("focus").args(words).output().unwrap();
        (output.status.code(), text(&output.stderr))
    };
    let wrong = state.path().join("wrong.toml");
    std::fs::write(&wrong, "celing = 5").unwrap();
    for (words, says) in [
        (&["explain", "1"][..], "no monitor runs"),
        (&["--display", "/nowhere/sway.sock"], "cannot connect to the display sway"),
        (&["--config", "/nowhere/focus.toml"], "/nowhere/focus.toml"),
        (&["--config", wrong.to_str().unwrap()], "there is no setting celing"),
        (&["--seconds", "1"], "DISPLAY is not set"),
        (&["--display", ":4711", "--seconds", "1"], "cannot connect to the display :4711"),
        (&["--set", "ceiling"], "NAME=VALUE is needed"),
        (&["replay", "/dev/null"], "is not the head of a recording"),
    ] {
        let (status, said) = focus(words);
        assert!(said.contains(says), "{words:?}: {said}");
        assert!(matches!(status, Some(1 | 2)), "{words:?}: {status:?}");
    }
    // A file that is not named is read where it usually lies.
    std::fs::create_dir(state.path().join("attune")).unwrap();
    std::fs::rename(wrong, state.path().join("attune/focus.toml")).unwrap();
    let (_, said) = focus(&["--display", ":4711"]);
    assert!(said.contains("attune/focus.toml: there is no setting celing"), "{said}");
}

#[test]
fn systemd_understands_the_unit_of_the_monitor() {
    if !have(&["systemd-analyze"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let unit = Path::new(env!("CARGO_MANIFEST_DIR")).join("../systemd/attune-focus.service");
    let unit = std::fs::read_to_string(unit).unwrap();
    let installed = unit.replace("ExecStart=attune ", &format!("ExecStart={ATTUNE} "));
    assert!(installed.contains(ATTUNE));
    let path = folder.path().join("attune-focus.service");
    std::fs::write(&path, installed).unwrap();
    let mut command = Command::new("systemd-analyze");
    command.args(["--user", "verify"]).arg(path).env("XDG_RUNTIME_DIR", folder.path());
    let output = command.output().unwrap();
    let said = text(&output.stderr);
    assert!(output.status.success() && !said.contains("attune-focus"), "{said}");
}

fn page() -> String {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/focus.md");
    std::fs::read_to_string(page).unwrap()
}

/// The page's commands that need no desktop run as they stand there.
#[test]
fn the_pages_simulations_run() {
    let page = page();
    let simulates = |line: &&str| line.starts_with("attune sim ") && !line.contains("session");
    let commands: Vec<&str> = page.lines().filter(simulates).collect();
    assert_eq!(commands.len(), 2);
    for command in commands {
        let output =
            Command::new(ATTUNE).args(command.split_whitespace().skip(1)).output().unwrap();
        assert!(output.status.success(), "{command}: {}", text(&output.stderr));
        assert!(text(&output.stdout).contains("editor"), "{command}");
    }
    // Every setting that the page names exists, and the page names every one.
    let state = tempfile::tempdir().unwrap();
    let output = Command::new(ATTUNE)
        .env("ATTUNE_STATE_DIR", state.path())
        .args(["focus", "--set", "nonsense=1"])
        .output()
        .unwrap();
    let said = text(&output.stderr);
    let names = said.rsplit_once("there are ").unwrap().1.trim();
    for name in names.split(", ") {
        assert!(page.contains(&format!("`{name}`")), "{name} is not on the page");
    }
}
