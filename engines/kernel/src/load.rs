//! Loads an object into the kernel: the verifier accepts it, and the kernel schedules nothing with
//! it yet.

use std::ffi::OsStr;
use std::sync::{Mutex, Once};

use libbpf_rs::libbpf_sys;
use libbpf_rs::{AsRawLibbpf, MapCore, MapType, ObjectBuilder, PrintLevel};

use crate::division::Division;
use crate::image::Image;
use crate::members::{self, Members};
use crate::memory::{Memory, Section};
use crate::optional;
use crate::support::Missing;
use crate::timer_functions::{self, Hidden, Timers};

/// How to run a scheduler.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The seed of `random`.
    pub seed: u64,
    /// CPUs of this machine.
    pub cpus: u32,
    /// Only threads that ask for the class SCHED_EXT follow the scheduler.
    pub partial: bool,
    /// The parts of schedulers that share the machine, in their order. At least 1, which is also
    /// that of one that is missing here.
    pub shares: Vec<u32>,
    /// Which threads follow which of them.
    pub members: Members,
    /// The kernel throws a scheduler out that leaves a ready thread waiting for so long, in ms (at
    /// most 30 000).
    pub timeout_ms: u32,
    /// The engine runs no thread that waits too long under its policy; the kernel ends the run.
    pub strict: bool,
    /// Which instance has which CPUs.
    pub division: Division,
    /// What threads wait until is told to policies that ask for it (`bpf/implicit.h`).
    pub implicit: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the kernel does not take the scheduler {scheduler}: {what}{log}")]
    Refused { scheduler: String, what: String, log: String },
    /// The verifier took it; it may go well with another [`crate::Layout`].
    #[error(
        "{NOT_TRANSLATED} of {scheduler}, which its verifier has taken: it fails on the way in \
            which some programs are laid out, or is \
         switched off (/proc/sys/net/core/bpf_jit_enable). `attune run` lays out a scheduler's \
         text again by itself; build an \
         object again with --layout plain"
    )]
    NotTranslated { scheduler: String },
    #[error(
        "the object is for at most {room} CPUs, this machine has {cpus}: build it with --cpus \
            {cpus}"
    )]
    TooFewCpus { room: u32, cpus: u32 },
    #[error(
        "the object has {made} instances of {scheduler}, and --per makes {wanted} on this machine: \
            build it with --instances {wanted}, or give the scheduler's text"
    )]
    OtherInstances { scheduler: String, made: u32, wanted: u32 },
    #[error(transparent)]
    NoTimers(#[from] Hidden),
    #[error(transparent)]
    Missing(#[from] Missing),
    #[error("{scheduler} does not ask what threads wait until: it has no import `implicit`")]
    NotImplicit { scheduler: String },
    #[error("the loaded program does not look like its object: {0}")]
    Inconsistent(&'static str),
}

/// What the message of [`Error::NotTranslated`] begins with.
pub const NOT_TRANSLATED: &str = "the kernel's own compiler gives up on the program";

/// The kernel's words when a program that must be compiled could not be: the verifier's, where the
/// program has functions, or else ENOTSUPP, which is no number for programs.
const UNTRANSLATED: [&str; 2] =
    ["program requires BPF JIT compiler but it is not available", "os error 524"];

/// libbpf's words since the last load.
static LOG: Mutex<String> = Mutex::new(String::new());
static PRINT: Once = Once::new();

fn listen() {
    PRINT.call_once(|| {
        libbpf_rs::set_print(Some((PrintLevel::Warn, |_, text| {
            if let Ok(mut log) = LOG.lock() {
                log.push_str(&text);
            }
        })));
    });
    if let Ok(mut log) = LOG.lock() {
        log.clear();
    }
}

/// The end of the verifier's log, which tells what it did not like; the whole can be a hundred
/// thousand lines.
fn shortened(log: &str) -> String {
    let lines: Vec<&str> = log.trim_end().lines().collect();
    let left_out = lines.len().saturating_sub(LOG_LINES);
    let mut text = if left_out > 0 {
        format!("[{left_out} lines of the log are left out]\n")
    } else {
        String::new()
    };
    text += &lines[left_out..].join("\n");
    text
}

/// Lines of the verifier's log that are shown.
const LOG_LINES: usize = 60;

pub(crate) fn refused(image: &Image, what: libbpf_rs::Error) -> Error {
    let log = LOG.lock().map(|log| log.clone()).unwrap_or_default();
    let words = format!("{what:#}\n{log}");
    if UNTRANSLATED.iter().any(|untranslated| words.contains(untranslated)) {
        return Error::NotTranslated { scheduler: image.scheduler() };
    }
    let log = if log.is_empty() { log } else { format!("\n{}", shortened(&log)) };
    Error::Refused { scheduler: image.scheduler(), what: what.to_string(), log }
}

pub(crate) fn object(image: &Image, settings: &Settings) -> Result<libbpf_rs::Object, Error> {
    listen();
    let mut open = ObjectBuilder::default()
        .open_memory(&image.bytes)
        .map_err(|error| refused(image, error))?;
    let timers = if settings.implicit { timer_functions::functions()? } else { Timers::default() };
    let mut listens = false;
    for mut program in open.progs_mut().filter(|program| is_timer_program(program.name())) {
        program.set_autoload(settings.implicit);
        listens = true;
    }
    if settings.implicit && !listens {
        return Err(Error::NotImplicit { scheduler: image.scheduler() });
    }
    let policies = image.policies().count();
    let shares: Vec<u64> = (0..policies).map(|policy| share(&settings.shares, policy)).collect();
    for mut map in open.maps_mut() {
        let name = map.name().to_string_lossy().into_owned();
        if name == members::MAP {
            settings.members.share(&mut map).map_err(|error| refused(image, error))?;
        }
        if name == "attune_timers" && map.max_entries() < settings.cpus {
            return Err(Error::TooFewCpus { room: map.max_entries(), cpus: settings.cpus });
        }
        let section = if name == "attune_ops" { ".struct_ops.link" } else { ".rodata" };
        if name != "attune_ops" && !name.ends_with(".rodata") {
            continue;
        }
        let Some(value) = map.initial_value_mut() else { continue };
        let mut put = |variable: &str, member: usize, bytes: &[u8]| {
            let place = image.variable(variable).filter(|variable| variable.section == section);
            if let Some(place) = place
                && let Some(to) =
                    value.get_mut(place.offset + member..place.offset + member + bytes.len())
            {
                to.copy_from_slice(bytes);
            }
        };
        put("attune_seed", 0, &settings.seed.to_ne_bytes());
        put("attune_cpu_count", 0, &settings.cpus.to_ne_bytes());
        put("attune_longest_wait", 0, &longest_wait(settings).to_ne_bytes());
        for (domain, share) in shares.iter().enumerate() {
            put("attune_shares", 8 * domain, &share.to_ne_bytes());
        }
        put("attune_all_shares", 0, &shares.iter().sum::<u64>().to_ne_bytes());
        put("attune_margin", 0, &margin(&shares).to_ne_bytes());
        for (domain, run) in settings.members.numbers(policies).enumerate() {
            put("attune_runs", 4 * domain, &run.to_ne_bytes());
        }
        for (name, numbers) in [
            ("attune_instance_of", settings.division.instance_of()),
            ("attune_cache_of", settings.division.cache_of()),
        ] {
            for (cpu, number) in numbers.iter().enumerate() {
                put(name, 4 * cpu, &number.to_ne_bytes());
            }
        }
        put("attune_wakes_sleeper", 0, &timers.sleeper.to_ne_bytes());
        put("attune_wakes_descriptor", 0, &timers.descriptor.to_ne_bytes());
        if section == ".struct_ops.link" {
            let flags = OPS_FLAGS | if settings.partial { SWITCH_PARTIAL } else { 0 };
            put("attune_ops", OPS_FLAGS_AT, &flags.to_ne_bytes());
            put("attune_ops", OPS_FLAGS_AT + 8, &settings.timeout_ms.to_ne_bytes());
            let mut title =
                image.scheduler().replace(|c: char| !c.is_ascii_alphanumeric() && c != '_', "_");
            title.truncate(100);
            put("attune_ops", OPS_FLAGS_AT + 12, format!("attune_{title}\0").as_bytes());
            for place in optional::missing(image) {
                put("attune_ops", place, &[0; 8]);
            }
        }
    }
    open.load().map_err(|error| refused(image, error))
}

/// Those of `bpf/implicit.h`, which each timer of the machine passes through while they are loaded.
pub(crate) fn is_timer_program(name: &OsStr) -> bool {
    name == "attune_timer_starts" || name == "attune_timer_ends"
}

/// After what time the engine runs a thread, whatever its policy says (`bpf/rescue.h`), in ns; 0:
/// never. The kernel's own watchdog is a worker that must run within half of `timeout_ms` after it
/// is ready, so that it must be helped before then.
fn longest_wait(settings: &Settings) -> i64 {
    if settings.strict { 0 } else { i64::from(settings.timeout_ms) * 1_000_000 / 3 }
}

fn share(shares: &[u32], policy: usize) -> u64 {
    shares.get(policy).map_or(1, |share| u64::from(*share).max(1))
}

/// How far one domain gets ahead before another one has the CPU, in virtual ns (`bpf/share.h`): the
/// turn of the one with the smallest share is no shorter than [`SHORTEST_TURN`], since a change of
/// domains costs some microseconds. One of two goes from a margin behind to a margin ahead; one of
/// several may begin where the next one stands.
fn margin(shares: &[u64]) -> u64 {
    let smallest = shares.iter().min().copied().unwrap_or(1);
    let margins = if shares.len() > 2 { 1 } else { 2 };
    MARGIN.max(SHORTEST_TURN / margins * shares.iter().sum::<u64>() / smallest)
}

/// Makes turns of 4 ms where the shares are equal.
const MARGIN: u64 = 4_000_000;
/// In ns.
const SHORTEST_TURN: u64 = 500_000;

/// Loads a scheduler without letting it schedule: the kernel's verifier has then accepted it.
pub fn try_load(image: Image, settings: &Settings) -> Result<(), Error> {
    object(&image, settings).map(|_| ())
}

/// As in kernel.h: SCX_OPS_KEEP_BUILTIN_IDLE, _ENQ_LAST, _ENQ_EXITING, _ENQ_MIGRATION_DISABLED,
/// _TID_TO_TASK.
const OPS_FLAGS: u64 = 1 | 2 | 4 | 16 | 256;
const SWITCH_PARTIAL: u64 = 8;
/// Bytes before `flags` in struct sched_ext_ops as kernel.h declares it; life.h asserts it.
const OPS_FLAGS_AT: usize = 96;

/// The memory that a loaded object shares with this process.
pub(crate) fn memory_of(image: &Image, object: &libbpf_rs::Object) -> Result<Memory, Error> {
    let (mut plain, mut arena) = (Vec::new(), None);
    for map in object.maps() {
        let name = map.name().to_string_lossy().into_owned();
        if map.map_type() == MapType::Arena {
            let mut bytes = 0;
            // SAFETY: the map is loaded and alive; libbpf maps an arena when it makes it.
            let start = unsafe {
                libbpf_sys::bpf_map__initial_value(map.as_libbpf_object().as_ptr(), &mut bytes)
            };
            arena = Some(start as u64).filter(|start| *start != 0);
        }
        for section in [".bss", ".data", ".rodata"] {
            if !name.ends_with(section) {
                continue;
            }
            let mut bytes = 0;
            // SAFETY: the map is loaded and alive; libbpf keeps its memory mapped as long as the
            // object lives.
            let start = unsafe {
                libbpf_sys::bpf_map__initial_value(map.as_libbpf_object().as_ptr(), &mut bytes)
            };
            if !start.is_null() {
                plain.push(Section {
                    name: section.to_string(),
                    start: start as u64,
                    bytes: bytes as usize,
                });
            }
        }
    }
    let origin_place =
        image.variable("attune_origin").ok_or(Error::Inconsistent("it lacks attune_origin"))?;
    let bss = plain.iter().find(|section| section.name == origin_place.section);
    let bss = bss.ok_or(Error::Inconsistent("it has no .bss"))?;
    if origin_place.offset + 8 > bss.bytes {
        return Err(Error::Inconsistent("its .bss is too short"));
    }
    // SAFETY: inside the section, aligned as the compiler aligned it.
    let origin =
        unsafe { std::ptr::read_volatile((bss.start + origin_place.offset as u64) as *const u64) };
    let arena = arena.ok_or(Error::Inconsistent("it has no arena"))?;
    // SAFETY: libbpf maps the arena there, and keeps it as long as the object lives.
    unsafe { Memory::new(image, arena, origin, plain) }
        .ok_or(Error::Inconsistent("it lacks attune_failure"))
}
