//! The daemon `attuned`: tunes the programs that its configuration names whenever they run, and
//! those that their owners ask for.

mod client;
mod config;
mod requests;
mod server;

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::Duration;

pub use client::{Rater, own_socket, statuses};
pub use config::Config;
pub use requests::{Request, answer, answer_status};
pub use server::Server;

use attune_linux::procfs;
use attune_linux::time::{self, SECOND};

use crate::kernel::Kernel;
use crate::weights::Weights;
use crate::{Error, Options, Supervisor, display};

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
}

/// Runs until `end` is set.
pub fn run(config: &Config, end: &AtomicBool, say: &dyn Fn(&str)) -> Result<(), DaemonError> {
    let path = config.socket.clone().unwrap_or_else(default_socket);
    let kernel = Kernel::of_this_machine();
    let state = crate::state_folder();
    let mut supervisor =
        Supervisor::start(Options { bound: config.bound, law: config.law, ..Options::default() })?;
    let mut weights = Weights::start(&state, kernel)
        .map_err(|error| Error::State { folder: state.display().to_string(), error })?;
    let mut server = Server::listen(&path)
        .map_err(|error| DaemonError::Socket { path: path.display().to_string(), error })?;
    say(&format!("listening at {}", path.display()));
    if let Some(process) = config.display.as_deref().and_then(display::server) {
        supervisor.add_display(process, config.display_weight)?;
    }
    let mut search = 0;
    while !end.load(Ordering::Relaxed) {
        for note in supervisor.step()? {
            say(&note.to_string());
        }
        server.serve(|peer, request| answer(&mut supervisor, &mut weights, peer, request));
        let state_lost = |error| Error::State { folder: state.display().to_string(), error };
        weights.step().map_err(state_lost)?;
        let now = time::now();
        if now >= search {
            search = now + SEARCH;
            find(&mut supervisor, &mut weights, config);
        }
        sleep(
            Duration::from_nanos(supervisor.next().saturating_sub(now))
                .max(Duration::from_millis(1)),
        );
    }
    Ok(())
}

/// Programs that the configuration names and that are not tuned yet.
fn find(supervisor: &mut Supervisor, weights: &mut Weights, config: &Config) {
    if config.programs.is_empty() {
        return;
    }
    for process in procfs::processes() {
        let name = procfs::name(process);
        if let Some(program) = config.programs.iter().find(|program| program.name == name) {
            // A journal that cannot be written is told by the next round; the program may have
            // ended just now.
            let _ = weights.release_process(process);
            let _ = supervisor.add(process, program.weight);
        }
    }
}
