//! What `attune run` says of a run: the threads that it schedules, its counters, why it ended.

use std::time::Duration;

use attune_kernel::{CpuChange, Exit, Followed, Kind, PolicyStatistics, Running, Statistics};

use crate::args::RunArgs;
use crate::output::tell;

/// Which threads follow which policy.
pub fn whom(running: &Running, args: &RunArgs) -> String {
    let scheduler = running.scheduler();
    if args.partial {
        return format!(
            "{scheduler} schedules the threads of class SCHED_EXT; all others go first"
        );
    }
    let names: Vec<&str> = running.policies().collect();
    match (names.as_slice(), args.weight, args.command.first()) {
        ([command, older @ .., others], [own, rest], Some(program)) => {
            let older: String =
                older.iter().map(|older| format!("{older} another run's command, ")).collect();
            format!(
                "{command} schedules {program} (weight {own}), {older}{others} all others (weight \
                 {rest})"
            )
        }
        _ => format!("{scheduler} schedules this machine"),
    }
}

/// Says where threads waited too long and the engine ran them, each place once; `told` have been.
pub fn tell_rescued(running: &Running, told: usize) -> usize {
    let all = running.rescued();
    for place in all.iter().skip(told) {
        let sentence = place.sentence();
        tell!("attune: {sentence}\n  The engine runs such threads now and then.");
    }
    all.len()
}

/// Says with which CPUs that came or went the scheduler has gone on.
pub fn tell_followed(running: &Running) {
    for followed in running.followed() {
        tell!("attune: {}", goes_on(&running.scheduler(), &followed));
    }
}

fn goes_on(scheduler: &str, followed: &Followed) -> String {
    let (cpu, what) = match followed.cpu {
        CpuChange::Came(cpu) => (cpu, "came"),
        CpuChange::Went(cpu) => (cpu, "went"),
    };
    let undecided = followed.undecided.as_secs_f64() * 1e3;
    format!("CPU {cpu} {what}: {scheduler} decided nothing for {undecided:.1} ms and goes on")
}

/// A second's worth of counters, in a line.
pub fn since(
    running: &Running,
    before: &Statistics,
    now: &Statistics,
    elapsed: Duration,
) -> String {
    let rate = |before: u64, now: u64| (now - before) as f64 / elapsed.as_secs_f64();
    let mut line = format!(
        "{:.0} dispatches/s, {:.0} handler calls/s, {} ready",
        rate(before.dispatches(), now.dispatches()),
        rate(before.handler_calls(), now.handler_calls()),
        now.ready()
    );
    if now.policies.len() > 1 {
        for ((name, role), (before, now)) in
            named(running).zip(before.policies.iter().zip(&now.policies))
        {
            let busy = (now.ran - before.ran).as_secs_f64() / elapsed.as_secs_f64();
            line += &format!("; {name} {role} {:.2} CPUs", busy);
        }
    }
    line
}

/// Several schedulers, each with the threads that follow it.
fn named(running: &Running) -> impl Iterator<Item = (&str, String)> {
    let count = running.policies().count();
    let role = move |index| attune_kernel::role(index, count).unwrap_or_default();
    running.policies().enumerate().map(move |(index, name)| (name, format!("({})", role(index))))
}

/// One line, or one and one for each policy.
pub fn summary(running: &Running, statistics: &Statistics) -> String {
    let Statistics { kept, kicks, timers, moves, pulls, balanced, locks, held, .. } = statistics;
    let Statistics { idles, neglects, .. } = statistics;
    let calls = |policy: &PolicyStatistics| {
        let calls: Vec<String> =
            policy.calls.iter().map(|(event, count)| format!("{event} {count}")).collect();
        calls.join(", ")
    };
    let dispatches = statistics.dispatches();
    let mut all =
        format!("attune: {dispatches} dispatches, {kept} kept, {kicks} kicks, {timers} timers");
    if *moves > 0 {
        all += &format!(
            ", {moves} moves between instances, {pulls} of them pulled, {balanced} for balance"
        );
    }
    if *locks > 0 {
        all += &format!(", the lock held {locks} times for {} ns", held.as_nanos());
    }
    if statistics.clamped > 0 {
        all += &format!(
            ", {} times a value out of its import's range, taken as the nearest",
            statistics.clamped
        );
    }
    if *idles > 0 {
        all += &format!(", CPUs idle {idles} times, {neglects} of them beside a ready thread");
    }
    if statistics.rescues > 0 {
        all += &format!(", {} times a thread that had waited too long", statistics.rescues);
    }
    match statistics.policies.as_slice() {
        [policy] => format!("{all}; handler calls: {}\n", calls(policy)),
        policies => named(running).zip(policies).fold(all + "\n", |text, ((name, role), policy)| {
            let ran = policy.ran.as_secs_f64();
            let dispatches = policy.dispatches;
            text + &format!(
                "attune: {name} {role}: {ran:.3} s of CPU time, {dispatches} dispatches; handler \
                    calls: {}\n",
                calls(policy)
            )
        }),
    }
}

/// What to say of an end that was not asked for.
pub fn verdict(scheduler: &str, exit: &Exit) -> Option<String> {
    let kernel = format!(
        "{}{}",
        exit.reason,
        if exit.message.is_empty() { String::new() } else { format!(": {}", exit.message) }
    );
    let took_over = "The fair class has taken over; nothing else is lost.";
    match (exit.kind, &exit.failure) {
        (Kind::Unloaded, _) => None,
        (_, Some(failure)) => Some(format!(
            "the kernel has ended {scheduler}: {failure}\n  The kernel says: {kernel}. {took_over}"
        )),
        (_, None) => Some(format!("the kernel has ended {scheduler}: {kernel}. {took_over}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_of_cpus_is_told_in_one_line() {
        let undecided = Duration::from_micros(12_340);
        assert_eq!(
            goes_on("fair", &Followed { cpu: CpuChange::Went(3), undecided }),
            "CPU 3 went: fair decided nothing for 12.3 ms and goes on"
        );
    }
}
