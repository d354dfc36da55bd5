//! Attaches a scheduler again that was lent to another run (`running.rs`).
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

use libbpf_rs::{MapCore, libbpf_sys};

use crate::expedite::Attached;
use crate::fresh;
use crate::load::Error;
use crate::loaded::Loaded;
use crate::locked_copy::ROOM;
use crate::tunables;

/// Bytes of struct attune_setting.
const SETTING: u64 = 16;

/// The kernel has finished with the scheduler.
pub(crate) fn attach(loaded: &Loaded) -> Result<Attached, Error> {
    let Loaded { image, memory, object, .. } = loaded;
    let mut copier = loaded.copier_now();
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
    Ok(unsafe { OwnedFd::from_raw_fd(link) }.into())
}

const NOT_OURS: Error = Error::Inconsistent("it cannot be attached again");

fn failed(loaded: &Loaded, what: String) -> Error {
    Error::Refused { scheduler: loaded.image.scheduler(), what, log: String::new() }
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
