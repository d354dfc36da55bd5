//! Checked scheduler to a picture: its containers, and the transfers between them.
//!
//! An arrow is a transfer, labelled with the handlers that make it: bold inside a loop, dashed
//! under a condition, which the label shows on demand. New threads come from a dot, destroyed ones
//! end in a ringed dot. A thread that a handler names comes from each container in which the
//! analysis found that it may sit, or, where that is not known, from a dotted node with its name. A
//! container from which `schedule` dispatches has a double border.
//!
//! - `transfers` collects the arrows from the IR;
//! - `dot` writes them for Graphviz: [`dot`] is pure;
//! - `draw` runs Graphviz, the only input and output here.

mod dot;
mod draw;
mod transfers;

pub use dot::{Drawn, dot, dot_cluster};
pub use draw::{DrawError, Format, draw};
