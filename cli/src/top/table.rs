//! A snapshot as lines of text: CPUs, tunables, and for each policy its containers with their
//! threads in order. What programs and the engine say of a thread stands before what the policy
//! keeps for itself.
//!
//! Units stand in the headings; a time of the policy's is in ms.

use attune_kernel::snapshot::{
    AttributeSnapshot, ContainerSnapshot, Kind, PolicySnapshot, State, ThreadSnapshot,
};
use attune_kernel::{Rescued, Snapshot};
use attune_lab::columns;
use attune_values::wire::{Tunable, Type};

use super::proc::Threads;
use crate::set::shown;

/// A line, and whether it stands out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    pub text: String,
    pub heading: bool,
}

/// The policies in a line, what went wrong, and the CPUs.
pub fn overview(snapshot: &Snapshot, threads: &Threads) -> Vec<Line> {
    let mut lines = Vec::new();
    let names: Vec<String> = snapshot.policies.iter().map(title).collect();
    let known: u64 = snapshot.policies.iter().map(count).sum();
    let ready: u64 = snapshot.policies.iter().map(|policy| policy.ready).sum();
    let held = snapshot.held as f64 / 1e3;
    heading(
        &mut lines,
        format!("{}: {known} threads, {ready} ready (seen in {held:.0} us)", names.join(", ")),
    );
    if snapshot.fall_backs > 0 {
        plain(
            &mut lines,
            format!(
                "{} turns went to fall-back tasks: there was no record for them",
                snapshot.fall_backs
            ),
        );
    }
    for it in &snapshot.rescued {
        let (times, longest) = (it.times, it.longest as f64 / 1e9);
        let Rescued { scheduler, place, first, .. } = it;
        plain(
            &mut lines,
            format!(
                "{scheduler}: the engine ran {times} times a thread that had waited up to \
                 {longest:.1} s; {place} (thread {first} first)"
            ),
        );
    }
    plain(&mut lines, String::new());
    cpus(snapshot, threads, &mut lines);
    lines
}

/// Tunables, containers and threads.
pub fn policies(snapshot: &Snapshot, threads: &Threads) -> Vec<Line> {
    let mut lines = Vec::new();
    settings(&snapshot.tunables, &mut lines);
    for policy in &snapshot.policies {
        plain(&mut lines, String::new());
        self::policy(policy, threads, &mut lines);
    }
    lines
}

pub(super) fn plain(lines: &mut Vec<Line>, text: String) {
    lines.push(Line { text, heading: false });
}

pub(super) fn heading(lines: &mut Vec<Line>, text: String) {
    lines.push(Line { text, heading: true });
}

/// `fair`, `edf (command)`.
fn title(policy: &PolicySnapshot) -> String {
    match &policy.role {
        Some(role) => format!("{} ({role})", policy.scheduler),
        None => policy.scheduler.clone(),
    }
}

fn count(policy: &PolicySnapshot) -> u64 {
    policy.threads().count() as u64 + policy.left_out
}

fn cpus(snapshot: &Snapshot, threads: &Threads, lines: &mut Vec<Line>) {
    let rows = snapshot.cpus.iter().map(|cpu| {
        let Some(thread) = cpu.thread else {
            return vec![cpu.cpu.to_string(), "-".to_owned(), "idle".to_owned()];
        };
        let policy = cpu
            .policy
            .and_then(|index| snapshot.policies.get(index))
            .map(title)
            .unwrap_or_default();
        let left = cpu.slice_left.map_or("no end".to_owned(), ms);
        vec![cpu.cpu.to_string(), thread.to_string(), name(threads, thread), policy, left]
    });
    let head = ["CPU", "THREAD", "NAME", "POLICY", "LEFT/ms"].map(str::to_owned).to_vec();
    table(head, rows.collect(), &[true, true, false, false, true], lines);
}

pub(super) fn settings(tunables: &[Tunable], lines: &mut Vec<Line>) {
    if tunables.is_empty() {
        return;
    }
    plain(lines, String::new());
    let one = |it: &Tunable| {
        let of = it.role.as_ref().map(|role| format!("{role}.")).unwrap_or_default();
        format!("{of}{} = {}", it.name, shown(it.ty, it.value))
    };
    let all: Vec<String> = tunables.iter().map(one).collect();
    plain(lines, format!("tunables: {}", all.join(", ")));
}

fn policy(policy: &PolicySnapshot, threads: &Threads, lines: &mut Vec<Line>) {
    let ready = policy.ready;
    let dispatches = policy.dispatches;
    heading(
        lines,
        format!(
            "{}: {} threads, {ready} ready, {dispatches} dispatches",
            title(policy),
            count(policy)
        ),
    );
    // One table, so that columns stand below each other; the containers' own lines go in between.
    let rates = threads.has_rates();
    let mut head: Vec<String> =
        ["#", "THREAD", "PROCESS", "NAME", "STATE"].map(str::to_owned).to_vec();
    let mut right = vec![true, true, true, false, false];
    if rates {
        head.extend(["RUN/%", "WAIT/%"].map(str::to_owned));
        right.extend([true, true]);
    }
    head.extend(["RUN/s", "WAIT/s"].map(str::to_owned));
    right.extend([true, true]);
    for (_, attribute) in imports_first(policy) {
        let unit = if attribute.ty == Type::Time { "/ms" } else { "" };
        let import = if attribute.import { "<" } else { "" };
        head.push(format!("{import}{}{unit}", attribute.name));
        right.push(true);
    }
    head.push("PUT THERE BY".to_owned());
    right.push(false);
    let row = |(place, thread): (usize, &ThreadSnapshot)| {
        self::row(place, thread, policy, threads, rates)
    };
    let sections = policy.containers.iter().map(|it| (describe(it), &it.threads));
    let in_containers: u64 = policy.containers.iter().map(|it| it.left_out).sum();
    let left_out = policy.left_out.saturating_sub(in_containers);
    let loose = (!policy.loose.is_empty() || left_out > 0).then(|| {
        let threads = match left_out {
            0 => String::new(),
            _ => format!(": {}", threads_shown(policy.loose.len(), left_out)),
        };
        (format!("in no container{threads}"), &policy.loose)
    });
    let sections: Vec<(String, &Vec<ThreadSnapshot>)> = sections.chain(loose).collect();
    let rows =
        sections.iter().flat_map(|(_, threads)| threads.iter().enumerate().map(row)).collect();
    let mut written = Vec::new();
    table(head, rows, &right, &mut written);
    let mut written = written.into_iter();
    lines.extend(written.next());
    for (section, threads) in sections {
        heading(lines, section);
        lines.extend(written.by_ref().take(threads.len()));
    }
}

/// `RQ: 3 threads, pqueue sorted on vtime`.
fn describe(container: &ContainerSnapshot) -> String {
    let kind = match container.kind {
        Kind::Threadref => "threadref",
        Kind::Queue => "queue",
        Kind::Stack => "stack",
        Kind::Pqueue => "pqueue",
        Kind::Pstack => "pstack",
    };
    let sorted =
        container.sorted_on.as_ref().map(|by| format!(" sorted on {by}")).unwrap_or_default();
    let threads = threads_shown(container.threads.len(), container.left_out);
    let instance =
        container.instance.map(|instance| format!(" of instance {instance}")).unwrap_or_default();
    format!("{}{instance}: {threads}, {kind}{sorted}", container.name)
}

/// `3 threads`, `31000 threads, of which 1000 are shown`.
fn threads_shown(shown: usize, left_out: u64) -> String {
    match (shown, left_out) {
        (0, 0) => "empty".to_owned(),
        (1, 0) => "1 thread".to_owned(),
        (shown, 0) => format!("{shown} threads"),
        (shown, more) => format!("{} threads, of which {shown} are shown", shown as u64 + more),
    }
}

fn row(
    place: usize,
    thread: &ThreadSnapshot,
    policy: &PolicySnapshot,
    threads: &Threads,
    rates: bool,
) -> Vec<String> {
    let of = threads.of(thread.thread);
    let state = match (thread.state, thread.cpu) {
        (State::Running, Some(cpu)) => format!("on CPU {cpu}"),
        (State::Running, None) => "running".to_owned(),
        (State::Ready, _) => "ready".to_owned(),
        (State::Waiting, _) => "waiting".to_owned(),
        (State::Moving, _) => "moving".to_owned(),
        (State::Away, _) => "run by the engine".to_owned(),
        (State::Throttled, _) => "over its quota".to_owned(),
    };
    let seconds = |time: u64| format!("{:.3}", time as f64 / 1e9);
    let mut row = vec![
        (place + 1).to_string(),
        thread.thread.to_string(),
        thread.process.to_string(),
        name(threads, thread.thread),
        format!("{state}{}", of.map(|of| format!(" {}", of.state)).unwrap_or_default()),
    ];
    if rates {
        let rates = threads.rates(thread.thread);
        let percent = |index: usize| {
            rates.map_or("-".to_owned(), |rates| format!("{:.1}", 100.0 * rates[index]))
        };
        row.extend([percent(0), percent(1)]);
    }
    row.extend([
        of.map_or("-".to_owned(), |of| seconds(of.run)),
        of.map_or("-".to_owned(), |of| seconds(of.wait)),
    ]);
    row.extend(imports_first(policy).map(|(index, attribute)| match thread.values.get(index) {
        None => "-".to_owned(),
        Some(&value) if attribute.ty == Type::Time => ms(value),
        Some(&value) => whole(value),
    }));
    row.push(thread.put_by.clone().unwrap_or_default());
    row
}

/// A policy's attributes, each with its place among a thread's values.
fn imports_first(policy: &PolicySnapshot) -> impl Iterator<Item = (usize, &AttributeSnapshot)> {
    let those = |import| {
        let all = policy.attributes.iter().enumerate();
        all.filter(move |(_, attribute)| attribute.import == import)
    };
    those(true).chain(those(false))
}

fn name(threads: &Threads, thread: i32) -> String {
    threads.of(thread).map_or("(ended)".to_owned(), |of| printable(&of.name))
}

/// A program may call itself anything: what would move the cursor is not passed on.
pub(super) fn printable(name: &str) -> String {
    name.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

/// The ends of the range stand for what no program has said; written out they push all else away.
fn whole(value: i64) -> String {
    match value {
        i64::MAX => "max".to_owned(),
        value if value <= -i64::MAX => "-max".to_owned(),
        value => value.to_string(),
    }
}

fn ms(ns: i64) -> String {
    format!("{:.3}", ns as f64 / 1e6)
}

/// Columns below each other, those of numbers to the right.
pub(super) fn table(
    head: Vec<String>,
    rows: Vec<Vec<String>>,
    right: &[bool],
    lines: &mut Vec<Line>,
) {
    let texts = columns::lines(&[vec![head], rows].concat(), right).into_iter();
    lines.extend(texts.enumerate().map(|(row, text)| Line { text, heading: row == 0 }));
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn imports_stand_first_each_with_its_own_value() {
        let attribute =
            |name: &str, import| json!({ "name": name, "type": "int", "import": import });
        let policy = json!({
            "scheduler": "coop", "role": null, "ready": 0, "dispatches": 0, "loose": [],
            "containers": [], "attributes": [attribute("vtime", false), attribute("polls", true)],
        });
        let policy: PolicySnapshot = serde_json::from_value(policy).expect("a policy");
        let all: Vec<_> =
            imports_first(&policy).map(|(place, it)| (place, it.name.as_str())).collect();
        assert_eq!(all, [(1, "polls"), (0, "vtime")]);
    }

    #[test]
    fn what_no_program_has_said_takes_no_room() {
        assert_eq!([i64::MAX, i64::MIN, -i64::MAX].map(whole), ["max", "-max", "-max"]);
        assert_eq!([0, 1 - i64::MAX].map(whole), ["0", "-9223372036854775806"]);
    }
}
