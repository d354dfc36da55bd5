//! Weights and quotas of cgroups count on a real kernel, also when threads, weights or quotas
//! change, and nothing that happens to a cgroup ends the run. The machine is deterministic, so no
//! other load disturbs it.

use std::fs;

use super::common::set_up;
use super::shared::in_quiet_machine;
use super::starvation::between;
use super::{build, folder};

/// `hog CGROUP..` starts a process that computes in each, and `end` ends them all. `measure MARK
/// CGROUP..` says how many microseconds each has used, twice, a second apart.
const TOOLS: &str = r#"
tree=/sys/fs/cgroup
make() {
    for path; do
        mkdir $tree/$path
        case $path in */*) ;; *) echo +cpu > $tree/$path/cgroup.subtree_control;; esac
    done
}
hog() {
    for path; do
        sh -c "echo 0 > $tree/$path/cgroup.procs; while :; do :; done" & hogs="$hogs $!"
    done
}
used() { while read name time; do [ $name = usage_usec ] && echo $path $time; done; }
say() { for path; do used < $tree/$path/cpu.stat; done; }
measure() {
    mark=$1; shift; sleep 0.7; echo "<$mark>"; say $*; sleep ${span:-1}; say $*; echo "<end>"
}
end() { kill $hogs; wait $hogs 2>/dev/null; hogs=; }
echo +cpu > $tree/cgroup.subtree_control
"#;

const PACKED: [&str; 4] = ["groups.sh", "/usr/bin/mkdir", "/usr/bin/rmdir", "/usr/bin/unshare"];

/// What a script says under a scheduler in a machine with two CPUs.
fn under(test: &str, scheduler: &str, words: &str, script: &str) -> String {
    let folder = folder(test);
    build(&folder, scheduler, "scheduler.bpf.o");
    fs::write(folder.join("groups.sh"), format!("{TOOLS}{script}")).unwrap();
    let packed = [&PACKED[..], &["scheduler.bpf.o"]].concat();
    let run = format!("$attune run scheduler.bpf.o --all {words} -- sh ./groups.sh; echo exit $?");
    let said = in_quiet_machine(&folder, 2, &packed, &run);
    assert!(said.ends_with("exit 0\n") && !said.contains("has ended"), "{said}");
    said
}

/// The seconds of CPU time that a cgroup had between the two times that were said.
fn had(said: &str, mark: &str, cgroup: &str) -> f64 {
    let times: Vec<f64> = between(said, mark)
        .lines()
        .filter_map(|line| line.strip_prefix(cgroup)?.strip_prefix(' ')?.parse().ok())
        .collect();
    let [before, after] = times[..] else { panic!("{mark}: {cgroup}: {said}") };
    (after - before) / 1e6
}

fn about(what: f64, expected: f64, said: &str) {
    assert!((what / expected - 1.0).abs() < 0.04, "{what} and not {expected}:\n{said}");
}

#[test]
fn cgroups_share_by_weight_whatever_changes() {
    if !set_up() {
        return;
    }
    let script = r#"
        make a a/x a/y b
        echo 1000 > $tree/b/cpu.weight
        hog a/x a/x a/x b b b
        measure flat a b
        echo 3000 > $tree/a/cpu.weight; echo 200 > $tree/a/y/cpu.weight; hog a/y a/y a/y
        measure nested a/x a/y b
        for hog in $hogs; do echo $hog > $tree/a/x/cgroup.procs; done
        measure moved a/x a/y b
        end; rmdir $tree/a/x $tree/a/y $tree/a $tree/b
        make b; hog b b b
        measure again b
    "#;
    for scheduler in ["fair", "coop"] {
        let said = under(&format!("cgroups_{scheduler}"), scheduler, "", script);
        about(had(&said, "flat", "b") / had(&said, "flat", "a"), 10.0, &said);
        let [x, y, b] = ["a/x", "a/y", "b"].map(|cgroup| had(&said, "nested", cgroup));
        about(y / x, 2.0, &said);
        about((x + y) / b, 3.0, &said);
        let [x, y, b] = ["a/x", "a/y", "b"].map(|cgroup| had(&said, "moved", cgroup));
        assert!(x > 1.9 && y < 0.01 && b < 0.01, "{said}");
        assert!(had(&said, "again", "b") > 1.9, "{said}");
    }
}

#[test]
fn cgroups_use_what_their_quota_leaves_them() {
    if !set_up() {
        return;
    }
    let script = r#"
        make a a/x b
        hog a/x a/x b b b
        echo "20000 100000" > $tree/a/cpu.max
        measure quota a b
        echo "50000 100000" > $tree/a/x/cpu.max; echo max > $tree/a/cpu.max
        measure below a b
        echo 1 > $tree/a/cgroup.freeze
        measure frozen a b
        echo 0 > $tree/a/cgroup.freeze; echo max > $tree/a/x/cpu.max
        measure freed a b
        hog a/x a/x a/x a/x a/x a/x a/x a/x; echo "1000 100000" > $tree/a/cpu.max
        span=3; measure little a b
        end
    "#;
    // `pth` asks for no weights, and does not know that threads come and go.
    for scheduler in ["fair", "pth"] {
        let said = under(&format!("quota_{scheduler}"), scheduler, "--timeout 2500", script);
        about(had(&said, "quota", "a"), 0.2, &said);
        assert!(had(&said, "quota", "b") > 1.7, "{said}");
        about(had(&said, "below", "a"), 0.5, &said);
        assert!(had(&said, "frozen", "a") < 0.01, "{said}");
        assert!(had(&said, "freed", "a") > 0.6, "{said}");
        let little = had(&said, "little", "a");
        assert!((0.027..0.04).contains(&little), "{little}: {said}");
        assert!(said.contains("times a thread whose cgroup had no time left"), "{said}");
    }
}

/// The slices and scopes that systemd makes, and a container with a quota in namespaces of its own.
#[test]
fn slices_and_a_container_have_their_parts() {
    if !set_up() {
        return;
    }
    let script = r#"
        make init.scope system.slice system.slice/web.service user.slice machine.slice
        echo +cpu > $tree/system.slice/cgroup.subtree_control
        mkdir -p $tree/user.slice/user-1000.slice/session-1.scope $tree/machine.slice/c.scope
        echo +cpu > $tree/user.slice/user-1000.slice/cgroup.subtree_control
        echo 300 > $tree/user.slice/cpu.weight
        echo "20000 100000" > $tree/machine.slice/c.scope/cpu.max
        hog system.slice/web.service system.slice/web.service
        hog user.slice/user-1000.slice/session-1.scope user.slice/user-1000.slice/session-1.scope
        sh -c "echo 0 > $tree/machine.slice/c.scope/cgroup.procs
            exec unshare --pid --cgroup --fork --kill-child \
                sh -c 'while :; do :; done & while :; do :; done'" & hogs="$hogs $!"
        measure slices system.slice user.slice machine.slice
        end
    "#;
    let said = under("cgroups_slices", "fair", "", script);
    let [system, user, machine] =
        ["system.slice", "user.slice", "machine.slice"].map(|slice| had(&said, "slices", slice));
    about(machine, 0.2, &said);
    about(user / system, 3.0, &said);
}
