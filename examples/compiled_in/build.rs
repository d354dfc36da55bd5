//! Compiles the scheduler into the program.

fn main() -> Result<(), attune_threads_build::Error> {
    println!("cargo::rerun-if-changed=build.rs");
    attune_threads_build::compile("shortest.sched")
}
