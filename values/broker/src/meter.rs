//! The part of a CPU that each user's requests may take of the broker's thread. Without it, a
//! program that connects all the time has that thread compute for it as one more program.
//!
//! Invariant: over any time, what one user's requests cost is at most that time's [`PART`]th, and
//! [`CREDIT`] on top of it. What a user owes is forgotten beyond [`DEBT`].

use std::collections::BTreeMap;

use attune_linux::time::{MILLISECOND, SECOND, Time};

/// A user's part: one in so many. With what the requests cost besides, it stays below two per cent.
const PART: Time = 60;
/// CPU time that a user who has asked for nothing has at once.
const CREDIT: Time = 40 * MILLISECOND;
/// A user who owes waits no longer than this.
const DEBT: Time = SECOND;

/// What each user has taken (the generic cell rate algorithm).
#[derive(Debug, Default)]
pub struct Meter {
    /// By user: when the user's part makes up for what it has taken.
    even: BTreeMap<u32, Time>,
}

impl Meter {
    /// Requests of the user have cost that CPU time.
    pub fn charge(&mut self, user: u32, cost: Time, now: Time) {
        self.even.retain(|_, even| *even > now);
        let even = self.even.entry(user).or_insert(now);
        *even = (*even + cost * PART).min(now + CREDIT * PART + DEBT);
    }

    /// From when on the user is to be served. It may be in the past.
    pub fn served_from(&self, user: u32) -> Time {
        self.even.get(&user).map_or(0, |even| even.saturating_sub(CREDIT * PART))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How long a user who asks whenever it is served has computed for it.
    fn taken(meter: &mut Meter, user: u32, cost: Time, from: Time, until: Time) -> Time {
        let (mut now, mut taken) = (from, 0);
        while now < until {
            meter.charge(user, cost, now);
            taken += cost;
            now = meter.served_from(user).max(now + cost);
        }
        taken
    }

    #[test]
    fn a_user_who_always_asks_takes_its_part() {
        for cost in [MILLISECOND / 50, MILLISECOND] {
            let mut meter = Meter::default();
            let taken = taken(&mut meter, 7, cost, 5 * SECOND, 25 * SECOND);
            let part = 20 * SECOND / PART + CREDIT;
            assert!((part - cost..=part + cost).contains(&taken), "{taken}");
        }
    }

    #[test]
    fn one_users_debt_is_not_another_s() {
        let mut meter = Meter::default();
        let now = 5 * SECOND;
        taken(&mut meter, 7, MILLISECOND, now, now + SECOND);
        assert!(meter.served_from(7) > now);
        assert!(meter.served_from(8) <= now);
        meter.charge(8, CREDIT, now);
        assert!(meter.served_from(8) <= now);
    }

    #[test]
    fn a_user_who_owes_much_waits_no_longer_than_the_most() {
        let mut meter = Meter::default();
        let now = 5 * SECOND;
        meter.charge(7, 100 * SECOND, now);
        assert_eq!(meter.served_from(7), now + DEBT);
        // Long silence is worth no more than the credit.
        let later = now + 1000 * SECOND;
        meter.charge(7, CREDIT + MILLISECOND, later);
        assert!(meter.served_from(7) > later);
    }
}
