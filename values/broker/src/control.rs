//! What an engine offers to whoever runs it.

use attune_values::wire::Tunable;

/// A scheduler at work, seen and changed from outside. Only root and the owner get here.
pub trait Control {
    /// The user whose run it is.
    fn owner(&self) -> u32;

    /// What can be set, and what it is now.
    fn tunables(&self) -> Vec<Tunable>;

    /// Names and values as people write them. All are set or, where one cannot be, none; then this is why.
    fn set(&mut self, settings: &[(String, String)]) -> Result<(), String>;

    /// How everything stands, in the engine's own words; or why that cannot be had.
    fn look(&mut self) -> Result<Vec<u8>, String>;
}
