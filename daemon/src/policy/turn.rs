//! Which of the service's processes holds the policy: the one that has locked `holder.lock`.
//! Another stands by, with the policy loaded, and takes the turn when the holder is killed:
//! attaching takes milliseconds, loading may take seconds.
//!
//! Invariant: a process that stands by takes no turn after a holder that has ended by itself. How
//! long the service then waits is for the service to say.

use std::fs::{File, TryLockError};
use std::io;
use std::os::unix::process::parent_id;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use super::{Cause, Runs};

const LOOK: Duration = Duration::from_millis(10);

/// The right to be the holder, until this is dropped or the process ends.
#[derive(Debug)]
pub struct Turn(#[expect(dead_code, reason = "its lock counts")] File);

/// The turn, if no process has it.
pub fn take(folder: &Path) -> io::Result<Option<Turn>> {
    std::fs::create_dir_all(folder)?;
    let file = File::create(folder.join("holder.lock"))?;
    match file.try_lock() {
        Ok(()) => Ok(Some(Turn(file))),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Waits until the holder has been killed. None: it ended by itself, or the service is gone.
pub fn stand_by(folder: &Path) -> io::Result<Option<Turn>> {
    let service = parent_id();
    loop {
        if let Some(turn) = take(folder)? {
            return Ok(holder_was_killed(folder).then_some(turn));
        }
        if parent_id() != service {
            return Ok(None);
        }
        sleep(LOOK);
    }
}

/// The lock is free a moment before the process is gone.
fn holder_was_killed(folder: &Path) -> bool {
    for _ in 0..500 {
        let runs = Runs::read(folder);
        if runs.now.is_none() {
            let end = runs.last.and_then(|last| last.ended);
            return end.is_some_and(|end| end.cause == Cause::Killed);
        }
        sleep(LOOK);
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Record;

    fn ended(folder: &Path, cause: Cause) {
        Record::new("fair".to_owned(), None).end(folder, cause, "so it was".to_owned()).unwrap();
    }

    /// Whether a process that stands by takes the turn after such an end.
    fn takes_over_after(cause: Cause) -> bool {
        let folder = tempfile::tempdir().unwrap();
        let holder = take(folder.path()).unwrap().expect("nobody has it");
        assert!(take(folder.path()).unwrap().is_none());
        let place = folder.path().to_owned();
        let stands = std::thread::spawn(move || stand_by(&place).unwrap());
        ended(folder.path(), cause);
        drop(holder);
        stands.join().unwrap().is_some()
    }

    #[test]
    fn the_turn_is_taken_only_after_a_holder_that_was_killed() {
        assert!(takes_over_after(Cause::Killed));
        for cause in [Cause::Kernel, Cause::Asked, Cause::Start] {
            assert!(!takes_over_after(cause), "{cause:?}");
        }
    }
}
