//! Which member gets the CPU next: the decision alone, without memory, clocks or system calls.
//!
//! The arithmetic is that of `schedulers/coop.sched`. Virtual time grows with the CPU time that a
//! member uses, the slower the higher its weight; a group has one virtual time, and each member of
//! it moves it by its own use over the weights of all. The order is:
//!
//! 1. The member that was released first, among those whose timer is due and whose virtual time is
//!    at most `credit` above the least. It is asked to poll again at once, after what is due.
//! 2. The member with the least virtual time, among those that want the CPU; inside a group the one
//!    whose best-effort event matters most. It is asked to poll at the others' earliest release, or
//!    when its slice of period / runnable is over.
//! 3. If no member wants the CPU, it is idle until the earliest release.
//!
//! Virtual times wrap, and are compared by their distance from the `floor`: the least virtual time
//! of those that wanted the CPU when it was last given. A member that slept below the floor counts
//! as level with it: unused time is lost, not saved up. Members are values read from memory that
//! other programs may have scribbled on: no value makes this fail or run longer.

use attune_linux::time::{MICROSECOND, MILLISECOND};

use crate::offer::{Importance, NOTHING};
use crate::time::{NEVER, Time};

/// What the decision knows of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its place in the slot table.
    pub slot: u32,
    /// 0: it is alone.
    pub group: u32,
    /// 1024 for nice 0.
    pub weight: u32,
    /// Its group's, if it has one.
    pub virtual_time: i64,
    pub timer: Time,
    pub best_effort: Importance,
    /// Waits for its turn, or would take it: sleepers are reached when their timer is due, those
    /// that run elsewhere or do not answer never.
    pub reachable: bool,
}

/// All lengths in nanoseconds. The defaults are those of `schedulers/coop.sched`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The time in which every member that wants the CPU gets it once.
    pub period: Time,
    /// No slice is shorter.
    pub min_slice: Time,
    /// How far above the least virtual time a member still runs on time. More than two slices of
    /// any length: otherwise a member that had one would be late after it.
    pub credit: Time,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            period: 20 * MILLISECOND,
            min_slice: 100 * MICROSECOND,
            credit: 40 * MILLISECOND,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// The member in this slot, which is to poll again by `until`.
    Run { slot: u32, until: Time },
    /// No member; the one in this slot is released first, if any is to be.
    Idle { first: Option<(u32, Time)> },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    pub choice: Choice,
    pub floor: i64,
}

/// See the module.
pub fn decide(members: &[Member], floor: i64, now: Time, settings: &Settings) -> Decision {
    let ahead = |member: &Member| member.virtual_time.wrapping_sub(floor).max(0);
    let wants = |member: &&Member| {
        member.reachable && (member.best_effort != NOTHING || member.timer <= now)
    };
    let runnable = || members.iter().filter(wants);
    let Some(least) = runnable().map(ahead).min() else {
        let sleepers = members.iter().filter(|member| member.reachable && member.timer != NEVER);
        let first = sleepers.min_by_key(|member| (member.timer, member.slot));
        return Decision {
            choice: Choice::Idle { first: first.map(|first| (first.slot, first.timer)) },
            floor,
        };
    };
    let on_time = |member: &Member| ahead(member) - least <= settings.credit as i64;

    let due = runnable().filter(|member| member.timer <= now && on_time(member));
    let choice = match due.min_by_key(|member| (member.timer, ahead(member), member.slot)) {
        Some(due) => Choice::Run { slot: due.slot, until: now },
        None => {
            let Some(first) = runnable().find(|member| ahead(member) == least) else {
                return Decision { choice: Choice::Idle { first: None }, floor };
            };
            let group = runnable().filter(|member| member.group == first.group && first.group != 0);
            let chosen =
                group.min_by_key(|member| (member.best_effort, member.slot)).unwrap_or(first);
            let slice =
                (settings.period / runnable().count().max(1) as Time).max(settings.min_slice);
            let others =
                members.iter().filter(|member| member.slot != chosen.slot && member.reachable);
            let releases = others.filter(|member| on_time(member)).map(|member| member.timer);
            let release =
                releases.min().unwrap_or(NEVER).max(now.saturating_add(settings.min_slice));
            Choice::Run { slot: chosen.slot, until: release.min(now.saturating_add(slice)) }
        }
    };
    Decision { choice, floor: floor.wrapping_add(least) }
}

/// The virtual time of a group: that of the member which is furthest. `None`: the group has no
/// members.
pub fn group_time(members: &[Member], group: u32, floor: i64) -> Option<i64> {
    let of_group = members.iter().filter(|member| member.group == group && group != 0);
    of_group.map(|member| member.virtual_time).max_by_key(|time| time.wrapping_sub(floor))
}

/// Gives every member of a group the group's virtual time.
pub fn share_group_times(members: &mut [Member], floor: i64) {
    for i in 0..members.len() {
        if let Some(time) = group_time(members, members[i].group, floor) {
            members[i].virtual_time = time;
        }
    }
}

/// By how much `used` CPU time moves the virtual time of a member, whose group's weights add up to
/// `weight`.
pub fn charge(used: Time, weight: u64) -> i64 {
    let weighted = u128::from(used) * 1024 / u128::from(weight.max(1));
    i64::try_from(weighted).unwrap_or(i64::MAX)
}

/// The most important best-effort event among the others of a group.
pub fn others(members: &[Member], group: u32, slot: u32) -> Importance {
    let others =
        members.iter().filter(|member| member.slot != slot && member.group == group && group != 0);
    others
        .filter(|member| member.reachable)
        .map(|member| member.best_effort)
        .min()
        .unwrap_or(NOTHING)
}

/// The kernel's weight of a nice value: 1024 for 0, 25 % more for each step down.
pub fn weight_of_nice(nice: i32) -> u32 {
    (1024.0 * 1.25f64.powi(-nice.clamp(-20, 19))).round() as u32
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MS: Time = MILLISECOND;
    const SETTINGS: Settings = Settings { period: 20 * MS, min_slice: 100_000, credit: 4 * MS };

    /// One policy has two implementations; their constants stand in its text.
    #[test]
    fn the_defaults_are_those_of_coop_sched() {
        let text = include_str!("../../../../../schedulers/coop.sched");
        let tunable = |name: &str| {
            let declared = format!("tunable time {name} = ");
            let line = text.split(&declared).nth(1).expect("coop.sched declares it");
            attune_values::text::parse(line.split(';').next().unwrap()).unwrap() as Time
        };
        let Settings { period, min_slice, credit } = Settings::default();
        assert_eq!(period, tunable("period"));
        assert_eq!(min_slice, tunable("min_slice"));
        assert_eq!(credit, tunable("credit"));
    }

    fn member(slot: u32) -> Member {
        let (group, weight, virtual_time) = (0, 1024, 0);
        Member {
            slot,
            group,
            weight,
            virtual_time,
            timer: NEVER,
            best_effort: NOTHING,
            reachable: true,
        }
    }

    fn choice(members: &[Member], now: Time) -> Choice {
        decide(members, 0, now, &SETTINGS).choice
    }

    #[test]
    fn a_due_timer_is_first_and_asked_to_poll_at_once() {
        let working = Member { best_effort: 1, ..member(0) };
        let late = Member { timer: 7 * MS, virtual_time: 3 * MS as i64, ..member(1) };
        let later = Member { timer: 8 * MS, ..member(2) };
        let members = [working, later, late];
        assert_eq!(choice(&members, 9 * MS), Choice::Run { slot: 1, until: 9 * MS });
        assert_eq!(choice(&members, 7 * MS), Choice::Run { slot: 1, until: 7 * MS });
        let before = choice(&members, 6 * MS);
        assert_eq!(
            before,
            Choice::Run { slot: 0, until: 7 * MS },
            "until the earliest release of the others"
        );
    }

    #[test]
    fn a_member_beyond_its_credit_waits_for_its_turn() {
        let working = Member { best_effort: 1, ..member(0) };
        let greedy = Member { timer: MS, virtual_time: 5 * MS as i64, ..member(1) };
        assert_eq!(choice(&[working, greedy], 2 * MS), Choice::Run { slot: 0, until: 12 * MS });
    }

    #[test]
    fn groups_share_the_cpu_and_importance_chooses_inside() {
        let in_group = |slot, best_effort, virtual_time| Member {
            group: 7,
            best_effort,
            virtual_time,
            ..member(slot)
        };
        let mut members = [
            in_group(0, 20, 5),
            in_group(1, 10, 9),
            Member { best_effort: 99, virtual_time: 7, ..member(2) },
        ];
        share_group_times(&mut members, 0);
        assert_eq!(members[0].virtual_time, 9, "the group is as far as its furthest member");
        assert!(matches!(choice(&members, 0), Choice::Run { slot: 2, .. }));
        members[2].virtual_time = 11;
        assert!(matches!(choice(&members, 0), Choice::Run { slot: 1, .. }));
        assert_eq!(
            (others(&members, 7, 1), others(&members, 7, 0), others(&members, 0, 2)),
            (20, 10, NOTHING)
        );
    }

    #[test]
    fn without_work_the_cpu_is_idle_until_the_first_release() {
        let first = Member { timer: 3 * MS, ..member(4) };
        let members = [Member { timer: 5 * MS, ..member(1) }, first, member(2)];
        assert_eq!(choice(&members, 0), Choice::Idle { first: Some((4, 3 * MS)) });
        assert_eq!(choice(&[], 0), Choice::Idle { first: None });
    }

    /// Members run as decided for a second; shares follow the weights.
    #[test]
    fn shares_follow_weights_and_groups() {
        let mut members = [
            Member { best_effort: 0, weight: 2048, ..member(0) },
            Member { best_effort: 0, ..member(1) },
            Member { best_effort: 0, group: 3, ..member(2) },
            Member { best_effort: 5, group: 3, ..member(3) },
        ];
        let (mut used, mut now, mut floor) = ([0u64; 4], 0, 0);
        while now < 1000 * MS {
            share_group_times(&mut members, floor);
            let decision = decide(&members, floor, now, &SETTINGS);
            let Choice::Run { slot, until } = decision.choice else { panic!("idle") };
            floor = decision.floor;
            let (i, slice) = (slot as usize, until - now);
            let weight = if members[i].group == 3 { 2048 } else { u64::from(members[i].weight) };
            members[i].virtual_time += charge(slice, weight);
            if members[i].group == 3 {
                members[i].best_effort += 10;
            }
            used[i] += slice;
            now = until;
        }
        let part = |used: u64| used as f64 / now as f64;
        assert!((part(used[0]) - 0.4).abs() < 0.02, "{used:?}");
        assert!((part(used[1]) - 0.2).abs() < 0.02, "{used:?}");
        assert!(
            (part(used[2]) - 0.2).abs() < 0.02 && (part(used[3]) - 0.2).abs() < 0.02,
            "{used:?}"
        );
    }

    fn any_member() -> impl Strategy<Value = (u32, u32, i64, Time, Importance, bool)> {
        let time = prop_oneof![Just(NEVER), 0..20 * MS, any::<u64>()];
        let importance = prop_oneof![Just(NOTHING), -5..5i64, any::<i64>()];
        let virtual_time = prop_oneof![-(9 * MS as i64)..9 * MS as i64, any::<i64>()];
        (0..3u32, any::<u32>(), virtual_time, time, importance, any::<bool>())
    }

    proptest! {
        /// For any content of the memory, a member that wants the CPU gets it, and no other; its
        /// slice has an end.
        #[test]
        fn the_cpu_goes_to_a_member_that_wants_it(
            values in proptest::collection::vec(any_member(), 0..64),
            floor: i64,
            now in 0..30 * MS,
        ) {
            let of = |((group, weight, virtual_time, timer, best_effort, reachable), slot)| {
                Member { slot, group, weight, virtual_time, timer, best_effort, reachable }
            };
            let mut members: Vec<Member> = values.into_iter().zip(0..).map(of).collect();
            share_group_times(&mut members, floor);
            let has_work = |member: &Member| member.best_effort != NOTHING || member.timer <= now;
            let wants = |member: &Member| member.reachable && has_work(member);
            match decide(&members, floor, now, &SETTINGS).choice {
                Choice::Run { slot, until } => {
                    prop_assert!(wants(&members[slot as usize]));
                    prop_assert!((now..=now + SETTINGS.period).contains(&until));
                    if members[slot as usize].timer > now {
                        prop_assert!(until >= now + SETTINGS.min_slice);
                    }
                }
                Choice::Idle { first } => {
                    prop_assert!(!members.iter().any(wants));
                    let reachable = members.iter().filter(|member| member.reachable);
                    let earliest = reachable.map(|member| member.timer).min();
                    let earliest = earliest.filter(|time| *time != NEVER);
                    prop_assert_eq!(first.map(|(_, time)| time), earliest);
                }
            }
        }

        /// No due timer waits behind another that was released later, or behind a best-effort
        /// event, within the credit.
        #[test]
        fn due_timers_are_in_order(
            releases in proptest::collection::vec(0..10 * MS, 1..20),
            working in 0..5u32,
        ) {
            let released = |(timer, slot): (&Time, u32)| Member { timer: *timer, ..member(slot) };
            let mut members: Vec<Member> = releases.iter().zip(0..).map(released).collect();
            let timers = members.len() as u32;
            let works = |slot| Member { best_effort: -1, ..member(slot) };
            members.extend((timers..timers + working).map(works));
            let now = 10 * MS;
            let mut served = Vec::new();
            while let Choice::Run { slot, until } = choice(&members, now) {
                if slot >= timers {
                    break;
                }
                prop_assert_eq!(until, now);
                served.push(members[slot as usize].timer);
                members[slot as usize].timer = NEVER;
            }
            prop_assert_eq!(served.len(), releases.len());
            prop_assert!(served.is_sorted());
        }
    }
}
