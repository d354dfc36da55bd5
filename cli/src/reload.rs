//! A CPU comes or goes. The scheduler goes on, or the kernel ends it and it is attached again; the
//! user reads what happened.

use std::time::Duration;

use attune_kernel::{CpuChange, Reload, Running};

use crate::output::tell;

/// Tells of the CPUs with which the scheduler has gone on.
pub fn tell_followed(running: &Running) {
    for followed in running.followed() {
        let scheduler = running.scheduler();
        tell!("attune: {}", goes_on_after(Some(followed.cpu), &scheduler, followed.undecided));
    }
}

/// Attaches the scheduler again. False if that fails; then the user has read why.
pub fn goes_on(running: &mut Running) -> bool {
    match running.reload() {
        Ok(reload) => {
            tell!("attune: {}", sentence(&running.scheduler(), &reload));
            true
        }
        Err(error) => {
            tell!("attune: a CPU came or went, and the scheduler cannot go on: {error}");
            false
        }
    }
}

fn sentence(scheduler: &str, reload: &Reload) -> String {
    format!(
        "{}; its variables and all threads' attributes started anew, tunables, values and hints \
            are as they were",
        goes_on_after(reload.cpu, scheduler, reload.undecided)
    )
}

fn goes_on_after(cpu: Option<CpuChange>, scheduler: &str, undecided: Duration) -> String {
    let what = match cpu {
        Some(CpuChange::Came(cpu)) => format!("CPU {cpu} came"),
        Some(CpuChange::Went(cpu)) => format!("CPU {cpu} went"),
        None => "a CPU came or went".to_owned(),
    };
    let undecided = undecided.as_secs_f64() * 1e3;
    format!("{what}: {scheduler} decided nothing for {undecided:.1} ms and goes on")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reload_is_told_in_one_line() {
        let reload =
            Reload { cpu: Some(CpuChange::Went(3)), undecided: Duration::from_micros(12_340) };
        assert_eq!(
            sentence("fair", &reload),
            "CPU 3 went: fair decided nothing for 12.3 ms and goes on; its variables and all \
             threads' attributes started anew, tunables, values and hints are as they were"
        );
    }
}
