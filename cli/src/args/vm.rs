//! The words of `attune vm`: one command in a virtual machine, and the machine's set-up.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args as ClapArgs, Subcommand};

use super::{help, seconds};

#[derive(ClapArgs)]
pub struct VmArgs {
    #[command(subcommand)]
    pub command: Option<VmCommand>,
    #[command(flatten)]
    pub run: VmRunArgs,
}

#[derive(Subcommand)]
pub enum VmCommand {
    /// Fetch a kernel and an emulator from Debian's archive, check them and keep them
    #[command(after_help = help::SETUP)]
    Setup(VmSetupArgs),
}

#[derive(ClapArgs)]
pub struct VmSetupArgs {
    /// Debian's kernel for any machine, which has drivers and tests of sleep, instead of the one
    /// for clouds; kept beside it (default: ~/.cache/attune/vm-full)
    #[arg(long)]
    pub full: bool,
    /// Where it is kept (default: ~/.cache/attune/vm)
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// A kernel instead of Debian's newest: a package or image, a file or an address (may be
    /// repeated)
    #[arg(long, value_name = "FILE[#sha256=HASH]")]
    pub kernel: Vec<String>,
    /// This QEMU (10 or newer) instead of Debian's
    #[arg(long, value_name = "PROGRAM")]
    pub qemu: Option<PathBuf>,
    /// This virtiofsd instead of Debian's
    #[arg(long, value_name = "PROGRAM")]
    pub virtiofsd: Option<PathBuf>,
    /// Debian's archive (default: http://deb.debian.org/debian)
    #[arg(long, value_name = "ADDRESS")]
    pub mirror: Option<String>,
    /// Fetch all again, the newest, even if a set-up is there
    #[arg(long)]
    pub force: bool,
}

#[derive(ClapArgs)]
pub struct VmRunArgs {
    /// Number of CPUs, 1 to 64
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1,
        value_parser = clap::value_parser!(u32).range(1..=i64::from(attune_vm::MOST_CPUS))
    )]
    pub cpus: u32,
    /// What the CPUs share: 2:4:1 makes two sockets, each with a last-level cache of its own, of
    /// four cores of one thread
    #[arg(long, value_name = "SOCKETS:CORES:THREADS", conflicts_with = "cpus")]
    pub topology: Option<attune_vm::Topology>,
    /// Memory in MiB
    #[arg(
        long,
        value_name = "M",
        default_value_t = 1024,
        value_parser = clap::value_parser!(u64).range(128..)
    )]
    pub memory: u64,
    /// Virtual time, the same in each run: one instruction takes one nanosecond; only what is
    /// packed is there
    #[arg(long)]
    pub deterministic: bool,
    /// A file or folder to take along (may be repeated)
    #[arg(long, value_name = "FILE", requires = "deterministic")]
    pub pack: Vec<PathBuf>,
    /// Seed of what is random in a deterministic machine
    #[arg(long, value_name = "S", default_value_t = 1, requires = "deterministic")]
    pub seed: u64,
    /// Set a variable of the command's environment (may be repeated)
    #[arg(long, value_name = "NAME=VALUE")]
    pub env: Vec<String>,
    /// End the machine after this many seconds
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub timeout: Option<Duration>,
    /// Boot the kernel of `attune vm setup --full`
    #[arg(long, conflicts_with = "dir")]
    pub full: bool,
    /// Where the set-up is kept (default: ~/.cache/attune/vm)
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// The command and its arguments
    #[arg(last = true, value_name = "CMD", required = true)]
    pub words: Vec<OsString>,
}
