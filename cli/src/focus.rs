//! `attune focus`: which programs the person at the display deals with, and which processes work
//! for them.
//!
//! One monitor runs; `explain` and `show` ask it over a socket. It answers root and the user who
//! started it, and nobody else: when somebody types is private.

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, ErrorKind, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use attune_daemon::daemon::{Rater, Server};
use attune_daemon::state_folder;
use attune_daemon::weights::Rating;
use attune_desktop::monitor::{Monitor, News};
use attune_desktop::observation::{Observation, Second};
use attune_desktop::recording::{Recorder, replay};
use attune_desktop::sound::Sound;
use attune_desktop::wakes::{Change, Wakes};
use attune_desktop::x11::InputSource;
use attune_desktop::{
    Attention, Cause, Explanation, Facts, Process, Rated, Replay, Settings, displays,
};
use attune_linux::scheduling::Attributes;
use attune_linux::time::{MILLISECOND, SECOND, Time, now};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::args::{FocusArgs, FocusCommand, MonitorArgs};
use crate::child::Interrupt;
use crate::failure::Failure;
use crate::output;

/// How long a question waits for its answer at most.
const ROUND: Time = 100 * MILLISECOND;
/// Programs that `show` and the table list, the most important first.
const MOST_LISTED: usize = 256;
const PATIENCE: Duration = Duration::from_secs(5);

pub fn run(args: &FocusArgs) -> Result<ExitCode, Failure> {
    match &args.command {
        None => watch(&args.monitor)?,
        Some(FocusCommand::Explain { pid, json }) => explain(*pid, *json)?,
        Some(FocusCommand::Show { json, dot }) => show(*json, *dot)?,
        Some(FocusCommand::Replay { file, json, workload, set }) => {
            let mut shown = match workload {
                true => Shown::Workload(Replay::default()),
                false => Shown::Ratings { json: *json, listed: String::new() },
            };
            again(file, set, &mut shown)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn settings(mut settings: Settings, changes: &[String]) -> Result<Settings, Failure> {
    for change in changes {
        let (name, value) = change
            .split_once('=')
            .ok_or_else(|| Failure::usage(format!("--set {change}: NAME=VALUE is needed")))?;
        settings.set(name.trim(), value.trim()).map_err(Failure::usage)?;
    }
    Ok(settings)
}

/// What the settings' file says, where there is one.
fn configured(named: Option<&Path>) -> Result<Settings, Failure> {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    let home = variable("HOME").map(|home| PathBuf::from(home).join(".config"));
    let own = variable("XDG_CONFIG_HOME").map(PathBuf::from).or(home);
    let usual = own.into_iter().chain([PathBuf::from("/etc")]);
    let found = usual.map(|folder| folder.join("attune/focus.toml")).find(|path| path.is_file());
    let mut settings = Settings::default();
    if let Some(path) = named.map(Path::to_owned).or(found) {
        let text = std::fs::read_to_string(&path);
        let text = text.map_err(|error| Failure::file("read", &path, error))?;
        let wrong = |what: String| Failure::usage(format!("{}: {what}", path.display()));
        settings.read(&text).map_err(wrong)?;
    }
    Ok(settings)
}

fn watch(args: &MonitorArgs) -> Result<(), Failure> {
    let settings = settings(configured(args.config.as_deref())?, &args.set)?;
    let interrupt = Interrupt::listen()?;
    let mut server = listen()?;
    // Ratings must not come late while many programs compute, so each thread of the monitor, also
    // one that comes later, is in that class. Without the privilege it is not.
    let _ = Attributes::round_robin(1).apply_to(0);
    let wakes = match Wakes::start() {
        Ok(wakes) => Some(wakes),
        Err(error) => {
            eprintln!("attune: {error}\nattune: only the display's own clients are rated");
            None
        }
    };
    let mut recorder = match &args.record {
        Some(path) => {
            let file = File::create(path).map_err(|error| Failure::file("write", path, error))?;
            let recorder = Recorder::start(BufWriter::new(file), &settings);
            Some(recorder.map_err(|error| Failure::file("write", path, error))?)
        }
        None => None,
    };
    let mut broken = None;
    let mut seen = |observation: &Observation| {
        if let Some(recorder) = &mut recorder {
            broken = broken.take().or(recorder.record(observation).err());
        }
    };
    let source = if args.raw_input { InputSource::Raw } else { InputSource::Best };
    let display = args.display.clone();
    let connect = Box::new(move || displays::connect(display.as_deref(), source));
    let mut monitor = Monitor::start(connect, wakes, settings, &mut seen)
        .map_err(|error| Failure::usage(error.to_string()))?;
    monitor.hear(Box::new(|| Sound::connect(None)));
    if args.record.is_some() {
        monitor.measure();
    }
    for limit in monitor.display().map(|display| display.limits()).unwrap_or_default() {
        eprintln!("attune: {limit}");
    }
    let begun = now();
    let end = args.seconds.map_or(Time::MAX, |length| begun + length.as_nanos() as Time);
    let mut listed = String::new();
    let mut rater = Rater::default();
    let mut unheard = None;
    tell(monitor.offer());
    while now() < end && !interrupt.came() {
        match monitor.step((now() + ROUND).min(end), &mut seen) {
            Some(News::Second) => {
                tell(monitor.offer());
                tell_of_sound(&monitor, &mut unheard);
                if let Some(why) = rater.tell(&state_folder(), &ratings(monitor.attention())) {
                    eprintln!("attune: attuned gives no weights: {why}");
                }
                report(monitor.attention(), now() - begun, args.json, &mut listed)?;
            }
            Some(News::Gone(error)) => {
                eprintln!("attune: {error}; ratings fade until it is back");
            }
            Some(News::Back) => eprintln!("attune: the display is back"),
            Some(News::Lifted) => {
                rater.tell(&state_folder(), &ratings(monitor.attention()));
            }
            None => {}
        }
        server.serve(|peer, request| answer(&monitor, peer, request));
    }
    match (&args.record, broken) {
        (Some(path), Some(error)) => Err(Failure::file("write", path, error)),
        _ => Ok(()),
    }
}

/// What the daemon makes weights of, the greatest first.
fn ratings(attention: &Attention) -> Vec<Rating> {
    let rating = |(process, rated): (&Process, &Rated)| {
        let [input, output] = attention.values(rated);
        Rating(process.pid, process.start, input, output)
    };
    let mut all: Vec<Rating> = attention.rated().iter().map(rating).collect();
    all.sort_by_key(|rating| -rating.2.max(rating.3));
    all
}

/// Says once why sound is not observed, and that it is again.
fn tell_of_sound(monitor: &Monitor, told: &mut Option<String>) {
    let why = monitor.unheard().map(|error| error.to_string());
    match (&why, &told) {
        (Some(why), None) => eprintln!("attune: {why}; what plays is not rated until one answers"),
        (None, Some(_)) => eprintln!("attune: what plays is rated again"),
        _ => {}
    }
    *told = why;
}

/// Says which scheduler reads the ratings.
fn tell(change: Option<Change>) {
    match change {
        Some(Change::Read { scheduler, columns }) if columns.is_empty() => {
            eprintln!("attune: {scheduler} runs, and reads no ratings; human does");
        }
        Some(Change::Read { scheduler, columns }) => {
            eprintln!("attune: {scheduler} reads {}", columns.join(", "));
        }
        Some(Change::Ended) => eprintln!("attune: the scheduler that read the ratings has ended"),
        Some(Change::Refused(why)) => eprintln!("attune: nobody reads the ratings: {why}"),
        None => {}
    }
}

/// A program in a list.
#[derive(Serialize, Deserialize)]
struct Line {
    pid: u32,
    name: String,
    class: String,
    input: f64,
    output: f64,
    /// What policies read.
    values: [i64; 2],
    /// From the client to the program, by name.
    through: Vec<String>,
}

fn lines(attention: &Attention) -> Vec<Line> {
    let mut rated: Vec<(&Process, &Rated)> = attention.rated().iter().collect();
    let weight = |rated: &Rated| rated.input.value + rated.output.value;
    rated.sort_by(|a, b| weight(b.1).total_cmp(&weight(a.1)).then(a.0.cmp(b.0)));
    let line = |(process, rated): (&Process, &Rated)| {
        let main = match rated.input.value >= rated.output.value {
            true => &rated.input,
            false => &rated.output,
        };
        let through = match &main.cause {
            Some(Cause::Path(path)) => path.iter().map(|step| attention.name(*step)).collect(),
            Some(Cause::Serves(client) | Cause::Plays(client)) => {
                vec![attention.name(*client), attention.name(*process)]
            }
            Some(Cause::Handed { from, .. }) => {
                vec![attention.name(*from), attention.name(*process)]
            }
            None => Vec::new(),
        };
        Line {
            pid: process.pid,
            name: attention.name(*process),
            class: rated.class.to_string(),
            input: rated.input.value,
            output: rated.output.value,
            values: attention.values(rated),
            through,
        }
    };
    rated.into_iter().take(MOST_LISTED).map(line).collect()
}

/// The list as a table. A program's name may hold anything; control characters stay out.
fn table(lines: &[Line]) -> String {
    let plain = |text: &str| text.replace(char::is_control, "?");
    let mut text = format!(
        "{:>8} {:<16} {:>6} {:>6}  {:<8} THROUGH\n",
        "PID", "PROGRAM", "INPUT", "OUTPUT", "CLASS"
    );
    for line in lines {
        let through: Vec<String> = line.through.iter().map(|name| plain(name)).collect();
        text.push_str(&format!(
            "{:>8} {:<16} {:>6.1} {:>6.1}  {:<8} {}\n",
            line.pid,
            plain(&line.name),
            line.input,
            line.output,
            line.class,
            through.join(" > ")
        ));
    }
    text
}

/// Prints the list if it has changed, `listed` being the last one.
fn report(
    attention: &Attention,
    since: Time,
    json: bool,
    listed: &mut String,
) -> Result<(), Failure> {
    let lines = lines(attention);
    let seconds = since as f64 / SECOND as f64;
    if json {
        return output::print(&format!("{}\n", json!({ "seconds": seconds, "programs": lines })));
    }
    let text = table(&lines);
    if text == *listed {
        return Ok(());
    }
    output::print(&format!("{seconds:.0} s\n{text}\n"))?;
    *listed = text;
    Ok(())
}

/// Where a monitor listens: for root's all may look, a user's own is in the user's own folder.
fn sockets() -> Vec<PathBuf> {
    let own =
        std::env::var_os("XDG_RUNTIME_DIR").map(|folder| PathBuf::from(folder).join("attune"));
    let folders = [Some(state_folder()), own];
    folders.into_iter().flatten().map(|folder| folder.join("focus.sock")).collect()
}

fn listen() -> Result<Server, Failure> {
    let mut why = String::from("neither /run/attune nor XDG_RUNTIME_DIR can be used");
    for path in sockets() {
        match Server::listen(&path) {
            Ok(server) => return Ok(server),
            Err(error) if error.kind() == ErrorKind::AddrInUse => {
                return Err(Failure::usage(format!(
                    "a monitor runs already and listens at {}; attune focus show asks it",
                    path.display()
                )));
            }
            Err(error) => why = format!("cannot listen at {}: {error}", path.display()),
        }
    }
    Err(Failure::usage(format!("{why}; set ATTUNE_STATE_DIR to a folder that can be written")))
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "snake_case", deny_unknown_fields)]
enum Question {
    Explain { pid: u32 },
    Show,
    Dot,
}

fn answer(monitor: &Monitor, peer: u32, line: &str) -> Value {
    let own = attune_linux::process::effective_user();
    if peer != 0 && peer != own {
        let error = "only root and the user who runs the monitor may ask";
        return json!({ "ok": false, "error": error });
    }
    let attention = monitor.attention();
    let answer = match serde_json::from_str(line) {
        Ok(Question::Explain { pid }) => match Process::now(pid) {
            Some(process) => {
                let mut explanation = attention.explain(process);
                if explanation.name.is_empty() {
                    explanation.name = Facts::read(pid).map(|facts| facts.name).unwrap_or_default();
                }
                json!(explanation)
            }
            None => {
                return json!({ "ok": false, "error": format!("there is no process {pid}") });
            }
        },
        Ok(Question::Show) => json!(lines(attention)),
        Ok(Question::Dot) => json!(attention.dot()),
        Err(error) => return json!({ "ok": false, "error": error.to_string() }),
    };
    json!({ "ok": true, "answer": answer })
}

/// Asks the running monitor.
fn ask(question: &Question) -> Result<Value, Failure> {
    let found = sockets().into_iter().find_map(|path| UnixStream::connect(path).ok());
    let mut stream = found.ok_or_else(|| {
        Failure::usage("no monitor runs; start one with `attune focus`, on the desktop's display")
    })?;
    let lost = |error: std::io::Error| {
        Failure::wrong(format!("the monitor does not answer: {error}; is it still running?"))
    };
    stream.set_read_timeout(Some(PATIENCE)).map_err(lost)?;
    let question = serde_json::to_string(question).map_err(|error| lost(error.into()))?;
    writeln!(stream, "{question}").map_err(lost)?;
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).map_err(lost)?;
    let mut reply: Value = serde_json::from_str(&line).map_err(|error| lost(error.into()))?;
    match reply["error"].as_str() {
        Some(error) => Err(Failure::usage(error)),
        None => Ok(reply["answer"].take()),
    }
}

fn understood<T: serde::de::DeserializeOwned>(answer: Value) -> Result<T, Failure> {
    serde_json::from_value(answer).map_err(|error| {
        Failure::wrong(format!("the monitor that runs is of another version: {error}"))
    })
}

fn explain(pid: u32, json: bool) -> Result<(), Failure> {
    let answer = ask(&Question::Explain { pid })?;
    if json {
        return output::print(&format!("{answer}\n"));
    }
    let explanation: Explanation = understood(answer)?;
    output::print(&explanation.to_string())
}

fn show(json: bool, dot: bool) -> Result<(), Failure> {
    if dot {
        let picture: String = understood(ask(&Question::Dot)?)?;
        return output::print(&picture);
    }
    let answer = ask(&Question::Show)?;
    if json {
        return output::print(&format!("{answer}\n"));
    }
    let lines: Vec<Line> = understood(answer)?;
    output::print(&table(&lines))
}

/// What a replay shows.
enum Shown {
    Ratings { json: bool, listed: String },
    Workload(Replay),
}

fn again(path: &Path, set: &[String], shown: &mut Shown) -> Result<(), Failure> {
    let file = File::open(path).map_err(|error| Failure::file("read", path, error))?;
    let mut wrong = None;
    let adjust = |recorded: Settings| {
        settings(recorded.clone(), set).unwrap_or_else(|failure| {
            wrong = Some(failure);
            recorded
        })
    };
    let (mut begun, mut result) = (None, Ok(()));
    let show = |attention: &Attention, second: &Second| match shown {
        Shown::Workload(replay) => replay.add(attention, second),
        Shown::Ratings { json, listed } => {
            let begun = *begun.get_or_insert(second.at);
            if result.is_ok() {
                result = report(attention, second.at - begun, *json, listed);
            }
        }
    };
    let replayed = replay(BufReader::new(file), adjust, show);
    if let Some(failure) = wrong {
        return Err(failure);
    }
    replayed.map_err(|error| Failure::wrong(format!("{}: {error}", path.display())))?;
    result?;
    match shown {
        Shown::Workload(replay) => output::print(&replay.text()),
        Shown::Ratings { .. } => Ok(()),
    }
}
