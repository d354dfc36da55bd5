//! Weights and quotas of cgroups count on a real kernel, also when threads, weights or quotas
//! change, and nothing that happens to a cgroup ends the run. The machine is deterministic, so no
//! other load disturbs it.

use std::fs;
use std::sync::OnceLock;

use crate::common::machine::{about, build_divided, folder, had, in_quiet_machine};
use crate::common::set_up;

/// `hog CGROUP..` starts a process that computes in each, and `end` ends them all. `measure MARK
/// SECONDS CGROUP..` says the time and how many microseconds each has used, twice.
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
say() {
    read now idle < /proc/uptime; echo clock $now
    for path; do used < $tree/$path/cpu.stat; done
}
measure() {
    mark=$1; span=$2; shift 2
    sleep 0.4; echo "<$mark>"; say $*; sleep $span; say $*; echo "<end>"
}
end() { kill $hogs; wait $hogs 2>/dev/null; hogs=; }
echo +cpu > $tree/cgroup.subtree_control
"#;

const PACKED: [&str; 3] = ["groups.sh", "/usr/bin/mkdir", "/usr/bin/rmdir"];

const FLAT: &str = r#"
make a a/x a/y b
echo 1000 > $tree/b/cpu.weight
hog a/x a/x a/x b b b
measure flat 1 a b
"#;

const CHANGES: &str = r#"
echo 3000 > $tree/a/cpu.weight; echo 200 > $tree/a/y/cpu.weight; hog a/y a/y a/y
measure nested 1 a/x a/y b
for hog in $hogs; do echo $hog > $tree/a/x/cgroup.procs; done
measure moved 0.3 a/x a/y b
end; rmdir $tree/a/x $tree/a/y $tree/a $tree/b
make b; hog b b b
measure again 0.3 b
end; rmdir $tree/b
"#;

/// The slices and scopes that systemd makes.
const SLICES: &str = r#"
make init.scope system.slice system.slice/web.service user.slice
echo +cpu > $tree/system.slice/cgroup.subtree_control
mkdir -p $tree/user.slice/user-1000.slice/session-1.scope
echo +cpu > $tree/user.slice/user-1000.slice/cgroup.subtree_control
echo 300 > $tree/user.slice/cpu.weight
hog system.slice/web.service system.slice/web.service
hog user.slice/user-1000.slice/session-1.scope user.slice/user-1000.slice/session-1.scope
measure slices 1 system.slice user.slice
end
"#;

/// What is said under `fair` while weights and members change, and then in slices.
fn under_fair() -> &'static str {
    static SAID: OnceLock<String> = OnceLock::new();
    SAID.get_or_init(|| under("cgroups_fair", "fair", "", &[FLAT, CHANGES, SLICES].concat()))
}

/// What a script says under a scheduler in a machine with two CPUs.
fn under(test: &str, scheduler: &str, words: &str, script: &str) -> String {
    let folder = folder(test);
    let instances = if words == "--per cpu" { 2 } else { 1 };
    build_divided(&folder, scheduler, 2, instances, "scheduler.bpf.o");
    fs::write(folder.join("groups.sh"), format!("{TOOLS}{script}")).unwrap();
    let packed = [&PACKED[..], &["scheduler.bpf.o"]].concat();
    let run = format!("$attune run scheduler.bpf.o --all {words} -- sh ./groups.sh; echo exit $?");
    let said = in_quiet_machine(&folder, 2, &packed, &run);
    assert!(said.ends_with("exit 0\n") && !said.contains("has ended"), "{said}");
    said
}

#[test]
fn cgroups_share_by_weight_whatever_changes() {
    if !set_up() {
        return;
    }
    let is_tenfold =
        |said: &str| about(had(said, "flat", "b") / had(said, "flat", "a"), 10.0, said);
    is_tenfold(&under("cgroups_coop", "coop", "", &format!("{FLAT} end")));
    let said = under_fair();
    is_tenfold(said);
    let [x, y, b] = ["a/x", "a/y", "b"].map(|cgroup| had(said, "nested", cgroup));
    about(y / x, 2.0, said);
    about((x + y) / b, 3.0, said);
    let [x, y, b] = ["a/x", "a/y", "b"].map(|cgroup| had(said, "moved", cgroup));
    assert!(x > 1.8 && y < 0.01 && b < 0.01, "{said}");
    assert!(had(said, "again", "b") > 1.8, "{said}");
}

#[test]
fn slices_have_their_parts() {
    if !set_up() {
        return;
    }
    let said = under_fair();
    let [system, user] = ["system.slice", "user.slice"].map(|slice| had(said, "slices", slice));
    about(user / system, 3.0, said);
}

/// `limit CGROUP PERCENT [PERIOD]`: of one CPU, with a period in us. A second has many of the short
/// ones, so it matters little that what is measured begins and ends inside of one. They are as long
/// as slices: what waited for the end of one would not use its quota.
const LIMIT: &str = r#"
limit() { period=${3:-10000}; echo $(($2 * period / 100)) $period > $tree/$1/cpu.max; }
"#;

#[test]
fn quotas_are_kept_whatever_changes() {
    if !set_up() {
        return;
    }
    let script = r#"
        make a a/x a/y b
        limit a 50; limit a/x 20
        hog a/x a/x a/x a/y a/y b b
        measure nested 2 a a/x b
        limit a/x 40; echo max > $tree/a/cpu.max; limit b 30; limit a/y 60
        measure changed 2 a/x a/y b
        echo 1 > $tree/a/y/cgroup.freeze
        measure frozen 0.2 a/y
        echo 0 > $tree/a/y/cgroup.freeze
        for hog in $hogs; do echo $hog > $tree/a/y/cgroup.procs; done
        measure moved 1 a/y
        echo max > $tree/a/y/cpu.max
        measure free 0.5 a/y
        end; rmdir $tree/a/x $tree/a/y $tree/a $tree/b
    "#;
    let said = under("quotas", "fair", "--per cpu", &format!("{LIMIT}{script}"));
    let of = |mark, cgroup| had(&said, mark, cgroup);
    about(of("nested", "a"), 0.5, &said);
    about(of("nested", "b"), 1.5, &said);
    // What is left of `a` may be too little for it.
    assert!(of("nested", "a/x") < 0.21, "{said}");
    about(of("changed", "a/x"), 0.4, &said);
    about(of("changed", "a/y"), 0.6, &said);
    about(of("changed", "b"), 0.3, &said);
    assert!(of("frozen", "a/y") < 0.01, "{said}");
    about(of("moved", "a/y"), 0.6, &said);
    about(of("free", "a/y"), 2.0, &said);
}

/// A hundredth of a second in each one is little for two hundred processes: some wait for longer
/// than the kernel lets a thread wait, and the cgroup pays later for the time that they get
/// nevertheless.
#[test]
fn a_small_quota_does_not_end_the_run() {
    if !set_up() {
        return;
    }
    let script = r#"
        make a; limit a 1 1000000
        i=0; while [ $i -lt 200 ]; do hog a; i=$((i + 1)); done
        measure small 6 a
        end
    "#;
    let said = under("quotas_small", "fair", "--timeout 2000", &format!("{LIMIT}{script}"));
    let had = had(&said, "small", "a");
    // Most of it is what the cgroup pays for later. The processes began together, so their turns
    // come in bursts, and the time that is measured has one more or less.
    assert!(0.02 < had && had < 0.12, "{had}: {said}");
}
