//! A bad day of a cluster on one machine that needs a manager of its own: a disk without room.

use std::process::Command;

use attune_cluster_local::connection::Connection;
use attune_linux::time;
use attune_replica::Time;

use crate::cluster::{Manager, example, own_node};

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
    let mut nodes: Vec<Connection> = (0..120).map(|_| own_node(&folder, "pool.sched")).collect();
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
