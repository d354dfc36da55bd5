//! The service `attuned` as a unit of systemd: started, killed, stopped, and with a configuration
//! that is wrong.

use std::fs;
use std::path::Path;

use crate::common::machine::{ATTUNE, UNTIL_SAYS, between, build, strip};
use crate::systemd::session;

/// How often the service, its policy's holder or both are killed.
fn kills() -> usize {
    std::env::var("ATTUNE_KILLS").map_or(6, |count| count.parse().expect("a number of kills"))
}

/// In ms of the machine's time.
const BACK_WITHIN: u64 = 2000;

/// Small, so that it loads soon.
const POLICY: &str = "scheduler plain extends lifecycle {
    event schedule {
        if (|ready| > 0) {
            ready => current;
            dispatch current for 5ms;
        }
    }
}
";

/// `took MARK COMMAND ..` says how many milliseconds it took.
const SESSION: &str = r#"
clock() { read up idle </proc/uptime; echo ${up%.*}${up#*.}0; }
took() { mark=$1; since=$(clock); shift; "$@"; echo "$mark $(($(clock) - since))"; }
property() { systemctl show -P $1 attuned; }
stands_by() { grep -l [-]-standby /proc/[0-9]*/cmdline; }
holder() { $attune status --json | sed -n 's/.*"now":{"process":\([0-9]*\),.*/\1/p'; }
# The status while another process than this one holds the policy.
not_held_by() { now=$(holder); [ "$now" ] && [ "$now" != $1 ] && $attune status; }
held_by() { [ "$(holder)" = $1 ] && $attune status; }
drawn=1
# `draw NAME LIMIT`: a number below it.
draw() {
    drawn=$(((drawn * 1103515245 + 12345) % 2147483648)); eval "$1=$((drawn / 65536 % $2))"
}
# So many times, at a random moment: the service, the policy's holder or both.
kills() {
    for kill in $(seq $1); do
        draw moment 1000; sleep $(printf 0.%03d $moment)
        until_says '[1-9]' property MainPID
        holder=$(holder); service=$(property MainPID)
        draw victim 3
        case $victim in
        0) kill -9 $service
            held_by $holder | grep -q "scheduler: plain for " || echo "gone with the service"
            took "back service" until_says "attuned: keeps" held_by $holder;;
        1) kill -9 $holder
            took "back holder" until_says "scheduler: plain for " not_held_by $holder;;
        2) kill -9 $service $holder
            took "back both" until_says "scheduler: plain for " not_held_by $holder;;
        esac
    done
    until_says "attuned: keeps" $attune status
}
runs() {
    systemctl start attuned; echo "start: $?"
    until_says "attuned: keeps" $attune status
}
fails() {
    until_says failed systemctl is-active attuned
    sleep 0.5
    echo "<$1>"; systemctl show attuned -p Result -p ExecMainStatus -p NRestarts
    $attune status; cat /sys/kernel/sched_ext/state; echo "<end>"
}
mkdir -p /etc/attune
$attuned install --dir /run/systemd/system
# There is no journal.
additions=/run/systemd/system/attuned.service.d
mkdir $additions
printf '[Service]\nStandardError=append:/run/attuned.log\n' >$additions/log.conf
systemctl daemon-reload
echo "restarts after $(property RestartUSec)"

cp right.toml /etc/attune/attuned.toml
took loading runs
holder=$(holder)
echo "<runs>"; $attune status; cat /sys/kernel/sched_ext/root/ops; echo "<end>"
kill -9 $(property MainPID)
until_says 1 property NRestarts
until_says "attuned: keeps" $attune status
echo "<again>"; $attune status; echo "<end>"
$attune status | grep -q "held by process $holder," && echo "the policy has gone on"
kills $kills
# The process that stands by loads the policy now.
until_says . stands_by
took stopping systemctl stop attuned
echo "<stopped>"; $attune status; cat /sys/kernel/sched_ext/state; echo "<end>"
ls /sys/fs/cgroup/system.slice/attuned.service >/dev/null 2>&1 || echo "no process is left"

runs
cp wrong.toml /etc/attune/attuned.toml
kill -9 $(property MainPID)
fails wrong

printf '[Service]\nExecStart=\nExecStart=%s --config nowhere.toml\n' $attuned \
    >$additions/missing.conf
systemctl daemon-reload
systemctl start attuned
fails missing
echo "<told>"; cat /run/attuned.log; echo "<end>"
"#;

/// The script and all that it needs, in this folder.
pub fn prepare(folder: &Path) -> Vec<String> {
    fs::write(folder.join("plain.sched"), POLICY).unwrap();
    build(folder, "plain.sched", "plain.bpf.o");
    let object = folder.join("plain.bpf.o");
    let right = format!("[policy]\nscheduler = {object:?}\ntimeout_ms = 30000\n");
    fs::write(folder.join("right.toml"), right).unwrap();
    fs::write(folder.join("wrong.toml"), "[policy]\nschedule = \"fair\"\n").unwrap();
    let attuned = Path::new(ATTUNE).with_file_name("attuned");
    assert!(attuned.exists(), "build it first: cargo build -p attune-daemon");
    // Beside the program that it starts.
    let copy = folder.join("attuned");
    strip(&attuned, &copy);
    let attuned = copy.display().to_string();
    let script = format!("attuned={attuned}; kills={}\n{UNTIL_SAYS}{SESSION}", kills());
    fs::write(folder.join("service"), script).unwrap();
    let files = ["service", "plain.bpf.o", "right.toml", "wrong.toml", &attuned];
    files.map(str::to_owned).to_vec()
}

#[test]
fn systemd_keeps_the_service_and_the_service_its_policy() {
    let Some(said) = session() else { return };
    let told = |mark| between(said, mark);
    assert!(said.contains("restarts after 100ms\n"), "{said}");
    assert!(told("runs").contains("scheduler: plain for "), "{said}");
    assert!(told("runs").contains("which attuned started"), "{said}");
    assert!(told("runs").ends_with("attune_plain\n"), "{said}");
    assert!(told("again").contains("attuned: keeps "), "{said}");
    assert!(said.contains("the policy has gone on\n"), "{said}");

    assert!(told("stopped").contains("scheduler: the kernel's fair class\n"), "{said}");
    assert!(told("stopped").contains("it was asked to end"), "{said}");
    assert!(told("stopped").ends_with("disabled\n"), "{said}");
    assert!(said.contains("no process is left\n"), "{said}");
    // It does not wait until the process that stands by has loaded the policy.
    let took = |mark: &str| -> u64 {
        let took = said.lines().find_map(|line| line.strip_prefix(mark)?.trim().parse().ok());
        took.unwrap_or_else(|| panic!("{mark}: {said}"))
    };
    assert!(took("stopping ") < took("loading ") / 2, "{said}");

    // A service that cannot go on leaves no policy that no service would end.
    for (mark, restarts) in [("wrong", "NRestarts=1\n"), ("missing", "NRestarts=0\n")] {
        for words in ["Result=exit-code\n", "ExecMainStatus=2\n", restarts] {
            assert!(told(mark).contains(words), "{mark}: {words}: {said}");
        }
        assert!(told(mark).ends_with("disabled\n"), "{mark}: {said}");
    }
    for words in ["attuned.toml: ", "schedule", "which an earlier service had left", "nowhere.toml"]
    {
        assert!(told("told").contains(words), "{words}: {said}");
    }
}

#[test]
fn the_policy_is_back_soon_whatever_is_killed() {
    let Some(said) = session() else { return };
    assert!(!said.contains("gone with the service\n"), "{said}");
    let mut backs = 0;
    for line in said.lines().filter_map(|line| line.strip_prefix("back ")) {
        eprintln!("back {line}");
        let (victim, took) = line.rsplit_once(' ').expect("a victim and a time");
        // Where both are gone before another process stands by, one has to load the policy anew.
        let soon = victim == "both" || took.parse::<u64>().expect("a time") <= BACK_WITHIN;
        assert!(soon, "{line}: {said}");
        backs += 1;
    }
    assert_eq!(backs, kills(), "{said}");
}
