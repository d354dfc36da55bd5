//! Compiles bpf/graph.bpf.c for the kernel's BPF machine.

fn main() {
    attune_bpf::compile("graph.bpf");
}
