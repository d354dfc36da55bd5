//! A CPU comes or goes, and the kernel ends the scheduler: it goes on, and the user reads what
//! happened.

use attune_kernel::{CpuChange, Reload, Running};

use crate::output::tell;

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
    let what = match reload.cpu {
        Some(CpuChange::Came(cpu)) => format!("CPU {cpu} came"),
        Some(CpuChange::Went(cpu)) => format!("CPU {cpu} went"),
        None => "a CPU came or went".to_owned(),
    };
    let undecided = reload.undecided.as_secs_f64() * 1e3;
    format!(
        "{what}: {scheduler} decided nothing for {undecided:.1} ms and goes on; its variables and \
            all threads' attributes started anew, tunables, values and hints are as they were"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

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
