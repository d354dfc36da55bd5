//! A small experiment in the kernel: it measures the contestants that can run, says why the others
//! cannot, and draws and tells what it found.

mod starvation;
mod trust;

use std::path::{Path, PathBuf};

use attune_lab::experiment::{Experiment, Options};
use attune_lab::kernel::{
    Contestant, Description, FIVE_SEEDS, Figure, Part, Place, Results, Workload,
};
use attune_lab::report::Claim;

const SMALL: Description = Description {
    name: "small",
    about: "",
    title: "A small experiment",
    text: &["How it is read."],
    published: "nothing.",
    parts: &[
        Part {
            title: "One CPU",
            place: Place::ONE_CPU,
            contestants: both,
            workloads: &[Workload::new("pipe", "ping-pong --turns 500")],
            figures: &[
                Figure::new("instructions", "pipe", "/ns_per_switch", 1.0).with_ratio(),
                Figure::new("switches", "pipe", "/switches", 1.0),
            ],
        },
        Part {
            title: "Two CPUs",
            place: Place::TwoCpus,
            contestants: both,
            workloads: &[Workload::new("forks", "forks --count 20")],
            figures: &[Figure::new("processes", "forks", "/processes", 1.0)],
        },
    ],
    seeds: FIVE_SEEDS,
    drawn: "instructions",
    claims: |results: &Results| {
        let claim = |name| {
            Claim::new(
                format!("{name} is measured"),
                Some((results.median(name, "instructions").is_some(), String::new())),
            )
        };
        vec![claim("fair class"), claim("attune no such scheduler")]
    },
};

fn both() -> Vec<Contestant> {
    vec![Contestant::fair_class(), Contestant::ours("no such scheduler")]
}

/// The project's built programs: two folders above this test.
fn programs() -> PathBuf {
    let test = std::env::current_exe().expect("this test is a file");
    test.ancestors().nth(2).expect("cargo's folders").to_owned()
}

/// Whether there is a virtual machine; says why not.
fn set_up() -> bool {
    let error = attune_vm::Cache::open(&attune_vm::Cache::default_folder()).err();
    if let Some(error) = &error {
        assert!(std::env::var("CI").map_or(true, |ci| ci != "true"), "{error}");
        eprintln!("not tested: {error}");
    }
    error.is_none()
}

#[test]
fn who_can_run_is_measured_and_who_cannot_says_why() {
    if !set_up() {
        return;
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("kernel");
    let _ = std::fs::remove_dir_all(&folder);
    let options = Options { quick: true, fresh: false, programs: programs(), folder };
    let run = || {
        let said = std::sync::Mutex::new(vec![]);
        let progress = |text: &str| {
            eprintln!("{text}");
            said.lock().expect("nobody panicked").push(text.to_owned());
        };
        let report = SMALL.run(&options, &progress).expect("it runs");
        let mut said = said.into_inner().expect("nobody panicked");
        // Before anything is measured.
        let lacking: Vec<String> = said.drain(..2).collect();
        assert!(
            lacking
                .iter()
                .all(|text| text.starts_with("without attune no such scheduler (machine: ")),
            "{lacking:?}"
        );
        (report, said)
    };
    let (report, said) = run();
    let text = report.to_text();
    assert_eq!(
        report.claims.iter().map(|claim| claim.holds()).collect::<Vec<_>>(),
        [true, false],
        "{text}"
    );
    let mut fair_class = text.lines().filter(|line| line.starts_with("fair class"));
    // 500 turns are 1000 switches; a tenth more runs before it counts. A thread of the kernel may
    // come in between.
    let one_cpu = fair_class.next().expect("a row");
    let mut switches = one_cpu.split_whitespace().filter_map(|word| word.parse().ok());
    assert!(switches.any(|number: u32| (1000..1010).contains(&number)), "{text}");
    let two_cpus = fair_class.next().expect("a row");
    assert!(two_cpus.contains("20.00 [20.00 20.00]"), "{text}");
    assert!(
        text.contains("attune no such scheduler, pipe: cannot be compiled for the kernel"),
        "{text}"
    );
    assert!(report.pictures[0].svg.contains("fair class"));
    assert_eq!(report.commands.len(), 2);
    assert!(
        report.commands[0].starts_with("attune vm --memory 1024 --deterministic --seed 1 --pack /"),
        "{:?}",
        report.commands
    );
    // A second time it has all it needs, and says the same.
    assert!(said.iter().all(|text| !text.contains("measured before")), "{said:?}");
    let (again, said) = run();
    assert!(
        !said.is_empty() && said.iter().all(|text| text.ends_with("measured before")),
        "{said:?}"
    );
    assert_eq!(again.to_text(), text);
}
