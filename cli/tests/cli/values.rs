//! Values from programs, and about programs, to a scheduler in the kernel of a virtual machine, and
//! back.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{self, set_up};
use crate::support::ATTUNE;

/// Its `schedule` answers: `seen` is `urgent` and a hundred.
const SCHEDULER: &str = "
scheduler urgent extends lifecycle {
    threadimports {
        int urgent default 0;
        int seen default 0;
        int reserved default 0 within 0 to 9 by loader;
    }
    event schedule {
        foreach t in ready
            t.seen = t.urgent + 100 + t.reserved;
        if (|ready| > 0) {
            ready => current;
            dispatch current for 5ms;
        }
    }
}";

/// What happens in the machine. The program is told what to do line by line; its values are one
/// store each. `seen` is the policy's answer, which reaches the program when the policy hears of it
/// again, so the program asks after a sleep.
const GUEST: &str = r#"
(
    echo set urgent 7; echo get seen; sleep 0.5
    echo get urgent; sleep 0.5
    echo get seen; echo get nonsense; sleep 2
) | "$VALUES" &
program=$!
sleep 1000 & other=$!
sleep 1
"$ATTUNE" hint $other urgent=3ms; echo "owner $?"
"$ATTUNE" hint $other nothing=3; echo "unknown $?"
"$ATTUNE" hint 99999 urgent=3; echo "nobody $?"
setpriv --reuid 65534 --clear-groups "$ATTUNE" hint $other urgent=9; echo "stranger $?"
"$ATTUNE" hint $other reserved=3; echo "loader $?"
setpriv --reuid 65534 --clear-groups sh -c '
    sleep 1000 & mine=$!
    "$ATTUNE" hint $mine urgent=3; echo "own $?"
    "$ATTUNE" hint $mine reserved=3; echo "reserved $?"
    kill $mine'
# A stranger prepares what root's program will be, and one of its own.
cp /bin/sleep /tmp/roots; chmod 4755 /tmp/roots; cp /bin/sleep /tmp/plain
for name in roots plain; do
    setpriv --reuid 65534 --clear-groups sh -c '
        "$ATTUNE" hint $$ urgent=6789; exec "$0" 1000' /tmp/$name &
    hinted="$hinted $!"
done
sleep 1
"$ATTUNE" top --once | sed -n 's/.*\(roots\|plain\).*[^0-9]\(6789\)[^0-9].*/\1 is hinted/p'
kill $hinted
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
    let mut machine = Command::new(ATTUNE);
    machine
        .args(["vm", "--timeout", "900", "--", ATTUNE, "run", "--all", "--timeout", "30000"])
        .arg(&scheduler)
        .args(["--", "sh", "-c", GUEST])
        .env("ATTUNE", ATTUNE)
        .env("VALUES", program(&folder))
        .env_remove("ATTUNE_VALUES");
    let output = common::output(&mut machine);
    let (said, complained) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{said}\n{complained}");
    let lines: Vec<&str> = said.lines().filter(|line| !line.starts_with("process ")).collect();
    let granted = ["7", "107", "owner 0", "loader 0", "own 0", "plain is hinted", "enabled"];
    let refused = ["errno 2", "unknown 1", "nobody 1", "stranger 1", "reserved 1"];
    for line in granted.iter().chain(&refused) {
        assert!(lines.contains(line), "no line `{line}` in:\n{said}\n{complained}");
    }
    assert!(!lines.contains(&"roots is hinted"), "{said}");
    let why = "only programs of root and of the user who runs urgent may supply reserved";
    assert!(complained.contains(why), "{complained}");
    assert!(
        complained.contains("there is no thread import named nonsense in urgent"),
        "{complained}"
    );
    assert!(complained.contains("belongs to another user"), "{complained}");
}

/// A victim of root's asks for its values over and over, while an attacker of another user does
/// whatever it can. Both supply values to the same policy. `seen` must be the policy's answer to
/// what the victim said, to the end.
const ATTACKED: &str = r#"
(
    echo set urgent 7; sleep 1
    for i in $(seq 60); do echo get urgent; echo get seen; sleep 0.25; done
) | "$VALUES" > /tmp/victim &
program=$!
sleep 1000 & other=$!
sleep 1
"$ATTUNE" hint $other urgent=3ms; echo "owner $?"
victim=$(sed -n 's/^process //p' /tmp/victim)
setpriv --reuid 65534 --regid 65534 --clear-groups "$ATTACKER" /run/attune/values $victim
echo "attacker $?"
echo "get seen" | "$VALUES" | sed 's/^/late: /'
"$ATTUNE" hint $other urgent=4ms; echo "owner still $?"
wait $program
sed 's/^/victim: /' /tmp/victim
kill $other
cat /sys/kernel/sched_ext/state
"#;

#[test]
fn an_attacker_hurts_nobody_but_itself() {
    if !set_up() {
        return;
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("values-attacked");
    std::fs::create_dir_all(&folder).expect("a folder");
    let (scheduler, attacker) = (folder.join("urgent.sched"), folder.join("attacker"));
    std::fs::write(&scheduler, SCHEDULER).expect("a file");
    let built = Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()))
        .args(["-std=gnu11", "-Wall", "-Werror", "-O1", "-o"])
        .arg(&attacker)
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/attacker.c"))
        .arg("-lpthread")
        .output()
        .expect("the C compiler");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let mut machine = Command::new(ATTUNE);
    machine
        .args([
            "vm",
            "--timeout",
            "900",
            "--cpus",
            "2",
            "--",
            ATTUNE,
            "run",
            "--all",
            "--timeout",
            "30000",
        ])
        .arg(&scheduler)
        .args(["--", "sh", "-c", ATTACKED])
        .env("ATTUNE", ATTUNE)
        .env("VALUES", program(&folder))
        .env("ATTACKER", &attacker)
        .env_remove("ATTUNE_VALUES");
    let output = common::output(&mut machine);
    let (said, complained) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{said}\n{complained}");
    assert!(!said.contains("BROKE IN"), "{said}");
    assert!(said.contains("attacker: done\nattacker 0\n"), "{said}\n{complained}");
    let lines: Vec<&str> = said.lines().collect();
    for line in ["owner 0", "owner still 0", "enabled"] {
        assert!(lines.contains(&line), "no line `{line}` in:\n{said}\n{complained}");
    }
    let victim: Vec<&str> = lines.iter().filter_map(|line| line.strip_prefix("victim: ")).collect();
    // Until the policy has answered for the first time.
    let answered = victim.iter().position(|line| *line == "107").expect("an answer");
    let (right, wrong): (Vec<&str>, Vec<&str>) =
        victim[answered..].iter().partition(|line| ["7", "107"].contains(line));
    assert!(wrong.is_empty() && right.len() > 100, "the victim saw {wrong:?} in:\n{said}");
    assert!(
        lines.iter().any(|line| line.starts_with("late: ") && !line.contains("process")),
        "{said}"
    );
}
