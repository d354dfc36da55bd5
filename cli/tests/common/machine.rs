//! Runs scripts in the virtual machine, in a folder that holds a mixed load.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Mutex;

use super::output;

pub const ATTUNE: &str = env!("CARGO_BIN_EXE_attune");

/// For tests in which any policy will do. The kernel's verifier needs most of an emulated machine's
/// time, and least for this one.
pub const SHORT: &str = "round_robin";

/// A folder for a test alone, with the load in it.
pub fn folder(test: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("machine_{test}"));
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).unwrap();
    compile(&path, "tests/common/mixed.c");
    path
}

/// A program that computes until it is killed, as `hog` in the folder.
pub fn hog(folder: &Path) {
    compile(folder, "tests/common/hog.c");
}

/// Compiles a C file of this package into a program of its name in the folder.
pub fn compile(folder: &Path, source: &str) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(source);
    let program = folder.join(source.file_stem().expect("a file's name"));
    run(Command::new("cc").args(["-O1", "-Wall", "-pthread", "-o"]).arg(program).arg(source));
}

pub fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    output
}

/// Builds a scheduler for the kernel.
pub fn build(folder: &Path, scheduler: &str, object: &str) {
    run(Command::new(ATTUNE)
        .current_dir(folder)
        .args(["build", scheduler, "--engine", "kernel", "-o", object]));
}

/// The same for a machine with so many CPUs, which so many instances share.
pub fn build_divided(folder: &Path, scheduler: &str, cpus: u32, instances: u32, object: &str) {
    run(Command::new(ATTUNE)
        .current_dir(folder)
        .args(["build", scheduler, "--engine", "kernel", "-o", object])
        .args(["--cpus", &cpus.to_string(), "--instances", &instances.to_string()]));
}

/// Builds a scheduler for the run's command and another one for everything else.
pub fn build_both(folder: &Path, command: &str, others: &str, object: &str) {
    run(Command::new(ATTUNE)
        .current_dir(folder)
        .args(["build", command, "--others", others, "--engine", "kernel", "-o", object]));
}

/// One machine at a time: each has up to four CPUs.
static MACHINE: Mutex<()> = Mutex::new(());

/// What a script says in the machine, standard error included.
pub fn in_machine(folder: &Path, cpus: u32, script: &str) -> String {
    in_machine_with(folder, &["--cpus", &cpus.to_string()], script)
}

/// The same, with these words of `attune vm`. `$run` is `attune run` with the longest watchdog, for
/// a busy host lets the machine stand still for seconds, and the machine's clock goes on.
pub fn in_machine_with(folder: &Path, machine_words: &[&str], script: &str) -> String {
    let _alone = MACHINE.lock().unwrap_or_else(|failed| failed.into_inner());
    let script =
        format!("exec 2>&1; attune={ATTUNE}; run=\"$attune run --timeout 30000\"; {script}");
    let mut machine = Command::new(ATTUNE);
    machine.current_dir(folder);
    machine.args(["vm", "--timeout", "900", "--memory", "1024"]);
    machine.args(machine_words).args(["--", "sh", "-c", &script]);
    let output = output(&mut machine);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    said
}

/// Copies a program without what only a debugger reads. The emulated CPU copies each packed byte.
pub fn strip(program: &Path, copy: &Path) {
    run(Command::new("strip").arg("-o").arg(copy).arg(program));
}

/// What a script says in a machine whose virtual time no other load can disturb. `packed`: files
/// of the folder that it needs, where `attune` lies too.
pub fn in_quiet_machine(folder: &Path, cpus: u32, packed: &[&str], script: &str) -> String {
    let _alone = MACHINE.lock().unwrap_or_else(|failed| failed.into_inner());
    let mut command = Command::new(ATTUNE);
    command.current_dir(folder);
    command.args(["vm", "--deterministic", "--timeout", "900", "--memory", "2048"]);
    command.args(["--cpus", &cpus.to_string()]);
    strip(Path::new(ATTUNE), &folder.join("attune"));
    for file in packed.iter().chain(&["attune"]) {
        command.args(["--pack", file]);
    }
    for program in ["touch", "sleep", "rm", "cat"] {
        command.args(["--pack", &format!("/usr/bin/{program}")]);
    }
    let script = format!("exec 2>&1; attune={}/attune; {script}", folder.display());
    let output = command.args(["--", "sh", "-c", &script]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    said
}

/// What was said between a mark and its end.
pub fn between<'a>(said: &'a str, mark: &str) -> &'a str {
    let (_, rest) = said.split_once(&format!("<{mark}>\n")).unwrap_or_else(|| panic!("{said}"));
    let (part, _) = rest.split_once("<end>\n").unwrap_or_else(|| panic!("{mark}:\n{said}"));
    part
}

/// How many CPUs a cgroup had between the two times at a mark: lines with the cgroup's name and its
/// CPU time in us, and with `clock` and seconds.
pub fn had(said: &str, mark: &str, cgroup: &str) -> f64 {
    let grew = |what: &str| {
        let said_of = |line: &str| line.strip_prefix(what)?.strip_prefix(' ')?.parse().ok();
        let values: Vec<f64> = between(said, mark).lines().filter_map(said_of).collect();
        let [before, after] = values[..] else { panic!("{mark}: {what}: {said}") };
        after - before
    };
    grew(cgroup) / 1e6 / grew("clock")
}

/// The clock says hundredths of a second, and slices are a few of them.
pub fn about(what: f64, expected: f64, said: &str) {
    assert!((what / expected - 1.0).abs() < 0.05, "{what} and not {expected}:\n{said}");
}

/// A scheduler whose check fails when it has scheduled for a little while: the index grows until it
/// is outside.
pub const TRAPS: &str = "scheduler traps extends lifecycle {
    data { int turns = 0; int slots[4]; }
    event schedule {
        turns++;
        slots[turns / 50] = turns;
        if (|ready| > 0) {
            ready => current;
            dispatch current for 5ms;
        }
    }
}
";

/// A function for scripts, `until_says WORDS COMMAND ..`: waits for 90 s at most until the command
/// says the words. If it never does, tells what the command says, and where attune's programs wait.
pub const UNTIL_SAYS: &str = r#"
until_says() {
    wanted=$1; shift
    for i in $(seq 900); do "$@" 2>&1 | grep -q -- "$wanted" && return; sleep 0.1; done
    echo "never said: $wanted"; "$@"
    for process in $(grep -l '^attune' /proc/[0-9]*/comm); do
        echo "$process: $(cat $process)"; cat ${process%comm}task/*/stack
    done
    exit 9
}
"#;
