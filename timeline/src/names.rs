//! Names that a trace spells out once and then calls by number.
//!
//! Invariant: at most [`MOST`] names of at most [`LONGEST`] bytes are remembered, so the memory is
//! bounded whatever an event is called. Other names are spelled out each time.

use std::collections::HashMap;

const MOST: usize = 2048;
const LONGEST: usize = 256;

#[derive(Default)]
pub struct Names(HashMap<String, u64>);

pub enum Called {
    Known(u64),
    /// From now on it has this number.
    New(u64),
    /// It gets no number.
    InFull,
}

impl Names {
    pub fn call(&mut self, name: &str) -> Called {
        if let Some(&number) = self.0.get(name) {
            return Called::Known(number);
        }
        if self.0.len() >= MOST || name.len() > LONGEST {
            return Called::InFull;
        }
        let number = self.0.len() as u64 + 1;
        self.0.insert(name.to_owned(), number);
        Called::New(number)
    }
}
