//! One machine in which a real systemd runs ([`BOOT`] starts it), for all tests of what systemd
//! does with the service and with slices. It has one CPU, and no other load disturbs its time.

use std::fs;
use std::path::Path;
use std::sync::OnceLock;

use crate::common::machine::{folder, in_quiet_machine};
use crate::{service, set_up, slices};

const SYSTEMD: &str = "/lib/systemd/systemd";
const BOOT: &str = include_str!("boot.sh");
const SCRIPT: &str = "exec 2>&1; attune=$1
. ./service
$attune run fair.bpf.o --all -- /bin/sh ./slices; echo exit $?
";
const PROGRAMS: [&str; 14] = [
    "cp",
    "dbus-send",
    "dmesg",
    "env",
    "grep",
    "ls",
    "mkdir",
    "mkfifo",
    "mount",
    "sed",
    "seq",
    "systemctl",
    "systemd-run",
    "unshare",
];

/// All that is said there; None without a machine or systemd.
pub fn session() -> Option<&'static str> {
    static SAID: OnceLock<String> = OnceLock::new();
    set_up(&[SYSTEMD, "/usr/bin/dbus-send"]).then(|| SAID.get_or_init(run).as_str())
}

fn run() -> String {
    let folder = folder("systemd");
    let files = [service::prepare(&folder), slices::prepare(&folder)].concat();
    fs::write(folder.join("boot.sh"), BOOT).unwrap();
    fs::write(folder.join("script"), SCRIPT).unwrap();
    // Newer ones start units with the second.
    let systemd = [SYSTEMD, "/lib/systemd/systemd-executor"].into_iter();
    let systemd: Vec<&str> = systemd.filter(|program| Path::new(program).exists()).collect();
    let programs = PROGRAMS.map(|name| format!("/usr/bin/{name}"));
    let own = ["boot.sh", "script", "/bin/sh"].into_iter().chain(systemd);
    let packed: Vec<&str> = files.iter().chain(&programs).map(String::as_str).chain(own).collect();
    in_quiet_machine(&folder, 1, &packed, "sh ./boot.sh $attune")
}
