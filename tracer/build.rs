//! Compiles bpf/tracer.bpf.c for the kernel's BPF machine.

fn main() {
    attune_bpf::compile("tracer.bpf");
}
