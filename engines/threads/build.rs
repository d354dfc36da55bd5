//! Makes the built-in scheduler, `schedulers/pth.sched`, part of the library.

fn main() -> Result<(), attune_threads_build::Error> {
    println!("cargo::rerun-if-changed=build.rs");
    attune_threads_build::compile("pth")
}
