//! The slots of the store, and which of them are free.

use attune_linux::places::{Limits, Places};

/// Slots that root and the user who runs the scheduler find where others do not: one in so many.
const KEPT: u32 = 16;

#[derive(Debug)]
pub struct Slots {
    places: Places,
    /// From this one on none was ever taken.
    fresh: u32,
    given_back: Vec<u32>,
}

impl Slots {
    /// One user has at most a quarter of them.
    pub fn new(slots: u32) -> Slots {
        let kept = slots / KEPT;
        let limits = Limits {
            of_user: (slots as usize / 4).max(1),
            of_all: (slots - kept) as usize,
            kept_free: kept as usize,
        };
        Slots {
            places: Places::new(limits, "processes with values"),
            fresh: 0,
            given_back: Vec::new(),
        }
    }

    /// Err: why there is none, for the client.
    pub fn take(&mut self, user: u32, preferred: bool) -> Result<u32, String> {
        self.places.take(user, preferred)?;
        Ok(self.given_back.pop().unwrap_or_else(|| {
            self.fresh += 1;
            self.fresh - 1
        }))
    }

    pub fn give_back(&mut self, slot: u32, user: u32) {
        self.places.give_back(user);
        self.given_back.push(slot);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_slot_is_one_process_s_until_it_is_given_back() {
        let mut slots = Slots::new(64);
        let mut taken: BTreeSet<u32> =
            (0..64).map(|user| slots.take(user, true).unwrap()).collect();
        assert_eq!((taken.len(), taken.last()), (64, Some(&63)));
        assert!(slots.take(0, true).is_err());
        slots.give_back(7, 7);
        assert!(taken.remove(&7));
        assert_eq!(slots.take(0, true), Ok(7));
    }

    #[test]
    fn four_users_do_not_take_them_all() {
        let mut slots = Slots::new(64);
        for user in 1..=4 {
            while slots.take(user, false).is_ok() {}
        }
        assert!(slots.take(5, false).is_err());
        assert!(slots.take(0, true).is_ok());
    }
}
