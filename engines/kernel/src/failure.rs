//! How a scheduler ended, in the words of its own text.
//!
//! A failed check leaves numbers behind (`struct attune_failure`, backends/c/runtime/failure.h); here they become the sentence
//! that the same check says in other engines.

use std::fmt::Write;

use crate::image::Image;
use crate::memory::Memory;

/// The end of a scheduler.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exit {
    pub kind: Kind,
    /// The kernel's words.
    pub reason: String,
    pub message: String,
    /// The scheduler's own failure, with its place: `pth.sched:41:9: cannot take a thread from RQ: it is empty (..)`.
    pub failure: Option<String>,
}

/// As the kernel's `enum scx_exit_kind` has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// Detached as it should be.
    #[default]
    Unloaded,
    /// Somebody pressed SysRq-S, or the kernel had another reason that is no mistake of the scheduler's.
    Outside,
    /// A ready thread waited for too long.
    Stall,
    /// The scheduler, or Attune, made a mistake.
    Error,
}

impl Kind {
    fn of(number: u32) -> Kind {
        match number {
            1 | 64 => Kind::Unloaded,
            65..=1023 => Kind::Outside,
            1026 => Kind::Stall,
            _ => Kind::Error,
        }
    }
}

/// None while it runs.
pub(crate) fn exit(image: &Image, memory: &Memory) -> Option<Exit> {
    let number = memory.address(image, "attune_exit_kind").and_then(|at| memory.u32(at))?;
    if number == 0 {
        return None;
    }
    let text = |name, bytes| {
        memory.address(image, name).map(|address| memory.text(address, bytes)).unwrap_or_default()
    };
    let kind = Kind::of(number);
    let message = text("attune_exit_message", 1024);
    let failure = failure(image, memory);
    let failure = failure.or_else(|| (kind == Kind::Stall).then(|| stall(image, memory, &message)).flatten());
    Some(Exit { kind, reason: text("attune_exit_reason", 128), message, failure })
}

/// The check that failed.
fn failure(image: &Image, memory: &Memory) -> Option<String> {
    let base = memory.address(image, "attune_failure")?;
    if memory.u32(base)? == 0 {
        return None;
    }
    let (check, about) = (memory.u32(base + 4)?, memory.u32(base + 8)?);
    let thread = memory.u64(base + 16)?;
    let (index, length) = (memory.u64(base + 24)? as i64, memory.u64(base + 32)? as i64);
    match about {
        3 => return Some(wrong_dispatch(image, memory, base, thread, index, length)),
        4 => {
            return Some(
                "the engine waited for its own lock for too long; this is a mistake of Attune's".to_string(),
            );
        }
        _ => {}
    }
    let mut text = match image.description.checks.get(&check) {
        Some(check) => format!("{}:{}:{}: {}", check.file, check.line, check.column, check.what),
        None => format!("check {check} failed"),
    };
    // Writing to a String cannot fail.
    match about {
        0 => {
            let first = contents(image, memory, base + CONTENTS);
            let second = contents(image, memory, base + CONTENTS + CONTENTS_SIZE);
            let said: Vec<String> = first.into_iter().chain(second).collect();
            if !said.is_empty() {
                let _ = write!(text, " ({})", said.join("; "));
            }
        }
        1 => {
            let _ = write!(text, " (thread {})", named(thread));
        }
        _ => {
            let _ = write!(text, " (it is {index}, outside 0..{})", length - 1);
        }
    }
    Some(text)
}

/// Of `contents` in struct attune_failure, and of one of them.
const CONTENTS: u64 = 40;
const CONTENTS_SIZE: u64 = 16 + 8 * LISTED;
const LISTED: u64 = 16;

/// `RQ holds threads 1, 2 and 7 more`; None for no container.
fn contents(image: &Image, memory: &Memory, base: u64) -> Option<String> {
    let container = memory.u64(base).filter(|&address| address != 0)?;
    let (size, listed) = (memory.u32(base + 8)?, memory.u32(base + 12)?);
    let name = container_name(image, memory, container).unwrap_or("a container".to_string());
    if size == 0 {
        return Some(format!("{name} is empty"));
    }
    let threads = (0..u64::from(listed).min(LISTED)).filter_map(|index| memory.u64(base + 16 + 8 * index));
    let threads: Vec<String> = threads.map(named).collect();
    let more = if listed < size { format!(" and {} more", size - listed) } else { String::new() };
    let s = if size == 1 { "" } else { "s" };
    Some(format!("{name} holds thread{s} {}{more}", threads.join(", ")))
}

/// What `container.h` says of the size of a container.
const CONTAINER_SIZE: u64 = 48;

/// The name in the scheduler of the container at an address: `RQ`, `RQ[3]`.
pub(crate) fn container_name(image: &Image, memory: &Memory, address: u64) -> Option<String> {
    // The one that begins last before the address: how many elements a per-CPU container has, the compiler knew.
    let containers = image.description.containers.iter();
    let bases = containers.filter_map(|it| Some((memory.address(image, &it.c_name)?, it)));
    let (base, container) = bases.filter(|(base, _)| *base <= address).max_by_key(|(base, _)| *base)?;
    let single = container.length == 0;
    let index = if single { String::new() } else { format!("[{}]", (address - base) / CONTAINER_SIZE) };
    Some(format!("{}{index}", container.name))
}

/// `1234 (stress-ng)`, as long as it lives.
fn named(thread: u64) -> String {
    let name = std::fs::read_to_string(format!("/proc/{thread}/comm")).unwrap_or_default();
    match name.trim() {
        "" => thread.to_string(),
        name => format!("{thread} ({name})"),
    }
}

fn wrong_dispatch(image: &Image, memory: &Memory, base: u64, thread: u64, state: i64, line: i64) -> String {
    let state = match state {
        2 => "runs on another CPU already",
        3 => "waits for something",
        _ => "has ended",
    };
    let place = memory.u64(base + CONTENTS).and_then(|at| container_name(image, memory, at));
    let place = place.map(|name| format!("; it sits in {name}")).unwrap_or_default();
    let line = if line > 0 { format!(", put there by line {line}") } else { String::new() };
    format!(
        "{}: schedule dispatched thread {}, which {state}{place}{line}",
        image.description.file,
        named(thread)
    )
}

/// `watchdog failed to check in ..` or `comm[pid] failed to run for 5.0s`: where the scheduler had put that thread.
fn stall(image: &Image, memory: &Memory, message: &str) -> Option<String> {
    let (before, _) = message.split_once("] failed to run")?;
    let (comm, pid) = before.rsplit_once('[')?;
    let pid: u64 = pid.parse().ok()?;
    let (container, line) = crate::threads::find(image, memory, pid)?;
    let place = match container {
        Some(name) => format!("it sits in {name}"),
        None => "it sits in no container".to_string(),
    };
    let by = if line > 0 { format!(", put there by line {line}") } else { String::new() };
    Some(format!(
        "{}: thread {pid} ({comm}) was ready and was not dispatched; {place}{by}",
        image.description.file
    ))
}
