//! The analyser judged on programs that its constants were not chosen on.
//!
//! Each program of the list is left out once: the constants ([`Constants`]) that are best on all
//! other programs' recordings are taken, and judged on its own. Best: most right answers in 1 s
//! windows of recordings with a beat that were made on an idle machine and in 2 s windows of the
//! others, less ten for each time that a program without a beat is called periodic. Windows in
//! which the program did not keep its rate count nowhere.

use std::collections::BTreeMap;

use attune_rhythm::windows::consecutive;
use attune_rhythm::{Constants, Settings};

use crate::recordings::{Count, Recording};

/// What is tried: each combination.
fn choices() -> Vec<Constants> {
    let mut choices = Vec::new();
    for big in [0.25, 0.5, 1.0] {
        for least_hits in [0.2, 0.3, 0.4] {
            for idle_beats in [0.2, 0.3, 0.4] {
                for caution in [0.0, 1.5, 3.0] {
                    choices.push(Constants { big, least_hits, idle_beats, caution });
                }
            }
        }
    }
    choices
}

/// The counts of one program: 1 s idle, 2 s loaded, 1 s and 2 s without a beat.
#[derive(Clone, Copy, Default)]
struct Tally([Count; 3]);

impl Tally {
    fn plus(self, other: Tally) -> Tally {
        Tally([0, 1, 2].map(|index| self.0[index].plus(other.0[index])))
    }

    fn score(&self) -> i64 {
        let [idle, loaded, none] = self.0;
        (idle.right + loaded.right) as i64 - 10 * (none.windows - none.silent) as i64
    }
}

fn judge(recordings: &[Recording], constants: Constants) -> BTreeMap<&str, Tally> {
    let settings = Settings { constants, ..Settings::default() };
    let mut tallies: BTreeMap<&str, Tally> = BTreeMap::new();
    for recording in recordings {
        let tally = tallies.entry(recording.program()).or_default();
        let (place, windows): (usize, &[f64]) = match recording.kind() {
            "idle" => (0, &[1.0]),
            "no beat" => (2, &[1.0, 2.0]),
            _ => (1, &[2.0]),
        };
        for &window in windows {
            for (start, analysis) in consecutive(&recording.events, window, &settings) {
                if recording.kept(start, window) {
                    tally.0[place]
                        .add(&analysis, &recording.truth.rates(&recording.events, start, window));
                }
            }
        }
    }
    tallies
}

/// Prints a line for each program, judged by what was best on the others, and their sum.
pub fn run(recordings: &[Recording]) {
    let choices = choices();
    let mut tallies = Vec::new();
    for (number, constants) in choices.iter().enumerate() {
        eprint!("\r{}/{}", number + 1, choices.len());
        tallies.push(judge(recordings, *constants));
    }
    eprintln!();
    let programs: Vec<&str> = tallies[0].keys().copied().collect();
    let percent = |part: usize, count: &Count| match count.windows {
        0 => "-".to_owned(),
        windows => format!("{:.1}", 100.0 * part as f64 / windows as f64),
    };
    let row = |name: &str, constants: &str, tally: &Tally| {
        let [idle, loaded, none] = &tally.0;
        let beats = [idle, loaded].map(|count| {
            let (right, harmonic) = (percent(count.right, count), percent(count.harmonic, count));
            format!("{} | {right} | {harmonic} | {}", count.windows, percent(count.precise, count))
        });
        let called = percent(none.windows - none.silent, none);
        println!(
            "| {name} | {constants} | {} | {} | {} | {called} |",
            beats[0], beats[1], none.windows
        );
    };
    println!(
        "| left out | chosen on the others | 1 s idle | right % | harmonic % | precise % | 2 s \
            loaded | right % | harmonic % | precise % | no beat | called periodic % |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|---|");
    let mut all = Tally::default();
    for program in &programs {
        let score = |tallies: &BTreeMap<&str, Tally>| -> i64 {
            let others = tallies.iter().filter(|(name, _)| *name != program);
            others.map(|(_, tally)| *tally).fold(Tally::default(), Tally::plus).score()
        };
        // Among equally good ones the defaults win, then those that come first.
        let default = choices.iter().position(|constants| *constants == Constants::default());
        let best = (0..choices.len()).max_by_key(|&index| {
            (score(&tallies[index]), Some(index) == default, std::cmp::Reverse(index))
        });
        let Some(best) = best else { continue };
        let Constants { big, least_hits, idle_beats, caution } = choices[best];
        let constants =
            format!("big {big}, hits {least_hits}, idle {idle_beats}, caution {caution}");
        let own = tallies[best][program];
        row(program, &constants, &own);
        all = all.plus(own);
    }
    row("**all**", "", &all);
}
