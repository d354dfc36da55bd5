//! Processes that are made and end at once.

use std::collections::VecDeque;

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::child::Child;
use crate::clock;

/// Makes `count` of them, at most `at_once` alive at a time.
pub fn run(count: u32, at_once: u32) -> Result<Value> {
    ensure!(count > 0 && (1..=1000).contains(&at_once), "1 to 1000 at once, and at least one");
    let (start, mut alive) = (clock::now(), VecDeque::new());
    for _ in 0..count {
        if alive.len() >= at_once as usize
            && let Some(oldest) = alive.pop_front()
        {
            Child::wait(oldest)?;
        }
        alive.push_back(Child::start(|| 0)?);
    }
    alive.into_iter().try_for_each(Child::wait)?;
    let time = clock::now() - start;
    Ok(json!({ "processes": count, "ns_per_process": time as f64 / f64::from(count) }))
}
