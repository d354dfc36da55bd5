//! Says in one word how much attention a process has.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::observation::Client;

/// From the most attended to the least; a smaller one goes before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// The person deals with it: it has the focus, or input came within the last K seconds.
    Focused,
    /// The person can hear it.
    Audible,
    /// A part of one of its windows can be seen.
    Visible,
    Hidden,
}

impl Class {
    /// `level`: the client's input level now.
    pub fn of(client: &Client, level: f64) -> Class {
        if client.focused || level > 0.0 {
            Class::Focused
        } else if client.audible {
            Class::Audible
        } else if client.visible > 0.0 {
            Class::Visible
        } else {
            Class::Hidden
        }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        out.pad(match self {
            Class::Focused => "focused",
            Class::Audible => "audible",
            Class::Visible => "visible",
            Class::Hidden => "hidden",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::Process;

    #[test]
    fn a_client_is_of_the_first_class_that_holds() {
        let process = Process { pid: 1, start: 1 };
        let of = |focused, audible, visible, level| {
            Class::of(&Client { visible, focused, audible, ..Client::unseen(process) }, level)
        };
        assert_eq!(of(true, true, 0.5, 0.0), Class::Focused);
        assert_eq!(of(false, true, 0.5, 2.0), Class::Focused);
        assert_eq!(of(false, true, 0.5, 0.0), Class::Audible);
        assert_eq!(of(false, false, 0.5, 0.0), Class::Visible);
        assert_eq!(of(false, false, 0.0, 0.0), Class::Hidden);
        assert!(Class::Focused < Class::Audible && Class::Visible < Class::Hidden);
    }
}
