//! What an engine offers to the user who runs it.

use attune_values::wire::Tunable;

/// A running scheduler, seen and changed from outside. Only root and the owner get here.
pub trait Control {
    /// The user who started the run.
    fn owner(&self) -> u32;

    /// What can be set, and its present values.
    fn tunables(&self) -> Vec<Tunable>;

    /// Sets names to values as people write them: all or, where one cannot be set, none; the error
    /// says why.
    fn set(&mut self, settings: &[(String, String)]) -> Result<(), String>;

    /// The state of the scheduler at one moment, in the engine's own format; or why there is none.
    fn snapshot(&mut self) -> Result<Vec<u8>, String>;
}
