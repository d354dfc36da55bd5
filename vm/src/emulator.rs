//! QEMU's command line, and the server of the host's files beside it.

use std::fs::File;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::process::Command;

use anyhow::{Context, Result};
use attune_linux::scheduling::Class;

use crate::cache::{Cache, Words};
use crate::memory_file;
use crate::processes::Helper;
use crate::{Kind, Options};

/// The name under which the guest finds the host's files.
pub const FILES_TAG: &str = "host";

/// All that is emulated, but for the features with which the kernel clears and copies byte by byte:
/// an instruction for each byte of a page.
const PROCESSOR: &str = "max,-erms,-fsrm,-fsrs";

/// Where the guest's messages come out.
pub enum Line {
    /// Both ways: a virtio port.
    Port(UnixStream),
    /// From the guest alone: a serial line into a file, which takes every byte at once, so that the
    /// guest's time does not depend on its reader.
    Serial(File),
}

pub struct Emulator {
    pub qemu: Helper,
    pub files: Option<Helper>,
    pub line: Line,
    pub console: File,
}

/// Starts the machine with its first files. It is killed when the calling thread ends.
pub fn start(cache: &Cache, options: &Options, initramfs: File) -> Result<Emulator> {
    let console = memory_file::create("console")?;
    let memory = format!("{}M", options.memory);
    let mut call = Call { command: cache.command(cache.qemu()), inherited: vec![] };
    for folder in cache.firmware() {
        call.command.arg("-L").arg(folder);
    }
    call.words(["-nodefaults", "-no-user-config", "-no-reboot", "-display", "none"]);
    call.words(["-cpu", PROCESSOR, "-smp", &options.topology.smp(), "-m", &memory]);
    call.command.arg("-kernel").arg(cache.vmlinux());
    // A busy host interrupts so late that the kernel believes its timer broken and panics. Neither
    // that check nor the kernel's tests of its ciphers are worth their time at each boot.
    let mut words =
        "console=ttyS0 panic=-1 quiet loglevel=3 no_timer_check cryptomgr.notests".to_owned();
    if matches!(options.kind, Kind::HostFiles) {
        // All CPUs read the host's clock. One that stands still for a while is no reason to
        // distrust it.
        words += " tsc=reliable";
    }
    call.words(["-initrd", &memory_file::path(&initramfs), "-append", &words]);
    call.keep(initramfs);
    call.serial("console", console.try_clone()?);
    let (files, line) = match &options.kind {
        Kind::HostFiles => {
            let (files, line) = host_files(&mut call, cache, &memory)?;
            (Some(files), line)
        }
        Kind::Deterministic { seed, .. } => (None, deterministic(&mut call, *seed)?),
    };
    let program = cache.qemu();
    let qemu = Helper::start(call.command, call.inherited).with_context(|| {
        format!("cannot start {}; `attune vm setup --force` fetches it again", program.display())
    })?;
    Ok(Emulator { qemu, files, line, console })
}

/// The emulator's command, and the descriptors that its words name.
struct Call {
    command: Command,
    inherited: Vec<OwnedFd>,
}

impl Call {
    fn words<const N: usize>(&mut self, words: [&str; N]) {
        self.command.args(words);
    }

    fn keep(&mut self, file: impl Into<OwnedFd>) -> RawFd {
        let file = file.into();
        let number = file.as_raw_fd();
        self.inherited.push(file);
        number
    }

    /// A serial line whose every byte goes into the file.
    fn serial(&mut self, name: &str, file: File) {
        let fd = self.keep(file);
        self.words(["-chardev", &format!("file,id={name},path=/dev/fd/{fd},append=on")]);
        self.words(["-serial", &format!("chardev:{name}")]);
    }
}

/// Several CPUs at a time, the host's clock, and its files.
fn host_files(call: &mut Call, cache: &Cache, memory: &str) -> Result<(Helper, Line)> {
    call.words(["-accel", "tcg,thread=multi"]);
    let (files, socket) = serve_files(cache)?;
    let socket = call.keep(socket);
    call.words(["-object", &format!("memory-backend-memfd,id=memory,size={memory},share=on")]);
    // The kernel spends a second of each boot on an HPET, and needs none beside the TSC.
    call.words(["-machine", "memory-backend=memory,hpet=off"]);
    call.words(["-chardev", &format!("socket,id=files,fd={socket}")]);
    call.words([
        "-device",
        &format!("vhost-user-fs-pci,queue-size=1024,chardev=files,tag={FILES_TAG}"),
    ]);
    let (ours, theirs) = UnixStream::pair()?;
    let theirs = call.keep(theirs);
    call.words(["-chardev", &format!("socket,id=line,fd={theirs}")]);
    call.words(["-device", "virtio-serial-pci"]);
    call.words(["-device", "virtserialport,chardev=line,name=attune"]);
    Ok((files, Line::Port(ours)))
}

/// One instruction, one nanosecond; idle time is skipped; the clock begins at a date of its own.
fn deterministic(call: &mut Call, seed: u64) -> Result<Line> {
    call.words(["-accel", "tcg", "-icount", "shift=0,sleep=off", "-seed", &seed.to_string()]);
    // Without an HPET the kernel would answer each tick of the clock chip, which guest/init.c lets
    // tick for the emulator alone.
    call.words(["-rtc", "base=2026-01-01T00:00:00,clock=vm"]);
    wait_for_turns(&mut call.command);
    let line = memory_file::create("line")?;
    call.serial("line", line.try_clone()?);
    Ok(Line::Serial(line))
}

/// A thread of the command that wakes waits until its CPU is given up. The thread that emulates
/// serves the guest's timers itself; the emulator's main thread is woken for each of them, some
/// thousand times a second, and has nothing to do.
fn wait_for_turns(command: &mut Command) {
    let batch = || match Class::of_this_thread()? {
        Class::NORMAL => Class::BATCH.apply(),
        _ => Ok(()),
    };
    // SAFETY: between fork and exec the closure makes system calls only.
    unsafe { command.pre_exec(batch) };
}

/// A server of the host's files, and the socket to it.
fn serve_files(cache: &Cache) -> Result<(Helper, UnixStream)> {
    let folder = tempfile::tempdir().context("cannot make a folder for a socket")?;
    let path = folder.path().join("files");
    let listener = UnixListener::bind(&path).context("cannot make a socket")?;
    let socket = UnixStream::connect(&path).context("cannot connect to the server of files")?;
    let mut command = cache.command(cache.virtiofsd());
    // It changes its root, which any user may do in a user namespace.
    if attune_linux::process::effective_user() != 0 {
        command = cache.command("unshare".into());
        command.arg("--map-root-user").arg(cache.virtiofsd());
    }
    command.arg(format!("--fd={}", listener.as_raw_fd()));
    command.args(match cache.contents.virtiofsd_words {
        Words::Qemu => [
            "-osource=/",
            "-ocache=always",
            "-osandbox=chroot",
            "-olog_level=err",
            "--thread-pool-size=1",
        ],
        Words::Own => [
            "--shared-dir=/",
            "--cache=always",
            "--sandbox=chroot",
            "--log-level=error",
            "--thread-pool-size=0",
        ],
    });
    let helper = Helper::start(command, vec![listener.into()]).context("cannot start virtiofsd")?;
    Ok((helper, socket))
}
