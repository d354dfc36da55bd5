//! The daemon that tunes programs: `attuned [--config FILE]`. Reads /etc/attune/attuned.toml if it
//! is there.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use attune_daemon::daemon::{self, Config};
use attune_daemon::guardian;
use clap::{Parser, Subcommand};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

const CONFIG: &str = "/etc/attune/attuned.toml";

/// Gives programs that run to a beat the CPU reservations they need
#[derive(Parser)]
#[command(
    version,
    after_help = "Example: attuned --config attuned.toml\n\nOwners ask for their programs at its \
        socket, a JSON object a line:\n\n    echo '{\"request\":\"tune\",\"process\":4711}' | \
        socat - UNIX-CONNECT:/run/attune/attuned.sock\n\nThe configuration and the requests are \
        described in docs/rhythm.md. Needs root."
)]
struct Args {
    /// The configuration (default: /etc/attune/attuned.toml, if it exists)
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(subcommand)]
    command: Option<Word>,
}

#[derive(Subcommand)]
enum Word {
    /// The daemon's own guardian: gives threads back if the daemon is killed
    #[command(name = guardian::WORD, hide = true)]
    Guardian { journal: PathBuf },
}

fn main() -> ExitCode {
    let args = Args::parse();
    let result = match &args.command {
        Some(Word::Guardian { journal }) => {
            guardian::watch(journal).map(|_| ()).map_err(|error| error.to_string())
        }
        None => run(&args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("attuned: {message}");
            ExitCode::from(2)
        }
    }
}

fn run(args: &Args) -> Result<(), String> {
    let config = match &args.config {
        Some(path) => read(path)?,
        None if Path::new(CONFIG).exists() => read(Path::new(CONFIG))?,
        None => Config::default(),
    };
    let end = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&end))
            .map_err(|error| format!("cannot listen to signals: {error}"))?;
    }
    daemon::run(&config, &end, &|text| eprintln!("attuned: {text}"))
        .map_err(|error| error.to_string())
}

fn read(path: &Path) -> Result<Config, String> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    Config::parse(&text).map_err(|error| format!("{}: {error}", path.display()))
}
