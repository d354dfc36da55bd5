//! How late threads run, from their release to their first instruction, as the kernel saw it:
//!
//! - A timer of an event loop that cooperates: from the time in the loop's queue to the call of the
//!   probe (`attune_coop::probe`), before the callback.
//! - A thread that sleeps until a time: from the earliest expiry of the kernel's timer to the
//!   thread's switch-in.

use std::collections::HashMap;
use std::ops::Range;

use anyhow::Result;
use serde_json::{Value, json};

use super::function::Function;
use super::line::Line;
use super::{Tracer, Watch};
use crate::numbers;

/// The probe's name in traces.
const TIMER: &str = "timer";
/// What this program's processes are called there. Others sleep, too.
const WORKLOAD: &str = "attune-load";

pub struct Lateness(Tracer);

impl Lateness {
    /// Looks at the whole machine, and at the timers of event loops of this program and its
    /// children.
    pub fn watch() -> Result<Lateness> {
        let probe = attune_coop::probe::attune_coop_timer as *const () as usize;
        Ok(Lateness(Tracer::start(&[
            Watch::Call { function: Function::at(probe)?, name: TIMER, fetch: "release=%di:u64" },
            Watch::Event("timer/hrtimer_start".to_owned()),
            Watch::Event("timer/hrtimer_expire_entry".to_owned()),
            Watch::Event("sched/sched_switch".to_owned()),
        ])?))
    }

    /// Quantiles in ns of those that were released within that time.
    pub fn seen(self, within: Range<u64>) -> Result<Value> {
        let mut seen = read(&self.0.stop()?, &within, (WORKLOAD, std::process::id()));
        Ok(json!({
            "timers_ns": numbers::quantiles(&mut seen.timers),
            "sleepers_ns": numbers::quantiles(&mut seen.sleepers),
            "own_sleeps_ns": numbers::quantiles(&mut seen.own_sleeps),
        }))
    }
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Seen {
    timers: Vec<u64>,
    sleepers: Vec<u64>,
    own_sleeps: Vec<u64>,
}

/// The lateness of all timers in a trace, and of the sleeps of threads of that name; those of the
/// thread of that number, which may only measure, are kept apart.
fn read(trace: &str, within: &Range<u64>, (name, own): (&str, u32)) -> Seen {
    let mut seen = Seen::default();
    // What a thread sleeps in: the timer, and its release. Whose timer has expired, until they run.
    let (mut sleeps, mut released) = (HashMap::new(), HashMap::new());
    let note = |list: &mut Vec<u64>, release: u64, time: u64| {
        if within.contains(&release) {
            list.push(time.saturating_sub(release));
        }
    };
    for line in trace.lines().filter_map(Line::read) {
        match line.event {
            "hrtimer_start"
                if line.name == name && line.word("function") == Some("hrtimer_wakeup") =>
            {
                if let Some((timer, release)) = line.word("hrtimer").zip(line.number("softexpires"))
                {
                    sleeps.insert(timer, (line.thread, release));
                    released.remove(&line.thread);
                }
            }
            "hrtimer_expire_entry" => {
                let expired = line.word("hrtimer").and_then(|timer| sleeps.remove(timer));
                // A thread that is still on the CPU had not fallen asleep yet.
                if let Some((thread, release)) =
                    expired.filter(|(thread, _)| *thread != line.thread)
                {
                    released.insert(thread, release);
                }
            }
            "sched_switch" => {
                let next = line.number("next_pid").and_then(|next| u32::try_from(next).ok());
                if let Some((thread, release)) = next.and_then(|next| released.remove_entry(&next))
                {
                    let list =
                        if thread == own { &mut seen.own_sleeps } else { &mut seen.sleepers };
                    note(list, release, line.time);
                }
            }
            event if event.starts_with(TIMER) => {
                if let Some(release) = line.number("release") {
                    note(&mut seen.timers, release, line.time);
                }
            }
            _ => {}
        }
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "\
# tracer: nop
  player-7 [000] d..1. 1.000010: hrtimer_start: hrtimer=0a function=hrtimer_wakeup expires=1000500 \
      softexpires=1000400000 mode=ABS
  player-7 [000] d..2. 1.000020: sched_switch: prev_comm=player prev_pid=7 prev_prio=120 \
      prev_state=S ==> next_comm=hog next_pid=9 next_prio=120
  hog-9 [000] d.h1. 1.000402: hrtimer_expire_entry: hrtimer=0a function=hrtimer_wakeup \
      now=1000401000
  hog-9 [000] d..2. 1.000900: sched_switch: prev_comm=hog prev_pid=9 prev_prio=120 prev_state=R \
      ==> next_comm=player next_pid=7 next_prio=120
  player-7 [000] ..... 1.000910: timer_5: (0x1) release=1000400000
  player-7 [000] d..1. 1.000920: hrtimer_start: hrtimer=0a function=hrtimer_wakeup \
      expires=1000921000 softexpires=1000921000 mode=ABS
  player-7 [000] d.h1. 1.000922: hrtimer_expire_entry: hrtimer=0a function=hrtimer_wakeup \
      now=1000922000
  hog-9 [000] d..2. 1.000990: sched_switch: prev_comm=hog prev_pid=9 prev_prio=120 prev_state=R \
      ==> next_comm=player next_pid=7 next_prio=120
";

    #[test]
    fn lateness_is_from_release_to_running() {
        let seen = read(TRACE, &(0..u64::MAX), ("player", 1));
        // The second sleep was over before it began.
        assert_eq!(
            seen,
            Seen { timers: vec![510_000], sleepers: vec![500_000], own_sleeps: vec![] }
        );
        assert_eq!(read(TRACE, &(0..u64::MAX), ("player", 7)).own_sleeps, [500_000]);
        assert_eq!(read(TRACE, &(0..u64::MAX), ("hog", 1)).sleepers, [0; 0]);
        assert_eq!(read(TRACE, &(1_000_400_001..u64::MAX), ("player", 1)), Seen::default());
    }
}
