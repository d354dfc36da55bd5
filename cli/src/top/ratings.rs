//! The programs that the person at the display deals with, the most important first: each process
//! with a rating that a policy reads, above the policies' own tables.
//!
//! Ratings go from 0 to 1000. Dispatches are those of the process's threads, since each began.

use std::collections::BTreeMap;

use attune_kernel::Snapshot;
use attune_kernel::snapshot::PolicySnapshot;
use attune_values::names;

use super::table::{Line, heading, plain, printable, table};

/// Rows that are shown; a window has to hold more than these.
const MOST: usize = 12;

struct Program {
    process: i32,
    name: String,
    input: i64,
    output: i64,
    threads: usize,
    dispatches: u64,
}

/// Nothing where no policy reads ratings. `name`: that of a thread.
pub fn lines(snapshot: &Snapshot, name: impl Fn(i32) -> Option<String>) -> Vec<Line> {
    let mut lines = Vec::new();
    let reads = |policy: &&PolicySnapshot| {
        let rating = |name: &str| [names::INPUT_RATING, names::OUTPUT_RATING].contains(&name);
        policy.attributes.iter().any(|attribute| attribute.import && rating(&attribute.name))
    };
    let policies: Vec<&PolicySnapshot> = snapshot.policies.iter().filter(reads).collect();
    if policies.is_empty() {
        return lines;
    }
    let programs = programs(&policies, name);
    plain(&mut lines, String::new());
    heading(&mut lines, format!("rated: {} programs", programs.len()));
    if programs.is_empty() {
        plain(&mut lines, "attune focus rates them".to_owned());
        return lines;
    }
    let row = |program: &Program| {
        vec![
            program.process.to_string(),
            printable(&program.name),
            program.input.to_string(),
            program.output.to_string(),
            program.threads.to_string(),
            program.dispatches.to_string(),
        ]
    };
    let head = ["PROCESS", "NAME", "INPUT", "OUTPUT", "THREADS", "DISPATCHES"];
    let rows = programs.iter().take(MOST).map(row).collect();
    let right = [true, false, true, true, true, true];
    table(head.map(str::to_owned).to_vec(), rows, &right, &mut lines);
    lines
}

fn programs(policies: &[&PolicySnapshot], name: impl Fn(i32) -> Option<String>) -> Vec<Program> {
    let mut found: BTreeMap<i32, Program> = BTreeMap::new();
    let threads =
        policies.iter().flat_map(|policy| policy.threads().map(move |thread| (policy, thread)));
    for (policy, thread) in threads {
        let rating = |name: &str| policy.value(thread, name).unwrap_or(0);
        let (input, output) = (rating(names::INPUT_RATING), rating(names::OUTPUT_RATING));
        let program = found.entry(thread.process).or_insert_with(|| Program {
            process: thread.process,
            name: String::new(),
            input: 0,
            output: 0,
            threads: 0,
            dispatches: 0,
        });
        // A thread that has waited for long has read its rating long ago.
        program.input = program.input.max(input);
        program.output = program.output.max(output);
        program.threads += 1;
        program.dispatches += thread.dispatches;
        if program.name.is_empty() || thread.thread == thread.process {
            program.name = name(thread.thread).unwrap_or_default();
        }
    }
    let mut rated: Vec<Program> =
        found.into_values().filter(|program| program.input > 0 || program.output > 0).collect();
    rated.sort_by_key(|program| (-program.input.max(program.output), program.process));
    rated
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn thread(process: i32, thread: i32, ratings: [i64; 2]) -> Value {
        json!({
            "thread": thread, "process": process, "state": "waiting", "cpu": null, "key": null,
            "put_by": null, "dispatches": 5,
            "values": ratings,
        })
    }

    fn shown(imports: &[&str], threads: &[Value]) -> String {
        let attribute = |name: &&str| json!({ "name": name, "type": "int", "import": true });
        let attributes: Vec<Value> = imports.iter().map(attribute).collect();
        let container =
            json!({ "name": "WQ", "kind": "queue", "sorted_on": null, "threads": threads });
        let snapshot = json!({
            "at": 0, "held": 0, "cpus": [], "tunables": [], "fall_backs": 0, "rescued": [],
            "policies": [{
                "scheduler": "human", "role": null, "ready": 0, "dispatches": 0, "loose": [],
                "attributes": attributes, "containers": [container],
            }],
        });
        let snapshot: Snapshot = serde_json::from_value(snapshot).expect("a snapshot");
        let lines = lines(&snapshot, |thread| Some(format!("name{thread}")));
        lines.iter().map(|line| line.text.trim_end().to_owned() + "\n").collect()
    }

    #[test]
    fn processes_are_listed_by_rating_with_the_dispatches_of_all_their_threads() {
        let threads = [
            thread(10, 10, [0, 300]),
            thread(10, 11, [0, 310]),
            thread(20, 21, [950, 0]),
            thread(20, 20, [950, 40]),
            thread(30, 30, [0, 0]),
        ];
        assert_eq!(
            shown(&[names::INPUT_RATING, names::OUTPUT_RATING], &threads),
            "\n\
             rated: 2 programs\n\
             PROCESS  NAME    INPUT  OUTPUT  THREADS  DISPATCHES\n\
             \x20    20  name20    950      40        2          10\n\
             \x20    10  name10      0     310        2          10\n"
        );
    }

    #[test]
    fn a_policy_that_reads_no_rating_shows_none_and_one_without_a_monitor_says_so() {
        assert_eq!(shown(&["weight"], &[thread(1, 1, [500, 0])]), "");
        let said = shown(&[names::INPUT_RATING], &[thread(1, 1, [0, 0])]);
        assert!(said.contains("rated: 0 programs\nattune focus rates them"), "{said}");
    }
}
