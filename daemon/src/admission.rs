//! Shares the bandwidth among threads that together want more than there is: first among accounts,
//! then among the threads of each. Pure.
//!
//! Bandwidths are shares of one CPU: 0.2 is a fifth. A request says what its thread needs by the
//! use just seen (`floor`) and what its controller wants. Grants keep, for any requests:
//!
//! - their sum is at most the bound, and no grant is above what was wanted;
//! - if all that is wanted fits, all of it is granted;
//! - if the floors fit, no thread gets less than its floor, and the rest is shared by weight;
//! - if not even the floors fit, they are shared by weight, and no thread gets more than its floor.
//!
//! Sharing by weight gives every thread the same amount per weight, except threads that want less.
//!
//! The same holds for accounts: an account wants and uses what its threads do together, a user's
//! at most `user_bound`. Users weigh the same, however many programs each has and whatever these
//! weigh.

use std::collections::BTreeMap;

/// On whose account a thread has its bandwidth.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Account {
    /// The administrator asked for it: it weighs what the administrator says.
    Machine,
    User(u32),
}

/// What one thread asks for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Request {
    /// Share of one CPU that it used just now.
    pub floor: f64,
    /// Share of one CPU that it is to have.
    pub wanted: f64,
    /// Above zero.
    pub weight: f64,
}

fn sane(number: f64) -> f64 {
    if number.is_finite() && number > 0.0 { number } else { 0.0 }
}

impl Request {
    /// The same without numbers that make no sense, and with a floor that is not above what is
    /// wanted.
    fn sane(&self) -> Request {
        let wanted = sane(self.wanted);
        let floor = sane(self.floor).min(wanted);
        Request { floor, wanted, weight: sane(self.weight).max(1e-6) }
    }
}

/// The shares of one CPU that are granted, in the order of the requests. Numbers that make no sense
/// count as zero.
pub fn admit(requests: &[Request], bound: f64) -> Vec<f64> {
    let bound = sane(bound);
    let requests: Vec<Request> = requests.iter().map(Request::sane).collect();
    let weights: Vec<f64> = requests.iter().map(|request| request.weight).collect();
    let wanted: Vec<f64> = requests.iter().map(|request| request.wanted).collect();
    let floors: Vec<f64> = requests.iter().map(|request| request.floor).collect();

    let least = share(&floors, &weights, bound);
    let left = bound - least.iter().sum::<f64>();
    let more: Vec<f64> = wanted.iter().zip(&floors).map(|(wanted, floor)| wanted - floor).collect();
    let more =
        if fits(&floors, bound) { share(&more, &weights, left) } else { vec![0.0; requests.len()] };
    least.iter().zip(&more).map(|(least, more)| least + more).collect()
}

/// [`admit`] for accounts and then for the requests of each. `user_bound`: what all threads on one
/// user's account get at most.
pub fn admit_by_account(requests: &[(Account, Request)], bound: f64, user_bound: f64) -> Vec<f64> {
    let mut accounts: BTreeMap<Account, Vec<usize>> = BTreeMap::new();
    for (place, (account, _)) in requests.iter().enumerate() {
        accounts.entry(*account).or_default().push(place);
    }
    let own = |places: &[usize]| -> Vec<Request> {
        places.iter().map(|&place| requests[place].1.sane()).collect()
    };
    let whole = |(account, places): (&Account, &Vec<usize>)| {
        let own = own(places);
        let (most, weight) = match account {
            Account::Machine => (bound, own.iter().map(|request| request.weight).sum()),
            Account::User(_) => (user_bound, 1.0),
        };
        let sum = |of: fn(&Request) -> f64| own.iter().map(of).sum::<f64>().min(most);
        Request { floor: sum(|it| it.floor), wanted: sum(|it| it.wanted), weight }
    };
    let wholes: Vec<Request> = accounts.iter().map(whole).collect();
    let mut grants = vec![0.0; requests.len()];
    for (places, granted) in accounts.values().zip(admit(&wholes, bound)) {
        for (&place, grant) in places.iter().zip(admit(&own(places), granted)) {
            grants[place] = grant;
        }
    }
    grants
}

fn fits(amounts: &[f64], bound: f64) -> bool {
    amounts.iter().sum::<f64>() <= bound
}

/// The same amount per weight for each, but never more than it wants.
fn share(wanted: &[f64], weights: &[f64], total: f64) -> Vec<f64> {
    if fits(wanted, total) {
        return wanted.to_vec();
    }
    // Those that want least per weight are content first; the others share the rest.
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by(|&a, &b| (wanted[a] / weights[a]).total_cmp(&(wanted[b] / weights[b])));
    let mut granted = vec![0.0; wanted.len()];
    let mut left = total.max(0.0);
    let mut weight: f64 = weights.iter().sum();
    for index in order {
        granted[index] = wanted[index].min(left * weights[index] / weight).max(0.0);
        left = (left - granted[index]).max(0.0);
        weight = (weight - weights[index]).max(f64::MIN_POSITIVE);
    }
    granted
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SLACK: f64 = 1e-9;

    fn request() -> impl Strategy<Value = Request> {
        (0.0..1.0f64, 0.0..1.0f64, 0.1..10.0f64).prop_map(|(floor, wanted, weight)| Request {
            floor,
            wanted,
            weight,
        })
    }

    fn account() -> impl Strategy<Value = Account> {
        prop_oneof![Just(Account::Machine), (0..3u32).prop_map(Account::User)]
    }

    proptest! {
        #[test]
        fn grants_keep_what_they_promise(
            requests in prop::collection::vec(request(), 0..20),
            bound in 0.0..4.0f64,
        ) {
            let grants = admit(&requests, bound);
            prop_assert_eq!(grants.len(), requests.len());
            prop_assert!(grants.iter().sum::<f64>() <= bound + SLACK);
            let floor = |request: &Request| request.floor.min(request.wanted);
            let all_fits = requests.iter().map(|request| request.wanted).sum::<f64>() <= bound;
            let floors_fit = requests.iter().map(floor).sum::<f64>() <= bound;
            for (request, grant) in requests.iter().zip(&grants) {
                prop_assert!(*grant >= 0.0 && *grant <= request.wanted + SLACK);
                if all_fits {
                    prop_assert!(*grant >= request.wanted - SLACK);
                }
                if floors_fit {
                    prop_assert!(*grant >= floor(request) - SLACK);
                } else {
                    prop_assert!(*grant <= floor(request) + SLACK);
                }
            }
        }

        /// A thread that is cut gets, per weight, at least as much above its floor as any other.
        #[test]
        fn cuts_are_by_weight(
            requests in prop::collection::vec(request(), 2..8),
            bound in 0.5..4.0f64,
        ) {
            let grants = admit(&requests, bound);
            let floor = |request: &Request| request.floor.min(request.wanted);
            prop_assume!(requests.iter().map(floor).sum::<f64>() <= bound);
            let above_floor = |index: usize| grants[index] - floor(&requests[index]);
            let gain = |index: usize| above_floor(index) / requests[index].weight;
            let is_cut = |&index: &usize| grants[index] < requests[index].wanted - SLACK;
            for cut in (0..requests.len()).filter(is_cut) {
                for other in 0..requests.len() {
                    prop_assert!(gain(other) <= gain(cut) + 1e-6);
                }
            }
        }

        #[test]
        fn a_user_gets_no_more_than_a_user_may(
            requests in prop::collection::vec((account(), request()), 0..20),
            bound in 0.0..4.0f64,
            user_bound in 0.0..2.0f64,
        ) {
            let grants = admit_by_account(&requests, bound, user_bound);
            prop_assert!(grants.iter().sum::<f64>() <= bound + SLACK);
            for user in 0..3 {
                let of_user = |place: &usize| requests[*place].0 == Account::User(user);
                let places: Vec<usize> = (0..requests.len()).filter(of_user).collect();
                let sum: f64 = places.iter().map(|&place| grants[place]).sum();
                prop_assert!(sum <= user_bound + SLACK);
            }
            for ((_, request), grant) in requests.iter().zip(&grants) {
                prop_assert!(*grant >= 0.0 && *grant <= request.wanted + SLACK);
            }
        }

        /// Programs and weights make no user more than a user.
        #[test]
        fn many_programs_take_no_more_from_another_user_than_one(
            wanted in 0.1..1.0f64,
            crowd in prop::collection::vec(request(), 1..20),
        ) {
            let other = Request { floor: 0.0, wanted, weight: 0.1 };
            let mut requests = vec![(Account::User(1), other)];
            // The crowd uses nothing yet, so that all is shared anew.
            let new = |request| (Account::User(2), Request { floor: 0.0, weight: 10.0, ..request });
            requests.extend(crowd.into_iter().map(new));
            let grants = admit_by_account(&requests, 1.0, 1.0);
            prop_assert!(grants[0] >= wanted.min(0.5) - SLACK);
        }

        #[test]
        fn numbers_without_sense_count_as_zero(
            [floor, wanted, weight, bound] in any::<[f64; 4]>(),
        ) {
            let sane = Request { floor: 0.1, wanted: 0.2, weight: 1.0 };
            let grants = admit(&[Request { floor, wanted, weight }, sane], bound);
            prop_assert!(grants.iter().all(|grant| grant.is_finite() && *grant >= 0.0));
        }
    }
}
