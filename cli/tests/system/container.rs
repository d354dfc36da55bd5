//! Containers under a policy: their parts and quotas count, and a program in a container supplies
//! values and hints although its numbers of processes and threads are the container's own.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::common::machine::{UNTIL_SAYS, between, build, folder, in_quiet_machine, run};
use crate::set_up;

const CRUN: &str = "/usr/bin/crun";

/// `seen` tells a program what the policy knows of its thread.
const POLICY: &str = "scheduler boxed extends fair {
    threadimports { int urgent default 0; int seen default 0; }
    after event_raised(t) {
        t.seen = t.urgent + 100;
    }
}
";

/// In the container: a program of two that compute, and clients of values.
const HOGS: &str = "for i in 1 2; do while :; do :; done & done; wait";
const CLIENT: &str = r#"
echo "<client>"
(
    echo set urgent 7; echo get seen; sleep 0.5
    echo get urgent; sleep 0.5
    echo get seen; sleep 0.5
) | ./values
sh -c ': hinted; while sleep 0.1; do :; done' & other=$!
$attune hint $other urgent=5; echo "hint $?"
$attune hint $other/$other urgent=6; echo "thread $?"
$attune hint 4711 urgent=5; echo "nobody $?"
echo "<end>"
wait
"#;

/// `measure NAME ..` starts containers and says the time and how many microseconds each has used,
/// twice. The machine's files lie where no `pivot_root` works.
const SESSION: &str = r#"
boxes=/sys/fs/cgroup/boxes
start() { crun --cgroup-manager=cgroupfs run --no-pivot -b $1 $1 & }
used() { sed -n 's/^usage_usec //p' $boxes/$1/cpu.stat; }
say() {
    echo "clock $(cut -d' ' -f1 /proc/uptime)"
    for name; do echo "$name $(used $name)"; done
}
weight() { echo "weight-of-$1 $(cat $boxes/$1/cpu.weight)"; }

start client
until_says "hinted" hinted
until_says '"urgent":6' $attune top --json
echo "thread $(hinted)"
echo "top $($attune top --json)"
crun kill client KILL

measure() {
    for name; do start $name; until_says . cat $boxes/$name/cpu.weight; done
    sleep 0.4
    echo "<$1>"; say $*; sleep 1; say $*; echo "<end>"
}
measure small large
weight small; weight large
measure limited
"#;

/// A container of the machine's own files. `cpu`: its part of the CPUs.
fn bundle(folder: &Path, name: &str, script: &str, cpu: &Value) {
    let namespaces = ["pid", "mount", "ipc", "uts", "cgroup"];
    let mount = |kind: &str, at: &str, source: &Path, options: &[&str]| {
        json!({
            "type": kind, "destination": at, "source": source, "options": options,
        })
    };
    let attune = folder.join("attune");
    let config = json!({
        "ociVersion": "1.0.0",
        "root": { "path": folder.join("root"), "readonly": true },
        "process": {
            "user": { "uid": 0, "gid": 0 },
            "cwd": folder,
            "args": ["/bin/sh", "-c", format!("exec 2>&1; attune={}\n{script}", attune.display())],
            "env": ["PATH=/usr/bin:/bin"],
        },
        "mounts": [
            mount("proc", "/proc", Path::new("proc"), &[]),
            mount("tmpfs", "/dev", Path::new("tmpfs"), &["mode=755"]),
            mount("bind", "/run", Path::new("/run"), &["rbind"]),
        ],
        "linux": {
            "cgroupsPath": format!("/boxes/{name}"),
            "namespaces": namespaces.map(|kind| json!({ "type": kind })),
            "resources": { "cpu": cpu },
        },
    });
    fs::create_dir(folder.join(name)).unwrap();
    fs::write(folder.join(name).join("config.json"), config.to_string()).unwrap();
}

/// The program of attune-client's own tests, linked with the library that lies beside this test.
fn values(folder: &Path) {
    let test = std::env::current_exe().unwrap();
    let library = test.parent().unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    run(Command::new("cc")
        .args(["-std=gnu11", "-Wall", "-Werror", "-I"])
        .arg(root.join("engines/threads/include"))
        .arg("-o")
        .args([&folder.join("values"), &root.join("values/client/tests/programs/values.c")])
        .arg("-L")
        .arg(library)
        .arg(format!("-Wl,-rpath,{}", library.display()))
        .args(["-lattune_client", "-lpthread"]));
}

#[test]
fn a_container_has_its_part_and_its_programs_are_heard() {
    if !set_up(&[CRUN]) {
        return;
    }
    let folder = folder("container");
    values(&folder);
    fs::write(folder.join("boxed.sched"), POLICY).unwrap();
    build(&folder, "boxed.sched", "boxed.bpf.o");
    fs::create_dir(folder.join("root")).unwrap();
    bundle(&folder, "client", CLIENT, &json!({}));
    bundle(&folder, "small", HOGS, &json!({ "shares": 1024 }));
    bundle(&folder, "large", HOGS, &json!({ "shares": 4096 }));
    bundle(&folder, "limited", HOGS, &json!({ "quota": 2000, "period": 10000 }));
    // The thread by its number outside.
    let hinted = r#"hinted() {
        for file in $(grep -l ': [h]inted' /proc/[0-9]*/cmdline); do
            grep -q /boxes/client ${file%cmdline}cgroup && grep -q '^sh' ${file%cmdline}comm &&
                echo ${file%/cmdline}
        done | sort | tail -1 | sed "s,/proc/,hinted ,"
    }"#;
    let session = format!("attune={}/attune\n{UNTIL_SAYS}{hinted}\n{SESSION}", folder.display());
    fs::write(folder.join("session"), session).unwrap();
    let script = "mount --bind / root; echo +cpu >/sys/fs/cgroup/cgroup.subtree_control; \
                  $attune run boxed.bpf.o --all -- sh ./session; echo exit $?";
    let programs = ["crun", "cut", "grep", "mount", "sed", "seq", "sort", "tail"];
    let programs = programs.map(|program| format!("/usr/bin/{program}"));
    let files = ["session", "boxed.bpf.o", "values", "root", "client", "small", "large", "limited"];
    let packed = programs.iter().map(String::as_str).chain(files).chain(["/bin/sh"]);
    let packed: Vec<&str> = packed.collect();
    let said = in_quiet_machine(&folder, 1, &packed, script);
    assert!(said.contains("exit 0\n") && !said.contains("has ended"), "{said}");

    let client = between(&said, "client");
    for words in ["107\n", "hint 0\n", "thread 0\n", "there is no process 4711", "nobody 1\n"] {
        assert!(client.contains(words), "{words}: {said}");
    }

    let numbers = |text: &str, name: &str| -> Vec<f64> {
        let number = |line: &str| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok();
        text.lines().filter_map(number).collect()
    };
    let grew = |mark: &str, name: &str| {
        let numbers = numbers(between(&said, mark), name);
        let [before, after] = numbers[..] else { panic!("{mark}: {name}: {said}") };
        after - before
    };
    let parts = grew("small", "large") / grew("small", "small");
    let weight = |name: &str| numbers(&said, &format!("weight-of-{name}"))[0];
    let weights = weight("large") / weight("small");
    assert!((parts / weights - 1.0).abs() < 0.05, "{parts} and not {weights}: {said}");
    let limited = grew("limited", "limited") / 1e6 / grew("limited", "clock");
    assert!((limited / 0.2 - 1.0).abs() < 0.05, "{limited}: {said}");
}
