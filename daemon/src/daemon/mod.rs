//! The daemon `attuned`: keeps the configured policy in the kernel, and tunes the programs that its
//! configuration names whenever they run, and those that their owners ask for.

mod client;
mod config;
mod requests;
mod server;

use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::Duration;

pub use client::{Rater, own_socket, policy, statuses};
pub use config::Config;
pub use requests::{Request, answer, answer_status};
pub use server::Server;

use attune_linux::procfs;
use attune_linux::time::{self, MILLISECOND, NEVER, SECOND};

use crate::kernel::Kernel;
use crate::policy::{Keeper, keeper};
use crate::weights::Weights;
use crate::{Error, Options, Supervisor, Target, display};

/// How often new programs are looked for.
const SEARCH: u64 = 2 * SECOND;

/// Where requests come in, unless the configuration says another place.
pub fn default_socket() -> PathBuf {
    crate::state_folder().join("attuned.sock")
}

#[derive(Debug, thiserror::Error)]
pub enum DaemonError {
    #[error(transparent)]
    Supervisor(#[from] Error),
    #[error("cannot listen at {path}: {error}")]
    Socket { path: String, error: io::Error },
    #[error("another attuned runs already: {0} is locked. `attune status` says what it does")]
    Another(String),
}

/// Runs until `end` is set. `home`: the configuration's folder.
pub fn run(
    config: &Config,
    home: &Path,
    end: &AtomicBool,
    say: &dyn Fn(&str),
) -> Result<(), DaemonError> {
    let path = config.socket.clone().unwrap_or_else(default_socket);
    let kernel = Kernel::of_this_machine();
    let state = crate::state_folder();
    let _alone = alone(&state)?;
    // The policy comes first: what it needs of the machine is less than what tuning needs.
    let mut keeper = config.policy.as_ref().map(|policy| Keeper::new(policy, home, &state));
    match &mut keeper {
        Some(keeper) => keeper.take_over().into_iter().chain(keeper.step()).for_each(|it| say(&it)),
        None => {
            if let Some(scheduler) = keeper::end_left_over(&state) {
                say(&format!("ended {scheduler}, which the configuration does not name any more"));
            }
        }
    }
    let mut supervisor = Supervisor::start(Options {
        bound: config.bound,
        user_bound: config.user_bound,
        law: config.law,
        ..Options::default()
    })?;
    let mut weights = Weights::start(&state, kernel)
        .map_err(|error| Error::State { folder: state.display().to_string(), error })?;
    let mut server = Server::listen(&path)
        .map_err(|error| DaemonError::Socket { path: path.display().to_string(), error })?;
    say(&format!("listening at {}", path.display()));
    if let Some(process) = config.display.as_deref().and_then(display::server) {
        supervisor.add_display(Target::open(process)?, config.display_weight);
    }
    let mut search = 0;
    while !end.load(Ordering::Relaxed) {
        for note in supervisor.step()? {
            say(&note.to_string());
        }
        if let Some(keeper) = &mut keeper {
            keeper.step().iter().for_each(|note| say(note));
        }
        let kept = keeper.as_ref().map(Keeper::status);
        server.serve(|peer, request| answer(&mut supervisor, &mut weights, &kept, peer, request));
        let state_lost = |error| Error::State { folder: state.display().to_string(), error };
        weights.step().map_err(state_lost)?;
        let now = time::now();
        if now >= search {
            search = now + SEARCH;
            find(&mut supervisor, &mut weights, config);
        }
        let pause = supervisor.next().saturating_sub(now).max(MILLISECOND);
        let look = if keeper.is_some() { keeper::LOOK } else { NEVER };
        sleep(Duration::from_nanos(pause.min(look)));
    }
    Ok(())
}

/// For a service that cannot run: ends the policy that an earlier one has left, for no service
/// would end it. Its name.
pub fn end_left_over() -> Option<String> {
    let state = crate::state_folder();
    let _alone = alone(&state).ok()?;
    keeper::end_left_over(&state)
}

/// A second service would quarrel with the first, wherever each listens.
fn alone(folder: &Path) -> Result<File, DaemonError> {
    let lost = |error| Error::State { folder: folder.display().to_string(), error };
    let path = folder.join("attuned.lock");
    std::fs::create_dir_all(folder).map_err(lost)?;
    let file = File::create(&path).map_err(lost)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(DaemonError::Another(path.display().to_string())),
        Err(TryLockError::Error(error)) => Err(lost(error).into()),
    }
}

/// Programs that the configuration names and that are not tuned yet.
fn find(supervisor: &mut Supervisor, weights: &mut Weights, config: &Config) {
    if config.programs.is_empty() {
        return;
    }
    for process in procfs::processes() {
        if supervisor.has(process) {
            continue;
        }
        // It may have ended just now.
        let Ok(target) = Target::open(process) else { continue };
        if let Some(program) = config.programs.iter().find(|program| program.is(&target)) {
            // A journal that cannot be written is told by the next round.
            let _ = weights.release_process(target.process);
            let account = program.account(target.user);
            supervisor.add(target, account, program.weight);
        }
    }
}
