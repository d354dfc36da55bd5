//! `attune tune`: reservations for programs that run to a beat, for as long as it runs.

use std::path::Path;
use std::process::{Child, ExitCode};
use std::thread::sleep;
use std::time::{Duration, Instant};

use attune_daemon::daemon::{self, Server};
use attune_daemon::{Account, Error, Options, Status, Supervisor, Target, display, guardian};
use attune_linux::process;
use attune_rhythm::{Method, Settings, spectrum_2010};
use serde_json::json;

use crate::args::{PeriodMethod, TuneArgs};
use crate::child::{self, Interrupt};
use crate::failure::Failure;
use crate::output;

/// How often --json says how all stands.
const STATUS: Duration = Duration::from_secs(1);

pub fn run(args: &TuneArgs) -> Result<ExitCode, Failure> {
    let method = match args.method {
        PeriodMethod::Evidence => Method::Evidence,
        PeriodMethod::Spectrum2010 => Method::Spectrum2010(spectrum_2010::Parameters::default()),
    };
    let options = Options {
        law: args.controller,
        settings: Settings { method, ..Settings::default() },
        bound: args.bound,
        ..Options::default()
    };
    let interrupt = Interrupt::listen()?;
    let mut supervisor = Supervisor::start(options).map_err(failure)?;
    let mut weights = args.weights.iter().copied().chain(std::iter::repeat(1.0));
    for &process in &args.processes {
        let target = Target::open(process).map_err(failure)?;
        supervisor.add(target, Account::Machine, weights.next().unwrap_or(1.0));
    }
    if args.display {
        let server = std::env::var("DISPLAY").ok().and_then(|display| display::server(&display));
        let server = server.ok_or_else(|| {
            Failure::usage(
                "--display: DISPLAY names no X server of this machine; leave the option out or set \
                    DISPLAY",
            )
        })?;
        supervisor.add_display(Target::open(server).map_err(failure)?, 1.0);
    }
    let mut started = (!args.words.is_empty()).then(|| child::start(&args.words)).transpose()?;
    if let Some(child) = &started {
        // It may have ended just now; then its status is all that is left to tell.
        if let Ok(target) = Target::open(child.id()) {
            supervisor.add(target, Account::Machine, weights.next().unwrap_or(1.0));
        }
    }

    // For `attune top`; tuning does without.
    let mut server = Server::listen(&daemon::own_socket(&attune_daemon::state_folder())).ok();
    let result = tune(&mut supervisor, args, started.as_mut(), &interrupt, server.as_mut());
    if result.is_ok() && !args.json {
        eprint!("{}", summary(&supervisor.status(process::effective_user())));
    }
    // First everybody is as before, then a command that was started for it ends.
    drop(supervisor);
    let ended = started.as_mut().map(child::finish).transpose();
    result?;
    Ok(ended?.flatten().map_or(ExitCode::SUCCESS, child::exit_code))
}

fn tune(
    supervisor: &mut Supervisor,
    args: &TuneArgs,
    mut started: Option<&mut Child>,
    interrupt: &Interrupt,
    mut server: Option<&mut Server>,
) -> Result<(), Failure> {
    let begun = Instant::now();
    let mut told = begun;
    loop {
        for note in supervisor.step().map_err(failure)? {
            match args.json {
                true => output::print(&format!("{}\n", json!(note)))?,
                false => eprintln!("attune: {note}"),
            }
        }
        if args.json && told.elapsed() >= STATUS {
            told += STATUS;
            output::print(&format!(
                "{}\n",
                json!({ "status": supervisor.status(process::effective_user()) })
            ))?;
        }
        if let Some(server) = &mut server {
            server.serve(|peer, request| daemon::answer_status(supervisor, peer, request));
        }
        let time_left = args.seconds.is_none_or(|limit| begun.elapsed() < limit);
        let alive = started.as_mut().is_none_or(|child| matches!(child.try_wait(), Ok(None)));
        let command = !args.words.is_empty();
        if !time_left
            || interrupt.came()
            || (command && !alive)
            || (!command && supervisor.is_empty())
        {
            return Ok(());
        }
        let pause = supervisor.next().saturating_sub(attune_linux::time::now()).max(200_000);
        sleep(Duration::from_nanos(pause));
    }
}

/// What was given and used, a line for each program.
fn summary(status: &Status) -> String {
    let line = |program: &attune_daemon::ProgramStatus| {
        let period = program
            .period_ms
            .map_or("no beat".to_owned(), |period| format!("period {period:.3} ms"));
        let ratio = program.given_ms / program.used_ms.max(1e-9);
        let given = match program.used_ms > 0.0 {
            true => format!(
                ", reserved {:.0} ms, used {:.0} ms ({ratio:.2} times)",
                program.given_ms, program.used_ms
            ),
            false => String::new(),
        };
        format!("attune: {} ({}): {period}{given}\n", program.name, program.process)
    };
    status.programs.iter().map(line).collect()
}

/// The guardian's side.
pub fn guard(journal: &Path) -> Result<ExitCode, Failure> {
    guardian::watch(journal).map_err(|error| Failure::wrong(format!("the guardian: {error}")))?;
    Ok(ExitCode::SUCCESS)
}

fn failure(error: Error) -> Failure {
    Failure::usage(error.to_string())
}
