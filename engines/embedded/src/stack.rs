//! How much stack C takes on a Cortex-M: the compiler's size of each function's frame, added up
//! along the calls.
//!
//! Established: a function takes at most [`Stack::deepest`] on the stack of its caller, whatever it
//! calls, where every function that it reaches is compiled here. Units: bytes.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use attune_backend_c::embedded::Files;

use crate::firmware::{Board, CORTEX_M, Error, available};

/// What attune_switch_stacks pushes: r4 to r11 and lr. It is naked, so the compiler sees no frame.
const SAVED: (&str, u32) = ("attune_switch_stacks", 36);

/// What a function of the compiler's library (64-bit division, numbers with a fraction) is counted
/// with, and all that it calls: `__aeabi_ldivmod` pushes 24 bytes and `__udivmoddi4` 32.
const LIBRARY: (&str, u32) = ("__aeabi_", 96);

/// The frames of some C files, and which function calls which.
#[derive(Clone, Debug, Default)]
pub struct Stack {
    frames: HashMap<String, u32>,
    calls: HashMap<String, Vec<String>>,
}

/// The way down that takes the most.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Deepest {
    pub bytes: u32,
    /// From the function itself to the last that it reaches.
    pub through: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unbounded {
    #[error("`{0}` calls itself")]
    Recursion(String),
    #[error("`{0}` is not compiled here")]
    Unknown(String),
}

/// Whether the compiler may put functions into their callers, as it does in a firmware.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inlining {
    AsInFirmware,
    /// Each function stands alone, so that each handler has a frame of its own.
    None,
}

impl Stack {
    /// Compiles attune.c and the project's C files as [`crate::firmware`] does, in that folder.
    pub fn of(
        attune: &Files,
        project: &[(&str, &str)],
        inlining: Inlining,
        folder: &Path,
    ) -> Result<Stack, Error> {
        available(Board::Mps2An385)?;
        let write = |name: &str, text: &str| {
            let path = folder.join(name);
            fs::write(&path, text).map_err(|error| Error::Io { path, error })
        };
        write("attune.h", &attune.h)?;
        write("attune.c", &attune.c)?;
        for (name, text) in project {
            write(name, text)?;
        }
        let mut stack = Stack::default();
        let sources = project.iter().map(|(name, _)| *name).filter(|name| name.ends_with(".c"));
        for source in std::iter::once("attune.c").chain(sources) {
            let mut command = Command::new("arm-none-eabi-gcc");
            command.current_dir(folder).env("LC_ALL", "C").args(CORTEX_M);
            command.args(["-fcallgraph-info=su", "-I.", "-c", source, "-o", "stack.o"]);
            if inlining == Inlining::None {
                command.arg("-fno-inline");
            }
            let output = command.output().map_err(Error::Run)?;
            if !output.status.success() {
                let said = String::from_utf8_lossy(&output.stderr).into_owned();
                return Err(Error::Compiler { board: Board::Mps2An385, said });
            }
            let path = folder.join("stack.ci");
            let graph = fs::read_to_string(&path).map_err(|error| Error::Io { path, error })?;
            stack.read(&graph);
        }
        Ok(stack)
    }

    /// The compiler's call graph: a line for each function and each call.
    fn read(&mut self, graph: &str) {
        for line in graph.lines() {
            if line.starts_with("node:") {
                let frame = quoted(line, "label: ").and_then(|label| {
                    let words = label.rsplit("\\n").next()?;
                    words.strip_suffix(" bytes (static)")?.parse::<u32>().ok()
                });
                if let Some((function, frame)) = quoted(line, "title: ").zip(frame) {
                    let saved = if own_name(function) == SAVED.0 { SAVED.1 } else { 0 };
                    self.frames.insert(function.to_string(), frame + saved);
                }
            } else if line.starts_with("edge:")
                && let Some((from, to)) =
                    quoted(line, "sourcename: ").zip(quoted(line, "targetname: "))
            {
                self.calls.entry(from.to_string()).or_default().push(to.to_string());
            }
        }
    }

    /// The way down from a function, named as in C. `elsewhere` are functions that may be missing:
    /// what they take is not counted.
    pub fn deepest(&self, function: &str, elsewhere: &[&str]) -> Result<Deepest, Unbounded> {
        let found = self.frames.keys().filter(|name| own_name(name) == function);
        let mut deepest: Option<Deepest> = None;
        // A function of which the compiler has made several counts with the largest.
        for name in found {
            let this = self.follow(name, elsewhere, &mut Vec::new())?;
            if deepest.as_ref().is_none_or(|known| known.bytes < this.bytes) {
                deepest = Some(this);
            }
        }
        deepest.ok_or_else(|| Unbounded::Unknown(function.to_string()))
    }

    /// What a function itself takes, without those that it calls.
    pub fn frame(&self, function: &str) -> Option<u32> {
        let found = self.frames.iter().filter(|(name, _)| own_name(name) == function);
        found.map(|(_, frame)| *frame).max()
    }

    /// The functions that other files may call.
    pub fn public(&self) -> impl Iterator<Item = &str> {
        self.frames.keys().map(String::as_str).filter(|name| !name.contains(':'))
    }

    fn follow(
        &self,
        name: &str,
        elsewhere: &[&str],
        above: &mut Vec<String>,
    ) -> Result<Deepest, Unbounded> {
        let own = own_name(name).to_string();
        if above.iter().any(|each| each == name) {
            return Err(Unbounded::Recursion(own));
        }
        let Some(&frame) = self.frames.get(name) else {
            if own.starts_with(LIBRARY.0) {
                return Ok(Deepest { bytes: LIBRARY.1, through: vec![own] });
            }
            return match elsewhere.contains(&own.as_str()) {
                true => Ok(Deepest::default()),
                false => Err(Unbounded::Unknown(own)),
            };
        };
        above.push(name.to_string());
        let mut below = Deepest::default();
        for called in self.calls.get(name).into_iter().flatten() {
            let this = self.follow(called, elsewhere, above)?;
            if this.bytes > below.bytes {
                below = this;
            }
        }
        above.pop();
        let mut through = vec![own];
        through.append(&mut below.through);
        Ok(Deepest { bytes: frame + below.bytes, through })
    }
}

/// What stands in quotes behind a word.
fn quoted<'l>(line: &'l str, word: &str) -> Option<&'l str> {
    line.split_once(word)?.1.strip_prefix('"')?.split('"').next()
}

/// `attune.c:attune_move.constprop.0` is `attune_move` in C.
fn own_name(name: &str) -> &str {
    let behind = name.rsplit(':').next().unwrap_or(name);
    behind.split('.').next().unwrap_or(behind)
}
