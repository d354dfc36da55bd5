//! The controllers in the closed loop.

use attune_rhythm::controller::simulation::{Run, Step, run};
use attune_rhythm::controller::{Law, Sample, controller};
use fastrand::Rng;
use proptest::prelude::*;

const PERIOD: u64 = 40_000_000;

fn simulate(law: Law, first: u64, demands: &[u64]) -> Run {
    run(controller(law, PERIOD).as_mut(), PERIOD, first, demands)
}

/// Jobs of about `mean`, a tenth up and down.
fn about(mean: u64, count: usize, seed: u64) -> Vec<u64> {
    let mut random = Rng::with_seed(seed);
    (0..count).map(|_| (mean as f64 * (0.9 + 0.2 * random.f64())) as u64).collect()
}

/// Groups of twelve pictures, of which the first takes three times as long.
fn pictures(count: usize) -> Vec<u64> {
    let noise = about(5_000_000, count, 4);
    noise
        .into_iter()
        .enumerate()
        .map(|(job, length)| if job % 12 == 0 { 3 * length } else { length })
        .collect()
}

fn any_sample() -> impl Strategy<Value = Sample> {
    let periods = prop_oneof![Just(0.0), Just(f64::NAN), 0.1..10.0f64];
    (any::<u64>(), periods, any::<u64>(), any::<[bool; 2]>()).prop_map(
        |(used_ns, periods, budget_ns, [exhausted, reclaims])| Sample {
            used_ns,
            periods,
            budget_ns,
            exhausted,
            reclaims,
        },
    )
}

proptest! {
    #[test]
    fn a_budget_is_never_below_the_use_nor_above_the_period(
        samples in prop::collection::vec(any_sample(), 0..120),
        period in 1..10_000_000_000u64,
    ) {
        for law in Law::ALL {
            let mut controller = controller(law, period);
            for sample in &samples {
                let budget = controller.observe(sample);
                prop_assert!(budget >= 1 && budget <= period, "{law}: {budget}");
                let used = sample.use_ns().min(period as f64);
                let enough = budget as f64 >= used * (1.0 - 1e-12);
                prop_assert!(enough, "{law}: {budget} after {sample:?}");
            }
        }
    }

    #[test]
    fn no_work_stays_behind(mean in 1_000_000..30_000_000u64, first in 1..PERIOD, seed: u64) {
        for law in Law::ALL {
            let found = simulate(law, first, &about(mean, 2_000, seed));
            let calm = &found.steps[found.steps.len() - 20..];
            let left: u64 = calm.iter().map(|step| step.backlog_ns).min().unwrap();
            prop_assert!(left < mean / 2, "{law} leaves {left} ns");
        }
    }

    #[test]
    fn ours_follows_a_jump_within_periods(
        low in 1_000_000..5_000_000u64,
        factor in 1.2..5.0f64,
        seed: u64,
    ) {
        let mut demands = about(low, 60, seed);
        let high = ((low as f64 * factor) as u64).min(PERIOD / 2);
        demands.extend(about(high, 60, seed ^ 1));
        let found = simulate(Law::Ours, PERIOD, &demands);
        let stays_behind = |step: &Step| step.backlog_ns > high / 2;
        let last = found.steps[60..].iter().rposition(stays_behind);
        let after = last.map_or(0, |last| last + 1);
        prop_assert!(after <= 5, "work stays behind for {after} periods");
    }
}

#[test]
fn names_are_read_as_they_are_written() {
    for law in Law::ALL {
        assert_eq!(law.to_string().parse::<Law>(), Ok(law));
    }
    assert!("pid".parse::<Law>().unwrap_err().contains("lfs++"));
}

#[test]
fn lfs_needs_a_hundred_periods_where_the_others_need_few() {
    let demands = about(12_000_000, 400, 2);
    let settling = |law| {
        let found = simulate(law, PERIOD / 20, &demands);
        found.steps.iter().rposition(|step| step.backlog_ns > 12_000_000).map_or(0, |last| last + 1)
    };
    assert!(settling(Law::Lfs) > 30, "{}", settling(Law::Lfs));
    assert!(settling(Law::Ours) <= 10, "{}", settling(Law::Ours));
}

#[test]
fn a_steady_player_gets_little_more_than_it_uses() {
    let found = simulate(Law::Ours, PERIOD, &about(10_000_000, 500, 3));
    assert!(found.given_by_used(10) < 1.25, "{}", found.given_by_used(10));
    assert!(
        found.settled() <= 10
            || found.steps[10..].iter().filter(|step| step.exhausted).count() < 15
    );
}

#[test]
fn ours_knows_the_big_picture_of_a_group() {
    let demands = pictures(600);
    let (ours, published) =
        (simulate(Law::Ours, PERIOD, &demands), simulate(Law::LfsPlusPlus, PERIOD, &demands));
    let late = |found: &Run| found.steps[60..].iter().filter(|step| step.exhausted).count();
    assert!(late(&ours) <= 20, "{} late pictures", late(&ours));
    assert!(
        ours.given_by_used(60) < 0.75 * published.given_by_used(60),
        "{} against {}",
        ours.given_by_used(60),
        published.given_by_used(60)
    );
}

#[test]
fn even_jobs_are_seldom_exceeded_and_leave_little() {
    for seed in 0..10 {
        let found = simulate(Law::Ours, PERIOD / 20, &about(12_000_000, 1_500, seed));
        assert!(found.given_by_used(0) <= 1.15, "{}", found.given_by_used(0));
        let exceeded = found.steps[200..].iter().filter(|step| step.exhausted).count();
        assert!(exceeded <= 3, "{exceeded} of 1300");
    }
}

#[test]
fn a_job_that_is_long_once_in_a_while_is_not_provided_for() {
    let mut random = Rng::with_seed(5);
    let mut demands = about(10_000_000, 1_500, 6);
    for job in (40..1_500).step_by(50) {
        demands[job + random.usize(0..10)] = 18_000_000;
    }
    let found = simulate(Law::Ours, PERIOD, &demands);
    assert!(found.given_by_used(20) <= 1.2, "{}", found.given_by_used(20));
}

#[test]
fn a_thread_that_may_reclaim_is_given_less() {
    let mut demands = about(10_000_000, 1_500, 7);
    demands.iter_mut().step_by(10).for_each(|demand| *demand += *demand / 4);
    let given_by_used = |reclaims: bool| {
        let mut ours = controller(Law::Ours, PERIOD);
        let (mut budget, mut given) = (15_000_000, 0);
        for &used_ns in &demands {
            given += budget;
            budget = ours.observe(&Sample {
                used_ns,
                periods: 1.0,
                budget_ns: budget,
                exhausted: false,
                reclaims,
            });
        }
        given as f64 / demands.iter().sum::<u64>() as f64
    };
    let (goes_on, stops) = (given_by_used(true), given_by_used(false));
    assert!(goes_on <= 1.12 && stops >= 1.2, "{goes_on}, {stops}");
}

#[test]
fn a_new_scene_is_learned_from_its_first_jobs() {
    for seed in 0..10 {
        let demands = [8, 20, 8, 20].map(|mean| about(mean * 1_000_000, 250, seed ^ mean)).concat();
        let found = simulate(Law::Ours, PERIOD, &demands);
        assert!(found.given_by_used(20) <= 1.15, "{}", found.given_by_used(20));
        let exceeded = found.steps[250..].iter().filter(|step| step.exhausted).count();
        assert!(exceeded <= 14, "{exceeded} of 750");
    }
}

#[test]
fn a_job_that_began_late_is_no_longer_job() {
    let mut ours = controller(Law::Ours, PERIOD);
    let mut observe = |used_ns: u64, budget_ns: u64, exhausted: bool| {
        ours.observe(&Sample { used_ns, periods: 1.0, budget_ns, exhausted, reclaims: false })
    };
    let mut budget = 6_000_000;
    for _ in 0..20 {
        budget = observe(5_000_000, budget, false);
    }
    let steady = budget;
    // Nothing in one period, then its work and the next job's, for which the budget does not
    // suffice.
    budget = observe(100_000, budget, false);
    budget = observe(budget, budget, true);
    budget = observe(9_900_000 - steady, budget, false);
    for _ in 0..3 {
        budget = observe(5_000_000, budget, false);
    }
    assert!(budget < steady + steady / 20, "{budget} instead of {steady}");
}
