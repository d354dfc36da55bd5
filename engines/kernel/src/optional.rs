//! Calls of sched_ext that a kernel may lack by its configuration. The loader leaves them out, and
//! the programs behind them with them; what is lost is said.

use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::Struct;

use crate::image::Image;

/// The members of `struct sched_ext_ops`, the option that brings them, and what is lost without.
const OPTIONAL: [(&[&str], &str, &str); 3] = [
    (
        &[
            "cgroup_init",
            "cgroup_exit",
            "cgroup_move",
            "cgroup_set_weight",
            "cgroup_set_idle",
            "cgroup_set_bandwidth",
        ],
        "CONFIG_EXT_GROUP_SCHED",
        "cpu.weight and cpu.max of cgroups do not count",
    ),
    (&["core_sched_before"], "CONFIG_SCHED_CORE", ""),
    // The kernel's developers mean to drop it.
    (&["cpu_acquire"], "", ""),
];

fn members() -> Option<Vec<String>> {
    let types = Btf::from_vmlinux().ok()?;
    let calls = types.type_by_name::<Struct<'_>>("sched_ext_ops")?;
    let names = calls.iter().filter_map(|member| member.name);
    Some(names.map(|name| name.to_string_lossy().into_owned()).collect())
}

/// Where the members that this kernel lacks lie, in bytes from the start of the object's structure.
pub(crate) fn missing(image: &Image) -> Vec<usize> {
    let Some(members) = members() else { return Vec::new() };
    let names = OPTIONAL.iter().flat_map(|(names, _, _)| *names);
    let absent = names.filter(|name| !members.iter().any(|member| member == *name));
    absent.filter_map(|name| image.layout().engine.as_ref()?.calls_at.get(*name).copied()).collect()
}

/// What users lose on this kernel, in sentences.
pub fn losses() -> Vec<String> {
    let Some(members) = members() else { return Vec::new() };
    let lost = OPTIONAL.iter().filter(|(names, _, loss)| {
        !loss.is_empty() && !names.iter().all(|name| members.iter().any(|member| member == name))
    });
    lost.map(|(_, option, loss)| format!("{loss}: this kernel has no {option}")).collect()
}
