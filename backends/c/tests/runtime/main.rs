//! The C runtime against models: random commands to its containers, and its arithmetic against
//! Rust's.

mod containers;
mod model;
mod numbers;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Compiles a driver beside this file, with everything that the compiler and its sanitizers can
/// find.
fn driver(name: &str, compiler: &str) -> PathBuf {
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{compiler}"));
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/runtime/{name}.c"));
    let output = Command::new(compiler)
        .args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-Wno-unused", "-g", "-O1"])
        .args(["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-o"])
        .args([&out, &source])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    out
}

/// What a driver answers to that input; it must end well.
fn answers(driver: &Path, input: String) -> String {
    let mut child = Command::new(driver)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || {
        // A driver that has ended says why on its own.
        let _ = stdin.write_all(input.as_bytes());
    });
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}\n{said}\n{complaint}", output.status);
    said
}
