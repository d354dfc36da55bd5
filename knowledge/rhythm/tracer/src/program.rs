//! The program in the kernel: opened, sized, loaded, attached and detached.

use std::ffi::OsStr;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::{Mutex, Once};

use libbpf_rs::{Link, Map, MapCore, Object, ObjectBuilder, OpenObject, PrintLevel};

use crate::tracer::{Error, Settings};

/// libbpf reads the object where it lies.
#[repr(align(8))]
struct Aligned<T: ?Sized>(T);

static OBJECT: &Aligned<[u8]> = &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/tracer.bpf.o")));

/// libbpf's words since the last load.
static LOG: Mutex<String> = Mutex::new(String::new());
static PRINT: Once = Once::new();

const BTF: &str = "/sys/kernel/btf/vmlinux";

/// The names of bpf/tracer.bpf.c's programs.
mod name {
    pub const CALL_EXIT: &str = "call_exit";
    pub const THREAD_WAKES: &str = "thread_wakes";
    pub const CPU_SWITCHES: &str = "cpu_switches";
}

pub fn load(settings: &Settings) -> Result<Object, Error> {
    PRINT.call_once(|| {
        libbpf_rs::set_print(Some((PrintLevel::Warn, |_, text| {
            if let Ok(mut log) = LOG.lock() {
                log.push_str(&text);
            }
        })));
    });
    if !Path::new(BTF).exists() {
        return Err(Error::NoBtf);
    }
    clear_log();
    let mut object = ObjectBuilder::default().open_memory(&OBJECT.0).map_err(refused)?;
    configure(&mut object, settings).map_err(refused)?;
    object.load().map_err(refused)
}

fn configure(object: &mut OpenObject, settings: &Settings) -> libbpf_rs::Result<()> {
    for mut map in object.maps_mut() {
        match map.name().to_str() {
            Some("ring") => map.set_max_entries(ring_bytes(settings.ring_bytes))?,
            // libbpf puts the object's name before the section's.
            Some(name) if name.ends_with(".rodata") => {
                if let Some(bytes) = map.initial_value_mut() {
                    // In the order of their declaration: only_threads, only_calls.
                    write_word(bytes, 0, settings.threads.is_some());
                    write_word(bytes, 4, settings.calls.is_some());
                }
            }
            _ => {}
        }
    }
    for mut program in object.progs_mut() {
        let wanted = match program.name().to_str() {
            Some(name::CALL_EXIT) => settings.exits,
            Some(name::THREAD_WAKES | name::CPU_SWITCHES) => settings.transitions,
            _ => true,
        };
        program.set_autoload(wanted);
    }
    Ok(())
}

fn write_word(bytes: &mut [u8], at: usize, value: bool) {
    if let Some(place) = bytes.get_mut(at..at + 4) {
        place.copy_from_slice(&u32::from(value).to_ne_bytes());
    }
}

/// A ring is a power of two of whole pages.
fn ring_bytes(wanted: u32) -> u32 {
    wanted.clamp(1 << 16, 1 << 30).next_power_of_two()
}

pub fn attach(object: &Object, settings: &Settings) -> Result<Vec<Link>, Error> {
    clear_log();
    let mut links = Vec::new();
    for program in object.progs_mut() {
        let wanted = match program.name().to_str() {
            Some(name::CALL_EXIT) => settings.exits,
            Some(name::THREAD_WAKES | name::CPU_SWITCHES) => settings.transitions,
            _ => true,
        };
        if wanted {
            links.push(program.attach().map_err(refused)?);
        }
    }
    Ok(links)
}

pub fn map<'object>(object: &'object Object, name: &str) -> Result<Map<'object>, Error> {
    let found = object.maps().find(|map| map.name() == OsStr::new(name));
    found.ok_or_else(|| Error::Refused { what: format!("the loaded program has no map {name}") })
}

fn clear_log() {
    if let Ok(mut log) = LOG.lock() {
        log.clear();
    }
}

fn refused(error: libbpf_rs::Error) -> Error {
    if error.kind() == libbpf_rs::ErrorKind::PermissionDenied || denied(&error) {
        return Error::NoPrivilege;
    }
    let log = LOG.lock().map(|log| log.clone()).unwrap_or_default();
    let words: Vec<&str> = log.lines().rev().take(5).collect();
    let words: Vec<&str> = words.into_iter().rev().collect();
    Error::Refused { what: format!("{error}\n{}", words.join("\n")).trim_end().to_owned() }
}

/// Whether some error below is the system's EPERM or EACCES.
fn denied(error: &libbpf_rs::Error) -> bool {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if error
            .downcast_ref::<std::io::Error>()
            .is_some_and(|error| error.kind() == ErrorKind::PermissionDenied)
        {
            return true;
        }
        cause = error.source();
    }
    false
}
