//! Compiles a BPF program, for a build script.

use std::env;
use std::path::Path;
use std::process::Command;

const CANDIDATES: [&str; 6] = ["clang-19", "clang-20", "clang-21", "clang-22", "clang-18", "clang"];

/// C that several programs share.
const SHARED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/c");

/// Compiles `bpf/NAME.c`, a path below the crate, to `NAME.o` in OUT_DIR. Panics, as a build script
/// may, where no compiler is found, the program has a mistake, or the machine is none of x86-64 and
/// arm64, on which the programs are known to work.
pub fn compile(name: &str) {
    println!("cargo:rerun-if-changed=bpf");
    println!("cargo:rerun-if-changed={SHARED}");
    println!("cargo:rerun-if-env-changed=BPF_CLANG");
    let folder = env::var_os("OUT_DIR").expect("cargo sets OUT_DIR");
    let machine = match env::var("CARGO_CFG_TARGET_ARCH").as_deref() {
        Ok("x86_64") => "x86",
        Ok("aarch64") => "arm64",
        other => panic!("{name} is known to work on x86-64 and arm64 only, not on {other:?}"),
    };
    let status = Command::new(compiler())
        .args(["--target=bpf", "-mcpu=v3", "-O2", "-g", "-std=gnu11", "-ffreestanding"])
        .args(["-Wall", "-Werror"])
        .args([&format!("-D__TARGET_ARCH_{machine}"), "-I", SHARED])
        .args(["-c", &format!("bpf/{name}.c"), "-o"])
        .arg(Path::new(&folder).join(format!("{name}.o")))
        .status();
    assert!(status.is_ok_and(|status| status.success()), "clang could not compile bpf/{name}.c");
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
            "no clang that compiles for BPF (tried {}): run tools/setup.sh, or install one \
             (Debian: apt install clang-19), or name yours in BPF_CLANG",
            candidates.join(", ")
        )
    })
}
