//! A machine that goes to sleep under threads that compute and threads that sleep: each goes on
//! afterwards, and so does the scheduler.
//!
//! The kernel's own tests of sleep (`pm_test`) take each state as far as one of its steps, wait for
//! a moment and wake the machine. Needs root, and a kernel with those tests: distributions' kernels
//! for any machine have them, those for clouds have not.

use std::fs;

use anyhow::{Context, Result, ensure};
use attune_linux::time::{MILLISECOND, Time};
use serde_json::{Value, json};

use crate::random::Random;
use crate::turns::{Crowd, wait_until};
use crate::{clock, ext, numbers};

const TEST: &str = "/sys/power/pm_test";
const STATE: &str = "/sys/power/state";
/// How long a test of suspending waits, in seconds; one of hibernation always waits for five.
const DELAY: &str = "/sys/module/suspend/parameters/pm_test_delay";

/// States, and how far each goes: threads are frozen in all; then devices stop; then the platform
/// prepares; and at last all CPUs but one go. Suspending to idle has no such last step.
const SLEEPS: [(&str, &str); 8] = [
    ("freeze", "devices"),
    ("mem", "devices"),
    ("disk", "devices"),
    ("freeze", "platform"),
    ("mem", "platform"),
    ("disk", "platform"),
    ("mem", "processors"),
    ("disk", "processors"),
];

/// Between two sleeps, once all is as it was: up to this.
const CALM: Time = 300 * MILLISECOND;

/// Sends the machine to sleep so many times, in each way in turn, at random moments, under so many
/// threads. Hibernation has its turn once: the kernel waits actively, and a deterministic machine
/// needs minutes for five seconds of that.
pub fn run(sleeps: usize, threads: usize, seed: u64) -> Result<Value> {
    ensure!(sleeps > 0, "at least one sleep");
    ensure!(
        fs::exists(TEST)?,
        "this kernel has no tests of sleep ({TEST}): boot one that has (`attune vm setup --full`, \
         then `attune vm --full ..`)"
    );
    let scheduler = ext::current();
    let crowd = Crowd::start(threads)?;
    let _restored = Delay::of_a_second()?;
    let mut random = Random(seed);
    let (mut asleep, mut back, mut all_ran) = (vec![], vec![], vec![]);
    let suspends = SLEEPS.into_iter().filter(|(state, _)| *state != "disk").cycle();
    for (state, step) in SLEEPS.into_iter().chain(suspends).take(sleeps) {
        let event = format!("a test of {state} as far as {step}");
        clock::sleep_until(clock::now() + random.below(CALM));
        let since = clock::now();
        write(TEST, step)?;
        let slept = write(STATE, state).with_context(|| event.clone());
        write(TEST, "none")?;
        slept?;
        let awake = clock::now();
        asleep.push(awake - since);
        wait_until("the scheduler does not come back", &event, || ext::current() == scheduler)?;
        back.push(clock::now() - awake);
        crowd.wait_until_all_ran(&event)?;
        all_ran.push(clock::now() - awake);
    }
    Ok(json!({
        "sleeps": sleeps,
        "threads": threads,
        "asleep_ns": numbers::quantiles(&mut asleep),
        "back_ns": numbers::quantiles(&mut back),
        "all_ran_ns": numbers::quantiles(&mut all_ran),
    }))
}

fn write(file: &str, words: &str) -> Result<()> {
    fs::write(file, words).with_context(|| format!("cannot write {words} to {file} (needs root)"))
}

/// What the delay was, which is restored when this is dropped.
struct Delay(String);

impl Delay {
    fn of_a_second() -> Result<Delay> {
        let before = fs::read_to_string(DELAY).with_context(|| format!("cannot read {DELAY}"))?;
        write(DELAY, "1")?;
        Ok(Delay(before))
    }
}

impl Drop for Delay {
    fn drop(&mut self) {
        let _ = write(DELAY, self.0.trim());
    }
}
