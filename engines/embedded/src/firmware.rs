//! A firmware built and run: with the compiler and the emulator of Debian's `gcc-arm-none-eabi` and
//! `qemu-system-arm`, or as a program on this machine.
//!
//! A run on the emulator repeats to the last instruction: its clock counts instructions, and
//! nothing comes from outside.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use attune_backend_c::embedded::Files;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Board {
    /// A program on this machine.
    Host,
    /// QEMU's Cortex-M3 board.
    Mps2An385,
}

impl Board {
    pub const ALL: [Board; 2] = [Board::Host, Board::Mps2An385];

    pub fn name(self) -> &'static str {
        match self {
            Board::Host => "host",
            Board::Mps2An385 => "mps2-an385",
        }
    }

    /// The commands that building and running need, with their Debian packages.
    fn needs(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Board::Host => &[("cc", "gcc")],
            Board::Mps2An385 => &[
                ("arm-none-eabi-gcc", "gcc-arm-none-eabi"),
                ("qemu-system-arm", "qemu-system-arm"),
            ],
        }
    }

    /// A file for projects that use the board's serial line, which board.h declares: name and text.
    pub fn line(self) -> (&'static str, &'static str) {
        let text = match self {
            Board::Host => include_str!("../boards/host/line.c"),
            Board::Mps2An385 => include_str!("../boards/mps2-an385/line.c"),
        };
        ("line.c", text)
    }

    fn source(self) -> &'static str {
        match self {
            Board::Host => include_str!("../boards/host/board.c"),
            Board::Mps2An385 => include_str!("../boards/mps2-an385/board.c"),
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("`{command}` is missing: install it (Debian: apt install {package})")]
    Missing { command: &'static str, package: &'static str },
    #[error("the firmware does not compile for {}:\n{said}", board.name())]
    Compiler { board: Board, said: String },
    #[error("{}: {error}", path.display())]
    Io { path: PathBuf, error: io::Error },
    #[error("cannot run the firmware: {0}")]
    Run(io::Error),
}

/// Whether the board's firmware can be built and run here; if not, which package is missing.
pub fn available(board: Board) -> Result<(), Error> {
    for &(command, package) in board.needs() {
        let found = Command::new(command)
            .arg("--version")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        if found.is_err() {
            return Err(Error::Missing { command, package });
        }
    }
    Ok(())
}

/// How the compiler is told to build for the Cortex-M board.
pub(crate) const CORTEX_M: [&str; 10] = [
    "-std=gnu11",
    "-mcpu=cortex-m3",
    "-mthumb",
    "-Os",
    "-Wall",
    "-Wextra",
    "-Werror",
    "-ffreestanding",
    "-ffunction-sections",
    "-fdata-sections",
];

/// What a firmware is made from.
#[derive(Clone, Debug)]
pub struct Firmware<'a> {
    pub board: Board,
    /// attune.c and attune.h.
    pub attune: &'a Files,
    /// The project's own: file name, perhaps in a folder, and text. `attune_config.h` may be among
    /// them.
    pub project: &'a [(&'a str, &'a str)],
    /// Compiler flags of the project's, further sources and libraries.
    pub flags: &'a [&'a str],
}

/// A firmware that is ready to run.
#[derive(Clone, Debug)]
pub struct Image {
    board: Board,
    path: PathBuf,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    pub said: String,
    /// None: a signal ended it.
    pub status: Option<i32>,
}

/// Bytes of read-only memory and of variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Footprint {
    pub flash: u32,
    pub ram: u32,
}

impl Firmware<'_> {
    /// Compiles it in `folder`.
    pub fn build(&self, folder: &Path) -> Result<Image, Error> {
        available(self.board)?;
        let write = |name: &str, text: &str| {
            let path = folder.join(name);
            let made = path.parent().map_or(Ok(()), fs::create_dir_all);
            made.and_then(|()| fs::write(&path, text)).map_err(|error| Error::Io { path, error })
        };
        write("attune.c", &self.attune.c)?;
        write("attune.h", &self.attune.h)?;
        write("board.h", include_str!("../boards/board.h"))?;
        write("board.c", self.board.source())?;
        write("print.c", include_str!("../boards/print.c"))?;
        write("link.ld", include_str!("../boards/mps2-an385/link.ld"))?;
        for (name, text) in self.project {
            write(name, text)?;
        }
        let path = folder.join(match self.board {
            Board::Host => "firmware",
            Board::Mps2An385 => "firmware.elf",
        });
        let mut command = match self.board {
            Board::Host => {
                let mut command = Command::new("cc");
                command.args(["-std=gnu11", "-O1", "-g", "-Wall", "-Wextra", "-Werror"]);
                // The dynamic linker needs more stack to find a function than a thread has.
                command.arg("-Wl,-z,now");
                command
            }
            Board::Mps2An385 => {
                let mut command = Command::new("arm-none-eabi-gcc");
                command.args(CORTEX_M).args(["-nostdlib", "-T", "link.ld"]);
                command.args(["-Wl,--gc-sections", "-Wl,--build-id=none"]);
                command
            }
        };
        let sources = self.project.iter().map(|(name, _)| *name);
        let sources = sources.filter(|name| name.ends_with(".c"));
        let output = command
            .current_dir(folder)
            .env("LC_ALL", "C")
            .args(["-I.", "attune.c", "board.c", "print.c"])
            .args(sources)
            .args(self.flags)
            .arg("-o")
            .arg(&path)
            // 64-bit division is a function of the compiler's library.
            .arg("-lgcc")
            .output()
            .map_err(Error::Run)?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            return Err(Error::Compiler { board: self.board, said });
        }
        Ok(Image { board: self.board, path })
    }
}

/// The longest run, in seconds. Without it, firmware that stands still would hold up a test or an
/// experiment for ever.
const LIMIT: &str = "20";

/// A firmware that serves this machine; it stops when this is dropped.
#[derive(Debug)]
pub struct Serving {
    emulator: Child,
}

impl Serving {
    /// Whether the emulator has ended: the firmware has failed, or the port was taken.
    pub fn has_ended(&mut self) -> bool {
        !matches!(self.emulator.try_wait(), Ok(None))
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        // It may have ended already; either way it is gone then.
        let _ = self.emulator.kill();
        let _ = self.emulator.wait();
    }
}

/// The emulator's Cortex-M board.
const MACHINE: [&str; 6] = ["-M", "mps2-an385", "-display", "none", "-monitor", "none"];
/// It prints what the firmware says.
const PRINTS: [&str; 6] = [
    "-serial",
    "none",
    "-chardev",
    "stdio,id=out",
    "-semihosting-config",
    "enable=on,target=native,chardev=out",
];

/// Where the serial line of a running firmware ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line {
    /// At standard input and output.
    Standard,
    /// At a terminal, which the emulator names in its first line. For the Cortex-M board.
    Terminal,
}

impl Image {
    /// Runs it to its end, or for 20 s: then its status is 124. On the emulator an instruction
    /// takes 2^`shift` ns of its clock (0 to 10).
    pub fn run(&self, shift: u32) -> Result<Outcome, Error> {
        let mut command = match self.board {
            Board::Host => {
                let mut command = Command::new("timeout");
                command.arg(LIMIT).arg(&self.path);
                command
            }
            Board::Mps2An385 => {
                let mut command = Command::new("timeout");
                command.args([LIMIT, "qemu-system-arm"]).args(MACHINE).args(PRINTS);
                command.args(["-nic", "none"]);
                command.args(["-icount", &format!("shift={shift},align=off,sleep=off")]);
                command.arg("-kernel").arg(&self.path);
                command
            }
        };
        let output = command.stdin(Stdio::null()).output().map_err(Error::Run)?;
        Ok(Outcome {
            said: String::from_utf8_lossy(&output.stdout).into_owned(),
            status: output.status.code(),
        })
    }

    /// Runs it in real time with the board's network card, on a network of the emulator's: a
    /// connection to `port` of this machine's loopback comes to the firmware's port 80. For the
    /// Cortex-M board.
    pub fn serve(&self, port: u16) -> Result<Serving, Error> {
        let mut command = Command::new("qemu-system-arm");
        let network = format!("user,restrict=on,hostfwd=tcp:127.0.0.1:{port}-10.0.2.15:80");
        command.args(MACHINE).args(PRINTS).args(["-nic", &network]).arg("-kernel").arg(&self.path);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Ok(Serving { emulator: command.spawn().map_err(Error::Run)? })
    }

    /// The command that runs it in real time with the board's serial line.
    pub fn on_line(&self, line: Line) -> Command {
        match (self.board, line) {
            (Board::Host, _) => Command::new(&self.path),
            (Board::Mps2An385, line) => {
                let mut command = Command::new("qemu-system-arm");
                let end = if line == Line::Terminal { "pty" } else { "stdio" };
                command.args(MACHINE).args(["-nic", "none", "-serial", end]);
                command.args(["-semihosting-config", "enable=on,target=native"]);
                command.arg("-kernel").arg(&self.path);
                command
            }
        }
    }

    /// What the linker put where. For the Cortex-M board.
    pub fn footprint(&self) -> Result<Footprint, Error> {
        let output =
            Command::new("arm-none-eabi-size").arg(&self.path).output().map_err(Error::Run)?;
        let said = String::from_utf8_lossy(&output.stdout);
        let row = said.lines().nth(1).unwrap_or_default();
        let bytes: Vec<u32> =
            row.split_whitespace().take(3).filter_map(|word| word.parse().ok()).collect();
        match bytes[..] {
            [text, data, bss] => Ok(Footprint { flash: text + data, ram: data + bss }),
            _ => Err(Error::Run(io::Error::other(format!("arm-none-eabi-size said: {said}")))),
        }
    }
}
