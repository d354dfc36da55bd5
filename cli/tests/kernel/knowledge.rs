//! What a policy learns of threads without their programs' help: from the kernel, by the imports'
//! names, and from tables by process that privileged programs supply. All in one machine.

use std::sync::OnceLock;

use serde_json::Value;

use super::common::machine::{build, compile, folder, in_machine};
use super::common::set_up;
use super::implicit::thread;

/// Imports of every kind, in a policy that does nothing with them.
const POLICY: &str = "scheduler knows extends lifecycle {
    threadimports {
        int process       default -1;
        int parent        default -1;
        int user          default -1;
        int nice          default -99;
        int waker         default -1;
        int kernel_thread default -1;
        int io_wait       default -1;
        int input_rating  default 7;
        int urgent        default 3;
    }
    event schedule {
        if (|ready| > 0) {
            ready => current;
            dispatch current for 5ms;
        }
    }
}
";

const SESSION: &str = r#"
attune=$1
start() { sed 's/.*) //' /proc/$1/stat | cut -d' ' -f20; }
as() { user=$1; shift; setpriv --reuid $user --clear-groups "$@"; }
answer() { for i in $(seq 900); do test -s $1 && break; sleep 0.1; done; }
look() { sleep 0.5; echo "$1 $($attune top --json)"; }

# What the kernel knows.
./knows sleeps & sleeper=$!
./knows reads $attune & reader=$!
nice -n 5 setpriv --reuid 65534 --clear-groups ./knows sleeps & others=$!
./knows answers & pair=$!
echo "sleeper $sleeper"; echo "reader $reader"; echo "others $others"; echo "session $$"
# Not all waits of the reader are for its pages: dropping them from memory waits for the kernel.
tells() { $attune top --json >top; grep -q "$1,[^}]*\"process\":$2," top; }
for i in $(seq 100); do tells '"io_wait":1' $reader && break; sleep 0.2; done
echo "io $(cat top)"
look kernel

# A table. Its word 0 is the writer's own.
mkfifo rows; (exec sleep 1000 >rows) & holder=$!
./writer - input_rating urgent nothing <rows >told & writer=$!
answer told
exec 3>rows
echo "$sleeper $(start $sleeper) 1 700 9" >&3
echo "$reader $(($(start $reader) + 1)) 1 700 9" >&3
$attune hint $sleeper urgent=5; $attune hint $others urgent=5
for i in $(seq 900); do test $(grep -c row told) = 2 && break; sleep 0.1; done
echo "reply $(head -1 told)"
look table
echo "rating $($attune hint $sleeper input_rating=1000 2>&1)"
timeout 2 ./writer urgent </dev/null >second; echo "second $(cat second)"
timeout 2 ./writer -v 40 elsewhere </dev/null >layout; echo "layout $(cat layout)"
timeout 2 ./writer -v 0 elsewhere </dev/null >nothing; echo "nothing $(cat nothing)"
timeout 2 ./writer nothing </dev/null >third; echo "third $(cat third)"
cp -p writer /tmp/; as 65534 timeout 2 /tmp/writer -v 0 urgent </dev/null >stranger 2>&1
echo "stranger $(cat stranger)"

# The number is used again while the old process's row is still there.
kill -9 $sleeper; wait $sleeper 2>/dev/null
for i in $(seq 100); do
    echo $((sleeper - 1)) >/proc/sys/kernel/ns_last_pid
    ./knows sleeps & again=$!
    test $again = $sleeper && break
    kill $again
done
echo "again $again"
look reused
echo "$again $(start $again) 1 650 8" >&3
for i in $(seq 900); do test $(grep -c row told) = 3 && break; sleep 0.1; done
look rated

# A killed writer, and another one after it.
kill -9 $writer
look killed
exec 3>&-
./writer urgent <rows >next & next=$!
answer next
exec 3>rows
echo "$again $(start $again) 4" >&3
for i in $(seq 900); do test $(grep -c row next) = 1 && break; sleep 0.1; done
look next
kill -9 $next $again $others $reader $pair $holder
"#;

/// All that was said; None without a machine.
fn session() -> Option<&'static str> {
    static SAID: OnceLock<String> = OnceLock::new();
    let said = || {
        let folder = folder("knowledge");
        for program in ["writer", "knows"] {
            compile(&folder, &format!("tests/kernel/{program}.c"));
        }
        std::fs::write(folder.join("knows.sched"), POLICY).unwrap();
        build(&folder, "knows.sched", "knows.bpf.o");
        std::fs::write(folder.join("session.sh"), SESSION).unwrap();
        in_machine(
            &folder,
            2,
            "$run knows.bpf.o --all -- sh ./session.sh $attune; echo \"exit $?\"",
        )
    };
    set_up().then(|| SAID.get_or_init(said).as_str())
}

fn line<'a>(said: &'a str, name: &str) -> &'a str {
    let line = said.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {name} in:\n{said}"))
}

fn number(said: &str, name: &str) -> i64 {
    line(said, name).parse().unwrap_or_else(|_| panic!("{name} in:\n{said}"))
}

fn look(said: &str, name: &str) -> Value {
    serde_json::from_str(line(said, name)).unwrap_or_else(|_| panic!("{name} in:\n{said}"))
}

fn of(look: &Value, process: i64, name: &str) -> i64 {
    let value = &thread(look, process)["values"][name];
    value.as_i64().unwrap_or_else(|| panic!("no {name} of {process} in {look}"))
}

fn ratings(look: &Value, process: i64) -> [i64; 2] {
    ["input_rating", "urgent"].map(|name| of(look, process, name))
}

#[test]
fn the_kernel_tells_process_parent_user_and_nice_value() {
    let Some(said) = session() else { return };
    let seen = look(said, "kernel");
    let (session, sleeper, others) =
        (number(said, "session"), number(said, "sleeper"), number(said, "others"));
    for process in [sleeper, others] {
        assert_eq!(of(&seen, process, "process"), process, "{said}");
        assert_eq!(of(&seen, process, "parent"), session, "{said}");
    }
    assert_eq!(of(&seen, sleeper, "user"), 0, "{said}");
    assert_eq!(of(&seen, others, "user"), 65534, "{said}");
    assert_eq!(of(&seen, sleeper, "nice"), 0, "{said}");
    assert_eq!(of(&seen, others, "nice"), 5, "{said}");
}

#[test]
fn the_kernel_tells_which_thread_woke_one() {
    let Some(said) = session() else { return };
    let seen = look(said, "kernel");
    assert_eq!(of(&seen, number(said, "answers"), "waker"), number(said, "waker"), "{said}");
    assert_eq!(of(&seen, number(said, "sleeper"), "waker"), 0, "an interrupt is no thread: {said}");
}

#[test]
fn the_kernel_tells_its_own_threads_from_those_of_programs() {
    let Some(said) = session() else { return };
    let seen = look(said, "kernel");
    assert_eq!(of(&seen, number(said, "sleeper"), "kernel_thread"), 0, "{said}");
    let containers = seen["policies"][0]["containers"].as_array().expect("containers");
    let threads = containers.iter().flat_map(|it| it["threads"].as_array().expect("threads"));
    let ours = threads.filter(|thread| thread["values"]["kernel_thread"] == 1);
    let names: Vec<_> = ours.filter_map(|thread| thread["name"].as_str()).collect();
    assert!(names.iter().any(|name| name.starts_with("kworker/")), "{names:?}\n{said}");
    assert!(!names.contains(&"sh") && !names.contains(&"knows"), "{names:?}");
}

#[test]
fn the_kernel_tells_which_wait_was_for_input_or_output() {
    let Some(said) = session() else { return };
    let seen = look(said, "io");
    assert_eq!(of(&seen, number(said, "reader"), "io_wait"), 1, "{said}");
    assert_eq!(of(&seen, number(said, "sleeper"), "io_wait"), 0, "{said}");
    assert_eq!(of(&seen, number(said, "answers"), "io_wait"), 0, "{said}");
}

#[test]
fn a_table_supplies_its_processes_and_takes_precedence_over_programs() {
    let Some(said) = session() else { return };
    let seen = look(said, "table");
    let reply = r#"{"reads":{"scheduler":"knows","columns":["input_rating","urgent"]}}"#;
    assert_eq!(line(said, "reply"), reply, "{said}");
    assert_eq!(ratings(&seen, number(said, "sleeper")), [700, 9], "{said}");
    // A hint is not heard, not even where the process has no row.
    assert_eq!(ratings(&seen, number(said, "others")), [7, 3], "{said}");
    // A row for another start is not its own.
    assert_eq!(ratings(&seen, number(said, "reader")), [7, 3], "{said}");
    let refused = line(said, "rating");
    assert!(refused.contains("there is no thread import named input_rating"), "{said}");
}

#[test]
fn a_process_with_a_used_number_does_not_find_the_old_row() {
    let Some(said) = session() else { return };
    assert_eq!(number(said, "again"), number(said, "sleeper"), "{said}");
    let process = number(said, "again");
    assert_eq!(ratings(&look(said, "reused"), process), [7, 3], "{said}");
    assert_eq!(ratings(&look(said, "rated"), process), [650, 8], "{said}");
}

#[test]
fn a_table_ends_with_its_writer() {
    let Some(said) = session() else { return };
    let process = number(said, "again");
    let killed = look(said, "killed");
    assert_eq!(ratings(&killed, process), [7, 3], "{said}");
    // What a program says is heard again.
    assert_eq!(ratings(&killed, number(said, "others")), [7, 5], "{said}");
    assert_eq!(ratings(&look(said, "next"), process), [7, 4], "{said}");
    assert_eq!(number(said, "exit"), 0, "{said}");
}

#[test]
fn a_table_that_cannot_be_read_is_refused_with_the_reason() {
    let Some(said) = session() else { return };
    let taken = "another program supplies urgent already: end it first";
    assert!(line(said, "second").contains(taken), "{said}");
    let layout = "it must be a BPF hash without flags, with keys of 8 bytes and values of 64";
    assert!(line(said, "layout").contains(layout), "{said}");
    assert!(line(said, "third").contains(r#""columns":[]"#), "{said}");
    assert!(line(said, "nothing").contains("the descriptor is no BPF map"), "{said}");
    assert!(line(said, "stranger").contains("only that user and root may"), "{said}");
}
