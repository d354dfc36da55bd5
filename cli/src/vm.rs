//! `attune vm`: one command in a virtual machine, and the machine's set-up.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{ExitCode, ExitStatus};
use std::thread;

use attune_vm::{
    Cache, Command, Control, Kernel, Kind, Machine, Options, Setup, Streams, Topology,
};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::args::{VmArgs, VmCommand, VmRunArgs, VmSetupArgs};
use crate::failure::Failure;

pub fn run(args: &VmArgs) -> Result<ExitCode, Failure> {
    match &args.command {
        Some(VmCommand::Setup(args)) => set_up(args),
        None => run_command(&args.run),
    }
}

fn folder(given: &Option<PathBuf>, which: Kernel) -> PathBuf {
    given.clone().unwrap_or_else(|| Cache::folder_for(which))
}

fn kernel(is_full: bool) -> Kernel {
    if is_full { Kernel::Full } else { Kernel::Cloud }
}

fn set_up(args: &VmSetupArgs) -> Result<ExitCode, Failure> {
    let which = kernel(args.full);
    let mut setup = Setup::from_environment(folder(&args.dir, which), which);
    let there = Cache::open(&setup.folder);
    if let (Ok(cache), false) = (&there, args.force) {
        eprintln!("vm setup: already there; --force fetches the newest again");
        return describe(cache);
    }
    if !args.kernel.is_empty() {
        setup.kernel.clone_from(&args.kernel);
    }
    setup.qemu = args.qemu.clone().or(setup.qemu);
    setup.virtiofsd = args.virtiofsd.clone().or(setup.virtiofsd);
    setup.mirror = args.mirror.clone().unwrap_or(setup.mirror);
    let cache = setup
        .run(&|text| eprintln!("vm setup: {text}"))
        .map_err(|error| Failure::wrong(format!("vm setup: {error:#}")))?;
    describe(&cache)
}

fn describe(cache: &Cache) -> Result<ExitCode, Failure> {
    let (kernel, qemu) = (cache.kernel_release(), cache.qemu_version());
    crate::output::print(&format!(
        "kernel {kernel}, QEMU {qemu}, in {}\n",
        cache.folder().display()
    ))?;
    Ok(ExitCode::SUCCESS)
}

fn run_command(args: &VmRunArgs) -> Result<ExitCode, Failure> {
    let cache = Cache::open(&folder(&args.dir, kernel(args.full))).map_err(failure)?;
    let kind = if args.deterministic {
        Kind::Deterministic { pack: args.pack.clone(), seed: args.seed }
    } else {
        Kind::HostFiles
    };
    let topology = args.topology.unwrap_or_else(|| Topology::flat(args.cpus));
    let options = Options { topology, memory: args.memory, kind, timeout: args.timeout };
    let machine = Machine::boot(&cache, &options, &command(args)?).map_err(failure)?;
    pass_signals_on(machine.control())?;
    let streams = Streams {
        input: Some(
            stdin()
                .map_err(|error| Failure::usage(format!("cannot read standard input: {error}")))?,
        ),
        output: &mut io::stdout().lock(),
        error_output: &mut io::stderr().lock(),
    };
    let status = machine.relay(streams).map_err(failure)?;
    Ok(exit_code(status))
}

/// The words, in this folder; with this environment if time is real, and with a fixed one if runs
/// are to be the same. In both `attune` is this very program: its folder is the first of the
/// guest's PATH.
fn command(args: &VmRunArgs) -> Result<Command, Failure> {
    let here = |error| Failure::usage(format!("where am I? {error}"));
    let mut command = Command::new(&args.words);
    command = if args.deterministic {
        command.in_folder(std::env::current_dir().map_err(here)?)
    } else {
        command.as_here().map_err(here)?
    };
    if let Some(path) = own_path_first(command.variable("PATH")) {
        command = command.with_env("PATH", path);
    }
    for variable in &args.env {
        let Some((name, value)) = variable.split_once('=') else {
            return Err(Failure::usage(format!("--env {variable}: NAME=VALUE is meant")));
        };
        command = command.with_env(name, value);
    }
    command.one_stream = same_file(&io::stdout(), &io::stderr());
    Ok(command)
}

/// A PATH with this program's folder in front. None: it lies nowhere, or where no PATH can lead.
fn own_path_first(path: Option<&OsStr>) -> Option<OsString> {
    let own = std::env::current_exe().ok()?.parent()?.to_owned();
    let others =
        path.map(|path| std::env::split_paths(path).collect::<Vec<_>>()).unwrap_or_default();
    let others = others.into_iter().filter(|folder| *folder != own);
    std::env::join_paths([own.clone()].into_iter().chain(others)).ok()
}

/// A standard input that was closed is an empty one.
fn stdin() -> io::Result<File> {
    io::stdin().as_fd().try_clone_to_owned().map(File::from).or_else(|_| File::open("/dev/null"))
}

/// Whether what is written to one comes out where the other's comes out, so that their order is
/// seen.
fn same_file(one: &impl AsFd, other: &impl AsFd) -> bool {
    use std::os::unix::fs::MetadataExt;
    let about = |file: &dyn Fn() -> io::Result<File>| file().and_then(|file| file.metadata()).ok();
    let one = about(&|| Ok(File::from(one.as_fd().try_clone_to_owned()?)));
    let other = about(&|| Ok(File::from(other.as_fd().try_clone_to_owned()?)));
    one.zip(other).is_some_and(|(one, other)| (one.dev(), one.ino()) == (other.dev(), other.ino()))
}

/// The first Ctrl-C is the command's; the second ends the machine.
fn pass_signals_on(control: Control) -> Result<(), Failure> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])
        .map_err(|error| Failure::usage(format!("cannot listen for signals: {error}")))?;
    thread::spawn(move || {
        for (count, signal) in signals.forever().enumerate() {
            if count == 0 {
                control.signal(signal as u8);
            } else {
                control.end();
            }
        }
    });
    Ok(())
}

fn exit_code(status: ExitStatus) -> ExitCode {
    let signalled = status.signal().map(|signal| 128 + signal);
    ExitCode::from(status.code().or(signalled).unwrap_or(125) as u8)
}

fn failure(error: attune_vm::Error) -> Failure {
    let status = error.exit_status();
    let message = match error {
        attune_vm::Error::Other(error) => format!("{error:#}"),
        error => error.to_string(),
    };
    Failure::with_status(format!("vm: {message}"), status)
}
