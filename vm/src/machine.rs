//! A running machine: boots it, passes input and output, waits for its end.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use attune_linux::poll;

use crate::cache::Cache;
use crate::command::{Command, Orders};
use crate::emulator::{self, Emulator, FILES_TAG, Line};
use crate::frame::{self, Decoder, Frame};
use crate::initramfs::Initramfs;
use crate::pack::Packing;
use crate::processes::describe;
use crate::{Error, Kind, Options, console, memory_file};

/// So long a deterministic guest is left alone before the command: the kernel's own work after
/// booting is over then.
const SETTLING: Duration = Duration::from_secs(2);
/// Where the guest finds the module.
const OVERLAY: &str = "/overlay.ko.xz";
/// How often a machine is looked after that tells nothing by itself.
const LOOK: Duration = Duration::from_millis(20);
/// So long one of the processes may outlive the other when the machine ends.
const PATIENCE: Duration = Duration::from_secs(2);

/// A machine that boots, or runs its command. Dropping it ends it.
pub struct Machine {
    emulator: Emulator,
    requests: UnixStream,
    control: Control,
    deadline: Option<Instant>,
    timeout: Duration,
    packed: bool,
}

/// Reaches a machine from another thread.
#[derive(Clone)]
pub struct Control(Arc<UnixStream>);

impl Control {
    /// Sends a signal to the command's processes. A deterministic machine has no way in: it is
    /// ended.
    pub fn signal(&self, number: u8) {
        // Nobody listens when the machine is gone.
        let _ = (&*self.0).write_all(&[number]);
    }

    /// Ends the machine.
    pub fn end(&self) {
        self.signal(0);
    }
}

/// The command's standard streams.
pub struct Streams<'a> {
    /// None: nothing comes, and no end. A deterministic machine's command finds its end at once.
    pub input: Option<File>,
    pub output: &'a mut dyn Write,
    pub error_output: &'a mut dyn Write,
}

/// What [`run`] found.
#[derive(Clone, Debug)]
pub struct Output {
    pub status: ExitStatus,
    pub output: Vec<u8>,
    pub error_output: Vec<u8>,
}

/// Runs a command in a machine of its own, without input, and keeps its output.
pub fn run(cache: &Cache, options: &Options, command: &Command) -> Result<Output, Error> {
    let (mut output, mut error_output) = (vec![], vec![]);
    let input = Some(File::open("/dev/null")?);
    let streams = Streams { input, output: &mut output, error_output: &mut error_output };
    let status = Machine::boot(cache, options, command)?.relay(streams)?;
    Ok(Output { status, output, error_output })
}

impl Machine {
    /// Starts a machine, which ends at the latest with the calling thread.
    pub fn boot(cache: &Cache, options: &Options, command: &Command) -> Result<Machine, Error> {
        let initramfs = first_files(cache, options, command)?;
        let emulator = emulator::start(cache, options, initramfs)?;
        let (requests, control) = UnixStream::pair().context("cannot make a socket")?;
        requests.set_nonblocking(true)?;
        Ok(Machine {
            emulator,
            requests,
            control: Control(Arc::new(control)),
            deadline: options.timeout.map(|timeout| Instant::now() + timeout),
            timeout: options.timeout.unwrap_or_default(),
            packed: matches!(options.kind, Kind::Deterministic { .. }),
        })
    }

    pub fn control(&self) -> Control {
        self.control.clone()
    }

    /// Passes input and output until the command ends; how it ended.
    pub fn relay(mut self, streams: Streams) -> Result<ExitStatus, Error> {
        let mut relay = Relay {
            streams,
            decoder: Decoder::default(),
            input_wanted: false,
            packed: self.packed,
            // Where there is no way in, the machine says nothing before the command does.
            begun: matches!(self.emulator.line, Line::Serial(_)),
        };
        let mut buffer = vec![0; frame::LONGEST];
        let mut read_so_far = 0;
        loop {
            if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return Err(self.timed_out(relay.begun));
            }
            // The end is looked for before the line is read: what came before the end is heard.
            let ended = self.emulator.qemu.ended()?;
            let length = match &mut self.emulator.line {
                Line::Port(socket) => {
                    let wait = if ended.is_some() { Duration::ZERO } else { LOOK * 10 };
                    let input = relay.wanted_input();
                    let ready =
                        wait_for([socket.as_raw_fd(), self.requests.as_raw_fd(), input], wait)?;
                    if ready[2] {
                        relay.pass_input(socket)?;
                    }
                    if ready[0] { socket.read(&mut buffer).unwrap_or(0) } else { 0 }
                }
                Line::Serial(file) => file.read_at(&mut buffer, read_so_far)?,
            };
            read_so_far += length as u64;
            if let Some(status) = relay.take(&buffer[..length])? {
                return Ok(status);
            }
            self.obey()?;
            if length > 0 {
                continue;
            }
            if let Some(status) = ended {
                return Err(self.died(status));
            }
            self.check_files()?;
            if let Line::Serial(_) = self.emulator.line {
                wait_for([self.requests.as_raw_fd(), -1, -1], LOOK)?;
            }
        }
    }

    /// Does what was asked through a [`Control`].
    fn obey(&mut self) -> Result<(), Error> {
        let mut asked = [0; 16];
        let length = self.requests.read(&mut asked).unwrap_or(0);
        for number in &asked[..length] {
            match &mut self.emulator.line {
                Line::Port(socket) if *number != 0 => socket.write_all(&frame::signal(*number))?,
                _ => return Err(Error::Interrupted),
            }
        }
        Ok(())
    }

    fn check_files(&mut self) -> Result<(), Error> {
        let Some(files) = &mut self.emulator.files else { return Ok(()) };
        let Some(status) = files.ended()? else { return Ok(()) };
        // It also ends when the emulator has ended, which then is what there is to tell.
        let patience = Instant::now() + PATIENCE;
        while self.emulator.qemu.ended()?.is_none() {
            if Instant::now() > patience {
                return Err(Error::FilesDied {
                    status: describe(status),
                    words: files.last_words(),
                });
            }
            thread::sleep(LOOK);
        }
        Ok(())
    }

    fn timed_out(&self, begun: bool) -> Error {
        match begun {
            true => Error::TimedOut(self.timeout),
            false => Error::NotBegun {
                after: self.timeout,
                console: console::last_words(&self.console()),
            },
        }
    }

    /// All that the console got.
    fn console(&self) -> Vec<u8> {
        let mut bytes = vec![];
        let mut part = [0; 4096];
        while let Ok(length @ 1..) = self.emulator.console.read_at(&mut part, bytes.len() as u64) {
            bytes.extend(&part[..length]);
        }
        bytes
    }

    fn died(&mut self, status: ExitStatus) -> Error {
        let bytes = self.console();
        if status.success() {
            // The kernel panicked, or something restarted the machine: QEMU was told to end then.
            let console = console::last_words(&bytes);
            return match console::is_stale_breakpoint(&console) {
                true => Error::EmulatorRaced { console },
                false => Error::GuestDied { console },
            };
        }
        let words = format!("{}\n{}", self.emulator.qemu.last_words(), console::last_words(&bytes));
        let (words, signal) = (words.trim().to_owned(), status.signal());
        let status = describe(status);
        match signal {
            Some(libc::SIGABRT | libc::SIGSEGV) => Error::EmulatorFailed { status, words },
            _ => Error::EmulatorDied { status, words },
        }
    }
}

/// One command's streams on their way.
struct Relay<'a> {
    streams: Streams<'a>,
    decoder: Decoder,
    input_wanted: bool,
    packed: bool,
    begun: bool,
}

impl Relay<'_> {
    /// Takes bytes from the line. Some: the command ended.
    fn take(&mut self, bytes: &[u8]) -> Result<Option<ExitStatus>, Error> {
        self.decoder.push(bytes);
        while let Some(frame) = self.decoder.next() {
            self.begun = true;
            match frame
                .map_err(|heard| anyhow::anyhow!("not understood what the guest says: {heard:?}"))?
            {
                Frame::Output(bytes) => write_out(self.streams.output, &bytes)?,
                Frame::ErrorOutput(bytes) => write_out(self.streams.error_output, &bytes)?,
                Frame::InputWanted => self.input_wanted = true,
                Frame::Exit(status) => return Ok(Some(ExitStatus::from_raw(status))),
                Frame::NotRun { errno, doing } => {
                    return Err(Error::NotRun { errno, doing, packed: self.packed });
                }
            }
        }
        Ok(None)
    }

    /// The descriptor to read for the guest now; -1: none.
    fn wanted_input(&self) -> RawFd {
        self.streams.input.as_ref().filter(|_| self.input_wanted).map_or(-1, AsRawFd::as_raw_fd)
    }

    fn pass_input(&mut self, socket: &mut UnixStream) -> Result<(), Error> {
        let mut bytes = vec![0; frame::LONGEST];
        let Some(input) = &mut self.streams.input else { return Ok(()) };
        let length = input.read(&mut bytes).context("cannot read standard input")?;
        socket
            .write_all(&frame::input(&bytes[..length]))
            .context("cannot pass standard input on")?;
        self.input_wanted = false;
        if length == 0 {
            self.streams.input = None;
        }
        Ok(())
    }
}

fn write_out(out: &mut dyn Write, bytes: &[u8]) -> Result<(), Error> {
    out.write_all(bytes)
        .and_then(|()| out.flush())
        .context("cannot pass the command's output on")?;
    Ok(())
}

/// Waits until one of the descriptors (-1: none) can be read.
fn wait_for(descriptors: [RawFd; 3], at_most: Duration) -> io::Result<[bool; 3]> {
    let mut polled = descriptors.map(poll::readable);
    match poll::wait(&mut polled, at_most.as_nanos() as u64) {
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok([false; 3]),
        waited => waited.map(|_| polled.map(|descriptor| descriptor.revents != 0)),
    }
}

/// What the guest finds when it starts.
pub(crate) fn first_files(cache: &Cache, options: &Options, command: &Command) -> Result<File> {
    let mut orders = Orders::default();
    let mut packing = Packing::default();
    match &options.kind {
        Kind::HostFiles => {
            orders.add(b'c', "port").add(b'v', FILES_TAG);
            orders.add(b'm', OVERLAY);
        }
        Kind::Deterministic { pack, .. } => {
            orders.add(b'c', "/dev/ttyS1").add(b'w', SETTLING.as_nanos().to_string());
            if options.topology.cpus() > 1 {
                orders.add(b't', "");
            }
            if let Some(program) = command.words.first() {
                packing.program(program, &command.folder, command.variable("PATH"))?;
            }
            pack.iter().try_for_each(|path| packing.add(path))?;
        }
    }
    orders.command(command);
    let mut archive = Initramfs::new(memory_file::create("first files")?, &orders.into_bytes())?;
    if let Some(config) = cache.kernel_config() {
        let name = format!("/boot/config-{}", cache.kernel_release());
        archive.file(&config, name.as_ref())?;
    }
    if let (Kind::HostFiles, Some(module)) = (&options.kind, cache.overlay_module()) {
        archive.file(&module, OVERLAY.as_ref())?;
    }
    for path in packing.paths() {
        archive.file(path, path)?;
    }
    if let Kind::Deterministic { .. } = options.kind {
        archive.folder(&command.folder, 0o040755)?;
    }
    archive.finish()
}
