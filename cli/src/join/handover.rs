//! The right to give the kernel a policy: `join.lock` in the state folder is locked while a run
//! begins to listen to processes and attaches. So of two runs that find the machine free one is
//! first, and the other can join it.

use std::fs::{File, TryLockError};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use attune_daemon::state_folder;

use crate::failure::Failure;
use crate::output::tell;

const LOOK: Duration = Duration::from_millis(10);
/// A run that has the right attaches within seconds, unless somebody has stopped it.
const PATIENCE: Duration = Duration::from_secs(60);
/// A run that waits for longer says so.
pub const SAYS_SO: Duration = Duration::from_secs(1);

/// Dropped, another run has the right.
pub struct Handover(#[expect(dead_code, reason = "its lock counts")] File);

impl Handover {
    /// None: another run has the right now.
    pub fn take() -> io::Result<Option<Handover>> {
        let folder = state_folder();
        std::fs::create_dir_all(&folder)?;
        let file = File::create(folder.join("join.lock"))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Handover(file))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// None: `stop` says that the run is to end.
    pub fn wait(stop: &AtomicBool) -> Result<Option<Handover>, Failure> {
        let (begun, path) = (Instant::now(), state_folder().join("join.lock"));
        let mut told = false;
        while !stop.load(Ordering::Relaxed) {
            match Handover::take() {
                Ok(Some(handover)) => return Ok(Some(handover)),
                Ok(None) if begun.elapsed() < PATIENCE => {
                    if !told && begun.elapsed() > SAYS_SO {
                        tell!("attune: waits, for another run is about to begin");
                        told = true;
                    }
                    sleep(LOOK);
                }
                Ok(None) => {
                    return Err(Failure::wrong(format!(
                        "another run has been about to begin for {} s; it may be stopped. It has \
                         locked {} (`fuser` says which process)",
                        PATIENCE.as_secs(),
                        path.display()
                    )));
                }
                Err(error) => return Err(Failure::file("lock", &path, error)),
            }
        }
        Ok(None)
    }
}
