//! A reservation of CPU time for the calling process, from the kernel's class for it or from a
//! scheduler that takes it as values (`reserve`).
//!
//! Units: nanoseconds.

use anyhow::{Context, Result};

use attune_linux::scheduling::Attributes;

/// The giver of a reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    Nobody,
    /// SCHED_DEADLINE.
    Class,
    /// A scheduler with thread imports of these names.
    Values,
}

const BUDGET: &str = "dl_runtime";
const PERIOD: &str = "dl_period";

impl By {
    /// The name behind a number.
    pub fn name(number: u64) -> &'static str {
        let known = [(By::Class, "deadline"), (By::Values, "values")];
        known.into_iter().find(|(by, _)| *by as u64 == number).map_or("nobody", |(_, name)| name)
    }
}

/// Asks for `budget` in every `period`: SCHED_DEADLINE for it if `deadline`, else the scheduler
/// that is there, if it knows such values. A budget of 0 asks for nothing. Err: SCHED_DEADLINE was
/// refused, or the values were.
pub fn ask(budget: u64, period: u64, deadline: bool) -> Result<By> {
    if budget == 0 {
        return Ok(By::Nobody);
    }
    if deadline {
        Attributes::reservation(budget, period).apply_to(0).context("no reservation")?;
        return Ok(By::Class);
    }
    if !attune_client::wanted(&[BUDGET, PERIOD]) {
        return Ok(By::Nobody);
    }
    // The period first: a budget without one is none.
    for (name, value) in [(PERIOD, period), (BUDGET, budget)] {
        attune_client::thread_import(name)
            .with_context(|| format!("no reservation: {name}"))?
            .set(value as i64);
    }
    Ok(By::Values)
}
