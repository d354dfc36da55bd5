//! Whether the monitor rates the right processes: what the script made relevant in each second,
//! beside what was rated at its end.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use serde_json::{Value, json};

/// A program in one second.
pub struct Second<'a> {
    pub name: &'a str,
    pub processes: Vec<u32>,
    pub is_relevant: bool,
}

/// Seconds for which a program is neither after the person has turned away: a key counts for ten,
/// and a rating fades by half a second then.
pub const FADES: u64 = 15;

#[derive(Default)]
pub struct Tally {
    seconds: u64,
    /// The last second in which a program was relevant.
    relevant: HashMap<String, u64>,
    turned: Part,
    kept: Part,
    others: Part,
}

/// So many of all; the rest by name.
#[derive(Default)]
struct Part {
    all: u64,
    rest: BTreeMap<String, u64>,
}

impl Part {
    fn count(&mut self, name: &str, is_in: bool) {
        self.all += 1;
        if !is_in {
            *self.rest.entry(name.to_owned()).or_default() += 1;
        }
    }

    fn percent(&self) -> f64 {
        let rest: u64 = self.rest.values().sum();
        100.0 * (self.all - rest) as f64 / self.all.max(1) as f64
    }

    fn figures(&self) -> Value {
        json!({ "all": self.all, "percent": self.percent(), "not": self.rest })
    }
}

impl Tally {
    /// A second has ended, and these processes are rated.
    pub fn count(&mut self, programs: &[Second], rated: &HashSet<u32>) {
        self.seconds += 1;
        for Second { name, processes, is_relevant } in programs {
            let before = self.relevant.get(*name).copied();
            if *is_relevant {
                for process in processes {
                    let is_rated = rated.contains(process);
                    self.kept.count(name, is_rated);
                    if before.is_none_or(|second| second + 1 < self.seconds) {
                        self.turned.count(name, is_rated);
                    }
                }
                self.relevant.insert((*name).to_owned(), self.seconds);
            } else if before.is_none_or(|second| second + FADES < self.seconds) {
                let is_rated = processes.iter().any(|process| rated.contains(process));
                self.others.count(name, !is_rated);
            }
        }
    }

    pub fn figures(&self) -> Value {
        let dealt_with: BTreeSet<&String> = self.relevant.keys().collect();
        json!({
            "seconds": self.seconds,
            "dealt_with": dealt_with,
            "rated_within_a_second": self.turned.figures(),
            "rated_while_relevant": self.kept.figures(),
            "others_unrated": self.others.figures(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(name: &str, process: u32, is_relevant: bool) -> Second<'_> {
        Second { name, processes: vec![process], is_relevant }
    }

    #[test]
    fn the_first_second_of_each_turn_is_told_apart() {
        let mut tally = Tally::default();
        let rated = HashSet::from([7]);
        tally.count(&[second("vim", 7, true), second("make", 8, false)], &HashSet::new());
        tally.count(&[second("vim", 7, true), second("make", 8, false)], &rated);
        tally.count(&[second("vim", 7, false), second("make", 8, true)], &rated);
        let figures = tally.figures();
        assert_eq!(
            figures["rated_within_a_second"],
            json!({ "all": 2, "percent": 0.0, "not": { "make": 1, "vim": 1 } })
        );
        assert_eq!(figures["rated_while_relevant"]["all"], 3);
        assert_eq!(figures["dealt_with"], json!(["make", "vim"]));
        assert_eq!(figures["others_unrated"], json!({ "all": 2, "percent": 100.0, "not": {} }));
    }

    #[test]
    fn a_program_that_the_person_left_is_another_when_its_rating_has_faded() {
        let mut tally = Tally::default();
        let rated = HashSet::from([7]);
        tally.count(&[second("vim", 7, true)], &rated);
        for _ in 0..FADES + 2 {
            tally.count(&[second("vim", 7, false)], &rated);
        }
        let others = &tally.figures()["others_unrated"];
        assert_eq!(*others, json!({ "all": 2, "percent": 0.0, "not": { "vim": 2 } }));
    }
}
