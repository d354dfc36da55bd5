//! `attune manager --at`: managers on several hosts share a cluster through etcd. Hosts are network
//! namespaces; links are cut, and etcd, managers and nodes are killed.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use attune_cluster_local::connection::Connection;
use attune_lab::cluster::hosts::{self, Etcd, Host, Network};
use attune_lab::cluster::partition::{self, nodes};
use attune_linux::time;
use attune_replica::Time;
use serde_json::Value;

use crate::support::{ATTUNE, Folder, err, status};

/// Whether this machine can be several; says why if it cannot.
fn possible() -> bool {
    match hosts::check() {
        Ok(()) => true,
        Err(why) if std::env::var("CI").is_ok_and(|it| it == "true") => panic!("{why}"),
        Err(why) => {
            eprintln!("not tested: {why}");
            false
        }
    }
}

fn farm(test: &str) -> Folder {
    let folder = Folder::new(test);
    partition::write_texts(&folder.0).expect("written");
    folder
}

/// A manager on a host.
struct Manager {
    child: Child,
    lines: BufReader<ChildStdout>,
}

fn command(host: &Host, folder: &Folder, machine: &str, words: &[&str]) -> Command {
    let mut command = host.command(ATTUNE);
    let socket = format!("./{machine}/farm");
    command.args(["manager", "farm.sched", "--name", &socket, "--json"]).args(words);
    command.current_dir(&folder.0);
    command
}

impl Manager {
    fn start(host: &Host, folder: &Folder, machine: &str, words: &[&str]) -> Manager {
        let mut command = command(host, folder, machine, words);
        let mut child = command.stdout(Stdio::piped()).spawn().expect("it starts");
        let lines = BufReader::new(child.stdout.take().expect("piped"));
        let mut manager = Manager { child, lines };
        manager.until("listening");
        manager
    }

    /// Passes over what it says until that event has come.
    fn until(&mut self, event: &str) -> Value {
        loop {
            let mut line = String::new();
            self.lines.read_line(&mut line).expect("readable");
            let said: Value = serde_json::from_str(&line).expect("a line of JSON, and no end");
            if said["event"] == event {
                return said;
            }
        }
    }

    fn kill(&mut self) {
        self.child.kill().expect("a process");
        self.child.wait().expect("its end");
    }
}

impl Drop for Manager {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn node(folder: &Folder, machine: &str) -> Connection {
    let schema = nodes::schema().expect("the farm");
    Connection::new(schema, 0, folder.0.join(machine).join("farm"))
}

fn now() -> Time {
    time::now() as Time
}

/// Lets the nodes talk until each of those that `heard` names reads these numbers.
#[track_caller]
fn until(all: &mut [Connection], heard: &[usize], jobs: i64, here: i64) {
    for _ in 0..60_000 {
        for node in all.iter_mut() {
            node.exchange(now());
        }
        let reads = |it: &usize| {
            (nodes::number(&all[*it], "jobs"), nodes::number(&all[*it], "here")) == (jobs, here)
        };
        if heard.iter().all(reads) {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    let read: Vec<_> =
        all.iter().map(|it| (nodes::number(it, "jobs"), nodes::number(it, "here"))).collect();
    panic!("after a minute {heard:?} do not read {:?}: {read:?}", (jobs, here));
}

fn add(node: &mut Connection, times: i64) {
    (0..times).for_each(|_| nodes::add(node, "jobs"));
}

#[test]
fn machines_count_together_whatever_is_cut_or_killed() {
    if !possible() {
        return;
    }
    let folder = farm("machines");
    let network = Network::of(3).expect("a network");
    let [a, b, middle] = &network.hosts[..] else { panic!("three hosts") };
    let mut etcd = Etcd::start(middle, &folder.0.join("etcd"), &[]).expect("etcd");
    let at = etcd.address().to_owned();
    let at = ["--at", at.as_str()];
    let mut here = Manager::start(a, &folder, "a", &at);
    let mut there = Manager::start(b, &folder, "b", &at);
    let mut all = [node(&folder, "a"), node(&folder, "b"), node(&folder, "b")];
    all.iter_mut().for_each(|node| add(node, 1000));
    until(&mut all, &[0, 1, 2], 3000, 3);

    // Another manager of the name on the same machine, and one of another text on another.
    let output = command(a, &folder, "a", &at).output().expect("it runs");
    assert_eq!(status(&output), 2, "{}", err(&output));
    assert!(err(&output).contains("runs already"), "{}", err(&output));
    let other = Folder::new("machines-other");
    partition::write_texts(&other.0).expect("written");
    let text = std::fs::read_to_string(other.0.join("worker.subsched")).expect("readable");
    std::fs::write(other.0.join("worker.subsched"), text.replace("jobs + here", "jobs"))
        .expect("written");
    let output = command(a, &other, "c", &at).output().expect("it runs");
    assert_eq!(status(&output), 1, "{}", err(&output));
    let ours = &nodes::schema().expect("the farm").identity;
    assert!(err(&output).contains(ours), "{}", err(&output));

    // The link of one machine is cut for longer than the other waits.
    network.cut(1).expect("cut");
    there.until("not kept");
    add(&mut all[0], 10);
    add(&mut all[1], 100);
    until(&mut all, &[0], 3010, 1);
    until(&mut all, &[1], 3100, 3);
    assert!(all[1].replica().age(now()) > 3_000_000_000, "it is told how old what it knows is");
    network.mend(1).expect("mended");
    until(&mut all, &[0, 1, 2], 3110, 3);

    // etcd is killed, and comes back with what it had.
    etcd.kill().expect("killed");
    here.until("not kept");
    add(&mut all[0], 1);
    add(&mut all[2], 1);
    until(&mut all, &[0], 3111, 3);
    etcd.again(middle).expect("etcd");
    until(&mut all, &[0, 1, 2], 3112, 3);

    // A manager is killed, and goes on as the same one: no node arrives anew.
    there.kill();
    add(&mut all[0], 1);
    add(&mut all[1], 1);
    let mut there = Manager::start(b, &folder, "b", &at);
    until(&mut all, &[0, 1, 2], 3114, 3);
    there.until("returned");

    // A node has gone: the manager of the other machine knows, too.
    let [first, second, _gone] = all;
    drop(_gone);
    let mut all = [first, second];
    until(&mut all, &[0, 1], 3114, 2);

    // A machine is lost for good, and its node with it.
    there.kill();
    until(&mut all, &[0], 3114, 1);
}

/// etcd with certificates and a password, as a stranger has it.
#[test]
fn a_manager_shows_etcd_its_password_over_tls() {
    if !possible() {
        return;
    }
    let folder = farm("machines-tls");
    let script = "
        openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 \
            -subj /CN=authority -keyout ca.key -out ca.pem
        openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=etcd \
            -keyout etcd.key -out etcd.csr
        echo subjectAltName=IP:10.77.0.1 > names
        openssl x509 -req -days 2 -in etcd.csr -CA ca.pem -CAkey ca.key -CAcreateserial \
            -extfile names -out etcd.pem";
    let made = Command::new("sh").args(["-ec", script]).current_dir(&folder.0).output();
    let made = made.expect("openssl runs");
    assert_eq!(status(&made), 0, "{}", err(&made));
    let network = Network::of(1).expect("a network");
    let host = &network.hosts[0];
    let file = |name: &str| folder.0.join(name).to_str().expect("text").to_owned();
    let words = ["--cert-file", &file("etcd.pem"), "--key-file", &file("etcd.key")];
    let etcd = Etcd::start(host, &folder.0.join("etcd"), &words).expect("etcd");
    let control = |words: &str| {
        let ca = file("ca.pem");
        let output = host
            .command("timeout")
            .args(["60", "etcdctl", "--dial-timeout=30s", "--cacert", &ca])
            .args(["--endpoints", etcd.address()])
            .args(words.split(' '))
            .env("ETCDCTL_API", "3")
            .output()
            .expect("etcdctl runs");
        assert_eq!(status(&output), 0, "{words}: {}", err(&output));
    };
    control("user add root:over");
    control("user grant-role root root");
    control("user add farmer:open");
    control("role add farms");
    control("role grant-permission --prefix farms readwrite attune/farm/");
    control("user grant-role farmer farms");
    control("auth enable");
    let folder_of = |name: &str, text: &str| std::fs::write(folder.0.join(name), text);
    folder_of("right", "open\n").expect("written");
    folder_of("wrong", "shut\n").expect("written");
    let words = |password: &'static str| {
        ["--at", etcd.address(), "--ca", "ca.pem", "--user", "farmer", "--password-file", password]
    };
    let refused = command(host, &folder, "a", &words("wrong")).output().expect("it runs");
    assert_eq!(status(&refused), 2, "{}", err(&refused));
    assert!(err(&refused).contains("authentication failed"), "{}", err(&refused));
    let stranger = ["--at", etcd.address()];
    let refused = command(host, &folder, "a", &stranger).output().expect("it runs");
    assert_eq!(status(&refused), 2, "{}", err(&refused));
    assert!(err(&refused).contains("certificate"), "{}", err(&refused));
    let mut manager = Manager::start(host, &folder, "a", &words("right"));
    let mut all = [node(&folder, "a")];
    add(&mut all[0], 7);
    until(&mut all, &[0], 7, 1);
    manager.until("arrived");
}

/// Without etcd a manager says so; nothing waits for ever.
#[test]
fn an_address_that_cannot_be_right_is_refused() {
    let folder = farm("machines-address");
    let attune = |at: &str| folder.attune(&["manager", "farm.sched", "--name", "./s", "--at", at]);
    let output = attune("db1:2379");
    assert_eq!(status(&output), 2);
    assert!(err(&output).contains("https://HOST:PORT"), "{}", err(&output));
    let nobody = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let at = format!("http://{}", nobody.local_addr().expect("an address"));
    drop(nobody);
    let output = attune(&at);
    assert_eq!(status(&output), 2);
    assert!(err(&output).contains("cannot share the master's state"), "{}", err(&output));
}
