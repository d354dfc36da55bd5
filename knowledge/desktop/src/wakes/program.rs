//! The program in the kernel, as this kernel takes it.

use attune_bpf::load::{self, BTF};
use libbpf_rs::{Object, OpenObject};

use super::Error;

/// Programs that ask the kernel whether they run inside an interrupt, and what stands in their
/// place where it does not say so: the same that count interrupts, and those that count
/// (`bpf/depth.h`).
const ASKING: [&str; 2] = ["thread_wakes", "work_is_queued"];
const COUNTING: [&str; 6] = [
    "thread_wakes_counted",
    "work_is_queued_counted",
    "softirq_leaves",
    "interrupt_leaves",
    "softirq_enters",
    "interrupt_enters",
];
/// Those that count, too, where the timer's interrupt has tracepoints of its own.
const COUNTING_TIMERS: [(&str, &str); 2] =
    [("timer_leaves", "local_timer_exit"), ("timer_enters", "local_timer_entry")];

pub fn load() -> Result<Object, Error> {
    let load = |counting| {
        load::load(attune_bpf::object!("graph.bpf.o"), |object| {
            choose(object, counting);
            Ok(())
        })
    };
    Ok(load(false).or_else(|_| load(true))?)
}

fn choose(object: &mut OpenObject, counting: bool) {
    for mut program in object.progs_mut() {
        let name = program.name().to_string_lossy().into_owned();
        let timer = COUNTING_TIMERS.iter().find(|(timer, _)| *timer == name);
        if ASKING.contains(&name.as_str()) {
            program.set_autoload(!counting);
        } else if COUNTING.contains(&name.as_str()) {
            program.set_autoload(counting);
        } else if let Some((_, tracepoint)) = timer {
            program.set_autoload(counting && has_tracepoint(tracepoint));
        }
    }
}

/// The kernel describes a tracepoint by the type of its functions.
fn has_tracepoint(name: &str) -> bool {
    let wanted = format!("\0btf_trace_{name}\0");
    std::fs::read(BTF).is_ok_and(|types| {
        let wanted = wanted.as_bytes();
        types.windows(wanted.len()).any(|window| window == wanted)
    })
}
