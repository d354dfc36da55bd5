//! A program that is typed into, under `human` beside programs that compute: from the display to
//! the class that the policy puts it into. One machine with a display of its own; each step waits
//! for the condition that it needs, and nothing depends on how long that takes.

use std::path::Path;

use serde_json::Value;

use super::common::machine::{build, folder, in_machine};
use super::common::set_up;
use super::implicit::thread;

/// The typist types through the whole session: a rating fades when the typing ends. The program
/// takes each key as it comes; one that reads lines, as the terminal cooks them, would wake at each
/// Return only.
const SESSION: &str = r#"
attune=$1
until_it() {
    what=$1; shift
    for i in $(seq 600); do
        "$@" >/dev/null 2>&1 && { echo "after $(cut -d' ' -f1 /proc/uptime) s: $what"; return; }
        sleep 0.5
    done
    echo "never: $what"; cat told looks 2>/dev/null | tail -5; exit 3
}
export DISPLAY=:9
rm -f told looks explained
Xvfb :9 -screen 0 640x480x24 -nolisten tcp -ac -noreset -r 2>/dev/null & server=$!
until_it "the display answers" xdotool getdisplaygeometry
xterm -geometry 60x20+0+0 -e sh -c 'stty -icanon; exec cat' 2>/dev/null & terminal=$!
mapped() { window=$(xdotool search --all --onlyvisible --pid $terminal | tail -1); test "$window"; }
until_it "the terminal is mapped" mapped
until_it "the terminal has the focus" xdotool windowfocus --sync $window
runs() {
    program=$(cat /proc/$terminal/task/$terminal/children | tr -d ' ')
    grep -q '^cat$' /proc/$program/comm
}
until_it "the program runs" runs
$attune focus --json >looks 2>told & monitor=$!
until_it "human reads the ratings" grep -q 'human reads input_rating, output_rating' told

for i in 1 2; do (while :; do :; done) & hogs="$hogs $!"; hog=$!; done
xdotool type --delay 100 "$(yes 'the quick brown fox' | head -300 | tr '\n' ' ')" & typist=$!
until_it "the program is rated" grep -q "\"pid\":$program," looks
# Questions are asked while nothing computes, or asking would take most of the time.
aside() { kill -STOP $hogs; "$@"; status=$?; kill -CONT $hogs; return $status; }
explained() {
    $attune focus explain $program >explained
    grep -q "got a key" explained && grep -q "path Xvfb.*cat ($program)" explained
}
until_it "its rating is explained" aside explained
dispatches() { grep -o "\"dispatches\":[0-9]*,[^{}]*\"process\":$program," $1; }
first() { $attune top --json >first; grep -q "\"process\":$program,[^}]*\"class\":1," first; }
until_it "the policy has put it into its class" aside first
second() {
    $attune top --json >second
    grep -q "\"process\":$program,[^}]*\"class\":1," second &&
        test "$(dispatches first)" != "$(dispatches second)"
}
sleep 1
until_it "it is dispatched in that class" aside second
view() { $attune top --once >view; grep -q "^ *$program  cat " view; }
until_it "top lists it by rating" aside view
for name in server terminal program hog; do eval "echo \"$name \$$name\""; done
for name in first second; do echo "$name $(cat $name)"; done
sed -n '/^rated: /,/^$/s/^/view /p' view
sed 's/^/explained /' explained
sed 's/^/look /' looks
kill -9 $typist $hogs $monitor $terminal $server
"#;

fn have(programs: &[&str]) -> bool {
    let path = std::env::var("PATH").unwrap_or_default();
    let there = |program: &str| path.split(':').any(|it| Path::new(it).join(program).exists());
    let missing: Vec<_> = programs.iter().filter(|program| !there(program)).collect();
    assert!(
        missing.is_empty() || std::env::var("CI").as_deref() != Ok("true"),
        "{missing:?} are missing; tools/setup.sh test installs them"
    );
    if !missing.is_empty() {
        eprintln!("not tested: {missing:?} are missing; tools/setup.sh test installs them");
    }
    missing.is_empty()
}

fn lines<'a>(said: &'a str, name: &str) -> Vec<&'a str> {
    said.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix(' ')).collect()
}

fn number(said: &str, name: &str) -> i64 {
    let number = lines(said, name).first().and_then(|line| line.parse().ok());
    number.unwrap_or_else(|| panic!("no {name} in:\n{said}"))
}

fn json(line: &str) -> Value {
    serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))
}

/// The input rating of a program in a line of the monitor's.
fn rating(look: &Value, process: i64) -> f64 {
    let programs = look["programs"].as_array().expect("programs");
    let its = programs.iter().find(|program| program["pid"] == process);
    its.and_then(|program| program["input"].as_f64()).unwrap_or(0.0)
}

#[test]
fn a_program_that_is_typed_into_is_rated_and_dispatched_in_the_class_of_input() {
    if !set_up() || !have(&["Xvfb", "xterm", "xdotool"]) {
        return;
    }
    let folder = folder("typed");
    build(&folder, "human", "human.bpf.o");
    std::fs::write(folder.join("session.sh"), SESSION).unwrap();
    let said = in_machine(
        &folder,
        1,
        "$attune run human.bpf.o --all --timeout 30000 -- sh ./session.sh $attune; echo \"exit \
            $?\"",
    );
    assert!(said.contains("\nexit 0\n"), "{said}");
    let [server, terminal, program, hog] =
        ["server", "terminal", "program", "hog"].map(|name| number(&said, name));

    // The monitor looks once a second. The program is rated a few looks after its terminal.
    let looks: Vec<Value> = lines(&said, "look").into_iter().map(json).collect();
    let first = |process: i64| looks.iter().position(|look| rating(look, process) >= 5.0);
    let (terminals, programs) = (first(terminal).expect("rated"), first(program).expect("rated"));
    assert!(programs <= terminals + 20, "look {terminals}, look {programs}:\n{said}");
    assert!(looks.iter().all(|look| rating(look, hog) == 0.0), "{said}");

    let explained = lines(&said, "explained").join("\n");
    let way = format!("path Xvfb ({server}) -> xterm ({terminal}) -> cat ({program})");
    assert!(explained.contains(&way), "{explained}");
    assert!(explained.contains(&format!("xterm ({terminal}) got a key")), "{explained}");

    let [first, second] = ["first", "second"].map(|name| json(lines(&said, name)[0]));
    for look in [&first, &second] {
        assert_eq!(thread(look, program)["values"]["class"], 1, "{look}");
        assert_eq!(thread(look, hog)["values"]["class"], 3, "{look}");
        assert_eq!(thread(look, hog)["values"]["input_rating"], 0, "{look}");
    }
    let dispatches = |look: &Value| thread(look, program)["dispatches"].as_u64();
    assert!(dispatches(&second) > dispatches(&first), "{said}");

    // The programs by rating: those that compute are not among them.
    let view = lines(&said, "view");
    assert!(view[1].starts_with("PROCESS  NAME"), "{view:?}");
    let listed = |process: i64| {
        let row = |line: &&&str| line.split_whitespace().next() == Some(&process.to_string());
        view.iter().find(row)
    };
    let columns: Vec<&str> = listed(program).expect("listed").split_whitespace().collect();
    assert!(columns[2].parse::<i64>().is_ok_and(|input| input >= 50), "{view:?}");
    assert!(listed(terminal).is_some() && listed(hog).is_none(), "{view:?}");
}
