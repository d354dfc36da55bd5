//! `attune top`: how the scheduler in the kernel stands, or that of a program's own threads, and
//! what tuners have reserved; once or again and again.
//!
//! The run itself says what is true at one moment (`attune_kernel::snapshot`); names, states and
//! times of threads are the kernel's, read from /proc just behind it. Tuners are asked at their
//! sockets.

mod proc;
mod program;
mod ratings;
mod reservations;
mod screen;
mod table;

use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::time::Duration;

use attune_daemon::{Status, daemon, state_folder};
use attune_kernel::Snapshot;
use attune_kernel::snapshot::PolicySnapshot;
use attune_values::program::Program;
use attune_values::wire::Request;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::args::TopArgs;
use crate::engine::Engine;
use crate::failure::Failure;
use crate::output;

use proc::Threads;
use screen::Screen;
use table::{Line, plain};

pub fn run(args: &TopArgs) -> Result<ExitCode, Failure> {
    let (sources, view) = Sources::find()?;
    if args.json {
        output::print(&(view.json()?.to_string() + "\n"))?;
    } else if args.once {
        let lines = view.lines();
        output::print(&lines.into_iter().map(|line| line.text + "\n").collect::<String>())?;
    } else if io::stdout().is_terminal() && io::stdin().is_terminal() {
        live(&sources, view, Duration::from_secs_f64(args.interval))?;
    } else {
        return Err(Failure::usage(
            "this is no terminal: --once prints how it stands now, --json for a program",
        ));
    }
    Ok(ExitCode::SUCCESS)
}

/// Until the user leaves, or nothing is left to see.
fn live(sources: &Sources, mut view: View, interval: Duration) -> Result<(), Failure> {
    let broken = |error: io::Error| Failure::usage(format!("the terminal: {error}"));
    let mut screen = Screen::open().map_err(broken)?;
    loop {
        screen.show(&view.lines()).map_err(broken)?;
        if screen.wait(interval).map_err(broken)? {
            return Ok(());
        }
        view = sources.view(Some(&view))?;
    }
}

/// The sources of a view.
struct Sources {
    /// None: only tuners run.
    engine: Option<Engine>,
}

impl Sources {
    /// The sources and their first view. Err: there are none.
    fn find() -> Result<(Sources, View), Failure> {
        let tuned = !daemon::statuses(&state_folder()).is_empty();
        let engine = match Engine::connect() {
            Ok(engine) => Some(engine),
            Err(_) if tuned => None,
            Err(failure) => {
                return Err(Failure::usage(format!(
                    "{}\n  And nothing is tuned: `attune tune` does that.",
                    failure.message()
                )));
            }
        };
        let sources = Sources { engine };
        let view = sources.view(None)?;
        Ok((sources, view))
    }

    fn view(&self, before: Option<&View>) -> Result<View, Failure> {
        let tuners = daemon::statuses(&state_folder());
        let Some(engine) = &self.engine else {
            return match tuners.is_empty() {
                true => Err(Failure::wrong("the tuner has ended")),
                false => Ok(View { scheduler: Scheduler::None, tuners }),
            };
        };
        let before = before.map(|view| &view.scheduler);
        let scheduler = match engine.ask(&Request::Snapshot)? {
            Told::Kernel(snapshot) => {
                let before = match before {
                    Some(Scheduler::Kernel(_, threads)) => Some(threads),
                    _ => None,
                };
                let threads = Threads::read(&snapshot, before);
                Scheduler::Kernel(snapshot, threads)
            }
            Told::Program(now) => {
                let before = match before {
                    Some(Scheduler::Program { now, .. }) => Some(now.clone()),
                    _ => None,
                };
                Scheduler::Program { now, before }
            }
        };
        Ok(View { scheduler, tuners })
    }
}

/// What an engine answers.
#[derive(Deserialize)]
#[serde(untagged)]
enum Told {
    Kernel(Snapshot),
    Program(Program),
}

/// The scheduler that is shown.
enum Scheduler {
    None,
    Kernel(Snapshot, Threads),
    Program { now: Program, before: Option<Program> },
}

/// What is shown.
struct View {
    scheduler: Scheduler,
    tuners: Vec<Status>,
}

impl View {
    fn lines(&self) -> Vec<Line> {
        let mut lines = match &self.scheduler {
            Scheduler::None => Vec::new(),
            Scheduler::Kernel(snapshot, threads) => {
                let name = |thread| threads.of(thread).map(|of| of.name.clone());
                [
                    table::overview(snapshot, threads),
                    ratings::lines(snapshot, name),
                    table::policies(snapshot, threads),
                ]
                .concat()
            }
            Scheduler::Program { now, before } => program::lines(now, before.as_ref()),
        };
        if !lines.is_empty() && !self.tuners.is_empty() {
            plain(&mut lines, String::new());
        }
        lines.extend(reservations::lines(&self.tuners));
        lines
    }

    /// What the run says, and of each thread what /proc says; nothing of it where none runs.
    /// `reservations` in any case.
    fn json(&self) -> Result<Value, Failure> {
        let failed = |error: serde_json::Error| Failure::usage(error.to_string());
        let mut value = match &self.scheduler {
            Scheduler::None => Value::Object(Map::new()),
            Scheduler::Kernel(snapshot, threads) => {
                let mut value = serde_json::to_value(snapshot).map_err(failed)?;
                for (policy, of) in
                    value["policies"].as_array_mut().into_iter().flatten().zip(&snapshot.policies)
                {
                    add(policy, of, threads);
                }
                value
            }
            Scheduler::Program { now, .. } => serde_json::to_value(now).map_err(failed)?,
        };
        value["reservations"] = serde_json::to_value(&self.tuners).map_err(failed)?;
        Ok(value)
    }
}

/// Names each value of the policy's threads, and says what the kernel knows of the thread, wherever
/// one stands.
fn add(value: &mut Value, policy: &PolicySnapshot, threads: &Threads) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| add(item, policy, threads)),
        Value::Object(members) => {
            let thread = members
                .get("thread")
                .and_then(Value::as_i64)
                .filter(|_| members.contains_key("process"));
            if let Some(known) = thread.map(|thread| threads.of(thread as i32)) {
                let all = [
                    ("name", known.map(|it| it.name.clone().into())),
                    ("kernel_state", known.map(|it| it.state.to_string().into())),
                    ("run_ns", known.map(|it| it.run.into())),
                    ("wait_ns", known.map(|it| it.wait.into())),
                ];
                members.extend(
                    all.map(|(name, value)| (name.to_owned(), value.unwrap_or(Value::Null))),
                );
            }
            if let Some(values) = members.get_mut("values")
                && let Some(all) = values.as_array()
            {
                let names = policy.attributes.iter().map(|attribute| attribute.name.clone());
                *values = names.zip(all.iter().cloned()).collect();
            }
            members.values_mut().for_each(|member| add(member, policy, threads));
        }
        _ => {}
    }
}
