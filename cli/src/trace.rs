//! `attune trace`: what a program does, into a file.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;
use std::process::{Child, ExitCode};
use std::time::Instant;

use attune_tracer::{Error, Recording, Settings, Tracer, call_number, descendants, record, text};

use crate::args::TraceArgs;
use crate::child::{self, Interrupt};
use crate::failure::Failure;

pub fn run(args: &TraceArgs) -> Result<ExitCode, Failure> {
    let calls = args.calls.iter().map(|word| {
        call_number(word).ok_or_else(|| {
            Failure::usage(format!("no system call of this machine is called {word}"))
        })
    });
    let calls: Vec<u32> = calls.collect::<Result<_, _>>()?;
    let settings = Settings {
        exits: !args.no_exits,
        transitions: !args.no_transitions,
        threads: Some(args.threads.clone()).filter(|threads| !threads.is_empty()),
        calls: Some(calls).filter(|calls| !calls.is_empty()),
        ring_bytes: args.ring << 20,
    };
    let interrupt = Interrupt::listen()?;
    let mut tracer = Tracer::load(settings).map_err(failure)?;
    let origin = attune_linux::time::now();
    let mut started = watch(&mut tracer, args)?;

    let result = write(&mut tracer, args, origin, &mut started, &interrupt);
    // However it ended, a command that was started for the recording ends with it.
    let ended = started.as_mut().map(child::finish).transpose();
    let recording = result.map_err(|error| Failure::file("write", &args.output, error))?;
    say(&args.output, &recording);
    Ok(ended?.flatten().map_or(ExitCode::SUCCESS, child::exit_code))
}

/// Selects the processes, attaches the tracer and starts the command, so that nothing of its life
/// is missed.
fn watch(tracer: &mut Tracer, args: &TraceArgs) -> Result<Option<Child>, Failure> {
    for &process in &args.processes {
        if descendants(process).is_empty() {
            return Err(Failure::usage(format!("there is no process {process}")));
        }
    }
    tracer.attach().map_err(failure)?;
    for &process in &args.processes {
        tracer.select(process, !args.no_children).map_err(failure)?;
        if !args.no_children {
            // The tracer follows processes that start from now on by itself.
            descendants(process)
                .into_iter()
                .try_for_each(|child| tracer.select(child, true))
                .map_err(failure)?;
        }
    }
    if args.words.is_empty() {
        return Ok(None);
    }
    let own = std::process::id();
    tracer.select_future_children(own).map_err(failure)?;
    let child = child::start(&args.words);
    tracer.deselect(own);
    let child = child?;
    if args.no_children {
        tracer.select(child.id(), false).map_err(failure)?;
    }
    Ok(Some(child))
}

fn write(
    tracer: &mut Tracer,
    args: &TraceArgs,
    origin: u64,
    started: &mut Option<Child>,
    interrupt: &Interrupt,
) -> io::Result<Recording> {
    let mut out = BufWriter::new(File::create(&args.output)?);
    let what = match args.words.is_empty() {
        true => args
            .processes
            .iter()
            .map(|process| format!("process {process}"))
            .collect::<Vec<_>>()
            .join(", "),
        false => args.words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" "),
    };
    text::write_head(&mut out, &what)?;
    let begun = Instant::now();
    record(tracer, &mut out, origin, |tracer| {
        let time_left = args.seconds.is_none_or(|limit| begun.elapsed() < limit);
        // Reaps it, too: a process that ended but was not waited for is no process to record.
        let alive = started
            .as_mut()
            .is_none_or(|child| child.try_wait().is_ok_and(|status| status.is_none()));
        time_left
            && !interrupt.came()
            && (!tracer.selected().is_empty() || (!args.words.is_empty() && alive))
    })
}

fn say(path: &Path, recording: &Recording) {
    let Recording { events, processes, threads, lost } = recording;
    eprintln!("{}: {events} events of {threads} threads in {processes} processes", path.display());
    if *lost > 0 {
        eprintln!(
            "{lost} events are missing: they came faster than they could be written; give them \
                more room (--ring 64) or select fewer (--call, --no-exits, --no-transitions)"
        );
    }
}

fn failure(error: Error) -> Failure {
    Failure::usage(error.to_string())
}
