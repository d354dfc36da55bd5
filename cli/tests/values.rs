//! Values from programs, and about programs, to a scheduler in the kernel of a virtual machine, and back.

mod common;

use std::path::{Path, PathBuf};
use std::process::Command;

use common::set_up;

/// Its `schedule` answers: `seen` is `urgent` and a hundred.
const SCHEDULER: &str = "
scheduler urgent extends lifecycle {
    threadimports { int urgent default 0; int seen default 0; }
    event schedule {
        foreach t in ready
            t.seen = t.urgent + 100;
        if (|ready| > 0) {
            ready => current;
            dispatch current for 5ms;
        }
    }
}";

/// What happens in the machine. The program is told what to do line by line; its values are one store each. `seen` is the policy's
/// answer, which reaches the program when the policy hears of it again, so the program asks after a sleep.
const GUEST: &str = r#"
(echo set urgent 7; echo get seen; sleep 0.5; echo get urgent; sleep 0.5; echo get seen; echo get nonsense; sleep 2) | "$VALUES" &
program=$!
sleep 1000 & other=$!
sleep 1
"$ATTUNE" hint $other urgent=3ms; echo "owner $?"
"$ATTUNE" hint $other nothing=3; echo "unknown $?"
"$ATTUNE" hint 99999 urgent=3; echo "nobody $?"
setpriv --reuid 65534 --clear-groups "$ATTUNE" hint $other urgent=9; echo "stranger $?"
wait $program
kill $other
cat /sys/kernel/sched_ext/state
"#;

/// The program of attune-client's own tests, linked with the library that lies beside this test.
fn program(folder: &Path) -> PathBuf {
    let test = std::env::current_exe().expect("the test's own path");
    let library = test.parent().expect("tests lie in a folder");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let program = folder.join("values");
    let output = Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()))
        .args(["-std=gnu11", "-Wall", "-Werror", "-I"])
        .arg(root.join("engines/threads/include"))
        .arg("-o")
        .args([&program, &root.join("values/client/tests/programs/values.c")])
        .arg("-L")
        .arg(library)
        .arg(format!("-Wl,-rpath,{}", library.display()))
        .args(["-lattune_client", "-lpthread"])
        .output()
        .expect("the C compiler");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    program
}

#[test]
fn values_reach_a_scheduler_in_the_kernel_and_come_back() {
    if !set_up() {
        return;
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("values-in-the-kernel");
    std::fs::create_dir_all(&folder).expect("a folder");
    let scheduler = folder.join("urgent.sched");
    std::fs::write(&scheduler, SCHEDULER).expect("a file");
    let attune = env!("CARGO_BIN_EXE_attune");
    let output = Command::new(attune)
        .args(["vm", "--timeout", "240", "--", attune, "run", "--all"])
        .arg(&scheduler)
        .args(["--", "sh", "-c", GUEST])
        .env("ATTUNE", attune)
        .env("VALUES", program(&folder))
        .env_remove("ATTUNE_VALUES")
        .output()
        .expect("it starts");
    let (said, complained) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{said}\n{complained}");
    let lines: Vec<&str> = said.lines().filter(|line| !line.starts_with("process ")).collect();
    for line in ["7", "107", "errno 2", "owner 0", "unknown 1", "nobody 1", "stranger 1", "enabled"] {
        assert!(lines.contains(&line), "no line `{line}` in:\n{said}\n{complained}");
    }
    assert!(complained.contains("urgent has no thread import named nonsense"), "{complained}");
    assert!(complained.contains("belongs to another user"), "{complained}");
}
