//! `attune status`: which policy schedules this machine, since when, and why the one before ended;
//! what the service does; and what stands in a policy's way.

use std::fs;
use std::process::ExitCode;

use attune_daemon::daemon;
use attune_daemon::policy::record::wall_clock;
use attune_daemon::policy::{self, Joined, Record, Runs, State};
use attune_daemon::{Status, state_folder};
use attune_kernel::support;
use attune_linux::{procfs, scheduling};
use serde::Serialize;

use crate::args::StatusArgs;
use crate::failure::Failure;
use crate::output;

pub fn run(args: &StatusArgs) -> Result<ExitCode, Failure> {
    let all = All::read();
    let text = match args.json {
        true => serde_json::to_string(&all).map_err(|error| Failure::usage(error.to_string()))?,
        false => all.lines().join("\n"),
    };
    output::print(&(text + "\n"))?;
    Ok(ExitCode::SUCCESS)
}

#[derive(Serialize)]
struct All {
    kernel: Kernel,
    runs: Runs,
    service: Service,
    reservations: Vec<Status>,
    core_scheduling: Cookies,
}

#[derive(Serialize)]
struct Kernel {
    /// The kernel's word: `enabled`, `disabled`, ..; None: it has no sched_ext.
    sched_ext: Option<String>,
    scheduler: Option<String>,
}

#[derive(Serialize)]
struct Service {
    running: bool,
    policy: Option<policy::Status>,
}

/// Threads that core scheduling keeps apart.
#[derive(Default, Serialize)]
struct Cookies {
    /// The kernel has core scheduling, and CPUs share cores.
    supported: bool,
    threads: usize,
    /// The processes to which they belong, each with its name.
    processes: Vec<(u32, String)>,
}

impl All {
    fn read() -> All {
        let folder = state_folder();
        let sched_ext = fs::read_to_string("/sys/kernel/sched_ext/state").ok();
        let sched_ext = sched_ext.map(|state| state.trim().to_owned());
        let policy = daemon::policy(&folder);
        All {
            kernel: Kernel { sched_ext, scheduler: support::current() },
            runs: Runs::read(&folder),
            service: Service { running: policy.is_ok(), policy: policy.unwrap_or_default() },
            reservations: daemon::statuses(&folder),
            core_scheduling: Cookies::of_all_threads(),
        }
    }

    fn lines(&self) -> Vec<String> {
        let now = wall_clock();
        let mut lines = vec![scheduler(&self.kernel, self.runs.now.as_ref(), now)];
        lines.extend(self.runs.now.iter().flat_map(joined));
        lines.extend(self.runs.last.as_ref().and_then(|last| before(last, now)));
        lines.push(service(&self.service));
        for status in &self.reservations {
            // A sum of nothing is -0.
            let (given, bound, programs) =
                (status.given + 0.0, status.bound, status.programs.len());
            lines.push(format!("reservations: {given:.3} of {bound:.2} CPUs, {programs} programs"));
        }
        lines.extend(self.core_scheduling.warning());
        lines
    }
}

fn scheduler(kernel: &Kernel, run: Option<&Record>, now: u64) -> String {
    let fair = "the kernel's fair class";
    let run = run.and_then(|run| Some((run, run.since?)));
    match (kernel.sched_ext.as_deref(), run, &kernel.scheduler) {
        (None, ..) => format!("scheduler: {fair}; this kernel has no sched_ext"),
        (Some("disabled"), ..) | (_, None, None) => format!("scheduler: {fair}"),
        (_, Some((run, since)), _) => format!(
            "scheduler: {} for {}, held by process {}{}",
            run.scheduler,
            length(now.saturating_sub(since)),
            run.process,
            if run.words.is_some() { ", which attuned started" } else { "" }
        ),
        (_, None, Some(other)) => format!("scheduler: {other}, which no `attune run` holds"),
    }
}

fn joined(run: &Record) -> Vec<String> {
    let line = |(index, joined): (usize, &Joined)| {
        let holds = if index + 1 == run.joined.len() { ", which holds all now" } else { "" };
        let (scheduler, process) = (&joined.scheduler, joined.process);
        format!("joined: {scheduler} for a command, process {process}{holds}")
    };
    run.joined.iter().enumerate().map(line).collect()
}

fn before(last: &Record, now: u64) -> Option<String> {
    let end = last.ended.as_ref()?;
    let ago = length(now.saturating_sub(end.at));
    let why = end.why.replace('\n', " ");
    Some(format!("before that: {} ended {ago} ago: {why}", last.scheduler))
}

fn service(service: &Service) -> String {
    let times = |starts| if starts == 1 { "once".to_owned() } else { format!("{starts} times") };
    match &service.policy {
        _ if !service.running => "attuned: does not run".to_owned(),
        None => "attuned: runs; its configuration names no policy".to_owned(),
        Some(policy::Status { scheduler, state, starts, again_in_ms }) => match state {
            State::Runs => format!("attuned: keeps {scheduler}; started it {}", times(*starts)),
            State::Starts => format!("attuned: starts {scheduler}"),
            State::Waits(why) => format!(
                "attuned: starts {scheduler} in {:.1} s: {}",
                again_in_ms.unwrap_or(0) as f64 / 1e3,
                why.replace('\n', " ")
            ),
        },
    }
}

impl Cookies {
    fn of_all_threads() -> Cookies {
        let mut cookies = Cookies::default();
        for process in procfs::processes() {
            let threads = procfs::threads(process);
            let found = threads.into_iter().map(scheduling::core_cookie);
            let known: Vec<u64> = found.flatten().collect();
            cookies.supported |= !known.is_empty();
            let apart = known.iter().filter(|cookie| **cookie != 0).count();
            if apart > 0 {
                cookies.threads += apart;
                cookies.processes.push((process, procfs::name(process)));
            }
        }
        cookies
    }

    fn warning(&self) -> Option<String> {
        let (process, name) = self.processes.first()?;
        let others = self.processes.len() - 1;
        let others = if others > 0 { format!(" and {others} more") } else { String::new() };
        Some(format!(
            "warning: {} threads have core-scheduling cookies (process {process}, {name}{others}): \
             beside them a CPU of the same core stays idle, whatever the policy dispatches there",
            self.threads
        ))
    }
}

/// `2 h 3 min`, from seconds.
fn length(seconds: u64) -> String {
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86400);
    match seconds {
        ..60 => format!("{seconds} s"),
        60..3600 => format!("{minutes} min {} s", seconds % 60),
        3600..86400 => format!("{hours} h {} min", minutes % 60),
        _ => format!("{days} d {} h", hours % 24),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use attune_daemon::policy::{Cause, End};

    fn record(since: Option<u64>, ended: Option<End>) -> Record {
        let (process, start) = (815, 7);
        Record {
            process,
            start,
            scheduler: "fair".to_owned(),
            words: None,
            since,
            ended,
            joined: Vec::new(),
        }
    }

    fn kernel(state: &str, scheduler: Option<&str>) -> Kernel {
        let scheduler = scheduler.map(str::to_owned);
        Kernel { sched_ext: Some(state.to_owned()), scheduler }
    }

    #[test]
    fn what_runs_and_why_the_last_one_ended_are_told() {
        let run = record(Some(1000), None);
        let enabled = kernel("enabled", Some("attune_fair"));
        assert_eq!(
            scheduler(&enabled, Some(&run), 8380),
            "scheduler: fair for 2 h 3 min, held by process 815"
        );
        let of = |kernel: &Kernel| scheduler(kernel, None, 0);
        assert_eq!(of(&kernel("disabled", None)), "scheduler: the kernel's fair class");
        assert_eq!(
            of(&kernel("enabled", Some("lavd"))),
            "scheduler: lavd, which no `attune run` holds"
        );
        let mut lends = run;
        assert_eq!(joined(&lends), Vec::<String>::new());
        let joins = |process, scheduler: &str| Joined { process, scheduler: scheduler.to_owned() };
        lends.joined = vec![joins(99, "edf"), joins(101, "coop")];
        assert_eq!(
            joined(&lends),
            [
                "joined: edf for a command, process 99",
                "joined: coop for a command, process 101, which holds all now"
            ]
        );
        let end = End { at: 900, cause: Cause::Kernel, why: "a check\nfailed".to_owned() };
        assert_eq!(
            before(&record(Some(1), Some(end)), 1000).unwrap(),
            "before that: fair ended 1 min 40 s ago: a check failed"
        );
    }

    #[test]
    fn threads_with_cookies_are_warned_of() {
        let mut cookies = Cookies { supported: true, ..Cookies::default() };
        assert_eq!(cookies.warning(), None);
        cookies.threads = 5;
        cookies.processes = vec![(7, "browser".to_owned()), (9, "tab".to_owned())];
        let warning = cookies.warning().unwrap();
        assert!(warning.contains("5 threads") && warning.contains("7, browser and 1 more"));
    }
}
