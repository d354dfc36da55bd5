//! A second run joins one that has the whole machine, and whichever of them is killed, the other
//! goes on.

use crate::common::machine::{ATTUNE, UNTIL_SAYS, folder, in_machine};
use crate::common::set_up;

/// A policy that the machine compiles in seconds.
const POLICY: &str = "scheduler NAME extends lifecycle {
    data { tunable int level = 1; }
    event schedule {
        if (|ready| > 0) {
            ready => current;
            dispatch current for 5ms;
        }
    }
}
";

const HELPERS: &str = r#"
until_there() { for i in $(seq 900); do [ -e $1 ] && return; sleep 0.1; done; exit 8; }
run="$attune run --timeout 30000"
ends_while() {
    $run guest.sched -- true 2> waits & asked=$!
    until_says "$1" cat waits; kill $asked; wait $asked; echo "$1: $?"
}
"#;

/// One after the other, and what is set comes along.
const JOINS: &str = r#"
. ./helpers
$run base.sched --all --set level=2 -- sh -c '. ./helpers; until_there over; exit 4' & first=$!
until_says "^base.level *2" $attune set
$run wrong.sched -- true; echo "wrong: $?"
until_says "scheduler: base for" $attune status
sed -i 's/5ms/6ms/' base.sched
$run guest.sched -- true; echo "edited: $?"
sed -i 's/6ms/5ms/' base.sched
# One that ends before it has taken the machine, and one that ends when it could take it.
for asks in 1 2; do
    perl ghost $asks
    until_says "^base.level *2" $attune set && echo "the first listens again, $asks"
    until_says "^attune_base$" cat /sys/kernel/sched_ext/root/ops && echo "and schedules, $asks"
done
$run guest.sched --set level=3 -- sh -c '. ./second; exit 7'; echo "second: $?"
until_says "^base.level *8" $attune set && echo "the first has what was set"
until_says "scheduler: base for" $attune status
$attune status | grep joined; cat /sys/kernel/sched_ext/root/ops

$run guest.sched -- sh -c '. ./helpers; until_there over; exit 5' & second=$!
until_says guest_and_base cat /sys/kernel/sched_ext/root/ops
kill -9 $first; wait $first; echo "killed first: $?"
until_says "scheduler: guest and base" $attune status && echo "the second has both"
touch over; wait $second; echo "last: $?"
until_says disabled cat /sys/kernel/sched_ext/state && echo "the fair class has it"
"#;

/// Inside the second run, and inside a third one that joins it.
const SECOND: &str = r#"
. ./helpers
until_says "^others.level *2" $attune set && echo "the second knows what is set"
$attune status
$run third.sched --set level=4 -- sh -c '. ./third; exit 6'; echo "third: $?"
until_says "^command.level *5" $attune set && echo "the second has what was set"
until_says "^others.level *8" $attune set
$attune status | grep -c joined
"#;
const THIRD: &str = r#"
. ./helpers
until_says "^command.level *4" $attune set
until_says "^command2.level *3" $attune set && echo "the third knows what is set"
until_says "joined: third.*which holds all now" $attune status && echo "the first lists the third"
$attune set command2.level=5 others.level=8
"#;

/// Runs in the middle end by themselves, and are killed; two begin at the same time.
const LEAVES: &str = r#"
. ./helpers
$run base.sched --all -- sh -c '. ./helpers; until_there over; exit 4' & first=$!
until_says "^attune_base$" cat /sys/kernel/sched_ext/root/ops
for how in ends killed; do
    $run guest.sched -- sh -c ". ./helpers; until_there $how; exit 5" & second=$!
    until_says guest_and_base cat /sys/kernel/sched_ext/root/ops
    $run third.sched -- sh -c ". ./helpers; until_there third-$how; exit 6" & third=$!
    until_says third_and_guest_and_base cat /sys/kernel/sched_ext/root/ops
    if [ $how = ends ]; then touch ends; else kill -9 $second; fi
    wait $second; echo "second $how: $?"
    $attune set others.level=$(($(wc -c < lengths) + 7))
    echo x >> lengths
    touch third-$how
    wait $third; echo "third after it $how: $?"
    until_says "^attune_base$" cat /sys/kernel/sched_ext/root/ops && echo "back after it $how"
    $attune set
done
touch killed
$run guest.sched -- sh -c 'sleep 1; exit 11' & one=$!
$run third.sched -- sh -c 'sleep 1; exit 12' & other=$!
wait $one; echo "one: $?"; wait $other; echo "other: $?"
until_says "^attune_base$" cat /sys/kernel/sched_ext/root/ops
# Two that somebody ends while they wait: for a run that joins, and for one that is about to begin.
perl ghost 0 60 > heard & ghost=$!
until_says offer cat heard
ends_while "another run joins just now"
kill $ghost
perl -e 'open F, ">", "/run/attune/join.lock"; flock F, 2; sleep 60' & holder=$!
ends_while "another run is about to begin"
kill $holder
touch over; wait $first; echo "first: $?"

# Two that begin at the same time, and none has the machine.
$run guest.sched -- sh -c 'sleep 1; exit 13' & one=$!
$run third.sched -- sh -c 'sleep 1; exit 14' & other=$!
wait $one; echo "one alone: $?"; wait $other; echo "other alone: $?"
until_says disabled cat /sys/kernel/sched_ext/state && echo "the fair class has it"
"#;

/// Asks as a run would that joins, so many things, and ends after so many seconds.
const GHOST: &str = r#"
use Socket;
$| = 1;
alarm 60;
socket(my $lender, PF_UNIX, SOCK_SEQPACKET, 0) or die "$!";
connect($lender, sockaddr_un("/run/attune/join.sock")) or die "$!";
sub hears { recv($lender, my $said, 65536, 0); print "$said\n"; }
hears;
for ((q({"listen":{"scheduler":"ghost"}}), q("attach"))[0 .. $ARGV[0] - 1]) {
    send($lender, $_, 0);
    hears;
}
sleep($ARGV[1] // 0);
"#;

/// A folder with three policies and these files, seen from a machine of two CPUs that runs the
/// script.
fn joins(name: &str, files: &[(&str, &str)], script: &str) -> String {
    let folder = folder(name);
    let text = |name: &str| POLICY.replace("NAME", name);
    // A file comes before the library's: what all others follow is compiled as soon.
    for (name, file) in [
        ("base", "base.sched"),
        ("guest", "guest.sched"),
        ("third", "third.sched"),
        ("fair", "fair"),
    ] {
        std::fs::write(folder.join(file), text(name)).unwrap();
    }
    let wrong = text("wrong").replace("ready => current", "nowhere => current");
    let helpers = format!("attune={ATTUNE}\n{UNTIL_SAYS}{HELPERS}");
    let own = [("wrong.sched", wrong.as_str()), ("helpers", &helpers), ("script", script)];
    for (name, text) in own.iter().chain(files) {
        std::fs::write(folder.join(name), text).unwrap();
    }
    in_machine(&folder, 2, "sh ./script")
}

#[test]
fn a_second_run_joins_and_each_ends_by_itself() {
    if !set_up() {
        return;
    }
    let files = [("second", SECOND), ("third", THIRD), ("ghost", GHOST)];
    let said = joins("joining", &files, JOINS);
    for words in [
        "`nowhere` is not declared",
        "wrong: 1\n",
        "base.sched has changed since it was loaded",
        "edited: 2\n",
        "ghost joins, process",
        "the first listens again, 1\n",
        "and schedules, 1\n",
        "\"detached\"\n",
        "the first listens again, 2\n",
        "and schedules, 2\n",
        "the second knows what is set\n",
        "joined: guest for a command, process",
        "the third knows what is set\n",
        "the first lists the third\n",
        "third: 6\n",
        "the second has what was set\n",
        "second: 7\n",
        "the first has what was set\n",
        "attune_base\n",
        "killed first: 137\n",
        "the second has both\n",
        "last: 5\n",
        "the fair class has it\n",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
    let after = said.split("the first has what was set\n").nth(1).unwrap_or_default();
    let until_next = after.split("joins, process").next().unwrap_or_default();
    assert!(!until_next.contains("joined: "), "{said}");
}

#[test]
fn runs_in_the_middle_leave_and_the_others_go_on() {
    if !set_up() {
        return;
    }
    let said = joins("leaving", &[("lengths", ""), ("ghost", GHOST)], LEAVES);
    for words in [
        "second ends: 5\n",
        "third after it ends: 6\n",
        "back after it ends\n",
        // What was set under the third came back over the connection that the second left to it.
        "base.level  7",
        "second killed: 137\n",
        "third after it killed: 6\n",
        "back after it killed\n",
        "one: 11\n",
        "other: 12\n",
        "another run joins just now: 130\n",
        "another run is about to begin: 130\n",
        "first: 4\n",
        "one alone: 13\n",
        "other alone: 14\n",
        "the fair class has it\n",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
}
