//! What tests in a virtual machine share.

#[allow(dead_code, reason = "not every file of tests runs scripts there")]
pub mod machine;

use std::process::{Command, Output};

/// Whether a machine is set up; where all tests must run, it has to be.
pub fn set_up() -> bool {
    let there = attune_vm::Cache::open(&attune_vm::Cache::default_folder());
    if let Err(error) = &there {
        assert!(std::env::var("CI").map_or(true, |ci| ci != "true"), "{error}");
        eprintln!("not tested: {error}");
    }
    there.is_ok()
}

/// What came of `attune vm ..`; of a second run where the emulator's own fault ended the first, or
/// it had not come up.
#[allow(dead_code, reason = "not every file of tests runs commands there")]
pub fn output(vm: &mut Command) -> Output {
    let first = vm.output().expect("it starts");
    let said = String::from_utf8_lossy(&first.stderr);
    match [attune_vm::FAULT, attune_vm::NOT_BEGUN].iter().any(|fault| said.contains(fault)) {
        true => vm.output().expect("it starts"),
        false => first,
    }
}
