//! Says how a scheduler ended, in the words of its own text.
//!
//! A failed check leaves numbers behind (`struct attune_failure`, backends/c/runtime/failure.h);
//! here they become the sentence that the same check says in other engines.

use std::fmt::Write;

use crate::containers;
use crate::description::Policy;
use crate::image::Image;
use crate::memory::{Memory, Words};
use crate::records;

/// The end of a scheduler.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exit {
    pub kind: Kind,
    /// The kernel's words.
    pub reason: String,
    pub message: String,
    /// The scheduler's own failure, with its place: `pth.sched:41:9: cannot take a thread from RQ:
    /// it is empty (..)`.
    pub failure: Option<String>,
}

/// As the kernel's `enum scx_exit_kind` has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// Detached as it should be.
    #[default]
    Unloaded,
    /// SysRq-S was pressed, or the kernel had another reason that is no mistake of the
    /// scheduler's.
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

/// Reads how the scheduler ended; None while it runs.
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
    let failure =
        failure.or_else(|| (kind == Kind::Stall).then(|| stall(image, memory, &message)).flatten());
    Some(Exit { kind, reason: text("attune_exit_reason", 128), message, failure })
}

/// What `struct attune_failure` says.
#[derive(Clone, Debug)]
pub(crate) struct Noted {
    pub check: u32,
    about: u32,
    pub found: Found,
}

/// What was noted of a failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// How full they are.
    Containers(Vec<Contents>),
    Thread(u64),
    Index {
        index: i64,
        length: i64,
    },
    /// Nothing: the kernel ended a loop that went on for too long.
    Cut,
}

/// `enum attune_about`, and behind it what the engine says (`enum attune_wrong`).
const ABOUT_CONTAINERS: u32 = 0;
const ABOUT_INDEX: u32 = 2;
const ABOUT_CUT: u32 = 3;
const WRONG_DISPATCH: u32 = 4;
const LOCK_LOST: u32 = 5;

/// A container at the moment of a failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contents {
    pub name: String,
    pub size: u32,
    /// The first of its threads, in its order.
    pub threads: Vec<u64>,
}

/// None while no check has failed.
pub(crate) fn noted(image: &Image, memory: &Memory) -> Option<Noted> {
    let base = memory.address(image, "attune_failure")?;
    let layout = &image.layout().failure;
    if memory.u32(base + layout.failed)? == 0 {
        return None;
    }
    let (check, about) = (memory.u32(base + layout.check)?, memory.u32(base + layout.about)?);
    let found = match about {
        ABOUT_CONTAINERS => {
            let first = base + layout.contents;
            let both = [first, first + layout.contents_bytes];
            Found::Containers(
                both.into_iter().filter_map(|at| contents(image, memory, at)).collect(),
            )
        }
        ABOUT_INDEX => Found::Index {
            index: memory.u64(base + layout.index)? as i64,
            length: memory.u64(base + layout.length)? as i64,
        },
        ABOUT_CUT => Found::Cut,
        _ => Found::Thread(memory.u64(base + layout.thread)?),
    };
    Some(Noted { check, about, found })
}

/// The check that failed, in a sentence.
pub(crate) fn failure(image: &Image, memory: &Memory) -> Option<String> {
    let base = memory.address(image, "attune_failure")?;
    let noted = noted(image, memory)?;
    match (noted.about, &noted.found) {
        (WRONG_DISPATCH, Found::Thread(thread)) => {
            return wrong_dispatch(image, memory, base, *thread);
        }
        (LOCK_LOST, _) => {
            return Some(
                "the engine waited for its own lock for too long; this is a mistake of Attune's"
                    .to_string(),
            );
        }
        _ => {}
    }
    let mut text = match image.description.checks.get(&noted.check) {
        Some(check) => format!("{}:{}:{}: {}", check.file, check.line, check.column, check.what),
        None if noted.found == Found::Cut => {
            let calling = memory.address(image, "attune_calling").and_then(|at| memory.u32(at));
            let file = &policy(image, calling.unwrap_or(0)).file;
            format!("{file}: a loop went on for longer than the kernel allows, 250 ms")
        }
        None => format!("check {} failed", noted.check),
    };
    // Writing to a String cannot fail.
    match noted.found {
        Found::Containers(all) => {
            let said: Vec<String> = all.iter().map(Contents::said).collect();
            if !said.is_empty() {
                let _ = write!(text, " ({})", said.join("; "));
            }
        }
        Found::Thread(thread) => {
            let _ = write!(text, " (thread {})", named(thread));
        }
        Found::Index { index, length } => {
            let _ = write!(text, " (it is {index}, outside 0..{})", length - 1);
        }
        Found::Cut => {}
    }
    Some(text)
}

/// Threads that `struct attune_contents` has room for; more is not believed.
const LISTED: u64 = 16;

/// Reads what a container held; None for no container.
fn contents(image: &Image, memory: &Memory, base: u64) -> Option<Contents> {
    let layout = &image.layout().failure;
    let container = memory.u64(base + layout.container).filter(|&address| address != 0)?;
    let size = memory.u32(base + layout.size)?;
    let listed = u64::from(memory.u32(base + layout.listed)?).min(LISTED);
    let name = containers::name(image, memory, memory, container);
    let name = name.unwrap_or("a container".to_string());
    let threads = (0..listed).filter_map(|index| memory.u64(base + layout.threads + 8 * index));
    Some(Contents { name, size, threads: threads.collect() })
}

impl Contents {
    /// `RQ holds threads 1, 2 and 7 more`.
    fn said(&self) -> String {
        let (name, size) = (&self.name, self.size);
        if size == 0 {
            return format!("{name} is empty");
        }
        let threads: Vec<String> = self.threads.iter().copied().map(named).collect();
        let more = (size as usize).saturating_sub(threads.len());
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let s = if size == 1 { "" } else { "s" };
        format!("{name} holds thread{s} {}{more}", threads.join(", "))
    }
}

/// `1234 (stress-ng)`, as long as it lives.
pub(crate) fn named(thread: u64) -> String {
    let name = std::fs::read_to_string(format!("/proc/{thread}/comm")).unwrap_or_default();
    match name.trim() {
        "" => thread.to_string(),
        name => format!("{thread} ({name})"),
    }
}

/// Says which line put the thread there; 0 is no line.
pub(crate) fn put_there(policy: &Policy, line: u32) -> String {
    if line > 0 { format!(", put there by {}", policy.line(line)) } else { String::new() }
}

/// The engine has left the thread's state in `index`, and the line that put it there in `length`.
fn wrong_dispatch(image: &Image, memory: &Memory, base: u64, thread: u64) -> Option<String> {
    let layout = &image.layout().failure;
    let state = match memory.u64(base + layout.index)? {
        2 => "runs on another CPU already",
        3 => "waits for something",
        _ => "has ended",
    };
    let container = memory.u64(base + layout.contents + layout.container);
    let place = container.and_then(|at| containers::name(image, memory, memory, at));
    let place = place.map(|name| format!("; it sits in {name}")).unwrap_or_default();
    let policy = policy(image, memory.u32(base + layout.policy).unwrap_or(0));
    let line = memory.u64(base + layout.length).and_then(|line| u32::try_from(line).ok());
    let line = line.map(|line| put_there(policy, line)).unwrap_or_default();
    let (file, thread) = (&policy.file, named(thread));
    Some(format!("{file}: schedule dispatched thread {thread}, which {state}{place}{line}"))
}

pub(crate) fn policy(image: &Image, number: u32) -> &Policy {
    image.description.policies.get(number as usize).unwrap_or(image.description.first())
}

/// `watchdog failed to check in ..` or `comm[pid] failed to run for 5.0s`: where the scheduler had
/// put that thread.
fn stall(image: &Image, memory: &Memory, message: &str) -> Option<String> {
    let (before, _) = message.split_once("] failed to run")?;
    let (comm, pid) = before.rsplit_once('[')?;
    let pid: u64 = pid.parse().ok()?;
    let found = records::find(image, memory, pid)?;
    let place = match found.container {
        Some(name) => format!("it sits in {name}"),
        None => "it sits in no container".to_string(),
    };
    let policy = policy(image, found.policy);
    let by = put_there(policy, found.line);
    let file = &policy.file;
    Some(format!("{file}: thread {pid} ({comm}) was ready and was not dispatched; {place}{by}"))
}
