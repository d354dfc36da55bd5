//! Computes how much bandwidth a reservation needs, against its server period.
//!
//! A server of budget `Q` and period `P` supplies `Q` in each of its periods, late in it at worst.
//! Two questions:
//!
//! **One server per task.** A constant bandwidth server that a job finds idle starts a period with
//! the job. With jobs that are done before the next one comes, the supply in `t` from a job's
//! arrival is at least
//!
//! ```text
//! own(t) = k Q + max(0, t - k P - (P - Q)),     k = floor(t / P)
//! ```
//!
//! and a job of `C` meets its deadline `T` if `own(T) >= C`. The bandwidth `Q / P` is least, `C /
//! T`, where `P` is `T` or an integer part of it (Cucinotta, Checconi, Abeni, Palopoli, EuroSys
//! 2010, section 3).
//!
//! **All tasks in one server**, under fixed priorities, shortest period first. Jobs arrive anywhere
//! in the server's period, so the supply in any interval `t` is at least (Lipari and Bini 2003;
//! Shin and Lee 2003)
//!
//! ```text
//! one(t) = k Q + max(0, u - k P - (P - Q)),   u = t - (P - Q),  k = floor(u / P),   0 for u < 0
//! ```
//!
//! and task `i` is schedulable if some scheduling point `t <= T_i` has `one(t) >= C_i + sum over
//! higher j of ceil(t / T_j) C_j`.
//!
//! Times in any one unit.

use thiserror::Error;

/// A periodic task: every `period`, a job of `cost`, due when the next one comes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Task {
    pub cost: f64,
    pub period: f64,
}

#[derive(Clone, Debug, Error, PartialEq)]
pub enum BadTask {
    #[error(
        "a task of {cost} every {period} cannot be: its cost must be positive and at most its \
            period"
    )]
    Impossible { cost: f64, period: f64 },
    #[error(
        "the periods {shortest} and {longest} are too far apart to be analysed together; at most a \
            hundred thousand to one"
    )]
    FarApart { shortest: f64, longest: f64 },
}

/// Scheduling points of one task, at most.
const MOST_POINTS: f64 = 1e5;

/// Tasks that can be analysed.
#[derive(Clone, Debug, PartialEq)]
pub struct Tasks {
    /// Shortest period first: that is their priority.
    tasks: Vec<Task>,
}

impl Tasks {
    pub fn new(mut tasks: Vec<Task>) -> Result<Tasks, BadTask> {
        // A comparison that a NaN fails too.
        let sound =
            |task: &Task| task.cost > 0.0 && task.cost <= task.period && task.period.is_finite();
        if let Some(&Task { cost, period }) = tasks.iter().find(|task| !sound(task)) {
            return Err(BadTask::Impossible { cost, period });
        }
        tasks.sort_by(|a, b| a.period.total_cmp(&b.period));
        if let (Some(shortest), Some(longest)) = (tasks.first(), tasks.last())
            && longest.period / shortest.period > MOST_POINTS
        {
            return Err(BadTask::FarApart { shortest: shortest.period, longest: longest.period });
        }
        Ok(Tasks { tasks })
    }

    pub fn tasks(&self) -> &[Task] {
        &self.tasks
    }

    /// The sum of cost by period: no reservation can need less.
    pub fn utilisation(&self) -> f64 {
        self.tasks.iter().map(|task| task.cost / task.period).sum()
    }

    /// The least sum of bandwidths with a server of period `server` for each task; None if one of
    /// them cannot be helped by any budget.
    pub fn own(&self, server: f64) -> Option<f64> {
        self.tasks.iter().map(|task| own(*task, server)).sum()
    }

    /// The least bandwidth of one server of period `server` for all of them, under fixed
    /// priorities; None if no budget helps.
    pub fn one(&self, server: f64) -> Option<f64> {
        if !(server > 0.0 && server.is_finite() && self.fits(server, server)) {
            return None;
        }
        let (mut low, mut high) = (0.0, server);
        // Supply grows with the budget: bisect to the last digits.
        for _ in 0..60 {
            let middle = (low + high) / 2.0;
            if self.fits(middle, server) {
                high = middle;
            } else {
                low = middle;
            }
        }
        Some(high / server)
    }

    /// Whether all tasks are schedulable in one server.
    fn fits(&self, budget: f64, server: f64) -> bool {
        (0..self.tasks.len()).all(|index| {
            let (higher, task) = (&self.tasks[..index], self.tasks[index]);
            let enough = |time: f64| {
                let demand = task.cost
                    + higher
                        .iter()
                        .map(|other| arrivals(time, other.period) * other.cost)
                        .sum::<f64>();
                one_supply(time, budget, server) >= demand * (1.0 - 1e-12)
            };
            let points = higher.iter().flat_map(|other| {
                (1..=(task.period / other.period) as u32)
                    .map(|count| f64::from(count) * other.period)
            });
            enough(task.period) || points.into_iter().any(enough)
        })
    }
}

/// Jobs that arrive in `[0, time)`.
fn arrivals(time: f64, period: f64) -> f64 {
    (time / period - 1e-9).ceil().max(0.0)
}

fn one_supply(time: f64, budget: f64, server: f64) -> f64 {
    let useful = time - (server - budget);
    if useful < 0.0 {
        return 0.0;
    }
    let full = (useful / server + 1e-12).floor();
    full * budget + (useful - full * server - (server - budget)).max(0.0)
}

/// The least bandwidth for one task in a server of its own.
fn own(task: Task, server: f64) -> Option<f64> {
    if !(server > 0.0 && server.is_finite()) {
        return None;
    }
    let full = (task.period / server + 1e-9).floor();
    let rest = (task.period - full * server).max(0.0);
    // Either the full periods supply it all, or the last one, which is cut short, helps.
    let by_full = if full > 0.0 { task.cost / full } else { f64::MAX };
    let with_rest = (task.cost + server - rest) / (full + 1.0);
    let budget = by_full.min(with_rest);
    (budget <= server * (1.0 + 1e-12)).then_some((budget / server).min(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tasks(list: &[(f64, f64)]) -> Tasks {
        Tasks::new(list.iter().map(|&(cost, period)| Task { cost, period }).collect()).unwrap()
    }

    #[test]
    fn the_published_task_needs_its_share_at_its_period_and_at_integer_parts() {
        let one = tasks(&[(20.0, 100.0)]);
        for part in 1..=20 {
            let bandwidth = one.own(100.0 / f64::from(part)).unwrap();
            assert!((bandwidth - 0.2).abs() < 1e-9, "at 1/{part}: {bandwidth}");
        }
        // In between a cut period is lost, and beyond its period the server is late.
        assert!((one.own(60.0).unwrap() - 1.0 / 3.0).abs() < 1e-9);
        assert!((one.own(150.0).unwrap() - 70.0 / 150.0).abs() < 1e-9);
        assert!((one.own(200.0).unwrap() - 0.6).abs() < 1e-9);
    }

    #[test]
    fn the_three_published_tasks_need_62_percent_in_servers_of_their_own() {
        let three = tasks(&[(3.0, 15.0), (5.0, 20.0), (5.0, 30.0)]);
        assert!((three.utilisation() - 0.6167).abs() < 1e-4);
        let at_their_periods: f64 =
            three.tasks().iter().map(|task| own(*task, task.period).unwrap()).sum();
        assert!((at_their_periods - three.utilisation()).abs() < 1e-9);
        // A period that divides all of theirs does it too; one server under fixed priorities needs
        // more, ever more.
        assert!((three.own(5.0).unwrap() - three.utilisation()).abs() < 1e-9);
        let fluid = three.one(1e-4).unwrap();
        assert!((fluid - 0.7).abs() < 1e-3, "{fluid}");
        let (short, long) = (three.one(2.0).unwrap(), three.one(10.0).unwrap());
        assert!(fluid < short && short < long && long <= 1.0, "{fluid} {short} {long}");
    }

    #[test]
    fn tasks_that_cannot_be_are_refused() {
        for (cost, period) in
            [(0.0, 10.0), (11.0, 10.0), (f64::NAN, 10.0), (1.0, f64::INFINITY), (-1.0, 10.0)]
        {
            assert!(Tasks::new(vec![Task { cost, period }]).is_err(), "{cost} every {period}");
        }
        assert!(
            Tasks::new(vec![Task { cost: 1e-6, period: 1e-5 }, Task { cost: 1.0, period: 1e3 }])
                .is_err()
        );
        assert_eq!(tasks(&[(5.0, 10.0), (5.0, 10.0), (1.0, 10.0)]).one(1.0), None);
    }

    proptest! {
        /// The closed form against the supply itself: the budget suffices, and a little less does
        /// not.
        #[test]
        fn the_budget_is_the_least(
            cost in 0.1..50.0f64,
            more in 1.0..20.0f64,
            server in 0.5..400.0f64,
        ) {
            let task = Task { cost, period: cost * more };
            let supply = |budget: f64| {
                let full = (task.period / server).floor();
                full * budget + (task.period - full * server - (server - budget)).max(0.0)
            };
            prop_assume!(((task.period / server).round() - task.period / server).abs() > 1e-6);
            match own(task, server) {
                Some(bandwidth) => {
                    prop_assert!(supply(bandwidth * server) >= cost * (1.0 - 1e-9));
                    prop_assert!(supply(bandwidth * server * 0.999) < cost);
                    prop_assert!(bandwidth >= cost / task.period * (1.0 - 1e-9));
                }
                None => prop_assert!(supply(server) < cost * (1.0 + 1e-9)),
            }
        }

        /// One server for all never needs less than the tasks use, nor less than a shorter period
        /// needs of the fluid share.
        #[test]
        fn one_server_needs_at_least_the_utilisation(
            list in prop::collection::vec((0.1..1.0f64, 3.0..50.0f64), 1..5),
            server in 0.1..40.0f64,
        ) {
            let all = tasks(&list);
            if let Some(bandwidth) = all.one(server) {
                prop_assert!(bandwidth >= all.utilisation() - 1e-9 && bandwidth <= 1.0);
                prop_assert!(all.fits((bandwidth * server * (1.0 + 1e-9)).min(server), server));
                prop_assert!(!all.fits(bandwidth * server * 0.999, server));
            }
        }
    }
}
