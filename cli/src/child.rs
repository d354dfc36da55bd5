//! A command that was started to be watched, and the wish to stop watching.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitCode, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::failure::Failure;

/// A command that was asked to end gets so much time for it.
const PATIENCE: Duration = Duration::from_secs(2);

/// Whether somebody asked this program to end: Ctrl-C, a closed terminal, SIGTERM.
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
    Command::new(program).args(arguments).spawn().map_err(|error| {
        let status = if error.kind() == ErrorKind::NotFound { 127 } else { 126 };
        Failure::with_status(format!("cannot run {}: {error}", program.to_string_lossy()), status)
    })
}

/// How it ended; one that still runs is asked to end, then made to, and tells nothing (None).
pub fn finish(child: &mut Child) -> Result<Option<ExitStatus>, Failure> {
    let wait = |child: &mut Child| {
        child.try_wait().map_err(|error| Failure::wrong(format!("cannot wait for the command: {error}")))
    };
    if let Some(status) = wait(child)? {
        return Ok(Some(status));
    }
    if let Ok(process) = i32::try_from(child.id()) {
        // SAFETY: no memory is involved; the child was not waited for, so the number is still its own.
        unsafe { libc::kill(process, libc::SIGTERM) };
    }
    let asked = Instant::now();
    while wait(child)?.is_none() {
        if asked.elapsed() > PATIENCE {
            // It may end by itself just now, which is as good.
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

/// The clock of a recording's events.
pub fn monotonic_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes the time into `time`; with this clock it cannot fail.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0)
}
