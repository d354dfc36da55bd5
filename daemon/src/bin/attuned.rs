//! The service: `attuned [--config FILE]`. Reads /etc/attune/attuned.toml if it is there.
//! `attuned install` makes it one of systemd's.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use attune_daemon::daemon::{self, Config};
use attune_daemon::guardian;
use clap::{Parser, Subcommand};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

const CONFIG: &str = "/etc/attune/attuned.toml";

/// Keeps a policy in the kernel, and gives programs that run to a beat the CPU reservations they
/// need
#[derive(Parser)]
#[command(
    version,
    after_help = "Example: attuned --config attuned.toml\n\nOwners ask for their programs at its \
        socket, a JSON object a line:\n\n    echo '{\"request\":\"tune\",\"process\":4711}' | \
        socat - UNIX-CONNECT:/run/attune/attuned.sock\n\nThe configuration and the requests are \
        described in docs/service.md and docs/rhythm.md. Needs root.\n\nExit status: 0 after \
        SIGTERM or Ctrl-C, 2 when the configuration is wrong, another attuned runs, or the machine \
        lacks something."
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
    /// Write the unit of systemd that starts this program at boot
    #[command(after_help = "Example: sudo attuned install && sudo systemctl enable --now attuned")]
    Install {
        /// Where units lie
        #[arg(long, value_name = "DIR", default_value = "/etc/systemd/system")]
        dir: PathBuf,
    },
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
        Some(Word::Install { dir }) => install(dir),
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

const UNIT: &str = include_str!("../../../systemd/attuned.service");

fn install(folder: &Path) -> Result<(), String> {
    let own = std::env::current_exe().map_err(|error| format!("where am I? {error}"))?;
    let unit = folder.join("attuned.service");
    std::fs::write(&unit, UNIT.replace("PROGRAM", &own.display().to_string()))
        .map_err(|error| format!("cannot write {}: {error}", unit.display()))?;
    println!(
        "wrote {}; `systemctl enable --now attuned` starts it, now and at boot",
        unit.display()
    );
    Ok(())
}

fn run(args: &Args) -> Result<(), String> {
    // A terminal that was closed is no reason to end.
    let say = |text: &str| drop(writeln!(std::io::stderr(), "attuned: {text}"));
    let path = args.config.as_deref().unwrap_or(Path::new(CONFIG));
    let config = match &args.config {
        None if !path.exists() => Config::default(),
        _ => read(path).inspect_err(|_| {
            if let Some(scheduler) = daemon::end_left_over() {
                say(&format!("ended {scheduler}, which an earlier service had left"));
            }
        })?,
    };
    let home = path.parent().filter(|home| home.exists()).unwrap_or(Path::new("."));
    let end = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&end))
            .map_err(|error| format!("cannot listen to signals: {error}"))?;
    }
    daemon::run(&config, home, &end, &say).map_err(|error| error.to_string())
}

fn read(path: &Path) -> Result<Config, String> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    Config::parse(&text).map_err(|error| format!("{}: {error}", path.display()))
}
