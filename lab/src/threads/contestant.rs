//! The contestants: how each is compiled and run.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::experiment::Options;
use crate::{files, programs, schedulers};

macro_rules! peer {
    ($name:literal) => {
        include_str!(concat!("../../peers/threads/", $name))
    };
}

/// Files that programs include.
const HEADERS: [(&str, &str); 2] = [
    ("bench.h", peer!("bench.h")),
    ("attune.h", include_str!("../../../engines/threads/include/attune.h")),
];

/// One library of threads.
pub struct Contestant {
    pub name: &'static str,
    make: Make,
    /// Turns of this library take so much longer than a switch of the others that a run has this
    /// fraction of their turns.
    slow: u32,
    /// Header that its package installs.
    needs: Option<&'static str>,
}

#[derive(Clone, Copy)]
enum Make {
    /// Under a policy that the library loads.
    Loaded,
    /// Under a policy that is part of the program.
    CompiledIn,
    C {
        file: &'static str,
        text: &'static str,
        library: &'static str,
    },
    Boost {
        flag: &'static str,
    },
    Go,
    Tokio,
}

/// What a program measures: a word and how many threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    Yield(u32),
    Create(u32),
    Memory(u32),
}

pub const LOADED: &str = "Attune, policy loaded";
pub const COMPILED_IN: &str = "Attune, policy compiled in";
pub const BOOST: &str = "Boost.Fiber";
/// It differs from [`BOOST`] where threads are created.
pub const POOLED: &str = "Boost.Fiber, stacks pooled";

/// Ours, and the peers.
pub const CONTESTANTS: [Contestant; 8] = [
    Contestant::new(LOADED, Make::Loaded, None),
    Contestant::new(COMPILED_IN, Make::CompiledIn, None),
    Contestant::new(BOOST, Make::Boost { flag: "-DFIXED" }, Some("boost/fiber/all.hpp")),
    Contestant::new(POOLED, Make::Boost { flag: "-DPOOLED" }, Some("boost/fiber/all.hpp")),
    Contestant::new(
        "State Threads",
        Make::C { file: "state_threads.c", text: peer!("state_threads.c"), library: "-lst" },
        Some("st.h"),
    ),
    Contestant::new("Tokio, current thread", Make::Tokio, None),
    Contestant::new("Go, one processor", Make::Go, None),
    Contestant {
        slow: 200,
        ..Contestant::new(
            "GNU Pth",
            Make::C { file: "gnu_pth.c", text: peer!("gnu_pth.c"), library: "-lpth" },
            Some("pth.h"),
        )
    },
];

/// Whether all of them can be compiled here. Err: what is missing, and what installs it.
pub fn available(options: &Options) -> Result<()> {
    let library = options.programs.join("libattune_threads.so");
    ensure!(library.exists(), "there is no {}: make build", library.display());
    let mut missing: Vec<&str> = ["cc", "c++", "go", "cargo", "taskset"].into();
    missing.retain(|program| programs::find(program).is_none());
    let has = |header: &str| Path::new("/usr/include").join(header).exists();
    missing.extend(CONTESTANTS.iter().filter_map(|it| it.needs).filter(|header| !has(header)));
    missing.dedup();
    ensure!(
        missing.is_empty(),
        "it needs {}: on Debian `tools/setup.sh threads` installs them",
        missing.join(", ")
    );
    Ok(())
}

/// A contestant that was compiled.
pub struct Program {
    command: PathBuf,
    environment: Vec<(&'static str, PathBuf)>,
    slow: u32,
}

impl Contestant {
    const fn new(name: &'static str, make: Make, needs: Option<&'static str>) -> Contestant {
        Contestant { name, make, slow: 1, needs }
    }

    pub fn is_ours(&self) -> bool {
        matches!(self.make, Make::Loaded | Make::CompiledIn)
    }

    /// Whether it walks all its threads at every switch, so that many of them take minutes.
    pub fn is_linear(&self) -> bool {
        self.slow > 1
    }

    /// Compiles it in a folder of its own.
    pub fn build(&self, options: &Options) -> Result<Program> {
        let word = |letter: char| if letter.is_alphanumeric() { letter } else { '_' };
        let folder = options.folder.join(self.name.chars().map(word).collect::<String>());
        files::create_folder(&folder)?;
        for (name, text) in HEADERS {
            files::write_atomically(&folder.join(name), text.as_bytes())?;
        }
        let built = self.make.run(&folder, options);
        let environment = built.with_context(|| format!("{} cannot be compiled", self.name))?;
        Ok(Program { command: folder.join("program"), environment, slow: self.slow })
    }
}

impl Make {
    /// Compiles to `folder/program`. Ok: what its environment needs.
    fn run(self, folder: &Path, options: &Options) -> Result<Vec<(&'static str, PathBuf)>> {
        let write =
            |name: &str, text: &str| files::write_atomically(&folder.join(name), text.as_bytes());
        let compile = |compiler: &str, words: &[&str]| {
            call(Command::new(compiler).args(["-O2", "-o", "program"]).args(words), folder)
        };
        match self {
            Make::Loaded | Make::CompiledIn => {
                write("attune.c", peer!("attune.c"))?;
                let place = format!("-L{}", options.programs.display());
                let path = format!("-Wl,-rpath,{}", options.programs.display());
                let library = [&place, &path, "-lattune_threads"];
                if let Make::CompiledIn = self {
                    write("fifo.c", &schedulers::c_of("fifo")?)?;
                    let own = ["-I.", "-DCOMPILED_IN", "attune.c", "fifo.c"];
                    compile("cc", &[&own[..], &library].concat())?;
                    return Ok(vec![]);
                }
                compile("cc", &[&["-I.", "attune.c"][..], &library].concat())?;
                let policy = folder.join("fifo.so");
                schedulers::compile("fifo", &policy)?;
                return Ok(vec![("ATTUNE_SCHED", policy)]);
            }
            Make::C { file, text, library } => {
                write(file, text)?;
                compile("cc", &[file, library])?;
            }
            Make::Boost { flag } => {
                write("boost_fiber.cpp", peer!("boost_fiber.cpp"))?;
                let libraries = ["-lboost_fiber", "-lboost_context"];
                compile("c++", &[&["-DNDEBUG", flag, "boost_fiber.cpp"][..], &libraries].concat())?;
            }
            Make::Go => {
                write("goroutines.go", peer!("goroutines.go"))?;
                call(Command::new("go").args(["build", "-o", "program", "goroutines.go"]), folder)?;
            }
            Make::Tokio => {
                files::create_folder(&folder.join("src"))?;
                write("Cargo.toml", peer!("tokio/Cargo.toml"))?;
                write("Cargo.lock", peer!("tokio/Cargo.lock"))?;
                write("src/main.rs", peer!("tokio/src/main.rs"))?;
                let mut cargo = Command::new("cargo");
                cargo.args(["build", "--quiet", "--release", "--locked", "--target-dir", "target"]);
                call(cargo.env_remove("RUSTFLAGS"), folder)?;
                std::fs::copy(folder.join("target/release/tokio-tasks"), folder.join("program"))?;
            }
        }
        Ok(vec![])
    }
}

pub fn call(command: &mut Command, folder: &Path) -> Result<()> {
    let output = command.current_dir(folder).output().context("cannot run it")?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

impl Program {
    /// Runs it on one CPU; `turns` of all threads together, or threads created. The figure is
    /// nanoseconds or bytes.
    pub fn run(&self, measure: Measure, turns: u32) -> Result<f64> {
        let rounds = |threads: u32| (turns / self.slow / threads).max(1);
        let (word, threads, rounds) = match measure {
            Measure::Yield(threads) => ("yield", threads, rounds(threads)),
            Measure::Create(threads) => ("create", threads, rounds(threads)),
            Measure::Memory(threads) => ("memory", threads, 0),
        };
        let mut command = Command::new("taskset");
        command.args(["-c", "0"]).arg(&self.command);
        command.args([word, &threads.to_string(), &rounds.to_string()]);
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        let output = command.output().context("taskset")?;
        let said = String::from_utf8_lossy(&output.stdout);
        match said.trim().parse() {
            Ok(figure) if output.status.success() => Ok(figure),
            _ => {
                let errors = String::from_utf8_lossy(&output.stderr);
                bail!("{} {word} {threads} failed: {said}{errors}", self.command.display())
            }
        }
    }
}
