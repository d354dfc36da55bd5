//! Claims a slot, and takes back those whose owners are gone.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use super::page::{SLOTS, Shared, Slot, State};
use super::wakeup::{self, WakeUpSocket};
use crate::time::Time;

/// An owner that has not polled for so long although it should have (it does not sleep, or it is
/// deaf) hangs or is stopped.
const HUNG: Time = 10_000_000_000;

/// A slot that is ours until another owner stands there.
pub struct Place {
    pub slot: u32,
    pub owner: u64,
    pub wakeup: WakeUpSocket,
}

/// A free slot; if there is none, that of an owner that died, or has hung for long. The caller has
/// the session locked.
pub fn claim(page: &Shared, directory: &Path, now: Time) -> io::Result<Place> {
    let owner = random()?;
    let free = || page.slots().find(|(_, slot)| slot.is_free());
    let dead = || page.slots().find(|(number, _)| !wakeup::is_listening(directory, *number));
    let hung = || page.slots().find(|(_, slot)| hangs(slot, now));
    let Some((number, slot)) = free().or_else(dead).or_else(hung) else {
        let message = format!("all {SLOTS} slots are taken by living programs");
        return Err(io::Error::new(io::ErrorKind::QuotaExceeded, message));
    };
    let wakeup = WakeUpSocket::bind(directory, number)?;
    slot.deaf.store(0, std::sync::atomic::Ordering::SeqCst);
    slot.owner.store(owner, std::sync::atomic::Ordering::SeqCst);
    Ok(Place { slot: number, owner, wakeup })
}

fn hangs(slot: &Slot, now: Time) -> bool {
    use std::sync::atomic::Ordering::SeqCst;
    let silent = now.saturating_sub(slot.polled.load(SeqCst)) > HUNG;
    silent && (slot.deaf.load(SeqCst) != 0 || slot.state() != State::Sleeping)
}

/// Draws a number that is not 0.
fn random() -> io::Result<u64> {
    let mut bytes = [0; 8];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(u64::from_ne_bytes(bytes).max(1))
}
