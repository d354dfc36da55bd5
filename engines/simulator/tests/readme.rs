//! The figures that README.md promises for its policy and for `coop`: simulated, so they are the
//! same on every machine.

use std::path::Path;
use std::sync::Arc;

use attune_simulator::interpreter::{self, Interpreter};
use attune_simulator::{Options, Outcome, Workload, simulate};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

fn readme() -> String {
    std::fs::read_to_string(Path::new(ROOT).join("README.md")).unwrap()
}

/// Runs a policy, a file or a name of the library, on a workload of the lab.
fn run(policy: &Path, workload: &str) -> Outcome {
    let mut opened = attune_schedulers::open(policy, &[]).unwrap();
    let checked = attune_language::check(&opened.source, &mut opened.loader, &Default::default());
    let program = Arc::new(checked.program.unwrap());
    let options = interpreter::Options::default();
    let mut policy = Interpreter::new(program, &checked.sources, options).unwrap();
    let file = Path::new(ROOT).join("lab/workloads").join(workload);
    let text = std::fs::read_to_string(file).unwrap();
    let workload = Workload::from_toml(&text, workload).unwrap();
    simulate(&mut policy, &workload, &Options::default()).unwrap()
}

#[test]
fn the_policy_of_the_readme_misses_no_deadline() {
    let page = readme();
    let text = page.split("```sched\n").nth(1).unwrap().split("```").next().unwrap();
    let folder = std::env::temp_dir().join(format!("attune-readme-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("mine.sched");
    std::fs::write(&file, text).unwrap();
    let mine = run(&file, "periodic.toml");
    std::fs::remove_dir_all(&folder).unwrap();
    let round_robin = run(Path::new("round_robin"), "periodic.toml").total().missed;
    assert_eq!(mine.total().missed, 0);
    assert!(page.contains(&format!("under `round_robin` {round_robin} jobs do")), "{round_robin}");
}

#[test]
fn cooperating_timers_are_as_late_as_the_readme_says() {
    let page = readme();
    for policy in ["fair", "coop"] {
        let outcome = run(Path::new(policy), "coop_players.toml");
        let p99 = outcome.total().tardiness.quantile(0.99) as f64 / 1e6;
        let shown = if p99 < 1.0 { format!("{p99:.2} ms") } else { format!("{p99:.1} ms") };
        let command = format!("attune sim {policy} --workload lab/workloads/coop_players.toml");
        let line = page.lines().find(|line| line.contains(&command)).expect(&command);
        assert!(line.ends_with(&format!("within {shown}")), "{policy}: {shown}: {line}");
    }
}
