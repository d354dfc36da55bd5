//! What a program does, as seen from the kernel: when it enters and leaves system calls, when its
//! threads are woken and block, and how much CPU time each of their jobs took.
//!
//! A [`Tracer`] is loaded once and attached only while its owner samples. Attached, each system
//! call and each switch of every process on the machine costs a look into a hash table; detached,
//! it costs nothing. The events of the selected processes and of the children that they start go
//! through a ring; events that find it full are lost, and counted ([`Tracer::lost`]).
//!
//! Times are those of [`attune_linux::time`]. A recording as text is described in [`text`].
//!
//! Needs Linux 5.18 or newer with BTF, and the capabilities CAP_BPF and CAP_PERFMON (root has
//! both).

mod calls;
mod event;
mod process;
mod program;
mod record;
mod settings;
pub mod text;
mod tracer;

pub use calls::call_number;
pub use event::{Event, Kind};
pub use process::descendants;
pub use record::{Recording, record};
pub use settings::{Error, Settings};
pub use tracer::Tracer;
