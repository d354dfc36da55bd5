//! The program in the kernel: which of its parts are loaded, and how large its ring is.

use attune_bpf::load::{self, map as find};
use libbpf_rs::{Map, Object, OpenObject};

use crate::settings::{Error, Settings};

/// The names of bpf/tracer.bpf.c's programs.
mod name {
    pub const CALL_EXIT: &str = "call_exit";
    pub const THREAD_WAKES: &str = "thread_wakes";
    pub const CPU_SWITCHES: &str = "cpu_switches";
}

pub fn load(settings: &Settings) -> Result<Object, Error> {
    let object = attune_bpf::object!("tracer.bpf.o");
    Ok(load::load(object, |object| configure(object, settings))?)
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

pub fn map<'object>(object: &'object Object, name: &str) -> Result<Map<'object>, Error> {
    Ok(find(object, name)?)
}
