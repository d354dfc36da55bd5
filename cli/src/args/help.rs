//! What follows the options in `--help`: examples first, then what the options cannot say, then
//! the exit status.

pub const START: &str = "\
Start with: attune check fifo
            attune sim fair --workload players";

pub const CHECK: &str = "\
Example: attune check fair my.sched -I common --engine threads

Exit status: 0 without errors, 1 with, 2 when a file cannot be read.";

pub const EXPLAIN: &str = "\
Example: attune explain E0601
         attune explain            (lists all codes)";

pub const BUILD: &str = "\
Example: attune build shortest_reply --engine threads -o shortest_reply.so
         ATTUNE_SCHED=./shortest_reply.so ./my-server";

pub const GATEWAY: &str = "\
Example: attune build farm.sched --node sensor --engine embedded -o firmware
         attune gateway farm.sched --node sensor /dev/ttyACM0

It runs until Ctrl-C or until the link ends; then the node departs.

Exit status: 0 after Ctrl-C and at the end of standard input, 1 when the scheduler has errors or no
such family, 2 when the link cannot be opened or has ended: the device was unplugged.";

pub const MANAGER: &str = "\
Example: attune manager farm.sched
         attune build farm.sched --node web -o web.so
         ATTUNE_SCHED=./web.so ATTUNE_CLUSTER=farm ./my-server
         attune manager farm.sched --at https://db1:2379 --ca ca.pem

With --at, a manager runs on each machine, and programs join that of their machine.

It runs until Ctrl-C. Nodes that come before it, or stay after it, go on with what they know, and
join as soon as a manager of the name listens. It answers nodes of its own user and of root.

Exit status: 0 after Ctrl-C, 1 when the scheduler has errors, a check of the master fails, or the
managers of other machines run another version, 2 when a manager of the name runs already, or etcd
cannot be reached.";

pub const DIAGRAM: &str = "\
Example: attune diagram pth -o pth.svg";

pub const SIM: &str = "\
Example: attune sim fair --workload players --cpus 2 --report out.html";

pub const PERIOD: &str = "\
FILE holds an event a line: TIME [THREAD [KIND [NUMBER]]], TIME in seconds.

Example: attune period player.txt --window 2 --json
         attune period player.txt --method spectrum-2010 --plot spectrum.svg

Exit status: 0 whether or not there is a period, 2 when the file is no recording.";

pub const RUN: &str = "\
Example: attune run edf -- ./player film.avi
         attune run fair --others round_robin --weight 3:1 -- make -j8
         attune run round_robin --all --set quantum=3ms --stats 1

The command and all that it starts follow SCHED; all other threads follow another scheduler. The
two share the CPUs by weight, and each may use what the other leaves. --all gives every thread to
SCHED.

A ready thread that SCHED does not dispatch for 1.5 s or longer is run by the engine for a moment,
again and again; the line of SCHED that put it away is told once. --strict lets the kernel end the
run instead.

Exit status: the command's; 1 when the kernel has ended the scheduler, 126 or 127 when the command
cannot run.";

pub const HINT: &str = "\
Example: attune hint 1234 urgent=1
         attune hint 1234/1240 deadline=40ms urgent=
         pgrep ffmpeg | sed 's/$/ urgent=1/' | attune hint --from -

NAME is a thread import of the scheduler; an empty VALUE takes the hint back. The process must be
yours. In a file a line that begins with # says nothing. A line that the scheduler refuses does not
keep the others from being given.

Exit status: 0, 1 when the scheduler refuses one, 2 when no scheduler runs or the words are wrong.

ATTUNE_VALUES=PATH: that of a program with threads of its own (ATTUNE_CONTROL), not the kernel's.";

pub const SET: &str = "\
Example: attune set                     (lists them with their values)
         attune set period=10ms
         attune set command.quantum=2ms others.period=30ms

A time has a unit, a number has none. With two schedulers POLICY is a scheduler's name, or
`command` or `others`; without POLICY the command's scheduler comes first. The scheduler takes all
settings at once, or none. Root and the user who started the run may use it.

Exit status: 0, 1 when the scheduler refuses it, 2 when no scheduler runs or the command is wrong.

ATTUNE_VALUES=PATH: that of a program with threads of its own (ATTUNE_CONTROL), not the kernel's.";

pub const TOP: &str = "\
Example: attune top
         attune top --once
         attune top --json | jq '.policies[0].containers[] | {name, size: (.threads | length)}'

The threads of a container stand in its order. All of it was true at one moment, between two
decisions of the scheduler; names, states (R S D ..) and times come from /proc just after it. RUN
and WAIT are time on a CPU and time able to run without one. Programs supply an attribute marked
<. PUT THERE BY is the line of the scheduler that moved the thread last. Root and the user who
started the run see the scheduler; all users see reservations (attune tune, attuned). q or Ctrl-C
leaves, arrows move.

Exit status: 0, 1 when the run refuses it or has ended, 2 when no scheduler runs.

ATTUNE_VALUES=PATH: that of a program with threads of its own (ATTUNE_CONTROL), not the kernel's.";

pub const STATUS: &str = "\
Example: attune status
         attune status --json | jq '.runs.last.ended.why'

Everybody may ask. Threads with a core-scheduling cookie are counted, since they keep CPUs idle
that a scheduler gives to others.

Exit status: 0.";

pub const BANDWIDTH: &str = "\
Example: attune bandwidth --task 20,100 --to 200 --step 5
         attune bandwidth --task 3,15 --task 5,20 --task 5,30 --plot bandwidth.svg

All times are in one unit of your choice.

Exit status: 0, or 2 when a task is impossible.";

pub const LAB: &str = "\
Example: attune lab run webserver --quick
         attune lab list

Exit status: 0 when no claim is missed, 1 when one is.";

pub const TRACE: &str = "\
Example: attune trace -o player.txt --seconds 10 -- mplayer film.avi
         attune trace -p 4711 -o player.txt --no-exits --call poll --call futex

The file has one event a line, TIME THREAD KIND [NUMBER]; attune period reads it. Without
--seconds the recording goes on until the program ends or Ctrl-C. A command that still runs then
gets SIGTERM.

Exit status: the command's if it ended by itself, else 0; 126 or 127 when it cannot run.";

pub const FOCUS: &str = "\
Example: attune focus
         attune focus explain 4711
         attune focus show --dot | dot -Tsvg -o focus.svg

As root it follows wake-ups too, and so finds the processes that work for a window.

Exit status: 0, 1 when a recording is damaged, 2 when there is no display or no monitor to ask.";

pub const TUNE: &str = "\
Example: attune tune -- mplayer film.avi
         attune tune --display --json -p 4711 -p 4712

Listens to the program's system calls, reserves CPU time for its threads in its beat
(SCHED_DEADLINE), and steers the budgets by their use. However it ends, every thread is scheduled
as before. It tells what happens on standard error; with --json on standard output, a line each,
and the state of all once a second. Needs root.

Exit status: the command's if it ended by itself, else 0; 126 or 127 when it cannot run.";

pub const VM: &str = "\
Example: attune vm setup
         attune vm setup --full
         attune vm --cpus 2 -- sh -c 'uname -r; cat /sys/kernel/sched_ext/state'
         attune vm --deterministic --pack data.txt -- ./my-program data.txt

Exit status: the command's; 124 after --timeout, 125 when the machine failed, 126 or 127 when
the command cannot run, 128 plus a signal's number when the signal killed it.";

pub const SCHEDULERS: &str = "\
Example: attune schedulers
         attune schedulers fair    (prints its text)";

pub const LAB_RUN: &str = "\
Example: attune lab run switch-cost --quick
         attune lab run 'coop-*' tune-load

Before the first one runs, all are checked; if this machine lacks something, none runs, unless
--keep-going.

Exit status: 0 when no claim is missed; 1 when one is, or an experiment could not run.";

pub const PEERS: &str = "\
Example: attune lab peers
         attune lab peers build bpfland

A build needs clang-19, llvm-19 and libclang-19-dev, and takes minutes the first time. It keeps
the programs in ~/.cache/attune/peers (ATTUNE_PEERS_DIR).";

pub const SETUP: &str = "\
Example: attune vm setup
         attune vm setup --kernel /srv/linux-binary.deb#sha256=.. --kernel /srv/linux-base.deb

Environment: ATTUNE_VM_DIR, ATTUNE_VM_KERNEL (separated by spaces), ATTUNE_VM_QEMU,
ATTUNE_VM_VIRTIOFSD and ATTUNE_VM_MIRROR stand for the options. The set-up neither uses nor
changes this machine's package sources.";

pub const COOP_RUN: &str = "\
Example: attune coop run -- Xvfb :9
         attune coop run --transport shared -- mplayer -vo x11 film.avi

Where the main thread waits in poll, ppoll, select, pselect, epoll_wait, epoll_pwait or
epoll_pwait2, it tells when it must run next, and others may run until then. Programs that the
command starts cooperate too.

Exit status: the command's; 126 or 127 when it cannot run.";

pub const COOP_STATUS: &str = "\
Example: attune coop status

Exit status: 0, 1 when the transport that was asked for is not there, 2 when there is none of that
name.";
