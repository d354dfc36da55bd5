//! A recording as a workload for the simulator: each process is a thread that computes what it
//! used, in as many jobs as it was woken for, with the ratings that it had. So a policy can be
//! tried on a session that was recorded under another.
//!
//! A second of the recording is a second of the workload. Within one the jobs are alike and evenly
//! spread. What a process used is what it got: on a machine that was too busy it wanted more.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::attention::Attention;
use crate::observation::{SECOND, Second, Time};
use crate::process::Process;

/// Jobs in a second at most.
const MOST_JOBS: u64 = 500;
/// One thread cannot compute for longer than this in a second; several threads of one process may
/// have.
const MOST_TIME: Time = SECOND;

#[derive(Default)]
pub struct Replay {
    begun: Option<Time>,
    seconds: u64,
    threads: BTreeMap<Process, Thread>,
}

struct Thread {
    name: String,
    /// By the second.
    parts: BTreeMap<u64, Part>,
}

struct Part {
    jobs: u64,
    /// What each job computes, in ns.
    time: Time,
    /// Input and output rating, as policies read them.
    values: [i64; 2],
}

impl Replay {
    /// Takes one second of a replay.
    pub fn add(&mut self, attention: &Attention, second: &Second) {
        let begun = *self.begun.get_or_insert(second.at);
        let number = second.at.saturating_sub(begun) / SECOND;
        self.seconds = self.seconds.max(number + 1);
        for used in &second.used {
            let to = second.wakes.iter().filter(|wakes| wakes.to == used.process);
            let jobs = to.map(|wakes| wakes.count).sum::<u64>().clamp(1, MOST_JOBS);
            let rated = attention.rated().get(&used.process);
            let part = Part {
                jobs,
                time: used.time.min(MOST_TIME) / jobs,
                values: rated.map_or([0, 0], |rated| attention.values(rated)),
            };
            let new = || {
                // If the process is not rated, only this second may say its name.
                let said = second.programs.iter().find(|one| one.process == used.process);
                let known = || attention.name(used.process);
                let name = said.map_or_else(known, |program| program.name.clone());
                Thread { name, parts: BTreeMap::new() }
            };
            self.threads.entry(used.process).or_insert_with(new).parts.insert(number, part);
        }
    }

    /// The workload, in TOML.
    pub fn text(&self) -> String {
        let mut out = format!("duration = \"{}s\"\n", self.seconds);
        for (process, thread) in &self.threads {
            thread.write(&mut out, process.pid);
        }
        out
    }
}

impl Thread {
    fn write(&self, out: &mut String, pid: u32) {
        // A program's name may hold anything.
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
        let name = self.name.replace(|letter| !is_plain(letter), "_");
        let _ = write!(out, "\n[[thread]]\nname = \"{name}-{pid}\"\ndo = [\n");
        for (second, part) in &self.parts {
            let [input, output] = part.values;
            let step = SECOND / part.jobs;
            let _ = write!(
                out,
                "    {{ set = {{ input_rating = {input}, output_rating = {output}, job = 0 }} }},\n\
                 \x20   {{ repeat = {}, do = [\n\
                 \x20       {{ sleep_until = \"{second}s + job * {step}ns\" }},\n\
                 \x20       {{ job = [{{ compute = \"{}ns\" }}], \
                 release = \"{second}s + job * {step}ns\" }},\n\
                 \x20       {{ set = {{ job = \"job + 1\" }} }},\n    ] }},\n",
                part.jobs, part.time
            );
        }
        out.push_str("]\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observation::{Client, Observation, Program, Used, Wakes};
    use crate::settings::Settings;

    #[test]
    fn a_film_becomes_a_thread_with_a_job_for_each_wake_up_and_its_rating() {
        let process = |pid| Process { pid, start: 1 };
        let (player, hog) = (process(7), process(8));
        let program = |process, name: &str| Program { process, name: name.into(), parent: None };
        let second = |number: u64| Second {
            at: (40 + number) * SECOND,
            clients: vec![Client { changed: 0.3, visible: 0.3, ..Client::unseen(player) }],
            wakes: vec![Wakes { from: process(9), to: player, count: 25 }],
            programs: vec![program(player, "a \"film\""), program(hog, "cc1")],
            used: vec![
                Used { process: hog, time: 3 * SECOND },
                Used { process: player, time: SECOND / 4 },
            ],
            ..Second::default()
        };
        let mut attention = Attention::new(Settings::default());
        let mut replay = Replay::default();
        for number in 0..2 {
            attention.observe(&Observation::Second(second(number)));
            replay.add(&attention, &second(number));
        }
        let text = replay.text();
        assert!(
            text.starts_with("duration = \"2s\"\n\n[[thread]]\nname = \"a__film_-7\"\n"),
            "{text}"
        );
        let film = "    { set = { input_rating = 0, output_rating = 750, job = 0 } },\n\
                    \x20   { repeat = 25, do = [\n\
                    \x20       { sleep_until = \"1s + job * 40000000ns\" },\n\
                    \x20       { job = [{ compute = \"10000000ns\" }], \
                    release = \"1s + job * 40000000ns\" },\n";
        assert!(text.contains(film), "{text}");
        assert!(text.contains("[[thread]]\nname = \"cc1-8\"") && text.contains("\"1000000000ns\""));
        let table: toml::Table = text.parse().unwrap();
        assert_eq!(table["thread"].as_array().unwrap().len(), 2);
    }
}
