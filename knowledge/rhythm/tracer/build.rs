//! Compiles bpf/tracer.bpf.c for the kernel's BPF machine. The object is part of the library: who runs it needs no compiler.

use std::env;
use std::path::Path;
use std::process::Command;

const CANDIDATES: [&str; 6] = ["clang-19", "clang-20", "clang-21", "clang-22", "clang-18", "clang"];

fn main() {
    println!("cargo:rerun-if-changed=bpf");
    println!("cargo:rerun-if-env-changed=BPF_CLANG");
    let object = Path::new(&env::var_os("OUT_DIR").expect("cargo sets OUT_DIR")).join("tracer.bpf.o");
    let machine = match env::var("CARGO_CFG_TARGET_ARCH").as_deref() {
        Ok("x86_64") => "x86",
        Ok("aarch64") => "arm64",
        other => {
            panic!("the tracer reads the system call's number on x86-64 and arm64 only, not on {other:?}")
        }
    };
    let status = Command::new(compiler())
        .args(["--target=bpf", "-mcpu=v3", "-O2", "-g", "-std=gnu11", "-ffreestanding", "-Wall", "-Werror"])
        .arg(format!("-D__TARGET_ARCH_{machine}"))
        .args(["-c", "bpf/tracer.bpf.c", "-o"])
        .arg(&object)
        .status();
    assert!(status.is_ok_and(|status| status.success()), "clang could not compile bpf/tracer.bpf.c");
}

/// The one that BPF_CLANG names, or the first that compiles for BPF.
fn compiler() -> String {
    let named = env::var("BPF_CLANG").ok().filter(|name| !name.trim().is_empty());
    let candidates = named.map_or(CANDIDATES.map(String::from).to_vec(), |name| vec![name]);
    let works = |name: &String| {
        let run = Command::new(name).args(["--target=bpf", "--version"]).output();
        run.is_ok_and(|output| output.status.success())
    };
    candidates.iter().find(|name| works(name)).cloned().unwrap_or_else(|| {
        panic!(
            "no clang that compiles for BPF (tried {}): run tools/setup.sh, or install one (Debian: apt install \
             clang-19), or name yours in BPF_CLANG",
            candidates.join(", ")
        )
    })
}
