//! The scheduler's memory, shared with the kernel: the arena, and the program's plain variables.
//!
//! Everything here may change while it is read. Reads are volatile, of whole words, and nothing
//! that is read is trusted: an address outside the arena reads as nothing.

use std::ptr;

use crate::image::{self, Image};

/// Bytes of the arena: `max_entries` pages in state.h.
pub(crate) const ARENA: u64 = 65536 * 4096;

/// Words by their address: as they are now, or as they were when they were copied.
pub(crate) trait Words {
    /// Reads a word; None, here as in the other functions, if there is no such word.
    fn u64(&self, address: u64) -> Option<u64>;
    fn u32(&self, address: u64) -> Option<u32>;
    fn u8(&self, address: u64) -> Option<u8>;
}

pub(crate) struct Memory {
    /// Where the arena begins, for the kernel's programs and here alike.
    arena: u64,
    /// Where the arena's variables begin.
    variables: u64,
    plain: Vec<Section>,
}

/// A section of plain variables.
pub(crate) struct Section {
    pub name: String,
    pub start: u64,
    pub bytes: usize,
}

impl Memory {
    /// `origin` is the address of `attune_failure`.
    ///
    /// # Safety
    /// The arena is mapped here at its own address, readable and writable, and the sections are as
    /// they say, for as long as the value lives.
    pub unsafe fn new(
        image: &Image,
        arena: u64,
        origin: u64,
        plain: Vec<Section>,
    ) -> Option<Memory> {
        let first = image.variable("attune_failure")?;
        let variables = origin.checked_sub(first.offset as u64)?;
        Some(Memory { arena, variables, plain })
    }

    /// The address of a variable or a container of a policy in an instance, by its name in C: a
    /// member of `struct state`, or a member of such a member.
    pub fn in_state(&self, image: &Image, instance: u32, name: &str) -> Option<u64> {
        let member = name.split('.').next().unwrap_or(name);
        Some(self.instance(image, instance)? + image.layout().state.get(member)?)
    }

    /// The address of an instance's state, which the handler call begins.
    pub fn instance(&self, image: &Image, instance: u32) -> Option<u64> {
        let first = self.address(image, "attune_instances")?;
        Some(first + u64::from(instance) * image.layout().state_bytes)
    }

    /// The address of a variable of the engine.
    pub fn address(&self, image: &Image, name: &str) -> Option<u64> {
        let variable = image.variable(name)?;
        if variable.section == image::ARENA {
            return Some(self.variables + variable.offset as u64);
        }
        let section = self.plain.iter().find(|section| section.name == variable.section)?;
        (variable.offset < section.bytes).then_some(section.start + variable.offset as u64)
    }

    /// Where the arena's variables lie, and their bytes.
    pub fn variables(&self, image: &Image) -> (u64, u64) {
        (self.variables, image.arena_bytes())
    }

    /// The sections of plain variables.
    pub fn plain_sections(&self) -> impl Iterator<Item = &Section> {
        self.plain.iter()
    }

    /// So many bytes from there; None if they are not all there.
    pub fn bytes(&self, address: u64, count: u64) -> Option<Vec<u8>> {
        (0..count).map(|at| self.u8(address + at)).collect()
    }

    /// Stores bytes. Programs that run meanwhile may see some of them and not the others. False if
    /// they do not lie in the memory.
    pub fn store(&self, address: u64, bytes: &[u8]) -> bool {
        let lies = self.contains(address, bytes.len() as u64);
        if lies {
            // SAFETY: `contains` has found them inside memory that is mapped, and no reference to
            // that memory exists.
            unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), address as *mut u8, bytes.len()) };
        }
        lies
    }

    /// Whether there is such an aligned word.
    fn holds(&self, address: u64, bytes: u64) -> bool {
        address.is_multiple_of(bytes.max(1)) && self.contains(address, bytes)
    }

    fn contains(&self, address: u64, bytes: u64) -> bool {
        let inside = |start: u64, length: u64| {
            address
                .checked_sub(start)
                .is_some_and(|at| at.checked_add(bytes).is_some_and(|end| end <= length))
        };
        inside(self.arena, ARENA)
            || self.plain.iter().any(|section| inside(section.start, section.bytes as u64))
    }

    /// False if there is no such word.
    pub fn set_u64(&self, address: u64, value: u64) -> bool {
        let holds = self.holds(address, 8);
        if holds {
            // SAFETY: `holds` has found the word inside memory that is mapped; the programs expect
            // that it changes at any time.
            unsafe { ptr::write_volatile(address as *mut u64, value) };
        }
        holds
    }

    /// False if there is no such word.
    pub fn set_u32(&self, address: u64, value: u32) -> bool {
        let holds = self.holds(address, 4);
        if holds {
            // SAFETY: as above.
            unsafe { ptr::write_volatile(address as *mut u32, value) };
        }
        holds
    }

    /// A text that ends with a zero, of at most so many bytes.
    pub fn text(&self, address: u64, bytes: u64) -> String {
        let mut text = Vec::new();
        for at in address..address.saturating_add(bytes) {
            if !self.holds(at, 1) {
                break;
            }
            // SAFETY: as above.
            match unsafe { ptr::read_volatile(at as *const u8) } {
                0 => break,
                byte => text.push(byte),
            }
        }
        String::from_utf8_lossy(&text).into_owned()
    }
}

impl Words for Memory {
    fn u64(&self, address: u64) -> Option<u64> {
        // SAFETY: `holds` has found the word inside memory that is mapped.
        self.holds(address, 8).then(|| unsafe { ptr::read_volatile(address as *const u64) })
    }

    fn u32(&self, address: u64) -> Option<u32> {
        // SAFETY: as above.
        self.holds(address, 4).then(|| unsafe { ptr::read_volatile(address as *const u32) })
    }

    fn u8(&self, address: u64) -> Option<u8> {
        // SAFETY: as above.
        self.holds(address, 1).then(|| unsafe { ptr::read_volatile(address as *const u8) })
    }
}
