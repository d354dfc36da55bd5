//! What tests in a virtual machine share.

/// Whether a machine is set up; where all tests must run, it has to be.
pub fn set_up() -> bool {
    let there = attune_vm::Cache::open(&attune_vm::Cache::default_folder());
    if let Err(error) = &there {
        assert!(std::env::var("CI").map_or(true, |ci| ci != "true"), "{error}");
        eprintln!("not tested: {error}");
    }
    there.is_ok()
}
