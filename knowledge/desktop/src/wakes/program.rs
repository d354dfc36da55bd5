//! The program in the kernel, without the tracepoints that this machine lacks.

use attune_bpf::load::{self, BTF};
use libbpf_rs::{Object, OpenObject};

use super::Error;

/// Tracepoints that a machine may lack: its timer interrupts are then no different from others.
const OPTIONAL: [(&str, &str); 2] =
    [("timer_enters", "local_timer_entry"), ("timer_leaves", "local_timer_exit")];

pub fn load() -> Result<Object, Error> {
    Ok(load::load(attune_bpf::object!("graph.bpf.o"), configure)?)
}

fn configure(object: &mut OpenObject) -> libbpf_rs::Result<()> {
    for mut program in object.progs_mut() {
        let name = program.name().to_string_lossy().into_owned();
        if let Some((_, tracepoint)) = OPTIONAL.iter().find(|(optional, _)| *optional == name) {
            program.set_autoload(has_tracepoint(tracepoint));
        }
    }
    Ok(())
}

/// The kernel describes a tracepoint by the type of its functions.
fn has_tracepoint(name: &str) -> bool {
    let wanted = format!("\0btf_trace_{name}\0");
    std::fs::read(BTF).is_ok_and(|types| {
        let wanted = wanted.as_bytes();
        types.windows(wanted.len()).any(|window| window == wanted)
    })
}
