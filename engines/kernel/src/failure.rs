//! How a scheduler ended, in the words of its own text.
//!
//! A failed check leaves numbers behind (`struct attune_failure`, backends/c/runtime/failure.h); here they become the sentence
//! that the same check says in other engines.

use std::fmt::Write;

use crate::contents::ELEMENT;
use crate::description::Policy;
use crate::image::Image;
use crate::memory::{Memory, Words};

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

/// In the exit code, as the kernel's SCX_ECODE_RSN_HOTPLUG has it.
const CPUS_CHANGED: u64 = 1 << 32;

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
    let code = memory.address(image, "attune_exit_code").and_then(|at| memory.u64(at)).unwrap_or(0);
    let failure = failure
        .or_else(|| (code & CPUS_CHANGED != 0).then(|| "CPUs came or went; start it again".to_owned()));
    let failure = failure.or_else(|| (kind == Kind::Stall).then(|| stall(image, memory, &message)).flatten());
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
    if memory.u32(base)? == 0 {
        return None;
    }
    let (check, about) = (memory.u32(base + 4)?, memory.u32(base + 8)?);
    let found = match about {
        ABOUT_CONTAINERS => {
            let both = [base + CONTENTS, base + CONTENTS + CONTENTS_SIZE];
            Found::Containers(both.into_iter().filter_map(|at| contents(image, memory, at)).collect())
        }
        ABOUT_INDEX => {
            Found::Index { index: memory.u64(base + 24)? as i64, length: memory.u64(base + 32)? as i64 }
        }
        ABOUT_CUT => Found::Cut,
        _ => Found::Thread(memory.u64(base + 16)?),
    };
    Some(Noted { check, about, found })
}

/// The check that failed, in a sentence.
pub(crate) fn failure(image: &Image, memory: &Memory) -> Option<String> {
    let base = memory.address(image, "attune_failure")?;
    let noted = noted(image, memory)?;
    match (noted.about, &noted.found) {
        (WRONG_DISPATCH, Found::Thread(thread)) => {
            let (state, line) = (memory.u64(base + 24)? as i64, memory.u64(base + 32)? as i64);
            return Some(wrong_dispatch(image, memory, base, *thread, state, line));
        }
        (LOCK_LOST, _) => {
            return Some(
                "the engine waited for its own lock for too long; this is a mistake of Attune's".to_string(),
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

/// Of `contents` in struct attune_failure, and of one of them.
const CONTENTS: u64 = 40;
const CONTENTS_SIZE: u64 = 16 + 8 * LISTED;
const LISTED: u64 = 16;

/// None for no container.
fn contents(image: &Image, memory: &Memory, base: u64) -> Option<Contents> {
    let container = memory.u64(base).filter(|&address| address != 0)?;
    let (size, listed) = (memory.u32(base + 8)?, memory.u32(base + 12)?);
    let name = container_name(image, memory, container).unwrap_or("a container".to_string());
    let threads = (0..u64::from(listed).min(LISTED)).filter_map(|index| memory.u64(base + 16 + 8 * index));
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

/// The name in the scheduler of the container at an address: `RQ`, `RQ[3]`.
pub(crate) fn container_name(image: &Image, memory: &Memory, address: u64) -> Option<String> {
    // The one that begins last before the address: how many elements a per-CPU container has, the compiler knew.
    let containers = image.description.policies.iter().flat_map(|policy| &policy.containers);
    let bases = containers.filter_map(|it| Some((memory.address(image, &it.c_name)?, it)));
    let (_, container) = bases.filter(|(base, _)| *base <= address).max_by_key(|(base, _)| *base)?;
    let element = memory.u32(address + ELEMENT)? as i32;
    let index = if element < 0 { String::new() } else { format!("[{element}]") };
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

/// By which line; 0: by none.
fn put_there(policy: &Policy, line: u32) -> String {
    if line > 0 { format!(", put there by {}", policy.line(line)) } else { String::new() }
}

fn wrong_dispatch(image: &Image, memory: &Memory, base: u64, thread: u64, state: i64, line: i64) -> String {
    let state = match state {
        2 => "runs on another CPU already",
        3 => "waits for something",
        _ => "has ended",
    };
    let place = memory.u64(base + CONTENTS).and_then(|at| container_name(image, memory, at));
    let place = place.map(|name| format!("; it sits in {name}")).unwrap_or_default();
    let policy = policy(image, memory.u32(base + POLICY).unwrap_or(0));
    let line = u32::try_from(line).map(|line| put_there(policy, line)).unwrap_or_default();
    format!("{}: schedule dispatched thread {}, which {state}{place}{line}", policy.file, named(thread))
}

/// Of `policy` in struct attune_failure.
const POLICY: u64 = 12;

fn policy(image: &Image, number: u32) -> &Policy {
    image.description.policies.get(number as usize).unwrap_or(image.description.first())
}

/// `watchdog failed to check in ..` or `comm[pid] failed to run for 5.0s`: where the scheduler had put that thread.
fn stall(image: &Image, memory: &Memory, message: &str) -> Option<String> {
    let (before, _) = message.split_once("] failed to run")?;
    let (comm, pid) = before.rsplit_once('[')?;
    let pid: u64 = pid.parse().ok()?;
    let found = crate::threads::find(image, memory, pid)?;
    let place = match found.container {
        Some(name) => format!("it sits in {name}"),
        None => "it sits in no container".to_string(),
    };
    let policy = policy(image, found.policy);
    let by = put_there(policy, found.line);
    let file = &policy.file;
    Some(format!("{file}: thread {pid} ({comm}) was ready and was not dispatched; {place}{by}"))
}
