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
"#;

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
$run guest.sched -- sh -c '. ./inside; exit 7'; echo "second: $?"
until_says "^base.level *9" $attune set && echo "the first has what was set"
until_says "scheduler: base for" $attune status
$attune status | grep joined; cat /sys/kernel/sched_ext/root/ops

$run guest.sched -- sh -c '. ./helpers; until_there over; exit 5' & second=$!
until_says guest_and_base cat /sys/kernel/sched_ext/root/ops
kill -9 $first; wait $first; echo "killed first: $?"
until_says "scheduler: guest and base" $attune status && echo "the second has both"
touch over; wait $second; echo "last: $?"
until_says disabled cat /sys/kernel/sched_ext/state && echo "the fair class has it"
"#;

/// Asks as a run would that joins, so many things, and ends.
const GHOST: &str = r#"
use IO::Socket::UNIX;
alarm 60;
my $lender = IO::Socket::UNIX->new("/run/attune/join.sock") or die "$!";
print scalar readline $lender;
for ((q({"listen":{"scheduler":"ghost"}}), q("attach"))[0 .. $ARGV[0] - 1]) {
    print $lender "$_\n";
    $lender->flush;
    print scalar readline $lender;
}
"#;

const INSIDE: &str = r#"
. ./helpers
until_says "^others.level *2" $attune set && echo "the second knows what is set"
$attune status
$attune set others.level=9
$run guest.sched -- true; echo "third: $?"
"#;

#[test]
fn a_second_run_joins_and_each_ends_by_itself() {
    if !set_up() {
        return;
    }
    let folder = folder("joining");
    let text = |name| POLICY.replace("NAME", name);
    let wrong = text("wrong").replace("ready => current", "nowhere => current");
    for (name, text) in [
        ("base.sched", text("base")),
        ("guest.sched", text("guest")),
        ("wrong.sched", wrong),
        ("helpers", format!("attune={ATTUNE}\n{UNTIL_SAYS}{HELPERS}")),
        ("inside", INSIDE.to_owned()),
        ("ghost", GHOST.to_owned()),
        ("script", JOINS.to_owned()),
    ] {
        std::fs::write(folder.join(name), text).unwrap();
    }
    let said = in_machine(&folder, 2, "sh ./script");
    for words in [
        "`nowhere` is not declared",
        "wrong: 1\n",
        "the text of base has changed",
        "edited: 2\n",
        "ghost joins, process",
        "the first listens again, 1\n",
        "and schedules, 1\n",
        "\"detached\"\n",
        "the first listens again, 2\n",
        "and schedules, 2\n",
        "the second knows what is set\n",
        "joined: guest for a command, process",
        "another scheduler is already running: attune_guest_and_base.",
        "has joined it already",
        "third: 2\n",
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
