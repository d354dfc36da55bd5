//! Compiles the built-in scheduler into the library, under a name of its own.

fn main() {
    let abi = "../../backends/c/runtime";
    println!("cargo::rerun-if-changed={abi}/attune_scheduler.h");
    println!("cargo::rerun-if-changed=tests/fifo.c");
    cc::Build::new()
        .std("c11")
        .opt_level(2)
        .include(abi)
        .define("attune_scheduler", "attune_builtin_scheduler")
        .file("tests/fifo.c")
        .compile("attune_builtin_scheduler");
}
