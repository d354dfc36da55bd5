//! Bad days of a cluster on one machine that need programs of their own: a disk without room, a
//! user who does not belong there.

use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use attune_cluster_local::connection::Connection;
use attune_linux::{process, time};
use attune_replica::Time;

use crate::cluster::{Manager, build, example, own_node, program};
use crate::support::skip;

/// A user id that no program here runs as.
const STRANGER: u32 = 65534;

/// How large the manager's files may become.
fn limit(manager: &Manager, size: &str) {
    let process = manager.child.id().to_string();
    let size = format!("--fsize={size}:");
    let set = Command::new("prlimit").args(["--pid", &process, &size]).status();
    assert!(set.expect("prlimit runs").success());
}

/// The limit on the size of its files is the manager's disk: reserving more fails, and later works.
#[test]
fn a_manager_whose_disk_is_full_tells_nothing_until_it_has_room() {
    let folder = example("cluster-disk", "pool");
    let mut sh = Command::new("sh");
    // A limit is reported by a signal, which a full disk does not send.
    sh.args(["-c", "trap '' XFSZ; exec \"$0\" manager pool.sched --name ./socket --json"]);
    sh.arg(crate::support::ATTUNE).current_dir(&folder.0);
    let (mut manager, _) = Manager::started(&mut sh);
    let file = folder.0.join("socket.state");
    let taken = std::fs::metadata(&file).expect("the kept state").len();
    limit(&manager, &taken.to_string());
    let mut nodes: Vec<Connection> = (0..120).map(|_| own_node(&folder)).collect();
    let exchange = |nodes: &mut [Connection]| {
        nodes.iter_mut().for_each(|node| drop(node.exchange(time::now() as Time)));
    };
    exchange(&mut nodes);
    // Nodes that hear nothing go on with what they know.
    let full = manager.until("not kept", 1);
    assert!(full["reason"].as_str().is_some_and(|why| !why.is_empty()), "{full}");
    exchange(&mut nodes);
    assert!(nodes.iter().any(|node| node.replica().node().is_none()), "all were told");

    limit(&manager, "unlimited");
    manager.until("kept again", 1);
    for _ in 0..60_000 {
        exchange(&mut nodes);
        if nodes.iter().all(|node| node.replica().node().is_some()) {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    panic!("after a minute some node is not told that it has arrived");
}

/// A program of another user reaches the socket and is refused, with the reason on both sides.
#[test]
fn a_program_of_another_user_is_refused() {
    if process::effective_user() != 0 {
        return skip("only root can start a program as another user");
    }
    let folder = example("cluster-stranger", "tickets");
    let tickets = program(&folder, "tickets");
    build(&folder, "tickets.sched", "counter");
    let (mut manager, _) = Manager::of(&folder, "tickets.sched", &[]);
    let mut command = Command::new(&tickets);
    command.arg("see").current_dir(&folder.0).uid(STRANGER).gid(STRANGER);
    command.env("ATTUNE_SCHED", "./counter.so").env("ATTUNE_CLUSTER", "./socket");
    let mut stranger = command.stderr(Stdio::piped()).spawn().expect("it starts");
    let refused = manager.until("refused", 1);
    assert!(refused["reason"].as_str().is_some_and(|it| it.contains("belongs to user 0")));
    // It goes on alone until it is stopped.
    std::thread::sleep(std::time::Duration::from_millis(300));
    stranger.kill().expect("it runs");
    let said = stranger.wait_with_output().expect("it ended");
    let said = String::from_utf8_lossy(&said.stderr);
    assert!(said.contains("refuses this node"), "{said}");
    // A program of the right user is let in.
    let mut own = Command::new(&tickets);
    own.arg("see").current_dir(&folder.0).env("ATTUNE_SCHED", "./counter.so");
    let own = own.env("ATTUNE_CLUSTER", "./socket").output().expect("it starts");
    assert!(own.status.success() && own.stdout.starts_with(b"{\"last\": 0"));
}
