//! Whether this machine can run the kernel engine, and if not, why.

use std::fs;
use std::path::Path;

use libbpf_rs::MapType;

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum Missing {
    #[error(
        "this kernel has no sched_ext (Linux 6.12 or newer with CONFIG_SCHED_CLASS_EXT): run the command in a virtual \
         machine that has, `attune vm -- attune run ..`"
    )]
    SchedExt,
    #[error(
        "loading a scheduler needs the capabilities CAP_BPF, CAP_PERFMON and CAP_SYS_NICE: run it as root"
    )]
    Privilege,
    #[error("a scheduler is loaded already: {0}; end it first")]
    Busy(String),
    #[error(
        "this kernel has no BPF arenas (Linux 6.10 or newer), or you may not use them: run it as root, or in a virtual machine, \
         `attune vm -- ..`"
    )]
    Arena,
}

const STATE: &str = "/sys/kernel/sched_ext/state";

/// Ok if a scheduler can be loaded now.
pub fn check() -> Result<(), Missing> {
    let Ok(state) = fs::read_to_string(STATE) else { return Err(Missing::SchedExt) };
    if !Path::new("/sys/kernel/btf/vmlinux").exists() {
        return Err(Missing::SchedExt);
    }
    // SAFETY: takes no arguments and cannot fail.
    if unsafe { libc::geteuid() } != 0 {
        return Err(Missing::Privilege);
    }
    match state.trim() {
        "disabled" => Ok(()),
        _ => Err(Missing::Busy(current().unwrap_or_else(|| state.trim().to_string()))),
    }
}

/// Ok if [`crate::Replay`] can run here. It needs no sched_ext.
pub fn check_replay() -> Result<(), Missing> {
    match MapType::Arena.is_supported() {
        Ok(true) => Ok(()),
        _ => Err(Missing::Arena),
    }
}

/// The name of the scheduler that runs now.
pub fn current() -> Option<String> {
    let name = fs::read_to_string("/sys/kernel/sched_ext/root/ops").ok()?;
    Some(name.trim().to_string()).filter(|name| !name.is_empty())
}

/// CPUs that this machine may ever have.
pub fn possible_cpus() -> u32 {
    let text = fs::read_to_string("/sys/devices/system/cpu/possible").unwrap_or_default();
    let last = text.trim().rsplit([',', '-']).next().and_then(|last| last.parse::<u32>().ok());
    last.map_or(1, |last| last + 1)
}
