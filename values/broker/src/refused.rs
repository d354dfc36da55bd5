//! A request that is refused, and why.

use attune_values::wire::{Refusal, Reply};

/// The kind of refusal, and a sentence for the peer.
#[derive(Debug)]
pub struct Refused(pub Refusal, pub String);

pub type Answer<T> = Result<T, Refused>;

impl Refused {
    pub fn new(why: Refusal, message: impl Into<String>) -> Refused {
        Refused(why, message.into())
    }
}

impl From<Refused> for Reply {
    fn from(Refused(why, message): Refused) -> Reply {
        Reply::Refused { why, message }
    }
}
