//! How many bytes a scheduler takes on a 32-bit machine.
//!
//! Invariant: the sizes are those of the C compiler: a static assertion in the text compares them.

use attune_language::ir::{Extent, Storage};

use super::Engine;
use crate::writer::Writer;
use crate::writer::output::Output;

/// struct attune_thread and struct attune_container of `runtime/`, with 4 bytes a pointer and 8
/// bytes of alignment for 64-bit numbers.
const THREAD: u32 = 56;
const CONTAINER: u32 = 32;
/// Each variable and each attribute takes so many bytes.
const VALUE: u32 = 8;

/// Memory of a scheduler on a 32-bit machine, in bytes. Stacks are the firmware's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    /// Each thread's record.
    pub thread: u32,
    /// The policy's containers, of all its threads.
    pub containers: u32,
    /// The policy's variables.
    pub variables: u32,
}

impl Sizes {
    pub(super) fn of(writer: &Writer<'_>, engine: &Engine) -> Sizes {
        let program = writer.program;
        let elements = |extent: Extent| match extent {
            Extent::One | Extent::PerCpu => 1,
            Extent::Array(length) => length,
        };
        let attributes = program.attributes.len() as u32 * VALUE;
        let alarms = if writer.has_alarms() { engine.alarm_members } else { 0 };
        let containers = program.containers.values().map(|it| elements(it.extent)).sum::<u32>();
        // An import has the handler's copy and the variable itself.
        let variables = program
            .globals
            .values()
            .map(|it| elements(it.extent) * if it.storage == Storage::Import { 2 } else { 1 });
        Sizes {
            thread: (THREAD + engine.members + alarms).next_multiple_of(VALUE) + attributes,
            containers: containers * CONTAINER,
            variables: variables.sum::<u32>() * VALUE,
        }
    }

    pub(super) fn assert(&self, out: &mut Output) {
        out.raw(&format!(
            "#if UINTPTR_MAX == 0xffffffff\n_Static_assert(sizeof(struct thread) == {}, \"the size \
             that the build printed\");\n_Static_assert(sizeof(struct attune_container) == \
             {CONTAINER}, \"the size that the build printed\");\n#endif",
            self.thread
        ));
    }
}
