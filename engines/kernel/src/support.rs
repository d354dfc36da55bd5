//! Finds out whether this machine can run the kernel engine, and if not, why.

use std::fs;

use attune_linux::process;
use libbpf_rs::MapType;
use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::Func;

/// The oldest kernel that the engine runs on. This is the only place that says so.
pub const OLDEST_KERNEL: &str = "Linux 7.2";

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum Missing {
    #[error(
        "this kernel has no sched_ext ({OLDEST_KERNEL} or newer with CONFIG_SCHED_CLASS_EXT): run \
         the command in a virtual machine that has, `attune vm -- attune run ..`"
    )]
    SchedExt,
    #[error(
        "this kernel's sched_ext is too old, it lacks {0} ({OLDEST_KERNEL} or newer is needed): \
         run the command in a virtual machine with a newer one, `attune vm -- attune run ..`"
    )]
    TooOld(&'static str),
    #[error(
        "loading a scheduler needs the capabilities CAP_BPF, CAP_PERFMON and CAP_SYS_NICE: run it \
         as root"
    )]
    Privilege,
    #[error(
        "another scheduler is already running: {0}. The kernel takes one at a time: end that run \
         first (Ctrl-C where it was started), or change the one that runs with `attune set` and \
         look at it with `attune top`"
    )]
    Busy(String),
    #[error(
        "this kernel has no BPF arenas (Linux 6.10 or newer), or you may not use them: run it as \
         root, or in a virtual machine, `attune vm -- ..`"
    )]
    Arena,
}

const STATE: &str = "/sys/kernel/sched_ext/state";

/// The newest of the kernel's functions that the engine calls.
const NEEDED: [&str; 2] = ["scx_bpf_tid_to_task", "scx_bpf_task_set_dsq_vtime"];

/// Ok if a scheduler can be loaded and attached now.
pub fn check() -> Result<(), Missing> {
    check_kernel()?;
    busy().map_or(Ok(()), Err)
}

/// Ok if a scheduler can be loaded now.
pub fn check_kernel() -> Result<(), Missing> {
    if fs::metadata(STATE).is_err() {
        return Err(Missing::SchedExt);
    }
    let types = Btf::from_vmlinux().map_err(|_| Missing::SchedExt)?;
    for function in NEEDED {
        if types.type_by_name::<Func>(function).is_none() {
            return Err(Missing::TooOld(function));
        }
    }
    if process::effective_user() != 0 {
        return Err(Missing::Privilege);
    }
    Ok(())
}

/// The scheduler that has the kernel now, as an error; None if there is none.
pub fn busy() -> Option<Missing> {
    let state = fs::read_to_string(STATE).ok()?;
    match state.trim() {
        "disabled" => None,
        state => Some(Missing::Busy(current().unwrap_or_else(|| state.to_string()))),
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
