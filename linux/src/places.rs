//! Places for the clients of one socket, shared among the users of the machine. No user can take
//! the places of another with many connections, and root always finds one.

/// How many connections a socket serves at a time.
#[derive(Clone, Copy, Debug)]
pub struct Places {
    /// Those that one user may have.
    pub of_user: usize,
    /// Those that all users may have together.
    pub of_all: usize,
    /// Those that root and other preferred users may have on top of that.
    pub kept_free: usize,
}

impl Places {
    /// Whether there is a place for a connection of `user`, beside `taken`: the user of each
    /// connection that has one. Err: why there is none, for the client.
    pub fn find(
        &self,
        user: u32,
        preferred: bool,
        taken: impl Iterator<Item = u32>,
    ) -> Result<(), String> {
        let (mut theirs, mut all) = (0, 0);
        for other in taken {
            all += 1;
            theirs += usize::from(other == user);
        }
        let of_all = if preferred { self.of_all + self.kept_free } else { self.of_all };
        if !preferred && theirs >= self.of_user {
            let most = self.of_user;
            return Err(format!(
                "no place is left: user {user} has {theirs} connections here, and one user may \
                 have {most}"
            ));
        }
        match all < of_all {
            true => Ok(()),
            false => Err(format!("no place is left: {all} connections are open here")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACES: Places = Places { of_user: 2, of_all: 5, kept_free: 1 };

    fn finds(user: u32, preferred: bool, taken: &[u32]) -> bool {
        PLACES.find(user, preferred, taken.iter().copied()).is_ok()
    }

    #[test]
    fn no_user_takes_the_places_of_another() {
        assert!(finds(7, false, &[7]));
        assert!(!finds(7, false, &[7, 8, 7]));
        assert!(finds(9, false, &[7, 8, 7]));
    }

    #[test]
    fn a_preferred_user_finds_a_place_where_others_do_not() {
        let full = [7, 7, 8, 8, 9];
        assert!(!finds(9, false, &full) && !finds(10, false, &full));
        assert!(finds(0, true, &full));
    }

    #[test]
    fn a_client_is_told_whose_connections_are_too_many() {
        let why = PLACES.find(7, false, [7, 7].into_iter()).unwrap_err();
        assert!(why.contains("user 7 has 2 connections"), "{why}");
    }
}
