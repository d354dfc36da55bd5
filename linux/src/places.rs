//! Places for what users have of one service: connections, or what they ask for over them. No user
//! can take the places of another, and root always finds one.
//!
//! Invariant: the count of a user is how many of its places were taken and not given back.

use std::collections::BTreeMap;

/// How many places there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Those that one user may have.
    pub of_user: usize,
    /// Those that all users may have together.
    pub of_all: usize,
    /// Those that root and other preferred users may have on top of that.
    pub kept_free: usize,
}

/// The places that users have.
#[derive(Debug)]
pub struct Places {
    limits: Limits,
    /// What a place is for, in the plural, for messages.
    what: &'static str,
    of_user: BTreeMap<u32, usize>,
    of_all: usize,
}

impl Places {
    pub const fn new(limits: Limits, what: &'static str) -> Places {
        Places { limits, what, of_user: BTreeMap::new(), of_all: 0 }
    }

    /// A place for the user. Err: why there is none, for the client.
    pub fn take(&mut self, user: u32, preferred: bool) -> Result<(), String> {
        let Limits { of_user, of_all, kept_free } = self.limits;
        let (theirs, what) = (self.of_user.get(&user).copied().unwrap_or(0), self.what);
        if !preferred && theirs >= of_user {
            return Err(format!(
                "no place is left: user {user} has {theirs} {what} here, and one user may have \
                 {of_user}"
            ));
        }
        if self.of_all >= if preferred { of_all + kept_free } else { of_all } {
            let all = self.of_all;
            return Err(format!("no place is left: all users have {all} {what} here"));
        }
        *self.of_user.entry(user).or_default() += 1;
        self.of_all += 1;
        Ok(())
    }

    /// A place that was taken.
    pub fn give_back(&mut self, user: u32) {
        let Some(theirs) = self.of_user.get_mut(&user) else { return };
        *theirs -= 1;
        self.of_all -= 1;
        if *theirs == 0 {
            self.of_user.remove(&user);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { of_user: 2, of_all: 5, kept_free: 1 };

    /// With those places taken.
    fn places(taken: &[u32]) -> Places {
        let mut places = Places::new(LIMITS, "connections");
        taken.iter().for_each(|user| places.take(*user, false).unwrap());
        places
    }

    #[test]
    fn no_user_takes_the_places_of_another() {
        assert!(places(&[7]).take(7, false).is_ok());
        let mut places = places(&[7, 8, 7]);
        assert!(places.take(7, false).is_err());
        assert!(places.take(9, false).is_ok());
    }

    #[test]
    fn a_preferred_user_finds_a_place_where_others_do_not() {
        let mut full = places(&[7, 7, 8, 8, 9]);
        assert!(full.take(9, false).is_err() && full.take(10, false).is_err());
        assert!(full.take(0, true).is_ok());
        assert!(full.take(0, true).is_err());
    }

    #[test]
    fn a_place_that_is_given_back_is_another_s() {
        let mut full = places(&[7, 7, 8, 8, 9]);
        full.give_back(7);
        // Nobody has one there.
        full.give_back(11);
        assert!(full.take(10, false).is_ok());
        assert!(full.take(10, false).is_err());
    }

    #[test]
    fn a_client_is_told_whose_are_too_many() {
        let why = places(&[7, 7]).take(7, false).unwrap_err();
        assert!(why.contains("user 7 has 2 connections"), "{why}");
    }
}
