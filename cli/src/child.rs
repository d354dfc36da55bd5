//! A command that this program starts and watches, and the user's wish to stop.

use std::ffi::{OsStr, OsString};
use std::io::{self, ErrorKind};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitCode, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use attune_linux::{process, signal};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::failure::Failure;

/// Time for a command to end after SIGTERM.
const PATIENCE: Duration = Duration::from_secs(2);

/// Whether a signal asked this program to end: Ctrl-C, a closed terminal, SIGTERM.
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    pub fn listen() -> Result<Interrupt, Failure> {
        let flag = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            signal_hook::flag::register(signal, Arc::clone(&flag))
                .map_err(|error| Failure::usage(format!("cannot listen to signals: {error}")))?;
        }
        Ok(Interrupt(flag))
    }

    pub fn came(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Starts it with this program's streams.
pub fn start(words: &[OsString]) -> Result<Child, Failure> {
    let Some((program, arguments)) = words.split_first() else {
        return Err(Failure::usage("no command was given"));
    };
    Command::new(program).args(arguments).spawn().map_err(|error| cannot_run(program, &error))
}

/// As shells tell it: exit status 127 for a command that is not there, 126 for one that cannot run.
pub fn cannot_run(program: impl AsRef<OsStr>, error: &io::Error) -> Failure {
    let status = if error.kind() == ErrorKind::NotFound { 127 } else { 126 };
    let program = program.as_ref().to_string_lossy();
    Failure::with_status(format!("cannot run {program}: {error}"), status)
}

/// How it ended. None: it still ran; SIGTERM asked it to end, and SIGKILL made it.
pub fn finish(child: &mut Child) -> Result<Option<ExitStatus>, Failure> {
    let wait = |child: &mut Child| {
        child
            .try_wait()
            .map_err(|error| Failure::wrong(format!("cannot wait for the command: {error}")))
    };
    if let Some(status) = wait(child)? {
        return Ok(Some(status));
    }
    // It was not waited for, so the number is still its own; it may end by itself just now.
    let _ = process::signal(child.id(), signal::TERMINATE);
    let asked = Instant::now();
    while wait(child)?.is_none() {
        if asked.elapsed() > PATIENCE {
            let _ = child.kill();
        }
        sleep(Duration::from_millis(10));
    }
    Ok(None)
}

/// As shells tell it.
pub fn exit_code(status: ExitStatus) -> ExitCode {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    ExitCode::from(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}
