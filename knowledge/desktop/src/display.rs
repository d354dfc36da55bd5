//! What an adapter for a kind of display must tell. An adapter is one module that implements
//! [`Display`]; nothing else knows which kind of display runs.

use crate::observation::{Client, Input, Time};
use crate::process::Process;

#[derive(Debug, thiserror::Error)]
pub enum DisplayError {
    #[error("cannot connect to the display {display}: {what}")]
    Connect { display: String, what: String },
    #[error("the display {display} lacks {what}, without which nothing can be observed there")]
    Lacks { display: String, what: &'static str },
    #[error("the display {display} has gone: {what}")]
    Gone { display: String, what: String },
}

pub trait Display {
    /// Its name, as a person calls it.
    fn name(&self) -> &str;

    /// The processes that serve it, as far as they run on this machine.
    fn servers(&self) -> Vec<Process>;

    /// What this display does not tell, a sentence each.
    fn limits(&self) -> Vec<String>;

    /// Waits until `until`, or until a deliberate input comes; the input since the last call.
    fn wait(&mut self, until: Time) -> Result<Vec<Input>, DisplayError>;

    /// How each client stands, and what it changed since the last call.
    fn clients(&mut self) -> Result<Vec<Client>, DisplayError>;
}
