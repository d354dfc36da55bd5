//! Copies everything that a scheduler holds between two handlers, for comparing engines, for
//! debugging, and for a scheduler that goes on in another process.

use attune_language::ir::{Program, Type, Value};

use crate::scheduler::{CpuSet, ThreadId};

use super::containers::Discipline;
use super::layout::{Layout, bits};
use super::state::{Life, State};

/// Containers and globals stand in the order of the program, their elements in ascending order; a
/// CPU's instance is an element.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot {
    pub containers: Vec<Vec<Vec<ThreadId>>>,
    pub globals: Vec<Vec<Value>>,
    /// Every living thread with its attributes in the order of the program, ascending.
    pub threads: Vec<(ThreadId, Vec<Value>)>,
    pub divisions_by_zero: u64,
}

pub(super) fn take(program: &Program, layout: &Layout, state: &State) -> Snapshot {
    let containers = program.containers.iter().map(|(id, container)| {
        let base = layout.container(id);
        let element = |slot| state.containers.threads(slot).map(ThreadId).collect();
        (base..base + layout.slots(container.extent)).map(element).collect()
    });
    let globals = program.globals.iter().map(|(id, global)| {
        let base = layout.global(id);
        let element = |slot: u32| typed(global.ty, state.globals[slot as usize]);
        (base..base + layout.slots(global.extent)).map(element).collect()
    });
    let living = (0..state.lives.len() as u32).filter(|&thread| state.life(thread) == Life::Living);
    let threads = living.map(|thread| {
        let value = |(index, attribute): (usize, &attune_language::ir::Attribute)| {
            typed(attribute.ty, state.attribute(thread, index as u32))
        };
        (ThreadId(thread), program.attributes.values().enumerate().map(value).collect())
    });
    Snapshot {
        containers: containers.collect(),
        globals: globals.collect(),
        threads: threads.collect(),
        divisions_by_zero: state.divisions_by_zero,
    }
}

/// Makes a state that has just begun hold what the snapshot says. False: it is another program's.
pub(super) fn put_back(
    snapshot: &Snapshot,
    program: &Program,
    layout: &Layout,
    state: &mut State,
) -> bool {
    let attributes = program.attributes.len();
    let fits = snapshot.containers.len() == program.containers.len()
        && snapshot.globals.len() == program.globals.len()
        && snapshot.threads.iter().all(|(_, values)| values.len() == attributes);
    if !fits {
        return false;
    }
    for (thread, values) in &snapshot.threads {
        let values: Vec<i64> = values.iter().map(|&value| bits(value)).collect();
        state.create(thread.0, &values, &CpuSet::ALL);
    }
    for ((id, global), values) in program.globals.iter().zip(&snapshot.globals) {
        let slots = layout.slots(global.extent) as usize;
        let base = layout.global(id) as usize;
        if values.len() != slots {
            return false;
        }
        for (slot, &value) in state.globals[base..base + slots].iter_mut().zip(values) {
            *slot = bits(value);
        }
    }
    for ((id, container), elements) in program.containers.iter().zip(&snapshot.containers) {
        let slots = layout.container(id)..layout.container(id) + layout.slots(container.extent);
        if elements.len() != slots.len() {
            return false;
        }
        for (slot, threads) in slots.zip(elements) {
            if threads.iter().any(|thread| state.life(thread.0) != Life::Living) {
                return false;
            }
            // Each insertion puts the thread where it stood.
            match state.slots[slot as usize].discipline {
                Discipline::Back | Discipline::SortedBehind => {
                    threads.iter().for_each(|thread| state.put(thread.0, slot));
                }
                Discipline::Front | Discipline::SortedBefore => {
                    threads.iter().rev().for_each(|thread| state.put(thread.0, slot));
                }
            }
        }
    }
    state.changed.clear();
    true
}

/// The bits of a slot as a value.
pub(super) fn typed(ty: Type, bits: i64) -> Value {
    match ty {
        Type::Int | Type::Time => Value::Int(bits),
        Type::Float => Value::Float(f64::from_bits(bits as u64)),
    }
}
