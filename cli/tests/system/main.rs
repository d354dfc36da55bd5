//! Attune on a system as people have it, in the virtual machine: `attuned` and slices under a real
//! systemd, and containers.
//!
//! Without a set-up machine (`attune vm setup`), systemd or crun (`tools/setup.sh test`) the tests
//! say so and pass; where CI=true they fail.

#[path = "../common/mod.rs"]
mod common;
mod container;
mod service;
mod slices;
mod systemd;

use std::path::Path;

/// Whether there is a machine, and here the programs that a test needs.
fn set_up(programs: &[&str]) -> bool {
    let missing = programs.iter().find(|program| !Path::new(program).exists());
    if let Some(program) = missing {
        let told = format!("{program} is not here: tools/setup.sh test installs it");
        assert!(std::env::var("CI").map_or(true, |ci| ci != "true"), "{told}");
        eprintln!("not tested: {told}");
    }
    missing.is_none() && common::set_up()
}
