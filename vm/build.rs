//! Compiles the guest's first program, statically, to be embedded in the library.

use std::env;
use std::path::PathBuf;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=guest/init.c");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo says where")).join("init");
    let compiler = cc::Build::new().opt_level(2).get_compiler();
    let mut command = Command::new(compiler.path());
    command.args([
        "-O2",
        "-static",
        "-s",
        "-Wall",
        "-Wextra",
        "-Wno-unused-result",
        "guest/init.c",
        "-o",
    ]);
    let status = command.arg(&out).status();
    assert!(
        status.as_ref().is_ok_and(|status| status.success()),
        "{} cannot make a static program (Debian: apt-get install gcc libc6-dev): {status:?}",
        compiler.path().display()
    );
}
