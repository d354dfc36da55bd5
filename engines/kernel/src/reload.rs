//! Attaches a scheduler again that the kernel has ended because a CPU went or came.
//!
//! The object stays loaded, so nothing is compiled or verified. Its maps stay too, and with them
//! the pages of values, the tables, and what the engine keeps of each thread (`struct
//! attune_slot`). Only its memory starts afresh (`fresh.rs`), with the tunables as they were.
//!
//! Invariant: the copier, and with it `attune set` and `attune top`, waits until the scheduler is
//! attached again or has failed to be.

use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::ptr;
use std::time::Duration;

use libbpf_rs::{MapCore, libbpf_sys};

use crate::failure;
use crate::fresh;
use crate::load::Error;
use crate::loaded::Loaded;
use crate::locked_copy::ROOM;
use crate::memory::Words;
use crate::tunables;

/// A scheduler goes on.
#[derive(Clone, Debug)]
pub struct Reload {
    /// None: the kernel did not say it in the usual words.
    pub cpu: Option<CpuChange>,
    /// From the policy's last decision before to its first one after.
    pub undecided: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CpuChange {
    Came(u32),
    Went(u32),
}

impl CpuChange {
    /// The kernel says `cpu 2 going offline, exiting scheduler`.
    fn of(message: &str) -> Option<CpuChange> {
        let (cpu, rest) = message.strip_prefix("cpu ")?.split_once(" going ")?;
        let cpu = cpu.parse().ok()?;
        match rest.split(',').next()? {
            "online" => Some(CpuChange::Came(cpu)),
            "offline" => Some(CpuChange::Went(cpu)),
            _ => None,
        }
    }
}

/// Bytes of struct attune_setting.
const SETTING: u64 = 16;

/// The kernel has finished with the scheduler.
pub(crate) fn attach(loaded: &Loaded) -> Result<(OwnedFd, Reload), Error> {
    let Loaded { image, memory, object, .. } = loaded;
    let mut copier = loaded.copier_now();
    let message = failure::exit(image, memory).map(|exit| exit.message).unwrap_or_default();
    let before = decisions(loaded).into_iter().max().unwrap_or(0);
    let settings = tunables::settings(image, memory).ok_or(NOT_OURS)?;
    let room = copier.room(image, memory).map_err(|error| failed(loaded, error.to_string()))?;
    fresh::restore(image, memory).ok_or(NOT_OURS)?;
    hand_over(loaded, room, &settings).ok_or(NOT_OURS)?;
    let map = object.maps().find(|map| map.name() == "attune_ops").ok_or(NOT_OURS)?;
    // SAFETY: a map that is loaded, and no options.
    let link = unsafe {
        let map = map.as_fd().as_raw_fd();
        libbpf_sys::bpf_link_create(map, 0, libbpf_sys::BPF_STRUCT_OPS, ptr::null())
    };
    if link < 0 {
        return Err(failed(loaded, io::Error::from_raw_os_error(-link).to_string()));
    }
    // SAFETY: the kernel has just made it for this caller.
    let link = unsafe { OwnedFd::from_raw_fd(link) };
    let now = attune_linux::time::now();
    let after = decisions(loaded).into_iter().filter(|at| *at > 0).min().unwrap_or(now);
    let undecided = Duration::from_nanos(after.saturating_sub(before));
    Ok((link, Reload { cpu: CpuChange::of(&message), undecided }))
}

const NOT_OURS: Error = Error::Inconsistent("it cannot be attached again");

fn failed(loaded: &Loaded, what: String) -> Error {
    Error::Refused { scheduler: loaded.image.scheduler(), what, log: String::new() }
}

/// When each CPU last asked a policy, in ns of CLOCK_MONOTONIC.
fn decisions(loaded: &Loaded) -> Vec<u64> {
    let Loaded { image, memory, cpus, .. } = loaded;
    let Some(engine) = &image.layout().engine else { return Vec::new() };
    let first = memory.address(image, "attune_cpus");
    let of = |cpu: u32| memory.u64(first? + u64::from(cpu) * engine.cpu_bytes + engine.asked_at);
    (0..*cpus).filter_map(of).collect()
}

/// The fresh state takes these settings over before the policy's `init`.
fn hand_over(loaded: &Loaded, room: u64, settings: &[(u64, u64)]) -> Option<()> {
    let Loaded { image, memory, .. } = loaded;
    let count = settings.len() as u64;
    (count * SETTING <= ROOM).then_some(())?;
    for (entry, (at, value)) in (room..).step_by(SETTING as usize).zip(settings) {
        (memory.set_u64(entry, *at) && memory.set_u64(entry + 8, *value)).then_some(())?;
    }
    memory.set_u64(memory.address(image, "attune_settings")?, room).then_some(())?;
    memory.set_u64(memory.address(image, "attune_settings_count")?, count).then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_says_which_cpu_went_or_came() {
        let of = CpuChange::of;
        assert_eq!(of("cpu 2 going offline, exiting scheduler"), Some(CpuChange::Went(2)));
        assert_eq!(of("cpu 13 going online, exiting scheduler"), Some(CpuChange::Came(13)));
        assert_eq!(of("expected hotplug seq 3 did not match actual 4"), None);
    }
}
