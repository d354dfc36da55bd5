//! Copies everything that a scheduler holds between two handlers, for comparing engines and for
//! debugging.

use attune_language::ir::{Program, Type, Value};

use crate::scheduler::ThreadId;

use super::layout::Layout;
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

/// The bits of a slot as a value.
pub(super) fn typed(ty: Type, bits: i64) -> Value {
    match ty {
        Type::Int | Type::Time => Value::Int(bits),
        Type::Float => Value::Float(f64::from_bits(bits as u64)),
    }
}
