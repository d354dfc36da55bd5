//! The daemon's requests and answers, one JSON object a line.
//!
//! ```text
//! {"request":"tune","process":4711,"weight":2.0}   {"ok":true}
//! {"request":"leave","process":4711}               {"ok":true}
//! {"request":"rate","ratings":[[4702,4117732,970,40]]}   {"ok":true}
//! {"request":"status"}                             {"ok":true,"status":{"bound":1.8, ..}}
//! {"request":"policy"}                             {"ok":true,"policy":{"scheduler":"fair", ..}}
//! anything else                                    {"ok":false,"error":".."}
//! ```
//!
//! A user may ask for their own programs, root for all, and each sees in the status what they may
//! ask for. Root rates: process, its start in clock ticks since boot, input and output rating from
//! 0 to 1000. So does the user at the machine, as systemd's logind knows, for their own processes.
//! Ratings hold for five seconds, and those of one user keep others' away.

use std::path::Path;

use attune_linux::process;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::policy;
use crate::weights::{Rating, Weights};
use crate::{Account, Supervisor, Target};

#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(tag = "request", rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    Tune {
        process: u32,
        #[serde(default = "one")]
        weight: f64,
    },
    Leave {
        process: u32,
    },
    Rate {
        ratings: Vec<Rating>,
    },
    Status,
    Policy,
}

fn one() -> f64 {
    1.0
}

/// The greatest weight that a user who is not root may give.
const MOST_WEIGHT: f64 = 10.0;

/// Where logind says which user is at each seat.
const SEATS: &str = "/run/systemd/seats";

/// `peer`: the user who asks.
pub fn answer(
    supervisor: &mut Supervisor,
    weights: &mut Weights,
    policy: &Option<policy::Status>,
    peer: u32,
    line: &str,
) -> Value {
    match parse(line) {
        Ok(Request::Policy) => json!({ "ok": true, "policy": policy }),
        request => told(request.and_then(|request| serve(supervisor, weights, peer, request))),
    }
}

/// The answer of a tuner for its own programs: it tells its status, and takes no others.
pub fn answer_status(supervisor: &Supervisor, peer: u32, line: &str) -> Value {
    told(parse(line).and_then(|request| {
        match request {
            Request::Status => status(supervisor, peer),
            _ => {
                Err("this tuner is for the programs that it was started for; attuned takes others"
                    .to_owned())
            }
        }
    }))
}

fn told(answer: Result<Option<Value>, String>) -> Value {
    match answer {
        Ok(None) => json!({ "ok": true }),
        Ok(Some(status)) => json!({ "ok": true, "status": status }),
        Err(error) => json!({ "ok": false, "error": error }),
    }
}

fn parse(line: &str) -> Result<Request, String> {
    serde_json::from_str(line).map_err(|error| error.to_string())
}

fn status(supervisor: &Supervisor, peer: u32) -> Result<Option<Value>, String> {
    serde_json::to_value(supervisor.status(peer)).map(Some).map_err(|error| error.to_string())
}

fn serve(
    supervisor: &mut Supervisor,
    weights: &mut Weights,
    peer: u32,
    request: Request,
) -> Result<Option<Value>, String> {
    match request {
        Request::Status => status(supervisor, peer),
        Request::Policy => Err("only attuned keeps a policy".to_owned()),
        Request::Tune { process, weight } => {
            let target = owned(peer, process)?;
            if !(weight.is_finite() && weight > 0.0 && (peer == 0 || weight <= MOST_WEIGHT)) {
                return Err(format!(
                    "weight {weight}: a weight is above 0 and at most {MOST_WEIGHT}"
                ));
            }
            weights.release_process(process).map_err(|error| error.to_string())?;
            let account = if peer == 0 { Account::Machine } else { Account::User(peer) };
            supervisor.add(target, account, weight);
            Ok(None)
        }
        Request::Rate { ratings } => {
            if weights.rater().is_some_and(|rater| rater != peer) {
                return Err("the ratings of another user's monitor are in force".to_owned());
            }
            let ratings = may_rate(peer, ratings, Path::new(SEATS))?;
            weights
                .rate(peer, &ratings, |process| supervisor.has(process))
                .map(|()| None)
                .map_err(|error| error.to_string())
        }
        Request::Leave { process } => {
            owned(peer, process)?;
            match supervisor.remove(process) {
                true => Ok(None),
                false => Err(format!("process {process} is not tuned")),
            }
        }
    }
}

/// The ratings that a user may give. A user who is not at the machine may give none.
fn may_rate(peer: u32, mut ratings: Vec<Rating>, seats: &Path) -> Result<Vec<Rating>, String> {
    if peer == 0 {
        return Ok(ratings);
    }
    if !is_at_a_seat(peer, seats) {
        return Err("root rates programs, and the user at the machine their own".to_owned());
    }
    ratings.retain(|rating| process::user_of(rating.0).is_ok_and(|owner| owner == peer));
    Ok(ratings)
}

fn is_at_a_seat(user: u32, seats: &Path) -> bool {
    let line = format!("ACTIVE_UID={user}");
    let files = std::fs::read_dir(seats).into_iter().flatten().flatten();
    let texts = files.filter_map(|file| std::fs::read_to_string(file.path()).ok());
    texts.into_iter().any(|text| text.lines().any(|said| said == line))
}

/// The process, if the user may ask for it.
fn owned(peer: u32, process: u32) -> Result<Target, String> {
    let target = Target::open(process).map_err(|error| error.to_string())?;
    match peer == 0 || target.user == peer {
        true => Ok(target),
        false => Err(format!("process {process} is another user's")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_user_at_the_machine_rates_their_own_processes_and_another_user_none() {
        let seats = tempfile::tempdir().unwrap();
        let own = process::user_of(std::process::id()).unwrap();
        let user = own + 1000;
        let ratings = |process| vec![Rating(process, 7, 900, 0)];
        let sleeper = std::process::id();
        std::fs::write(seats.path().join("seat0"), format!("ACTIVE=c1\nACTIVE_UID={user}1\n"))
            .unwrap();
        assert!(may_rate(user, ratings(sleeper), seats.path()).is_err());
        std::fs::write(seats.path().join("seat1"), format!("ACTIVE=c2\nACTIVE_UID={user}\n"))
            .unwrap();
        assert_eq!(may_rate(user, ratings(sleeper), seats.path()), Ok(vec![]));
        assert_eq!(may_rate(0, ratings(sleeper), seats.path()), Ok(ratings(sleeper)));
        assert!(may_rate(user, Vec::new(), Path::new("/nowhere")).is_err());
        let at_seat = own;
        if at_seat != 0 {
            std::fs::write(seats.path().join("seat2"), format!("ACTIVE_UID={at_seat}\n")).unwrap();
            assert_eq!(may_rate(at_seat, ratings(sleeper), seats.path()), Ok(ratings(sleeper)));
        }
    }
}
