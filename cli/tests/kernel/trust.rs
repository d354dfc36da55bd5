//! What a hostile user takes from others in a real kernel: nothing. CPU time counted over seconds
//! of a machine that no other load disturbs; one CPU, so that each has its share of the whole.

use std::path::Path;
use std::process::Command;

use super::common::machine::{between, build, folder, in_quiet_machine, run};
use super::common::set_up;

/// A scene lasts so long.
const SECONDS: u32 = 2;

const SESSION: &str = r#"
cp -p hogs $attune /tmp/
stranger="setpriv --reuid 65534 --clear-groups"
# What it supplies itself, as its own user.
says() { as=$1; process=$2; shift 2; $as /tmp/attune hint $process "$@"; }
start() { rm -f /tmp/go; echo "<$1>"; }
go() { sleep 0.2; touch /tmp/go; wait; echo '<end>'; }
victims() {
    for name in a b; do
        /tmp/hogs member $name /tmp/go $seconds 0 & says '' $! group=7 polls=1 importance=0
    done
}

start theft
victims
$stranger /tmp/hogs member thief /tmp/go $seconds 0 &
says "$stranger" $! group=7 polls=1 importance=-1000000
go

start sleepers
victims
$stranger /tmp/hogs member crowd /tmp/go $seconds 60 &
says "$stranger" $! group=9 polls=1 importance=9223372036854775807 \
    next_release=8000000000000000000
go
"#;

/// The CPU time in milliseconds that each label had in the scene.
fn had(said: &str, scene: &str, labels: &[&str]) -> Vec<f64> {
    let part = between(said, scene);
    let of = |label: &&str| {
        let line = part.lines().find_map(|line| line.strip_prefix(&format!("{label}: ")));
        let number = line.and_then(|line| line.strip_suffix(" ms")?.parse().ok());
        number.unwrap_or_else(|| panic!("no {label} in {said}"))
    };
    labels.iter().map(of).collect()
}

/// No victim has less than 98 % of its share beside as many plain hogs.
#[track_caller]
fn keeps(said: &str, scene: &str, victims: &[&str], share: f64) {
    for (victim, had) in victims.iter().zip(had(said, scene, victims)) {
        let least = f64::from(SECONDS) * 1000.0 * share * 0.98;
        assert!(had >= least, "{scene}: {victim} had {had} ms, not {least}:\n{said}");
    }
}

#[test]
fn no_stranger_joins_a_group_and_no_sleeper_adds_weight() {
    if !set_up() {
        return;
    }
    let folder = folder("trust");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kernel/hogs.c");
    run(Command::new("cc")
        .args(["-O1", "-Wall", "-pthread", "-o"])
        .arg(folder.join("hogs"))
        .arg(source));
    build(&folder, "coop", "coop.bpf.o");
    std::fs::write(folder.join("session.sh"), SESSION).unwrap();
    let script = format!(
        "export attune; seconds={SECONDS} $attune run coop.bpf.o --all --timeout 30000 -- sh \
            ./session.sh; echo exit $?"
    );
    let packed = ["hogs", "coop.bpf.o", "session.sh", "/usr/bin/setpriv", "/usr/bin/cp"];
    let said = in_quiet_machine(&folder, 1, &packed, &script);
    assert!(said.contains("exit 0\n"), "{said}");
    keeps(&said, "theft", &["a", "b"], 1.0 / 3.0);
    keeps(&said, "sleepers", &["a", "b"], 1.0 / 3.0);
}
