//! The event loop in virtual time: order, idempotence, no timer skipped, polling in time and making
//! progress.

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;

use attune_coop::event_loop::{EventQueue, TURN};
use attune_coop::{
    Answer, Clock, EventId, EventLoop, NEVER, NOTHING, Offer, Statistics, Time, Transport, When,
};
use attune_linux::poll::pollfd;
use proptest::prelude::*;

/// The time, and what the transport was told.
#[derive(Default)]
struct World {
    now: Cell<Time>,
    /// So long others had the CPU.
    away: Cell<Time>,
    /// CPU time of a poll.
    poll: Cell<Time>,
    offers: RefCell<Vec<(Time, Offer)>>,
    /// The first timer as each service began and when it had ended.
    told: RefCell<Vec<Time>>,
    until: Cell<Time>,
}

struct VirtualClock(Rc<World>);

impl Clock for VirtualClock {
    fn now(&self) -> Time {
        self.0.now.get()
    }
    fn cpu_time(&self) -> Time {
        self.0.now.get() - self.0.away.get()
    }
}

/// Sleeps in virtual time; answers with each slice and importance in turn.
struct Scripted {
    world: Rc<World>,
    answers: Vec<(Time, i64)>,
    polls: usize,
}

impl Transport for Scripted {
    fn name(&self) -> &'static str {
        "scripted"
    }

    fn poll(&mut self, offer: &Offer, _: &mut [pollfd]) -> io::Result<Answer> {
        let world = &self.world;
        world.offers.borrow_mut().push((world.now.get(), *offer));
        if !offer.wants_cpu(world.now.get()) {
            assert_ne!(offer.timer, NEVER, "asleep for ever");
            world.away.set(world.away.get() + offer.timer - world.now.get());
            world.now.set(offer.timer);
        }
        world.now.set(world.now.get() + world.poll.get());
        let (slice, others) = self.answers[self.polls % self.answers.len()];
        self.polls += 1;
        world.until.set(world.now.get().saturating_add(slice));
        Ok(Answer { turn: true, until: world.until.get(), others })
    }

    fn tell_timer(&mut self, first: Time) {
        self.world.told.borrow_mut().push(first);
    }

    fn until(&self) -> Time {
        self.world.until.get()
    }

    fn statistics(&self) -> Statistics {
        Statistics::default()
    }
}

fn event_loop(answers: Vec<(Time, i64)>) -> (EventLoop, Rc<World>) {
    let world = Rc::new(World::default());
    let transport = Scripted { world: world.clone(), answers, polls: 0 };
    (EventLoop::with(Box::new(transport), Box::new(VirtualClock(world.clone())), 1), world)
}

/// Answers as if no other program had work.
fn alone() -> Vec<(Time, i64)> {
    vec![(NEVER, NOTHING)]
}

fn any_when() -> impl Strategy<Value = When> {
    prop_oneof![
        (0..200u64).prop_map(When::At),
        (0..5i64, 0..4u64)
            .prop_map(|(importance, release)| When::BestEffort { importance, release }),
    ]
}

/// What a list says comes next: due timers by release, else best effort by importance and release;
/// first submitted first.
fn expected(pending: &[(usize, When)], now: Time) -> Option<usize> {
    let due = pending.iter().filter_map(|(i, when)| match when {
        When::At(release) if *release <= now => Some((*release, *i)),
        _ => None,
    });
    let best_effort = pending.iter().filter_map(|(i, when)| match when {
        When::BestEffort { importance, release } => Some(((*importance, *release), *i)),
        When::At(_) => None,
    });
    due.min_by_key(|(release, _)| *release)
        .map(|(_, i)| i)
        .or_else(|| best_effort.min_by_key(|(order, _)| *order).map(|(_, i)| i))
}

proptest! {
    /// Whatever the others want, our own events come in the order that is documented, each once, no
    /// timer early.
    #[test]
    fn events_come_in_order_and_none_is_lost(
        events in proptest::collection::vec((any_when(), 0..30u64), 1..40),
        answers in proptest::collection::vec((0..50u64, prop_oneof![Just(NOTHING), 0..5i64]), 1..8),
    ) {
        let (mut events_loop, world) = event_loop(answers);
        let happened = Rc::new(RefCell::new(Vec::new()));
        for (i, (when, cost)) in events.iter().copied().enumerate() {
            let (happened, world) = (happened.clone(), world.clone());
            let event = events_loop.event("event", move |_, _| {
                happened.borrow_mut().push((i, world.now.get()));
                world.now.set(world.now.get() + cost);
            });
            events_loop.submit(event, when);
        }
        events_loop.run().unwrap();

        let submitted = events.iter().map(|(when, _)| *when);
        let mut pending: Vec<(usize, When)> = submitted.enumerate().collect();
        for (i, at) in happened.borrow().iter() {
            prop_assert_eq!(Some(*i), expected(&pending, *at));
            pending.retain(|(other, _)| other != i);
        }
        prop_assert!(pending.is_empty());
    }

    /// A queue against a list, under any submissions and cancellations, repeated ones too.
    #[test]
    fn submitting_and_cancelling_are_idempotent(
        steps in proptest::collection::vec(
            (0..6usize, proptest::option::of(any_when()), 1..3),
            0..60,
        ),
        now in 0..200u64,
    ) {
        let (mut events_loop, _) = event_loop(alone());
        let names: Vec<EventId> = (0..6).map(|_| events_loop.event("e", |_, _| ())).collect();
        let mut queue = EventQueue::default();
        let mut list: Vec<(usize, When)> = Vec::new();
        for (event, when, times) in steps {
            for _ in 0..times {
                match when {
                    Some(when) => queue.submit(names[event], when),
                    None => {
                        queue.cancel(names[event]);
                    }
                }
            }
            if when.is_none_or(|when| !list.contains(&(event, when))) {
                list.retain(|(other, _)| *other != event);
                list.extend(when.map(|when| (event, when)));
            }
        }
        while let Some((_, next)) = queue.next(now) {
            let wanted = expected(&list, now).map(|i| names[i]);
            prop_assert_eq!(Some(next), wanted);
            queue.cancel(next);
            list.retain(|(other, _)| names[*other] != next);
        }
        prop_assert_eq!(expected(&list, now), None);
        prop_assert_eq!(queue.is_empty(), list.is_empty());
    }
}

/// Five best-effort events of `each`; each answer says to poll again after `slice`.
fn polls_of_five(each: Time, slice: Time, others: i64) -> Vec<(Time, Offer)> {
    let (mut events, world) = event_loop(vec![(slice, others)]);
    for importance in 0..5 {
        let world = world.clone();
        let event = events.event("work", move |_, _| world.now.set(world.now.get() + each));
        events.submit(event, When::best_effort(importance));
    }
    events.run().unwrap();
    world.offers.take()
}

#[test]
fn it_polls_when_its_time_is_up_and_not_before() {
    let at = |slice, others| {
        polls_of_five(10, slice, others).iter().map(|(at, _)| *at).collect::<Vec<_>>()
    };
    assert_eq!(at(NEVER, NOTHING), [0]);
    assert_eq!(at(25, NOTHING), [0, 30]);
    assert_eq!(at(0, NOTHING), [0, 10, 20, 30, 40], "an event of its own runs between two polls");
}

#[test]
fn the_first_timer_is_told_around_each_service_and_not_only_at_the_next_poll() {
    let (mut events, world) = event_loop(alone());
    let work = events.event("work", |_, _| ());
    let timer = events.event("timer", move |events, timer| {
        let when = events.now() + 100;
        if when < 350 {
            events.submit(timer, When::At(when));
        } else {
            events.submit(work, When::best_effort(0));
        }
    });
    events.submit(timer, When::At(100));
    events.run().unwrap();
    let told = [NEVER, 200, NEVER, 300, NEVER, NEVER];
    assert_eq!(world.told.take(), told, "around best-effort work there is nothing to tell");
}

#[test]
fn it_polls_when_a_member_of_the_group_has_more_important_work() {
    // 0, 1 and 2 matter at least as much; before 3 it polls, and again before 4.
    let offers = polls_of_five(TURN, NEVER, 2);
    assert_eq!(offers.iter().map(|(at, _)| *at / TURN).collect::<Vec<_>>(), [0, 3, 4]);
    assert_eq!(offers[1].1, Offer { group: 1, timer: NEVER, best_effort: 3 });
    // A turn is not given up before it has lasted.
    let offers = polls_of_five(TURN * 3 / 4, NEVER, 2);
    assert_eq!(offers.iter().map(|(at, _)| *at).collect::<Vec<_>>(), [0, TURN * 9 / 4]);
    let offers = polls_of_five(TURN * 3 / 4, NEVER, -1);
    assert_eq!(offers.iter().map(|(at, _)| *at).collect::<Vec<_>>(), [0, TURN * 3 / 2, TURN * 3]);
}

#[test]
fn a_proxy_yields_and_is_no_work() {
    let (mut events, world) = event_loop(alone());
    let proxy = events.proxy("let others");
    let second = world.clone();
    let work = events.event("work", move |events, work| {
        second.now.set(second.now.get() + 10);
        if second.now.get() < 50 {
            events.submit(work, When::best_effort(3));
        }
    });
    events.submit(work, When::best_effort(3));
    events.submit(proxy, When::At(15));
    events.run().unwrap();
    assert_eq!(world.offers.borrow().iter().map(|(at, _)| *at).collect::<Vec<_>>(), [0, 20]);
    events.submit(proxy, When::best_effort(0));
    events.run().unwrap();
    assert_eq!(world.offers.borrow().len(), 2, "with proxies alone there is nothing to run for");
}

#[test]
fn callbacks_submit_cancel_remove_and_stop() {
    let (mut events, world) = event_loop(alone());
    let said = Rc::new(RefCell::new(Vec::new()));
    let say = |text: &'static str| {
        let said = said.clone();
        move |_: &mut EventLoop, _| said.borrow_mut().push(text)
    };
    let never = events.event("never", say("never"));
    let twice = events.event("twice", say("twice"));
    let once = said.clone();
    let first = events.event("first", move |events, first| {
        once.borrow_mut().push("first");
        events.cancel(never);
        events.cancel(never);
        events.submit(twice, When::At(20));
        events.submit(twice, When::At(30));
        events.remove(first);
        assert!(!events.submit(first, When::At(1)), "it is gone");
    });
    let stop = events.event("stop", |events, _| events.stop());
    events.submit(first, When::At(10));
    events.submit(never, When::At(11));
    events.submit(stop, When::At(40));
    events.submit(stop, When::At(40));
    let after = events.event("after", say("after"));
    events.submit(after, When::At(50));
    events.run().unwrap();
    assert_eq!(*said.borrow(), ["first", "twice"]);
    assert_eq!(world.now.get(), 40);
    assert_eq!(events.when(after), Some(When::At(50)), "still there for the next run");
    events.run().unwrap();
    assert_eq!(said.borrow().last(), Some(&"after"));
    assert_eq!(events.trace().get("twice").map(|trace| trace.count), Some(1));
}

#[test]
fn the_trace_tells_the_longest_execution_of_each_name() {
    let (mut events, world) = event_loop(alone());
    for cost in [5, 70, 20] {
        let world = world.clone();
        let event = events.event("decode", move |_, _| world.now.set(world.now.get() + cost));
        events.submit(event, When::At(100 * cost));
    }
    events.run().unwrap();
    let decode = events.trace().get("decode").unwrap();
    assert_eq!((decode.count, decode.total, decode.worst, decode.worst_at), (3, 95, 70, 7000));
    assert!(events.trace().to_string().contains("decode"));
}

#[test]
fn what_others_had_meanwhile_is_not_a_callbacks() {
    let (mut events, world) = event_loop(alone());
    world.poll.set(2);
    for turn in 1..=100 {
        let (cost, interrupted) = match turn {
            30 => (70, 0),
            60 => (50, 500),
            75 => (90, 40),
            _ => (10, 0),
        };
        let world = world.clone();
        let event = events.event("decode", move |_, _| {
            world.now.set(world.now.get() + cost + interrupted);
            world.away.set(world.away.get() + interrupted);
        });
        events.submit(event, When::At(1000 * turn));
    }
    events.run().unwrap();
    let decode = events.trace().get("decode").unwrap();
    assert_eq!(decode.worst_at / 1000, 75);
    assert!(
        (90..=90 + 16 * 2).contains(&decode.worst),
        "{decode:?}: by as much as 16 polls take, it may seem longer"
    );
}
