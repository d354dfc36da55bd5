//! What /proc says of threads: names, states, and how long they have run and waited for a CPU, in
//! ns.

use std::collections::HashMap;
use std::fs;
use std::time::Instant;

use attune_kernel::Snapshot;
use attune_kernel::snapshot::{PolicySnapshot, ThreadSnapshot};

/// A thread as the kernel knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thread {
    pub name: String,
    /// `R`, `S`, `D` ..
    pub state: char,
    pub run: u64,
    pub wait: u64,
}

/// Threads at one time, by their numbers.
pub struct Threads {
    at: Instant,
    now: HashMap<i32, Thread>,
    /// Parts of the time since the last snapshot, from 0 to 1.
    rates: HashMap<i32, [f64; 2]>,
}

impl Threads {
    /// Those of a snapshot. `before`: for their rates.
    pub fn read(snapshot: &Snapshot, before: Option<&Threads>) -> Threads {
        let at = Instant::now();
        let now: HashMap<i32, Thread> = all(snapshot)
            .filter_map(|it| Some((it.thread, thread(it.process, it.thread)?)))
            .collect();
        let rates = before.map(|before| {
            let elapsed = (at - before.at).as_nanos().max(1) as f64;
            let rate = |(number, now): (&i32, &Thread)| {
                let then = before.now.get(number)?;
                let part = |now: u64, then: u64| now.saturating_sub(then) as f64 / elapsed;
                Some((*number, [part(now.run, then.run), part(now.wait, then.wait)]))
            };
            now.iter().filter_map(rate).collect()
        });
        Threads { at, now, rates: rates.unwrap_or_default() }
    }

    /// None: it has ended since.
    pub fn of(&self, thread: i32) -> Option<&Thread> {
        self.now.get(&thread)
    }

    /// Whether there are rates at all.
    pub fn has_rates(&self) -> bool {
        !self.rates.is_empty()
    }

    /// Parts of the time since the last snapshot that it ran, and that it waited for a CPU.
    pub fn rates(&self, thread: i32) -> Option<[f64; 2]> {
        self.rates.get(&thread).copied()
    }
}

fn all(snapshot: &Snapshot) -> impl Iterator<Item = &ThreadSnapshot> {
    snapshot.policies.iter().flat_map(PolicySnapshot::threads)
}

fn thread(process: i32, thread: i32) -> Option<Thread> {
    let folder = format!("/proc/{process}/task/{thread}");
    let stat = fs::read_to_string(format!("{folder}/stat")).ok()?;
    let (name, state) = name_and_state(&stat)?;
    // A kernel without statistics of waiting has no such file.
    let times = fs::read_to_string(format!("{folder}/schedstat")).unwrap_or_default();
    let mut times = times.split_whitespace().map(|word| word.parse().unwrap_or(0));
    Some(Thread { name, state, run: times.next().unwrap_or(0), wait: times.next().unwrap_or(0) })
}

/// `1234 (a name) S ..`; the name may hold anything.
fn name_and_state(stat: &str) -> Option<(String, char)> {
    let (_, rest) = stat.split_once('(')?;
    let (name, rest) = rest.rsplit_once(')')?;
    Some((name.to_owned(), rest.trim_start().chars().next()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_hold_anything() {
        assert_eq!(name_and_state("7 (a) R (b) S 1 2"), Some(("a) R (b".to_owned(), 'S')));
        assert_eq!(name_and_state("7 a S"), None);
    }

    #[test]
    fn this_thread_is_found() {
        let own =
            thread(std::process::id() as i32, std::process::id() as i32).expect("the first thread");
        assert!(!own.name.is_empty() && own.state.is_ascii_alphabetic());
        assert_eq!(thread(std::process::id() as i32, 1), None);
    }
}
