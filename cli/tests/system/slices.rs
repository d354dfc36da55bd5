//! CPUWeight= and CPUQuota= of systemd's slices and services count under a policy, whatever
//! systemctl does to them. The machine is deterministic, so no other load disturbs it.

use std::fs;
use std::path::Path;

use crate::common::machine::{about, build, had};
use crate::systemd::session;

/// `hogs UNIT SLICE WORD..` starts a unit with three processes that compute. `measure MARK
/// CGROUP..` says how many microseconds each has used, and how many have passed.
const TOOLS: &str = r#"
lab=/sys/fs/cgroup/lab.slice
hogs() {
    unit=$1; slice=$2; shift 2
    systemd-run -q --unit=$unit --slice=$slice "$@" \
        /bin/sh -c 'for i in 1 2; do while :; do :; done & done; while :; do :; done'
}
used() { while read name time; do [ $name = usage_usec ] && echo $path $time; done; }
say() {
    read now idle </proc/uptime; echo clock $now
    for path; do used <$lab/$path/cpu.stat; done
}
measure() {
    mark=$1; shift
    sleep 0.3; echo "<$mark>"; say $*; sleep 0.7; say $*; echo "<end>"
}
# systemctl asks for this through a message bus, which is not here. An answer does not come.
manager() {
    method=org.freedesktop.systemd1.Manager.$1; shift
    dbus-send --peer=unix:path=/run/systemd/private --print-reply --reply-timeout=100 \
        --dest=org.freedesktop.systemd1 /org/freedesktop/systemd1 $method "$@" >/dev/null 2>&1
}
set_property() { systemctl set-property --runtime "$@"; }
"#;

const SESSION: &str = r#"
one=one.service; ten=ten.service; deep=lab-deep.slice; limited=limited.service
hogs one lab.slice -p CPUWeight=100
hogs ten lab.slice -p CPUWeight=1000
measure flat $one $ten

set_property ten CPUWeight=300
hogs inner lab-deep.slice -p CPUWeight=100
hogs outer lab-deep.slice -p CPUWeight=200
set_property lab-deep.slice CPUWeight=600
measure nested $one $ten $deep $deep/inner.service $deep/outer.service

manager FreezeUnit string:$ten
measure frozen $one $ten $deep
manager ThawUnit string:$ten
systemctl stop inner outer lab-deep.slice
[ -e $lab/$deep ] || echo "the slice is gone"
measure thawed $one $ten

set_property one CPUWeight=10
set_property ten CPUWeight=10
hogs limited lab.slice -p CPUQuota=20% -p CPUQuotaPeriodSec=10ms
measure limited $limited
set_property limited CPUQuota=60%
measure changed $limited

systemctl stop lab.slice
[ -e $lab ] || echo "all are gone"
"#;

/// The script and the policy that it needs, in this folder.
pub fn prepare(folder: &Path) -> Vec<String> {
    build(folder, "fair", "fair.bpf.o");
    fs::write(folder.join("slices"), format!("{TOOLS}{SESSION}")).unwrap();
    ["slices", "fair.bpf.o"].map(str::to_owned).to_vec()
}

#[test]
fn what_systemd_says_of_slices_and_services_counts() {
    let Some(said) = session() else { return };
    assert!(said.contains("\nexit 0\n") && !said.contains("systemd has ended"), "{said}");

    let [one, ten, limited] = ["one.service", "ten.service", "limited.service"];
    let [deep, inner] = ["lab-deep.slice", "lab-deep.slice/inner.service"];
    let outer = "lab-deep.slice/outer.service";
    let of = |mark, cgroup| had(said, mark, cgroup);
    about(of("flat", ten) / of("flat", one), 10.0, said);
    about(of("nested", ten) / of("nested", one), 3.0, said);
    about(of("nested", deep) / of("nested", one), 6.0, said);
    about(of("nested", outer) / of("nested", inner), 2.0, said);
    assert!(of("frozen", ten) < 0.01, "{said}");
    about(of("frozen", deep) / of("frozen", one), 6.0, said);
    assert!(said.contains("the slice is gone\n"), "{said}");
    about(of("thawed", ten) / of("thawed", one), 3.0, said);
    about(of("limited", limited), 0.2, said);
    about(of("changed", limited), 0.6, said);
    assert!(said.contains("all are gone\n"), "{said}");
}
