//! A member: joining, polling, leaving. The protocol and its reasons stand in the [module
//! above](super).

use std::io;
use std::sync::atomic::Ordering::SeqCst;

use attune_linux::affinity::Cpus;
use attune_linux::poll::{self, pollfd};
use attune_linux::scheduling::{self, Class};
use attune_linux::time;

use super::decision::{self, Choice, Member, Settings};
use super::page::{self, Baton, Lane, SLOTS, Slot, State};
use super::slots::{self, Place};
use super::wakeup::{self, Woken};
use super::{LIMIT, PATIENCE, SLACK, Session};
use crate::offer::{Answer, NOTHING, Offer};
use crate::time::{Clock, Monotonic, NEVER, Time};
use crate::transport::{Alone, Statistics, Transport, wait};

/// How often a member looks at its nice value, whether others still find its wake-up socket, and
/// whether another CPU is less crowded.
const LOOK_AROUND: Time = 100_000_000;
/// How often a member that lost its slot tries to get another.
const REJOIN: Time = 1_000_000_000;
/// Attempts at passing the baton, each to a member that turned out dead; then a member that finds
/// it overdue takes it.
const PASSES: usize = SLOTS;

/// The transport `shared`; leaves the session when it is dropped.
pub struct Shared {
    place: Place,
    page: page::Shared,
    session: Session,
    process: u32,
    lane: u32,
    /// The thread's CPUs before it joined; it has them again when it leaves.
    affinity: Cpus,
    timer_slack: u64,
    came_in: Option<Class>,
    /// Its class now; None: another class than these two, which stays.
    class: Option<Class>,
    /// CPU time up to which it has been charged.
    charged: Time,
    /// The last answer's, and the baton with which we run since; None: without a slot.
    until: Time,
    turn: Option<Baton>,
    looked_around: Time,
    tried_to_join: Time,
    statistics: Statistics,
    /// For polls without a slot.
    alone: Alone,
    /// The members of the lane when last looked at; kept for its memory.
    members: Vec<Member>,
}

/// Where the baton is.
enum Passed {
    /// It stays here: our turn, until then.
    Kept(Time),
    /// Another member has it, or it is free.
    On,
}

impl Shared {
    /// Joins the session with the calling thread, which is bound to one of its CPUs from now on.
    pub fn join(session: &Session) -> io::Result<Shared> {
        let describe = |error: io::Error| {
            let directory = session.directory().display();
            io::Error::new(
                error.kind(),
                format!("joining the cooperating programs in {directory}: {error}"),
            )
        };
        Shared::try_join(session).map_err(describe)
    }

    fn try_join(session: &Session) -> io::Result<Shared> {
        session.prepare()?;
        let affinity = Cpus::of_this_thread()?;
        let now = Monotonic.now();
        let (page, lock) = page::Shared::open(session.directory())?;
        let place = slots::claim(&page, session.directory(), now)?;
        let mut member = Shared {
            place,
            page,
            session: session.clone(),
            process: std::process::id(),
            lane: 0,
            affinity,
            timer_slack: time::timer_slack(),
            came_in: own_class(),
            class: own_class(),
            charged: Monotonic.cpu_time(),
            until: now,
            turn: None,
            looked_around: now,
            tried_to_join: now,
            statistics: Statistics::default(),
            alone: Alone::default(),
            members: Vec::with_capacity(SLOTS),
        };
        let lane =
            member.crowds().into_iter().min_by_key(|(_, crowd)| *crowd).map_or(0, |(cpu, _)| cpu);
        member.settle(lane)?;
        drop(lock);
        time::set_timer_slack(Some(1));
        Ok(member)
    }

    fn slot(&self) -> &Slot {
        self.page.slot(self.place.slot)
    }

    fn lane(&self) -> &Lane {
        self.page.lane(self.lane)
    }

    /// The CPU whose baton this member waits for.
    pub fn cpu(&self) -> u32 {
        self.lane
    }

    /// Appears in a lane, at its floor, with nothing to do yet.
    fn settle(&mut self, lane: u32) -> io::Result<()> {
        Cpus::one(lane).apply()?;
        self.lane = lane;
        let slot = self.slot();
        slot.virtual_time.store(self.lane().floor.load(SeqCst), SeqCst);
        slot.weight.store(decision::weight_of_nice(scheduling::nice()), SeqCst);
        slot.set_state(State::Sleeping);
        slot.alarm.store(NEVER, SeqCst);
        slot.publish(&Offer::IDLE, Monotonic.now());
        slot.lane.store(lane, SeqCst);
        Ok(())
    }

    /// How many other members there are on each CPU that this one may use.
    fn crowds(&self) -> Vec<(u32, usize)> {
        let others = |cpu: u32| {
            let on_cpu = self
                .page
                .slots()
                .filter(|(_, slot)| !slot.is_free() && slot.lane.load(SeqCst) == cpu);
            on_cpu.filter(|(number, _)| *number != self.place.slot).count()
        };
        self.affinity.iter().map(|cpu| (cpu, others(cpu))).collect()
    }

    /// Whether the slot is (again) ours.
    fn keep_slot(&mut self, now: Time) -> bool {
        let looked = now.saturating_sub(self.looked_around) < LOOK_AROUND;
        if self.owns_slot() && (looked || self.place.wakeup.is_found()) {
            return true;
        }
        self.turn = None;
        if now.saturating_sub(self.tried_to_join) < REJOIN {
            return false;
        }
        self.tried_to_join = now;
        self.join_again(now).is_ok()
    }

    fn owns_slot(&self) -> bool {
        self.slot().owner.load(SeqCst) == self.place.owner
    }

    /// Takes a slot of the page that the session has now: the directory may have been cleared, and
    /// others may have made a new one.
    fn join_again(&mut self, now: Time) -> io::Result<()> {
        self.session.prepare()?;
        let (page, lock) = page::Shared::open(self.session.directory())?;
        let place = slots::claim(&page, self.session.directory(), now)?;
        self.leave_slot(now);
        self.place = place;
        let old = std::mem::replace(&mut self.page, page);
        let settled = self.settle(self.lane);
        drop(lock);
        // Its end takes the lock itself.
        drop(old);
        settled
    }

    fn leave_slot(&mut self, now: Time) {
        if self.owns_slot() {
            // In this order: a slot that is free may be another's at once, and its socket too.
            self.place.wakeup.unlink();
            self.slot().free();
            self.abandon(self.lane, now);
        }
    }

    /// Moves to a CPU with two members less. One at a time does: the one in the last slot of the
    /// lane.
    fn look_around(&mut self, now: Time) -> io::Result<()> {
        if now.saturating_sub(self.looked_around) < LOOK_AROUND {
            return Ok(());
        }
        self.looked_around = now;
        self.slot().weight.store(decision::weight_of_nice(scheduling::nice()), SeqCst);
        self.look(self.lane);
        let last = self.members.iter().map(|member| member.slot).max() == Some(self.place.slot);
        let here = self.members.len();
        let Some((lane, crowd)) = self.crowds().into_iter().min_by_key(|(_, crowd)| *crowd) else {
            return Ok(());
        };
        if lane == self.lane || !last || crowd + 2 > here {
            return Ok(());
        }
        let old = self.lane;
        self.settle(lane)?;
        self.abandon(old, now);
        Ok(())
    }

    /// Charges the CPU time used since the last charge.
    fn charge(&mut self, offer: &Offer) {
        let cpu_time = Monotonic.cpu_time();
        let used = cpu_time.saturating_sub(self.charged);
        self.charged = cpu_time;
        self.slot().group.store(offer.group, SeqCst);
        self.look(self.lane);
        let mine = |member: &&Member| member.slot == self.place.slot;
        let of_group =
            |member: &&Member| mine(member) || offer.group != 0 && member.group == offer.group;
        let weight =
            self.members.iter().filter(of_group).map(|member| u64::from(member.weight)).sum();
        if let Some(me) = self.members.iter().find(mine) {
            let moved = me.virtual_time.wrapping_add(decision::charge(used, weight));
            self.slot().virtual_time.store(moved, SeqCst);
        }
    }

    /// Reads the members of a lane.
    fn look(&mut self, lane: u32) {
        let (me, page) = (self.place.slot, &self.page);
        let in_lane =
            page.slots().filter(|(_, slot)| !slot.is_free() && slot.lane.load(SeqCst) == lane);
        self.members.clear();
        self.members.extend(in_lane.map(|(number, slot)| Member {
            slot: number,
            group: slot.group.load(SeqCst),
            weight: slot.weight.load(SeqCst),
            virtual_time: slot.virtual_time.load(SeqCst),
            timer: slot.timer.load(SeqCst),
            best_effort: slot.best_effort.load(SeqCst),
            reachable: number == me
                || (slot.deaf.load(SeqCst) == 0 && slot.state() != State::Running),
        }));
        decision::share_group_times(&mut self.members, page.lane(lane).floor.load(SeqCst));
    }

    fn decide(&mut self, lane: u32, now: Time) -> Choice {
        self.look(lane);
        let floor = &self.page.lane(lane).floor;
        let decision =
            decision::decide(&self.members, floor.load(SeqCst), now, &Settings::default());
        floor.store(decision.floor, SeqCst);
        decision.choice
    }

    /// With the baton in hand: keeps it, passes it on, or frees it.
    fn pass_on(&mut self, lane: u32, mut baton: Baton, now: Time) -> Passed {
        for _ in 0..PASSES {
            let (to, until) = match self.decide(lane, now) {
                Choice::Run { slot, until } if slot == self.place.slot => {
                    return Passed::Kept(until);
                }
                Choice::Run { slot, until } => (slot, until),
                // It must wake up to set its alarm anew, and needs no time for that.
                Choice::Idle { first: Some((slot, time)) }
                    if slot != self.place.slot
                        && self.page.slot(slot).alarm.load(SeqCst) > time =>
                {
                    (slot, now)
                }
                Choice::Idle { .. } => {
                    let Some(free) = self.page.lane(lane).pass(baton, None) else {
                        return Passed::On;
                    };
                    // A member that began to wait before that has seen the baton held, and sleeps.
                    if let Choice::Idle { .. } = self.decide(lane, now) {
                        return Passed::On;
                    }
                    match self.page.lane(lane).pass(free, Some(self.place.slot)) {
                        Some(taken) => baton = taken,
                        None => return Passed::On,
                    }
                    continue;
                }
            };
            self.page.lane(lane).until.store(until, SeqCst);
            let Some(given) = self.page.lane(lane).pass(baton, Some(to)) else { return Passed::On };
            match self.place.wakeup.wake(self.session.directory(), to) {
                Woken::Yes => {
                    self.statistics.yields += 1;
                    return Passed::On;
                }
                Woken::NoOwner => {
                    self.page.slot(to).free();
                    match self.page.lane(lane).pass(given, Some(self.place.slot)) {
                        Some(taken) => baton = taken,
                        None => return Passed::On,
                    }
                }
            }
        }
        Passed::On
    }

    /// Passes on the baton of a lane that this member has left.
    fn abandon(&mut self, lane: u32, now: Time) {
        let baton = self.page.lane(lane).baton();
        if baton.holder() == Some(self.place.slot) {
            let _ = self.pass_on(lane, baton, now);
        }
    }

    /// Takes the baton from a holder that should have passed it.
    fn take_over(&mut self, baton: Baton, holder: u32) {
        let slot = self.page.slot(holder);
        if !slot.is_free() {
            if !wakeup::is_listening(self.session.directory(), holder) {
                slot.free();
            } else if slot.state() != State::Running {
                slot.deaf.store(1, SeqCst);
            }
        }
        if self.lane().pass(baton, Some(self.place.slot)).is_some() {
            self.statistics.takeovers += 1;
        }
    }

    /// Our turn, with the baton in hand.
    fn begin_turn(&mut self, until: Time, offer: &Offer) -> Answer {
        self.lane().until.store(until, SeqCst);
        self.run(until, offer)
    }

    /// Our turn although another has the baton: for one event, then we ask again.
    fn run_impatiently(&mut self, now: Time, offer: &Offer) -> Answer {
        self.statistics.impatient += 1;
        self.look(self.lane);
        self.run(now, offer)
    }

    fn run(&mut self, until: Time, offer: &Offer) -> Answer {
        self.slot().set_state(State::Running);
        self.until = until;
        self.turn = Some(self.lane().baton());
        Answer {
            turn: true,
            until,
            others: decision::others(&self.members, offer.group, self.place.slot),
        }
    }

    /// Publishes the offer, and whether this member wants the CPU for it. A member that slept
    /// starts at the floor: unused time is lost. It writes all fields each time, since another
    /// program may have scribbled on the slot.
    fn publish(&self, offer: &Offer, now: Time, wants: bool) {
        let (slot, lane) = (self.slot(), self.lane());
        slot.publish(offer, now);
        slot.lane.store(self.lane, SeqCst);
        if !wants {
            slot.set_state(State::Sleeping);
        } else if slot.state() != State::Waiting {
            let floor = lane.floor.load(SeqCst);
            if slot.state() == State::Sleeping
                && slot.virtual_time.load(SeqCst).wrapping_sub(floor) < 0
            {
                slot.virtual_time.store(floor, SeqCst);
            }
            slot.set_state(State::Waiting);
        }
        if offer.timer > now && lane.baton().holder() != Some(self.place.slot) {
            lane.until.fetch_min(offer.timer, SeqCst);
        }
    }

    fn wait_for_turn(&mut self, offer: &Offer, descriptors: &mut [pollfd]) -> io::Result<Answer> {
        let began = Monotonic.now();
        let mut seen = (self.lane().baton(), began);
        let mut robbed = false;
        loop {
            let now = Monotonic.now();
            let wants = offer.wants_cpu(now);
            self.publish(offer, now, wants);
            let baton = self.lane().baton();
            // A member that was given the baton, and robbed of it before the kernel found a CPU for
            // it, runs now.
            if wants && baton.holder() != Some(self.place.slot) && (robbed || now >= began + LIMIT)
            {
                return Ok(self.run_impatiently(now, offer));
            }
            if baton != seen.0 {
                seen = (baton, now);
            }
            let impatient = seen.1 + PATIENCE;
            let overdue = if offer.timer > now {
                impatient
            } else {
                impatient.min(self.lane().until.load(SeqCst).saturating_add(SLACK))
            };
            match baton.holder() {
                Some(holder) if holder == self.place.slot => {
                    if let Passed::Kept(until) = self.pass_on(self.lane, baton, now) {
                        return Ok(self.begin_turn(until, offer));
                    }
                    continue;
                }
                None if wants => {
                    let _ = self.lane().pass(baton, Some(self.place.slot));
                    continue;
                }
                Some(holder) if wants && now >= overdue => {
                    self.take_over(baton, holder);
                    continue;
                }
                _ => {}
            }
            let alarm = match baton.holder() {
                None => offer.timer,
                Some(_) if wants => {
                    overdue.min(offer.timer.max(now).saturating_add(SLACK)).min(began + LIMIT)
                }
                Some(_) => offer.timer.saturating_add(SLACK),
            };
            self.slot().alarm.store(alarm, SeqCst);
            if self.lane().baton() != baton {
                continue;
            }
            self.statistics.sleeps += 1;
            // A member that passes the baton must not be preempted by the one that it wakes: that
            // would be two switches more.
            self.be(if baton.holder().is_some() { Class::BATCH } else { Class::NORMAL });
            let ready = self.sleep(descriptors, now, alarm);
            robbed = self.slot().deaf.swap(0, SeqCst) != 0;
            if ready? {
                return Ok(Answer { turn: false, until: now, others: NOTHING });
            }
        }
    }

    fn be(&mut self, class: Class) {
        if self.class.is_some_and(|now| now != class) {
            // A sandbox that forbids it costs switches, no more.
            self.class = class.apply().ok().map(|()| class);
        }
    }

    /// Waits for a wake-up, the descriptors and the alarm; whether one of the descriptors is ready.
    fn sleep(&mut self, descriptors: &mut [pollfd], now: Time, alarm: Time) -> io::Result<bool> {
        let mut all = Vec::with_capacity(descriptors.len() + 1);
        all.push(poll::readable(self.place.wakeup.fd()));
        all.extend_from_slice(descriptors);
        wait(&mut all, now, alarm)?;
        if all[0].revents != 0 {
            self.place.wakeup.drain();
        }
        descriptors.copy_from_slice(&all[1..]);
        Ok(descriptors.iter().any(|descriptor| descriptor.revents != 0))
    }
}

impl Transport for Shared {
    fn name(&self) -> &'static str {
        "shared"
    }

    fn poll(&mut self, offer: &Offer, descriptors: &mut [pollfd]) -> io::Result<Answer> {
        self.statistics.polls += 1;
        let now = Monotonic.now();
        let forked = std::process::id() != self.process;
        if forked || !self.keep_slot(now) {
            self.turn = None;
            // A program that has work all the time polls again only when it is told to.
            self.until = if forked { NEVER } else { self.tried_to_join.saturating_add(REJOIN) };
            return Ok(Answer { until: self.until, ..self.alone.poll(offer, descriptors)? });
        }
        self.turn = None;
        self.look_around(now)?;
        self.charge(offer);
        self.wait_for_turn(offer, descriptors)
    }

    fn until(&self) -> Time {
        match self.turn {
            None => self.until,
            Some(turn) if self.lane().baton() == turn => {
                self.until.min(self.lane().until.load(SeqCst))
            }
            // Another member took the baton from us.
            Some(_) => 0,
        }
    }

    fn statistics(&self) -> Statistics {
        self.statistics
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if std::process::id() != self.process {
            return;
        }
        self.leave_slot(Monotonic.now());
        // The thread goes on as before, as far as the kernel lets it.
        let _ = self.affinity.apply();
        if let Some(class) = self.came_in {
            self.be(class);
        }
        time::set_timer_slack(Some(self.timer_slack));
    }
}

/// The calling thread's class, if it is one of the two that a member changes between.
fn own_class() -> Option<Class> {
    let class = Class::of_this_thread().ok()?;
    matches!(class, Class::NORMAL | Class::BATCH).then_some(class)
}
