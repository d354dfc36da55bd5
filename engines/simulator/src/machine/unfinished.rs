//! Counts what the end of the run cuts off: threads that still wait for a CPU and jobs that are not
//! done.
//!
//! Figures that count only what happened would show a thread that never runs as one without a
//! latency, a job or a miss.

use super::*;

/// A starved thread is warned of if it has waited for this part of the run.
const LONG_WAIT: Time = 10;

/// Jobs of one thread that are not done.
#[derive(Clone, Copy, Default)]
struct Backlog {
    jobs: u64,
    /// Those whose deadline has passed.
    missed: u64,
}

impl<P: Scheduler + ?Sized> Machine<'_, P> {
    /// Adds threads that wait and jobs that are not done to the figures, and warns of starvation.
    pub(super) fn account_unfinished(&mut self) {
        let mut starved = vec![(0, 0); self.workload.groups.len()];
        let mut behind = vec![0u64; self.workload.groups.len()];
        for slot in 0..self.threads.len() as u32 {
            let thread = &self.threads[slot as usize];
            if !thread.alive() {
                continue;
            }
            let group = thread.group as usize;
            let waits = thread.can_run() && !thread.outside;
            let waited = if waits { self.now - thread.ready_since } else { 0 };
            let never = waits && thread.cpu == NOWHERE;
            if never && waited > self.now / LONG_WAIT {
                let (threads, longest) = &mut starved[group];
                *threads += 1;
                *longest = waited.max(*longest);
            }
            let backlog = self.backlog(slot);
            behind[group] += backlog.jobs.saturating_sub(1);
            self.metrics.update(self.who(slot), |tally| {
                tally.never_dispatched += u64::from(never);
                tally.longest_wait = tally.longest_wait.max(waited);
                tally.unfinished += backlog.jobs;
                tally.missed += backlog.missed;
            });
        }
        for (group, &(threads, longest)) in starved.iter().enumerate() {
            if threads > 0 {
                self.warn_of_starved(group, threads, longest);
            }
            if behind[group] > 0 {
                self.warn_of_backlog(group);
            }
        }
    }

    /// What the thread still has to do of the jobs that have been released.
    fn backlog(&mut self, slot: u32) -> Backlog {
        let workload = self.workload;
        let thread = &self.threads[slot as usize];
        let template = &workload.templates[thread.template as usize];
        let Some(periodic) = &template.periodic else {
            let job = thread.job.filter(|_| !template.life_is_job);
            let late = job.and_then(|job| job.deadline).is_some_and(|deadline| deadline < self.now);
            return Backlog { jobs: u64::from(job.is_some()), missed: u64::from(late) };
        };
        let begun = thread.next != template.entry;
        let variable = |number: u16| slot as usize * workload.variables.len() + number as usize;
        let since = self.now - to_time(self.variables[variable(periodic.release)]);
        if since < 0 {
            return Backlog::default();
        }
        let period = to_time(self.evaluate(&periodic.period, slot)).max(1);
        let deadline = to_time(self.evaluate(&periodic.deadline, slot));
        let most = match &periodic.limit {
            _ if periodic.skip => 1,
            None => u64::MAX,
            Some((_, left)) if begun => self.variables[variable(*left)] as u64 + 1,
            Some((times, _)) => self.evaluate(times, slot).max(0.0) as u64,
        };
        let released_by = |time: Time| if time < 0 { 0 } else { (time / period) as u64 + 1 };
        Backlog {
            jobs: released_by(since).min(most),
            missed: released_by(since - deadline - 1).min(most),
        }
    }

    fn warn_of_starved(&mut self, group: usize, threads: u64, longest: Time) {
        let name = &self.workload.groups[group];
        let policy = self.policy_name();
        let what = match (threads, self.metrics.groups[group].threads) {
            (1, 1) => format!("`{name}` never ran"),
            (never, all) => format!("{never} of the {all} threads of `{name}` never ran"),
        };
        let longest = duration(longest);
        self.warnings.push(
            Diagnostic::new(format!("{what}, though ready for {longest}: starved by `{policy}`"))
                .hint("another scheduler, more CPUs or less work would give every thread a turn"),
        );
    }

    fn warn_of_backlog(&mut self, group: usize) {
        let tally = &self.metrics.groups[group];
        let (jobs, missed) = (tally.unfinished, tally.missed);
        self.warnings.push(Diagnostic::new(format!(
            "{jobs} jobs of `{}` were released and not done when the run ended; {missed} missed \
             their deadline, counting those",
            self.workload.groups[group]
        )));
    }
}
