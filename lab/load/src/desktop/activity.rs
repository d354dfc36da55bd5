//! What programs did, from the kernel's trace of wake-ups and switches:
//!
//! - `wake_ns`: from the wake-up of a thread to its first instruction, its dispatch latency;
//! - `stay_ns`: how long it ran until another did, its effective quantum;
//! - how often it gave the CPU away (`voluntary`) and had it taken (`forced`);
//! - `cpu_percent`, of one CPU.

use std::collections::HashMap;
use std::ops::Range;

use serde_json::{Value, json};

use super::Figures;
use crate::numbers;
use crate::tracer::line::Line;

#[derive(Default)]
struct Activity {
    wakes: Vec<u64>,
    stays: Vec<u64>,
    cpu: u64,
    voluntary: u64,
    forced: u64,
}

/// Where a thread is, since when.
enum State {
    Away,
    Woken(u64),
    Running(u64),
    /// The CPU was taken from it.
    Preempted,
}

/// Figures of each program whose threads ran within that time. `names`: the program of each thread;
/// one that has ended goes by its own name.
pub fn by_program(trace: &str, names: &HashMap<u32, String>, within: &Range<u64>) -> Figures {
    let mut states: HashMap<u32, State> = HashMap::new();
    let mut found: HashMap<String, Activity> = HashMap::new();
    let inside = |from: u64, to: u64| to.min(within.end).saturating_sub(from.max(within.start));
    for line in trace.lines().filter_map(Line::read) {
        let thread = |name: &str| line.number(name).and_then(|number| u32::try_from(number).ok());
        match line.event {
            "sched_waking" => {
                let Some(woken) = thread("pid").filter(|woken| *woken != 0) else { continue };
                let state = states.entry(woken).or_insert(State::Away);
                if matches!(state, State::Away) {
                    *state = State::Woken(line.time);
                }
            }
            "sched_switch" => {
                let (Some(prev), Some(next)) = (thread("prev_pid"), thread("next_pid")) else {
                    continue;
                };
                let name = |thread: u32, word: &str| {
                    let own = || line.word(word).unwrap_or_default().to_owned();
                    names.get(&thread).cloned().unwrap_or_else(own)
                };
                let forced = line.word("prev_state").is_some_and(|state| state.starts_with('R'));
                let after = if forced { State::Preempted } else { State::Away };
                let before = states.insert(prev, after);
                if prev != 0 {
                    let activity = found.entry(name(prev, "prev_comm")).or_default();
                    let since = match before {
                        Some(State::Running(since)) => Some(since),
                        // It runs since before the trace began.
                        None => {
                            activity.cpu += inside(0, line.time);
                            None
                        }
                        Some(_) => None,
                    };
                    activity.cpu += since.map_or(0, |since| inside(since, line.time));
                    if let Some(since) = since.filter(|_| within.contains(&line.time)) {
                        activity.stays.push(line.time - since);
                        *(if forced { &mut activity.forced } else { &mut activity.voluntary }) += 1;
                    }
                }
                if let Some(State::Woken(woken)) = states.insert(next, State::Running(line.time))
                    && within.contains(&woken)
                {
                    let activity = found.entry(name(next, "next_comm")).or_default();
                    activity.wakes.push(line.time - woken);
                }
            }
            _ => {}
        }
    }
    for (thread, state) in states.iter().filter(|(thread, _)| **thread != 0) {
        if let (State::Running(since), Some(name)) = (state, names.get(thread)) {
            found.entry(name.clone()).or_default().cpu += inside(*since, within.end);
        }
    }
    let length = (within.end - within.start) as f64;
    let figures = |(name, mut activity): (String, Activity)| -> (String, Value) {
        let switches = (activity.voluntary + activity.forced).max(1) as f64;
        let figures = json!({
            "wake_ns": numbers::quantiles(&mut activity.wakes),
            "stay_ns": numbers::quantiles(&mut activity.stays),
            "voluntary": activity.voluntary,
            "forced": activity.forced,
            "voluntary_percent": 100.0 * activity.voluntary as f64 / switches,
            "cpu_percent": 100.0 * activity.cpu as f64 / length,
        });
        (name, figures)
    };
    found.into_iter().map(figures).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "\
# tracer: nop
  hog-9 [000] d.h1. 1.000100: sched_waking: comm=vim pid=7 prio=120 target_cpu=000
  hog-9 [000] d..2. 1.000300: sched_switch: prev_comm=hog prev_pid=9 prev_prio=120 prev_state=R \
      ==> next_comm=vim next_pid=7 next_prio=120
  vim-7 [000] d.h1. 1.000350: sched_waking: comm=vim pid=7 prio=120 target_cpu=000
  vim-7 [000] d..2. 1.000400: sched_switch: prev_comm=vim prev_pid=7 prev_prio=120 prev_state=S \
      ==> next_comm=hog next_pid=9 next_prio=120
  hog-9 [000] d..2. 1.000900: sched_switch: prev_comm=hog prev_pid=9 prev_prio=120 prev_state=R+ \
      ==> next_comm=swapper/0 next_pid=0 next_prio=120
";

    #[test]
    fn latencies_stays_and_switches_are_told_apart() {
        let names = HashMap::from([(7, "editor".to_owned())]);
        let found = by_program(TRACE, &names, &(1_000_000_000..1_001_000_000));
        let editor = &found["editor"];
        // The second wake-up came while it ran, and made it wait for nothing.
        assert_eq!(
            (&editor["wake_ns"]["count"], &editor["wake_ns"]["max"]),
            (&json!(1), &json!(200_000))
        );
        assert_eq!(
            (&editor["stay_ns"]["max"], &editor["cpu_percent"]),
            (&json!(100_000), &json!(10.0))
        );
        assert_eq!((&editor["voluntary"], &editor["forced"]), (&json!(1), &json!(0)));
        // It ran when the trace began: of that stay only the end is known.
        assert_eq!(
            (&found["hog"]["forced"], &found["hog"]["cpu_percent"]),
            (&json!(1), &json!(80.0))
        );
        assert!(!found.contains_key("swapper/0"));
    }
}
