//! Tests the readers of workloads: what they refuse, with which words and where; and that every
//! shipped workload can run.

use std::path::Path;

use super::distribution::Random;
use crate::testing::Fifo;
use crate::{Ending, Options, Outcome, Workload, simulate};

fn refused(text: &str) -> String {
    match Workload::from_toml(text, "w.toml") {
        Ok(_) => panic!("it should have been refused: {text}"),
        Err(error) => error.to_string(),
    }
}

fn run(workload: &Workload, options: &Options) -> Outcome {
    let mut policy = Fifo { slice: Some(1_000_000), preempts: Some(0), ..Fifo::default() };
    simulate(&mut policy, workload, options)
        .unwrap_or_else(|error| panic!("{}: {error}", workload.name))
}

#[test]
fn every_mistake_has_a_place_and_a_way_out() {
    for (text, place, words) in [
        ("duration = 5", ":1:12", "write it in quotes, as \"5ms\""),
        ("duration = \"-5s\"", ":1:12", "a time cannot be negative"),
        ("duration = \"5\"", ":1:12", "a time needs a unit"),
        ("durration = \"5s\"", ":1:1", "did you mean `duration`?"),
        ("cpus = 2000", ":1:8", "a whole number from 1 to 1024"),
        ("cpus = \"two\"", ":1:8", "a whole number from 1 to 1024"),
        ("x = [", ":1:6", "this is not TOML"),
        ("name = 'w'", "", "the workload has no threads"),
        ("thread = 3", ":1:10", "write [[thread]], with two brackets"),
        ("[[thread]]\ndo = []", ":1:1", "`name` is missing"),
        ("[[thread]]\nname = 'a'", ":1:1", "[[thread]] needs `do`"),
        ("[[thread]]\nname = 'a'\ndo = [{ compte = '1ms' }]", ":3:9", "did you mean `compute`?"),
        (
            "[[thread]]\nname = 'a'\ndo = [{ compute = '1ms', sleep = '1ms' }]",
            ":3:7",
            "are two actions",
        ),
        (
            "[[thread]]\nname = 'a'\ndo = [{ compute = '1ms', into = 'x' }]",
            ":3:26",
            "the action has no `into`",
        ),
        ("[[thread]]\nname = 'a'\ndo = ['yeld']", ":3:7", "did you mean \"yield\"?"),
        ("[[thread]]\nname = 'a'\ndo = [5]", ":3:7", "this is no action"),
        (
            "[[thread]]\nname = 'a'\ndo = [{ compute = 'size * 2' }]",
            ":3:19",
            "`size` is never given a value",
        ),
        (
            "[[thread]]\nname = 'a'\ndo = [{ compute = '1ms + unifrm(1, 2)' }]",
            ":3:26",
            "did you mean `uniform`?",
        ),
        (
            "[[thread]]\nname = 'a'\ndo = [{ wait = 's' }]",
            ":3:16",
            "nobody ever signals the semaphore `s`",
        ),
        (
            "[[thread]]\nname = 'a'\ndo = [{ receive = 'c' }]",
            ":3:19",
            "nobody ever sends to the channel `c`",
        ),
        ("[[thread]]\nname = 'a'\ndo = [{ resume = 'b' }]", ":3:18", "there is no thread `b`"),
        ("[[thread]]\nname = 'a'\ndo = [{ barrier = 'b' }]", ":3:19", "[barriers] b = 4"),
        ("[[thread]]\nname = 'a'\ncpus = []\ndo = []", ":3:8", "needs at least one CPU"),
        (
            "[[thread]]\nname = 'a'\nrepeat = 'forever'\ndo = []",
            ":3:10",
            "the workload has no duration",
        ),
        (
            "[[thread]]\nname = 'a'\nlate = 'skip'\ndo = []",
            ":3:8",
            "belongs to a thread with a `period`",
        ),
        ("[[thread]]\nname = 'a'\nperiod = '0ms'\ndo = []", ":3:10", "the period cannot be 0"),
        ("[[thread]]\nname = 'a'\ndo = [{ set = { now = 1 } }]", ":3:17", "is a built-in name"),
        ("[[thread]]\nname = 'a'\ndo = [{ job = [{ job = [] }] }]", ":3:16", "a job inside a job"),
        (
            "[[thread]]\nname = 'a'\ndo = []\n[[thread]]\nname = 'a'\ndo = []",
            ":5:8",
            "there is already a thread `a`",
        ),
        (
            "[[at]]\ntime = '1s'\nset = { x = 1 }\n[[thread]]\nname = 'a'\ndo = []",
            ":1:1",
            "declare the name in [globals]",
        ),
    ] {
        let message = refused(text);
        assert!(message.contains(words), "{text}\n{message}");
        assert!(
            place.is_empty() || message.contains(&format!("w.toml{place}\n")),
            "{text}\n{message}"
        );
    }
}

#[test]
fn garbage_is_refused_and_never_panics() {
    let whole = std::fs::read_to_string(lab().join("players.toml")).unwrap();
    let (mut refused, mut ran) = (0, 0);
    for cut in (0..whole.len()).step_by(7).filter(|&cut| whole.is_char_boundary(cut)) {
        for part in [&whole[..cut], &whole[cut..]] {
            match Workload::from_toml(part, "w.toml") {
                Err(error) => {
                    let place = error.place().map(|place| place.line as usize);
                    let without_threads = error.message.contains("has no threads");
                    assert!(
                        without_threads || place.is_some_and(|line| line <= part.lines().count()),
                        "{part}\n{error}"
                    );
                    refused += 1;
                }
                Ok(workload) => {
                    let options = Options { max_events: 500, ..Options::default() };
                    assert!(run(&workload, &options).events() > 0, "{part}");
                    ran += 1;
                }
            }
        }
    }
    assert!(refused > 100 && ran > 3, "{refused} refused, {ran} ran");
    let json = std::fs::read_to_string(lab().join("rt_app.json")).unwrap();
    let closing = json.rfind('}').unwrap();
    for cut in (0..closing).step_by(3).filter(|&cut| json.is_char_boundary(cut)) {
        assert!(Workload::from_rt_app(&json[..cut], "w.json").is_err());
    }
    assert!(Workload::from_rt_app(&"[".repeat(100_000), "w.json").is_err());
    assert!(Workload::from_rt_app("\u{1f600}", "w.json").is_err());
}

/// Workloads with words exchanged at random: each is refused or runs, and nothing panics or goes on
/// for ever.
#[test]
fn mutated_workloads_are_refused_or_run() {
    let page = |name: &str| std::fs::read_to_string(lab().join(name)).unwrap();
    let texts = [
        "players.toml",
        "webserver_closed.toml",
        "forks.toml",
        "transactions.toml",
        "weather.toml",
    ]
    .map(page);
    let words: Vec<&str> = texts
        .iter()
        .flat_map(|text| text.split_inclusive([' ', '\n', ',']))
        .chain([
            "1e300",
            "-1",
            "\"9999min\"",
            "\"0\"",
            "\"1000000s\"",
            "\"yield\", ",
            "{ kill = \"hog\" }, ",
            "{ suspend = \"hog\" }, ",
        ])
        .collect();
    let mut random = Random::new(11, 0);
    let mut ran = 0;
    for _ in 0..500 {
        let mut parts: Vec<&str> =
            texts[random.below(texts.len())].split_inclusive([' ', '\n', ',']).collect();
        for _ in 0..=random.below(3) {
            let at = random.below(parts.len());
            match random.below(3) {
                0 => parts[at] = words[random.below(words.len())],
                1 => parts.insert(at, words[random.below(words.len())]),
                _ => drop(parts.remove(at)),
            }
        }
        let Ok(workload) = Workload::from_toml(&parts.concat(), "w.toml") else { continue };
        let mut policy = Fifo {
            slice: Some(500_000),
            preempts: [None, Some(0), Some(200_000)][random.below(3)],
            ..Fifo::default()
        };
        let options = Options { max_events: 2_000, trace: true, ..Options::default() };
        if let Ok(outcome) = simulate(&mut policy, &workload, &options) {
            assert!(outcome.idle().all(|idle| idle >= 0));
            assert!(outcome.table().contains(outcome.groups()[0].name.as_str()));
            assert!(outcome.html().ends_with("</html>\n"));
            // It panics where a trace is wrong.
            attune_timeline_reader::Trace::read(&outcome.perfetto());
            ran += 1;
        }
    }
    assert!(ran > 60, "{ran}");
}

fn lab() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../lab/workloads"))
}

#[test]
fn every_workload_of_the_lab_runs() {
    let mut seen = 0;
    for entry in std::fs::read_dir(lab()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_string();
        if !name.ends_with(".toml") && !name.ends_with(".json") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let workload =
            Workload::from_file_text(&text, &name).unwrap_or_else(|error| panic!("{error}"));
        let options = Options { duration: Some(500_000_000), ..Options::default() };
        let outcome = run(&workload, &options);
        assert_eq!(outcome.ending(), Ending::Duration, "{name}");
        // Every group makes progress; clients that only send requests have nothing to show.
        for group in outcome.groups().iter().filter(|group| group.name != "arrivals") {
            assert!(group.cpu > 0 || group.jobs > 0, "{name}: {} did nothing", group.name);
        }
        seen += 1;
    }
    assert!(seen >= 10);
}

/// The examples of docs/workloads.md: each is read and run.
#[test]
fn the_examples_of_the_documentation_run() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/workloads.md");
    let page = std::fs::read_to_string(page).unwrap();
    let mut examples = 0;
    for (number, part) in page.split("```").enumerate().filter(|(number, _)| number % 2 == 1) {
        let name = format!("example {}", number / 2 + 1);
        let (language, text) = part.split_once('\n').unwrap();
        let workload = match language {
            "toml" => Workload::from_toml(text, &name),
            "json" if text.contains("\"tasks\"") => Workload::from_rt_app(text, &name),
            _ => continue,
        };
        let workload = workload.unwrap_or_else(|error| panic!("{error}"));
        let outcome = run(&workload, &Options { cpus: Some(2), ..Options::default() });
        assert_ne!(outcome.ending(), Ending::EventLimit, "{name}");
        assert!(outcome.total().cpu > 0, "{name}");
        examples += 1;
    }
    assert!(examples >= 8, "{examples}");
}

fn rt_app(tasks: &str) -> Workload {
    let text = format!("{{ \"tasks\": {{ {tasks} }}, \"global\": {{ \"duration\": 1 }} }}");
    Workload::from_rt_app(&text, "w.json").unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn rt_app_timers_keep_their_period() {
    let workload = rt_app(r#""a": { "run": 5000, "timer": { "ref": "unique", "period": 20000 } }"#);
    let outcome = run(&workload, &Options::default());
    // Released at 0 (no timer yet), 20, 40 ... 980 ms.
    assert_eq!(outcome.groups()[0].cpu, 50 * 5_000_000);
    assert_eq!((outcome.groups()[0].jobs, outcome.groups()[0].missed), (49, 0));
    assert_eq!(outcome.groups()[0].response.max(), 5_000_000);
}

/// A miss moves a relative timer, and not an absolute one.
#[test]
fn rt_app_timers_are_relative_or_absolute() {
    let ends = |mode: &str| {
        let workload = rt_app(&format!(
            r#""a": {{ "loop": 1, "phases": {{
                "long": {{
                    "run": 30000, "timer": {{ "ref": "unique", "period": 20000, "mode": "{mode}" }}
                }},
                "short": {{
                    "run": 1000, "timer": {{ "ref": "unique", "period": 20000, "mode": "{mode}" }}
                }}
            }} }}"#
        ));
        run(&workload, &Options::default()).elapsed()
    };
    assert_eq!(ends("relative"), 50_000_000);
    assert_eq!(ends("absolute"), 40_000_000);
}

#[test]
fn rt_app_threads_meet() {
    let workload = rt_app(
        r#""a": { "loop": 1, "suspend", "run": 1000, "barrier": "x", "yield", },
           "b": { "loop": 1, "sleep": 2000, "resume": "a", "run0": 1000, "run1": 1000,
                  "barrier": "x" },
           "c": { "loop": 1, "lock": "m", "wait": { "ref": "k", "mutex": "m" }, "unlock": "m",
                  "barrier": "x" },
           "d": { "loop": 1, "delay": 9000, "sync": { "ref": "k", "mutex": "m" }, "fork": "e" },
           "f": { "loop": 1, "delay": 10000, "broad": "k" },
           "e": { "instance": 0, "loop": 2, "runtime": 500 }"#,
    );
    let outcome = run(&workload, &Options::default());
    assert_eq!(outcome.ending(), Ending::AllEnded, "{:?}", outcome.warnings());
    assert_eq!(outcome.total().cpu, 4_000_000);
    assert_eq!(outcome.elapsed(), 11_000_000);
}

#[test]
fn rt_app_priorities_become_imports() {
    let workload = rt_app(
        r#""a": { "loop": 1, "policy": "SCHED_FIFO", "priority": 10, "run": 10 },
           "b": { "loop": 1, "priority": 5, "run": 10 },
           "c": { "loop": 1, "policy": "SCHED_DEADLINE", "dl-runtime": 5000, "dl-period": 20000,
                  "run": 10 }"#,
    );
    let names = vec!["policy", "priority", "prio", "nice", "weight", "dl_runtime", "dl_period"];
    let mut policy = Fifo { thread_imports: names, ..Fifo::default() };
    simulate(&mut policy, &workload, &Options::default()).unwrap();
    assert_eq!(
        policy.written,
        [
            "policy 0=Int(1)",
            "priority 0=Int(10)",
            "prio 0=Int(10)",
            "policy 1=Int(0)",
            "priority 1=Int(5)",
            "nice 1=Int(5)",
            "weight 1=Int(336)",
            "policy 2=Int(6)",
            "dl_runtime 2=Int(5000000)",
            "dl_period 2=Int(20000000)",
        ]
    );
}

#[test]
fn rt_app_says_what_it_leaves_out_and_refuses_what_makes_no_sense() {
    let workload =
        rt_app(r#""a": { "loop": 1, "run": 10, "mem": 1000, "util_min": 5, "zebra": 1 }"#);
    let notes: Vec<String> = workload.notes.iter().map(ToString::to_string).collect();
    assert_eq!(notes.len(), 3, "{notes:?}");
    assert!(
        notes
            .iter()
            .any(|note| note.starts_with("`mem` takes no time here") && note.contains("w.json:1:"))
    );
    for (text, words) in [
        ("{}", "there is no \"tasks\""),
        ("{ \"tasks\": { \"a\": { \"run\": -5 } } }", "cannot be negative"),
        ("{ \"tasks\": { \"a\": { \"run\": \"x\" } } }", "should be a number"),
        ("{ \"tasks\": { \"a\": { \"fork\": \"b\" } } }", "there is no thread `b`"),
        (
            "{ \"tasks\": { \"a\": { \"timer\": { \"ref\": \"t\" } } } }",
            "needs \"ref\" and \"period\"",
        ),
        ("{ \"tasks\": { \"a\": { \"policy\": \"SCHED_X\" } } }", "no scheduling policy"),
        ("{ \"tasks\" }}", "this is not JSON"),
    ] {
        let error = Workload::from_rt_app(text, "w.json").map(|_| ()).unwrap_err().to_string();
        assert!(error.contains(words), "{text}: {error}");
    }
}
