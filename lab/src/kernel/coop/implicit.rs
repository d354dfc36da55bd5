//! Experiment `coop-implicit`: players that nobody has told of cooperation.

use super::{FAIR, SHORT_TURNS, hogs_are_within, implicit, implicit_with_short_turns, players};
use crate::kernel::{Contestant, Description, FIVE_SEEDS, Figure, Part, Place, Results};
use crate::report::Claim;

const THREAD: [&str; 2] = ["thread: p99 (ms)", "thread: worst (ms)"];
const THREAD_HOGS: &str = "thread: hogs' CPU (%)";
const TIMERFD: [&str; 2] = ["timerfd: p99 (ms)", "timerfd: worst (ms)"];
const CLOCK: [&str; 2] = ["clock: p99 (ms)", "clock: worst (ms)"];

/// What is claimed, ms: p99, worst.
const BY_THREAD: [f64; 2] = [0.2, 0.45];
const BY_TIMERFD: [f64; 2] = [0.5, 2.0];
/// How far the hogs' share may be off, in per cent of it.
const OFF: f64 = 1.0;

pub const EXPERIMENT: Description = Description {
    name: "coop-implicit",
    about: "unmodified players, whose timers the scheduler reads from their system calls: how late \
        they are, and what it costs others",
    title: "Players that say nothing, and are heard",
    text: &[
        "Eight players and four hogs. The players are unmodified: they use no event loop of ours \
            and call nothing of it. Thread: their timers live in a thread that sleeps until the \
            next one, while another decodes without end. Timerfd: one thread decodes, polls a \
            timerfd after each unit of 50 to 200 us, and arms it for the next timer. Clock: the \
            same with a look at the clock; it never blocks and never tells anybody.",
        "Under `--implicit` the engine reads from the kernel's timers until when a thread waits. \
            Per process: threads of a process have one virtual time, so that a player of two \
            threads has no more than a hog of one. 8 ms: with that `period` turns are as short as \
            in the fair class, for players that look at the clock.",
    ],
    published: "nobody has it. A hand-written trial of the mechanism: p99 / worst 0.21 / 0.45 ms \
        with a thread (the fair class 4.1 / 6.0), 33 ms p99 with a timerfd.",
    parts: &[Part {
        title: "Eight unmodified players and four hogs",
        place: Place::ONE_CPU,
        contestants: || {
            vec![
                Contestant::fair_class().briefly(),
                Contestant::ours_changed("coop --implicit", "coop", "--implicit").briefly(),
                implicit().briefly(),
                implicit_with_short_turns(),
            ]
        },
        workloads: &[
            players("thread", "--timers thread"),
            players("timerfd", "--timers timerfd"),
            players("clock", "--timers clock").lasting(10, 10),
        ],
        figures: &[
            Figure::new(THREAD[0], "thread", "/late_ns/p99", 1e6),
            Figure::new(THREAD[1], "thread", "/late_ns/max", 1e6),
            Figure::new(THREAD_HOGS, "thread", "/hogs_percent", 1.0),
            Figure::new("thread: useful CPU (%)", "thread", "/useful_percent", 1.0),
            Figure::new(TIMERFD[0], "timerfd", "/late_ns/p99", 1e6),
            Figure::new(TIMERFD[1], "timerfd", "/late_ns/max", 1e6),
            Figure::new("timerfd: hogs' CPU (%)", "timerfd", "/hogs_percent", 1.0),
            Figure::new("timerfd: useful CPU (%)", "timerfd", "/useful_percent", 1.0),
            Figure::new(CLOCK[0], "clock", "/late_ns/p99", 1e6),
            Figure::new(CLOCK[1], "clock", "/late_ns/max", 1e6),
        ],
    }],
    seeds: FIVE_SEEDS,
    drawn: THREAD[0],
    claims,
};

fn claims(results: &Results) -> Vec<Claim> {
    let worst = |name, figures: [&str; 2]| {
        let [p99, worst] = figures.map(|figure| results.worst(name, figure));
        p99.zip(worst)
    };
    let on_time = |how: &str, figures, [p99, longest]: [f64; 2]| {
        Claim::new(
            format!("{how}: p99 / worst at most {p99} / {longest} ms in every run"),
            worst(SHORT_TURNS, figures).map(|(its_p99, its_worst)| {
                (
                    its_p99 <= p99 && its_worst <= longest,
                    format!("{its_p99:.2} / {its_worst:.2} ms"),
                )
            }),
        )
    };
    let clock = results.worst(SHORT_TURNS, CLOCK[0]).zip(results.median(FAIR, CLOCK[0]));
    vec![
        on_time("timers in a thread that sleeps", THREAD, BY_THREAD),
        on_time(
            "timers in a timerfd that is armed while the program computes",
            TIMERFD,
            BY_TIMERFD,
        ),
        hogs_are_within(results, OFF, SHORT_TURNS, "beside players of two threads", &[THREAD_HOGS]),
        Claim::new(
            "players that look at the clock themselves are no later (p99) than in the fair class",
            clock.map(|(ours, fair)| {
                (ours <= fair, format!("{ours:.2} ms, {fair:.2} ms in the fair class"))
            }),
        ),
    ]
}
