//! Decides which slot each variable, container, local and thread name of a program has, for a
//! number of CPUs.

use attune_language::ir::{ContainerId, Extent, GlobalId, Local, LocalId, Program, Value};

use super::Refusal;

/// The most slots of one kind: beyond this a scheduler would only exhaust memory.
const LIMIT: u64 = 1 << 26;

#[derive(Clone)]
pub(super) struct Layout {
    pub cpus: u32,
    globals: Vec<u32>,
    containers: Vec<u32>,
    locals: Vec<u32>,
    pub local_slots: u32,
}

impl Layout {
    pub fn new(program: &Program, cpus: u32) -> Result<Layout, Refusal> {
        let (globals, _) =
            place(program.globals.values().map(|global| slots(global.extent, cpus)))?;
        let (containers, _) =
            place(program.containers.values().map(|each| slots(each.extent, cpus)))?;
        let (locals, local_slots) = place(program.locals.values().map(length))?;
        Ok(Layout { cpus, globals, containers, locals, local_slots })
    }

    /// The first slot of a global.
    pub fn global(&self, id: GlobalId) -> u32 {
        self.globals[raw(id)]
    }

    /// The first slot of a container.
    pub fn container(&self, id: ContainerId) -> u32 {
        self.containers[raw(id)]
    }

    /// The first slot of a local.
    pub fn local(&self, id: LocalId) -> u32 {
        self.locals[raw(id)]
    }

    pub fn slots(&self, extent: Extent) -> u32 {
        slots(extent, self.cpus)
    }
}

/// The index of an id in its arena.
pub(super) fn raw<T>(id: la_arena::Idx<T>) -> usize {
    id.into_raw().into_u32() as usize
}

pub(super) fn length(local: &Local) -> u32 {
    local.length.unwrap_or(1)
}

/// A value as the 64 bits of a slot.
pub(super) fn bits(value: Value) -> i64 {
    match value {
        Value::Int(value) => value,
        Value::Float(value) => value.to_bits() as i64,
    }
}

fn slots(extent: Extent, cpus: u32) -> u32 {
    match extent {
        Extent::One => 1,
        Extent::Array(length) => length,
        Extent::PerCpu => cpus,
    }
}

fn place(lengths: impl Iterator<Item = u32>) -> Result<(Vec<u32>, u32), Refusal> {
    let mut next = 0u64;
    let mut bases = Vec::new();
    for length in lengths {
        bases.push(next as u32);
        next += u64::from(length);
        if next > LIMIT {
            return Err(Refusal::TooLarge);
        }
    }
    Ok((bases, next as u32))
}
